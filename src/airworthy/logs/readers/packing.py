"""Bytes packed by zstd and lz4, unpacked up to a limit: what a frame says of its own size is not believed."""

from __future__ import annotations

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""First bytes of a frame (RFC 8878, section 3.1.1)."""


def is_zstd(data: bytes | memoryview) -> bool:
    """Tell whether the first bytes are of a frame of zstd."""
    return bytes(data[:4]) == ZSTD_MAGIC


def zstd_bytes(data: bytes | memoryview, most: int) -> bytes:
    """Return at most so many bytes of what frames of zstd hold.

    Raises:
        ValueError: They are damaged.
    """
    import zstandard

    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data, read_across_frames=True) as stream:
            return bytes(stream.read(most))
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def lz4_bytes(data: bytes | memoryview, most: int) -> bytes:
    """Return at most so many bytes of what a frame of lz4 holds; raises RuntimeError where it is damaged."""
    from lz4.frame import LZ4FrameDecompressor

    return bytes(LZ4FrameDecompressor().decompress(data, max_length=most))
