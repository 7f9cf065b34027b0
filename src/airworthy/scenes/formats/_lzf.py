"""LZF, the compression of PCD files."""

from __future__ import annotations

from typing import NoReturn

from airworthy.scenes.formats._source import Source

RATIO_MAX = 88
"""Three bytes stand for at most 264: more than this cannot come out."""


def decompress(source: Source, data: bytes, size: int) -> bytes:
    """Exactly `size` bytes from LZF data; refuses data that hold more, less, or refer to what was not yet written.

    A control byte below 32 is followed by that many literal bytes and one more; otherwise its upper three bits are a length (7:
    one more byte of length follows), its lower five and the next byte a distance back.
    """
    if size > RATIO_MAX * len(data) + 32:
        source.refuse(f"it promises {size:,} bytes from {len(data):,} compressed ones, which cannot be")
    out = bytearray(size)
    read, written, end = 0, 0, len(data)
    while read < end:
        control = data[read]
        read += 1
        if control < 32:
            length = control + 1
            if read + length > end or written + length > size:
                _broken(source)
            out[written : written + length] = data[read : read + length]
            read += length
        else:
            length = control >> 5
            if length == 7:
                if read >= end:
                    _broken(source)
                length += data[read]
                read += 1
            if read >= end:
                _broken(source)
            start = written - ((control & 31) << 8) - data[read] - 1
            read += 1
            length += 2
            if start < 0 or written + length > size:
                _broken(source)
            piece = out[start : min(start + length, written)]
            if len(piece) < length:  # it overlaps what it writes: the piece repeats
                piece = (piece * (length // len(piece) + 1))[:length]
            out[written : written + length] = piece
        written += length
    if written != size:
        _broken(source)
    return bytes(out)


def _broken(source: Source) -> NoReturn:
    source.refuse("its compressed data are damaged")
