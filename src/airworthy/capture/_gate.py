"""The gate: every byte of a capture comes through here, and nothing outside of its folder."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core import files
from airworthy.core.arrays import ArrayU8
from airworthy.core.files import Untrusted, image_kind

if TYPE_CHECKING:
    from PIL import Image

_ROOM = 64 * 1024 * 1024
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".PNG", ".JPG", ".JPEG")


@dataclass(frozen=True)
class CaptureLimits:
    """What a capture may ask for. One that asks for more is refused before anything is allocated."""

    model_bytes: int = 1024 * 1024 * 1024
    """Of one file that lists cameras, images or points."""
    json_bytes: int = 32 * 1024 * 1024
    """Of one JSON file. In Python it can take 24 times as much."""
    image_bytes: int = 256 * 1024 * 1024
    """Of one image file."""
    image_pixels: int = 64 * 1024 * 1024
    """Of one image as it is on disk."""
    image_ratio: int = 100
    """Pixels' bytes that a byte of an image file may become, beyond 64 MiB."""
    total_pixels: int = 4_000_000_000
    """Of all images at the size at which they are kept; 3 bytes each."""
    frames: int = 50_000
    """Images that are listed."""
    cameras: int = 50_000
    points: int = 20_000_000
    coordinate: float = 1e7
    """Poses and points beyond this along an axis are dropped as if they were not finite."""


CAPTURE_LIMITS = CaptureLimits()


def clean(text: str) -> str:
    """Return a name from a file, fit for terminals and tables."""
    text = "".join(character if character.isprintable() else "?" for character in text[:121])
    return text if len(text) <= 120 else text[:117] + "..."


class DamagedImageError(Exception):
    """An image that cannot be used; the message completes a sentence that begins with its name."""


class CaptureFolder(Untrusted):
    """The folder of a capture: which files may be read, and how much of them.

    Args:
        folder: Where all of it lies.
        limits: What it may ask for.
    """

    def __init__(self, folder: str | Path, limits: CaptureLimits) -> None:
        self.folder = Path(folder)
        self.limits = limits
        super().__init__(self.folder, self.folder)

    def locate(self, name: str) -> Path | None:
        """Return the path of a file that the capture names; None where there is no regular one; raises AssetError as
        `inside`."""
        path = self.inside(name)
        return path if os.path.isfile(path) else None

    def locate_image(self, name: str) -> Path | None:
        """Return the path of an image that the capture names, perhaps without its ending; None where there is none."""
        found = self.locate(name)
        if found is None and not Path(name).suffix[1:].isalpha():
            found = next((path for end in SUFFIXES if (path := self.locate(name + end)) is not None), None)
        return found

    def size(self, path: Path) -> tuple[int, int]:
        """Return width and height of an image [px], which is not decoded; raises DamagedImageError."""
        with self._opened(path) as image:
            return image.width, image.height

    def color(self, path: Path) -> ArrayU8:
        """Return (height, width, 3) of an image, 4 where it has transparency; raises DamagedImageError."""
        with self._opened(path) as image:
            clear = image.mode in ("LA", "PA", "La", "RGBa", "RGBA") or "transparency" in image.info
            return np.asarray(image.convert("RGBA" if clear else "RGB"))

    def grey(self, path: Path) -> ArrayU8:
        """Return (height, width) of an image; raises DamagedImageError."""
        with self._opened(path) as image:
            return np.asarray(image.convert("L"))

    @contextmanager
    def _opened(self, path: Path) -> Iterator[Image.Image]:
        from PIL import Image

        try:
            data = files.read_bytes(path, self.limits.image_bytes)
            kind = image_kind(data)
            if not kind:
                raise DamagedImageError("is neither PNG nor JPEG nor WebP")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Image.open(io.BytesIO(data), formats=[kind]) as image:
                    self._check(image, len(data))
                    yield image
        except DamagedImageError:
            raise
        except Exception as error:  # Pillow raises whatever its many decoders raise, struct.error and SyntaxError among them
            raise DamagedImageError("is damaged") from error

    def _check(self, image: Image.Image, size: int) -> None:
        """Before it is decoded."""
        count = image.width * image.height
        if count > self.limits.image_pixels or 3 * count > _ROOM + self.limits.image_ratio * size:
            raise DamagedImageError(f"has {image.width:,} x {image.height:,} pixels, too many for its size or the limits")
        if image.mode in ("I;16", "I;16B", "I", "F"):
            raise DamagedImageError("has 16 bits a channel, or more")
