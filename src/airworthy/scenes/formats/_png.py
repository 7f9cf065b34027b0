"""Textures as PNG files."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray


def png(pixels: NDArray[np.uint8]) -> bytes:
    """PNG of (height, width, 1, 3 or 4) pixels, the same bytes for the same pixels."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG", compress_level=6)
    return file.getvalue()
