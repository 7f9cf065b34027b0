"""What a data set says of its images before any of them is opened: names, cameras, poses; and of its points."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.capture._gate import clean
from airworthy.capture.cameras import SourceCamera

__all__ = ["Frame", "Listing"]

Floats = NDArray[np.floating[Any]]
_EXAMPLES, _REASONS = 3, 50


@dataclass(frozen=True, eq=False)
class Frame:
    """An image that a data set lists."""

    name: str
    """As the set calls it, from the folder of the set."""
    camera: SourceCamera | None
    """None: a field of view without a size, see `angle`."""
    position: Floats
    """(3,) optical centre, frame of the set."""
    attitude: Floats
    """(4,) camera (x right, y down, z forward) to the frame of the set."""
    mask: str = ""
    """Name of an image that is white where the image is to be used."""
    angle: float = 0.0
    """Field of view across the image [rad], where the set gives no camera."""
    held_out: bool = False


@dataclass(eq=False)
class Listing:
    """A data set, listed."""

    what: str
    """In words: "transforms.json", "COLMAP, binary"."""
    frames: list[Frame] = field(default_factory=list)
    points: Floats | None = None
    """(m, 3), frame of the set."""
    colors: NDArray[np.uint8] | None = None
    metric: bool = False
    up: str = ""
    """The axis that the set says points up; "": it says none."""
    split: bool = False
    """Whether the set says which images are held out."""
    notes: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    """How many listed images cannot be used, by reason."""
    examples: dict[str, list[str]] = field(default_factory=dict)

    def skip(self, name: str, reason: str) -> None:
        """Leave an image out, and say so."""
        reason = reason if len(self.missing) < _REASONS or reason in self.missing else "is left out for a further reason"
        self.missing[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _EXAMPLES:
            examples.append(clean(name))

    @property
    def skipped(self) -> tuple[str, ...]:
        """A sentence for each reason why images are missing."""
        return tuple(self._sentence(reason, count) for reason, count in self.missing.items())

    def _sentence(self, reason: str, count: int) -> str:
        names = ", ".join(self.examples[reason])
        if count == 1:
            return f"1 listed image left out ({names}): {reason}"
        more = ", ..." if count > len(self.examples[reason]) else ""
        return f"{count:,} listed images left out ({names}{more}): {reason}"
