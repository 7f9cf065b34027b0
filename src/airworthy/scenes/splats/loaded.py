"""What reading a splat file gives: the splats, what was dropped, and how the file's frame became the scene's."""

from __future__ import annotations

from dataclasses import dataclass, field

from airworthy.scenes.formats.model import Limits
from airworthy.scenes.splats.record import Splats

SPLAT_LIMITS = Limits(
    file_bytes=2 * 1024**3,
    memory_bytes=64 * 1024**2,
    memory_ratio=64.0,
    vertices=40_000_000,
    coordinate=1e6,
)
"""Limits of splat files. They are compressed up to twenty times, hence the ratio; `vertices` counts gaussians. `images`,
`texture_pixels`, `json_bytes` and `nodes` hold for SOG and glTF."""


@dataclass(frozen=True)
class SourceFrame:
    """The frame of a file, and the similarity that led from it to the scene: p = scale * R(rotation) p_file + translation."""

    up: str
    """The axis of the file that was taken as up: "y", "-y", "z", ..."""
    axes: str
    """What the container says of its axes, in words; "" where it says nothing."""
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """Quaternion x, y, z, w."""
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m]."""
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class LoadedSplats:
    """Content of a splat file."""

    splats: Splats
    """In the frame of the scene: z up."""
    container: str
    """In words: "SPZ version 3"."""
    source: SourceFrame
    dropped: dict[str, int] = field(default_factory=dict)
    """How many gaussians were left out, by reason; empty where the file is sound."""
    warnings: tuple[str, ...] = ()
    """What was dropped, mended or left out, with counts."""
    antialiased: bool = False
    """Whether the file says that it was trained with the anti-aliasing filter (Mip-Splatting)."""
    levels: int = 1
    """Levels of detail that the file holds; one of them was read."""
