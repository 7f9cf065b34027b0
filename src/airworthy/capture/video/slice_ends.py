"""Whether the slices of an HEVC picture end where their bytes end: damage of which the decoder says nothing.

A slice is one arithmetic code. Once a bit of it is wrong the decoder goes on, reads something else out of every byte that
follows, and is done long before the last one, or not yet behind it; it does not say so. What it shows tells: the last bytes
of a whole slice are part of its picture, and bytes behind them are not (ITU-T H.265, 7.3.8.1 and 7.3.2.10: a slice ends by a
flag in its code, behind which only zeros may follow). So each picture is decoded again, on grey in place of the pictures it is
predicted from, on which reading its bytes does not depend: with other last bytes, which must change it, and with bytes more,
which must not.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["SliceEnds"]

_LENGTHS = (8, 16, 32, 64)
"""How many of the last bytes are changed."""
_TRIES, _LEAST = 16, 100
"""Changes of which none shows, until a slice is taken for one whose end is never read; and bytes of a slice from where on it is
looked at. Ours: motion alone does not show on grey; in twelve whole films that are hard to tell, slices of which under 12 of
16 changes showed had up to 52 bytes, and those of which none did up to 20."""
_SLICES = 8
"""Of a picture that are looked at one by one: telephones write one."""
_MORE, _MORE_COUNT = b"\x55", 64
_ORDER = (0, 1, 0, 0, 1, 1, 0)
"""In which a picture without and with more bytes is decoded again where the two differed. What lies in a decoder's memory goes
round in it; what differs by the bytes differs always."""
_TRAIL = {8: 0, 9: 1}
"""Pictures shown before the one that stands for itself are passed over by themselves; types of others with the same syntax."""


class SliceEnds:
    """Decodes pictures of an HEVC film one by one, and tells whose slices do not end with their bytes.

    Told of all of a film's pieces in the order of decoding, as parameter sets may lie in them.

    Args:
        head: The stream's own (ISO/IEC 14496-15: hvcC).
    """

    def __init__(self, head: bytes) -> None:
        self._av: Any = importlib.import_module("av")
        # One thread: what a decoder leaves in its memory is the same each time. Grey in place of what is missing is output
        # by these flags alone.
        self._decoder = self._av.CodecContext.create("hevc", "r")
        self._decoder.extradata, self._decoder.thread_count, self._decoder.thread_type = head, 1, "NONE"
        self._decoder.options = {"flags": "+output_corrupt", "flags2": "+showall"}
        self._length = (head[21] & 3) + 1
        self._rng = np.random.default_rng(0)

    def broken(self, units: Sequence[bytes]) -> bool:
        """Tell whether a slice of a picture is not read to its end, or beyond.

        Args:
            units: Of one picture, without the numbers that tell their lengths.
        """
        whole = [_alone(unit.rstrip(b"\x00")) for unit in units]
        slices = [k for k, unit in enumerate(whole) if len(unit) > 2 and (unit[0] >> 1) & 0x3F < 32]
        shown = self._shown(whole)
        if shown is None or not slices:
            # Pictures that are not meant to be shown: nothing is told.
            return False
        return self._reads_on(whole, slices, shown) or any(self._ends_early(whole, k, shown) for k in slices[:_SLICES])

    def _ends_early(self, units: Sequence[bytes], which: int, shown: list[bytes]) -> bool:
        unit = units[which]
        if len(unit) < _LEAST:
            return False
        for k in range(_TRIES):
            count = min(_LENGTHS[k % len(_LENGTHS)], len(unit) // 2)
            # No zeros, which would need bytes that part them. The last byte holds the end's own bit.
            other = self._rng.integers(1, 256, count, dtype=np.uint8).tobytes()
            if self._shown([*units[:which], unit[: -count - 1] + other + unit[-1:], *units[which + 1 :]]) != shown:
                return False
        return True

    def _reads_on(self, units: Sequence[bytes], slices: Sequence[int], shown: list[bytes]) -> bool:
        longer = [unit + _MORE * _MORE_COUNT if k in slices else unit for k, unit in enumerate(units)]
        if max(map(len, longer)) >= 256**self._length or self._shown(longer) == shown:
            return False
        found: tuple[list[Any], list[Any]] = ([shown], [])
        for one in _ORDER:
            found[one].append(self._shown(longer if one else units))
        short, long = found
        return all(one == short[0] for one in short) and all(one == long[0] for one in long) and short[0] != long[0]

    def _shown(self, units: Sequence[bytes]) -> list[bytes] | None:
        """Planes of a picture that is decoded alone; None: nothing is shown."""
        packet = self._av.Packet(b"".join(len(unit).to_bytes(self._length, "big") + unit for unit in units))
        packet.pts, packet.dts, packet.time_base = 0, 0, Fraction(1, 30)
        try:
            frames = [*self._decoder.decode(packet), *self._decoder.decode(None)]
        except self._av.error.FFmpegError:
            frames = []
        self._decoder.flush_buffers()
        return [bytes(plane) for plane in frames[0].planes] if frames else None


def _alone(unit: bytes) -> bytes:
    """Return a unit of a picture as of one that is decoded whatever came before it."""
    kind = (unit[0] >> 1) & 0x3F if unit else 0
    return bytes([(unit[0] & 0x81) | (_TRAIL[kind] << 1)]) + unit[1:] if kind in _TRAIL else unit
