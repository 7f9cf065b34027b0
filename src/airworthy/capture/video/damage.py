"""Damage in the middle of a film, which decoders hide: they fill in what is missing, and go on.

A picture that is damaged goes on into all that are predicted from it, up to the next one that stands for itself. Five things
tell that a piece of a film is damaged: it cannot be decoded; the decoder marks its picture; its bytes cannot have been written
by an encoder; and of HEVC, its picture is never shown, or a slice does not end where its bytes end (`slice_ends`). The third
is needed where zeros were written over a film, as of a copy that ended early or of a worn card: H.264 and HEVC never have
three zero bytes in a row within a unit, and both are decoded without a word. The last two are needed since the decoder of HEVC
says nothing of other bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from airworthy.capture.video.slice_ends import SliceEnds

__all__ = ["FilmDamage", "UnitFormat", "damage_sentence", "unit_format"]

_APART_S, _SPANS = 0.5, 4
"""Damaged pictures that are no farther apart are told as one part of the film [s]; and how many parts are told."""

_FORBIDDEN = (b"\x00\x00\x00", b"\x00\x00\x01", b"\x00\x00\x02")
"""Within a unit a 3 is put in before the last of these bytes (ITU-T H.264 and H.265, 7.4.1 and 7.4.2: emulation prevention)."""
_TRAILING = 4
"""Zero bytes that some programs keep with a unit that they follow; in a film whose units have lengths there should be none."""


@dataclass(frozen=True)
class UnitFormat:
    """How the units of a piece of film follow each other, by the head of the film."""

    codec: str
    """"h264" or "hevc"."""
    length: int
    """Bytes of the number before each unit that tells its length."""

    def broken(self, piece: bytes) -> bool:
        """Tell whether a piece of film cannot be as an encoder wrote it.

        Args:
            piece: All units of one picture.
        """
        for size, unit in self.units(piece):
            kept = unit.rstrip(b"\x00")
            # Each begins with a zero bit.
            if not kept or len(unit) < size or unit[0] & 0x80:
                return True
            if len(unit) - len(kept) > _TRAILING or any(some in kept for some in _FORBIDDEN):
                return True
        return False

    def referred(self, piece: bytes) -> bool:
        """Tell whether other pictures may be predicted from that of a piece, as far as its units say.

        Args:
            piece: All units of one picture, of which some may be damaged.
        """
        slices = [unit for _, unit in self.units(piece) if self._is_slice(unit)]
        return not slices or not all(self._is_last_of_its_line(unit) for unit in slices)

    def units(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the size that is told of each unit, and the unit, shorter where the piece ends before.

        Args:
            piece: All units of one picture.
        """
        at = 0
        while at < len(piece):
            size = int.from_bytes(piece[at : at + self.length], "big")
            at += self.length
            yield size, piece[at : at + size]
            at += size

    def needs_earlier(self, piece: bytes) -> bool:
        """Tell whether a picture is passed over where the film begins with the one that it is shown before.

        Args:
            piece: All units of one picture.
        """
        # HEVC, table 7-1: RASL_N and RASL_R.
        return self.codec == "hevc" and any((unit[0] >> 1) & 0x3F in (8, 9) for _, unit in self.units(piece) if unit)

    def _is_slice(self, unit: bytes) -> bool:
        # H.264, table 7-1: types 1 to 5; HEVC, table 7-1: types under 32, with a number after that is never 0 in its last bits.
        if self.codec == "h264":
            return len(unit) > 0 and 1 <= unit[0] & 0x1F <= 5
        return len(unit) > 1 and (unit[0] >> 1) & 0x3F < 32 and unit[1] & 7 != 0

    def _is_last_of_its_line(self, unit: bytes) -> bool:
        # H.264: nal_ref_idc is 0; HEVC: even types under 16 are pictures that none of the same sub-layer refers to.
        if self.codec == "h264":
            return unit[0] & 0x60 == 0
        kind = (unit[0] >> 1) & 0x3F
        return kind < 16 and kind % 2 == 0


