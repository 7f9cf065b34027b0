"""Pictures into a file that plays: H.264 in MP4 through PyAV, or an animated WebP through Pillow where that is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_atomic

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["NO_MP4", "RATE_MAX", "SUFFIXES", "can_write_mp4", "check_video_size", "read_frames", "video_suffix", "write_video"]

SUFFIXES = (".mp4", ".webp")
CRF = 20
"""Constant rate factor of x264: 18 is taken for visually lossless, 23 is its default."""
WEBP_QUALITY = 82
SIDE_MAX = 4096
RATE_MAX = 240.0
NO_MP4 = "The film is an animated WebP, since PyAV is not installed; for an MP4: pip install 'airworthy[video]'."
_BT709 = 1
"""Number of ITU-R BT.709 as matrix, primaries and transfer in H.264 (ITU-T H.264, tables E-3 to E-5)."""
_LIMITED = 1
"""FFmpeg's number for values from 16 to 235."""


def check_video_size(size: tuple[int, int]) -> None:
    """Refuse sizes of films that H.264 does not take, or nobody can mean; raises AirworthyError."""
    width, height = size
    if width % 2 or height % 2 or not (16 <= width <= SIDE_MAX and 16 <= height <= SIDE_MAX):
        raise AirworthyError(f"A film of {width}x{height} pixels was asked for; expected even numbers, 16 to {SIDE_MAX}.")


def can_write_mp4() -> bool:
    """Tell whether PyAV is installed; it is not imported."""
    return importlib.util.find_spec("av") is not None


def video_suffix() -> str:
    """Return the suffix of the best film that can be written here."""
    return ".mp4" if can_write_mp4() else ".webp"


def write_video(
    path: str | Path, frames: Iterable[ArrayU8], count: int, size: tuple[int, int], rate: float, crf: int = CRF
) -> Path:
    """Write a film, whole or not at all; the same frames give the same bytes.

    Args:
        path: Ends in .mp4 or .webp.
        frames: `count` pictures (height, width, 3), taken one after the other as they are encoded.
        count: How many there are.
        size: Width and height, even [px].
        rate: Frames per second.
        crf: Constant rate factor of an MP4, 0 (lossless) to 51.

    Raises:
        AirworthyError: The suffix is another, PyAV is missing, a side is odd, or the file system refused.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise AirworthyError(f"A film was to be written to {str(path)!r}; expected a name that ends in .mp4 or .webp.")
    if path.suffix.lower() == ".mp4" and not can_write_mp4():
        raise AirworthyError("An MP4 needs the package 'av': pip install 'airworthy[video]', or write a .webp.")
    check_video_size(size)
    if path.suffix.lower() == ".mp4":
        return write_atomic(path, lambda temporary: _write_mp4(temporary, iter(frames), size, rate, crf))
    return write_atomic(path, lambda temporary: _write_webp(temporary, iter(frames), count, size, rate))


def _write_mp4(path: Path, frames: Iterator[ArrayU8], size: tuple[int, int], rate: float, crf: int) -> None:
    """Write the film with one thread and no date or version in the file: the same frames give the same bytes."""
    import av
    from av.video.reformatter import ColorRange, Colorspace

    options = {"crf": str(crf), "preset": "medium", "threads": "1"}
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart", "fflags": "+bitexact"}) as file:
        stream: Any = file.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001), options=options)
        context = stream.codec_context
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        context.thread_count = 1
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = _LIMITED
        for picture in frames:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            yuv = frame.reformat(
                format="yuv420p",
                src_colorspace=Colorspace.ITU709,
                dst_colorspace=Colorspace.ITU709,
                src_color_range=ColorRange.JPEG,
                dst_color_range=ColorRange.MPEG,
            )
            file.mux(stream.encode(yuv))
        file.mux(stream.encode(None))


def _write_webp(path: Path, frames: Iterator[ArrayU8], count: int, size: tuple[int, int], rate: float) -> None:
    """Pillow asks its image for one frame after the other, so that no more than one is in memory."""
    first = _stream(frames, count, size)
    stamps = np.round(1000.0 * np.arange(count + 1) / rate).astype(int)
    lasting = np.diff(stamps).tolist()
    with open(path, "r+b") as file:
        first.save(file, "WEBP", save_all=True, duration=lasting, quality=WEBP_QUALITY, method=2, loop=0)


def _stream(frames: Iterator[ArrayU8], count: int, size: tuple[int, int]) -> Image.Image:
    from PIL import Image

    class Film(Image.Image):
        """A picture of many frames, which come from an iterator as they are asked for, in order."""

        n_frames = count

        def __init__(self) -> None:
            super().__init__()
            self._shown = -1
            self._mode, self._size = "RGB", size

        def seek(self, frame: int) -> None:
            if frame == self._shown + 1:
                self.im, self._shown = Image.fromarray(next(frames)).im, frame

        def tell(self) -> int:
            return 0

    return Film()


def read_frames(path: str | Path) -> Iterator[ArrayU8]:
    """Yield the pictures of a film, (height, width, 3) each.

    Raises:
        ModuleNotFoundError: An MP4, and PyAV is missing.
    """
    if Path(path).suffix.lower() == ".webp":
        from PIL import Image, ImageSequence

        with Image.open(path, formats=["WEBP"]) as image:
            for frame in ImageSequence.Iterator(image):
                yield np.asarray(frame.convert("RGB"))
        return
    import av

    with av.open(str(path)) as file:
        for decoded in file.decode(video=0):
            yield np.asarray(decoded.to_ndarray(format="rgb24"), np.uint8)
