"""Small films and pictures for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.reports.film import write_video

SIZE = (96, 64)


def textured_picture(width: int = 400, height: int = 64, seed: int = 0) -> np.ndarray:
    """A smooth random pattern (height, width, 3) with structure at 3 and at 12 pixels."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    found = np.zeros((height, width, 3))
    for sigma in (1.5, 6.0):
        part = gaussian_filter(rng.normal(size=(height, width, 3)), (sigma, sigma, 0))
        found += part / part.std()
    return np.clip(128.0 + 45.0 * found, 0, 255).astype(np.uint8)


def textured_film(count: int, step: int = 2) -> list[np.ndarray]:
    """A camera that pans to the right over a pattern: pictures of `SIZE`, `step` px further each."""
    wide = textured_picture(SIZE[0] + step * count + 8)
    return [np.ascontiguousarray(wide[:, step * k : step * k + SIZE[0]]) for k in range(count)]


def write_film(path: Path, pictures: list[np.ndarray], rate: float = 10.0) -> Path:
    height, width = pictures[0].shape[:2]
    return write_video(path, iter(pictures), len(pictures), (width, height), rate)