def unit_format(codec: str, head: bytes | None) -> UnitFormat | None:
    """Return how units follow each other in a stream; None where they are not counted (other codecs, MPEG transport streams).

    Args:
        codec: As the decoder is called.
        head: The stream's own (ISO/IEC 14496-15: avcC, hvcC).
    """
    at = {"h264": 4, "hevc": 21}.get(codec)
    if at is None or head is None or len(head) <= at or head[0] != 1:
        return None
    return UnitFormat(codec, (head[at] & 3) + 1)


class FilmDamage:
    """Which pictures of a film are damaged, or predicted from ones that are.

    Told of pieces in the order in which they are decoded, and of what came of them whenever that is.

    Args:
        units: Of the stream; None: bytes tell nothing.
        ends: Of HEVC; None: slices are not decoded again.
    """

    def __init__(self, units: UnitFormat | None, ends: SliceEnds | None = None) -> None:
        self._units, self._ends = units, ends
        self._pieces: list[tuple[int | None, bool, bool]] = []
        """Time of its picture, in units of the stream; whether it stands for itself; whether others are predicted from it."""
        self._bad: set[int] = set()
        """Numbers of pieces that are damaged."""
        self._expected: dict[int, int] = {}
        """Of HEVC: numbers of the pieces of which a picture must come, by its time."""

    def piece(self, packet: Any) -> int:
        """Take the next piece, and return its number.

        Args:
            packet: Of PyAV.
        """
        number = len(self._pieces)
        data = b"" if self._units is None else bytes(packet)
        referred = self._units is None or not data or self._units.referred(data)
        self._pieces.append((packet.pts, bool(packet.is_keyframe), referred))
        if packet.is_corrupt or (self._units is not None and self._units.broken(data)):
            self._bad.add(number)
        elif self._units is not None and self._units.codec == "hevc" and data:
            if packet.pts is not None and not packet.is_discard and not self._units.needs_earlier(data):
                self._expected[packet.pts] = number
            if self._ends is not None and self._ends.broken([unit for _, unit in self._units.units(data)]):
                self._bad.add(number)
        return number

    def shown(self, time: int | None) -> None:
        """Take that a picture came.

        Args:
            time: In units of the stream.
        """
        if time is not None:
            self._expected.pop(time, None)

    def failed(self, number: int) -> None:
        """Take that a piece could not be decoded.

        Args:
            number: Of the piece.
        """
        self._bad.add(number)

    def marked(self, time: int | None) -> None:
        """Take that the decoder marked a picture.

        Args:
            time: In units of the stream.
        """
        for number, (pts, _, _) in enumerate(self._pieces):
            if pts is not None and pts == time:
                self._bad.add(number)

    def times(self) -> set[int]:
        """Return the times, in units of the stream, of all pictures that are damaged or predicted from damaged ones.

        Asked when all are decoded: pictures of HEVC that have not come by then never do.
        """
        self._bad.update(self._expected.values())
        found: set[int] = set()
        spoilt, since = False, None
        for number, (pts, alone, referred) in enumerate(self._pieces):
            if alone:
                # Ones that follow, but are shown before it, may be predicted from what came before it, too.
                since, spoilt = (pts if spoilt else None), False
            leading = since is not None and pts is not None and pts < since
            bad = number in self._bad
            spoilt = spoilt or (bad and referred)
            if (spoilt or bad or leading) and pts is not None:
                found.add(pts)
        return found


def damage_sentence(seconds: Sequence[float], count: int) -> str:
    """Return what is said of the damaged pictures of a film.

    Args:
        seconds: When they are shown, increasing [s].
        count: Pictures of the film.
    """
    runs: list[tuple[float, float]] = []
    for time in seconds:
        if runs and time - runs[-1][1] <= _APART_S:
            runs[-1] = runs[-1][0], time
        else:
            runs.append((time, time))
    spans = [f"{begin:.1f} to {end:.1f} s" if end > begin else f"{begin:.1f} s" for begin, end in runs[:_SPANS]]
    where = "; ".join([*spans, *(["..."] if len(runs) > _SPANS else [])])
    return f"left out as damaged, or predicted from damaged ones: {len(seconds)} of {count} pictures ({where})"
