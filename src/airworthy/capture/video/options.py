"""What a user chooses about a place from a film."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from airworthy.capture.alignment.markers import DICTIONARY, SIDE
from airworthy.capture.alignment.record import AlignOptions
from airworthy.capture.training.options import TrainOptions
from airworthy.capture.video.reconstruction import ReconstructionOptions
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import Bound, check_fields

__all__ = ["IDLE_RULES", "CaptureVideoOptions", "VideoPlan"]

IDLE_RULES = (
    IdleRule(
        ("frames",), lambda options: options.rule == "published", "with the published rule, which takes 20 and 280", "drop that"
    ),
    IdleRule(
        ("train_width", "steps", "gaussians"),
        lambda options: not options.train,
        "with --no-train, whose training it is of",
        "drop that",
    ),
)
"""Options that change nothing beside the others."""


@dataclass(frozen=True)
class CaptureVideoOptions:
    """How a film becomes a place. Numbers that are None follow from `quick`.

    Raises:
        AirworthyError: If a number is out of range, or an option changes nothing.
    """

    quick: bool = False
    """Fewer and smaller pictures, fewer gaussians and steps: minutes instead of a quarter of an hour."""
    frames: Annotated[int, Bound(8, 5000)] | None = None
    """Pictures that are taken: 120, quick 60."""
    width: Annotated[int, Bound(160, 4096, "px")] | None = None
    """Longer side of the pictures: 960, quick 640."""
    rule: Literal["spread", "published"] = "spread"
    """Which pictures: sharp ones spread in time and motion, or the published 20 with the marker in view and 280 without."""
    masks: bool = False
    """Look for people and other things that do not stay, and leave them out: before poses what moves across the motion of
    everything else, and before the training what other pictures of the same surface do not show."""
    side: Annotated[float, Bound(0.001, 100.0, "m")] = SIDE
    """Side of the markers' black squares, measured on paper [m]; 0.16 is what `airworthy capture marker` draws."""
    markers: tuple[str, ...] = ("0",)
    """Markers that are looked for, as NUMBER, or NUMBER:SIDE [m] where one is larger; the first makes the origin."""
    dictionary: str = DICTIONARY
    """Of the markers: 4x4_50, ..., apriltag_36h11, ..."""
    marker_on: Literal["floor", "wall", "any"] = "floor"
    """Where the first marker lies; off the floor it gives the scale, and level and floor come from edges and points."""
    known_distance: tuple[tuple[str, str, float], ...] = ()
    """Two points and the metres between them; a point is IMAGE:U,V+IMAGE:U,V or X,Y,Z of the capture's frame."""
    train_width: Annotated[int, Bound(64, 4096, "px")] | None = None
    """Of the images that are trained on: 640, quick 400."""
    steps: Annotated[int, Bound(1, 10_000_000)] | None = None
    """Of the training: 8,000, quick 3,000."""
    gaussians: Annotated[int, Bound(100, 50_000_000)] | None = None
    """Most of them: 150,000, quick 50,000."""
    train: bool = True
    """Train splats and make the place; without, posed and aligned pictures are the end."""
    seed: Annotated[int, Bound(0, 2**31 - 1)] = 0

    def __post_init__(self) -> None:
        check_fields(self, "CaptureVideoOptions.")
        refuse_idle(self, IDLE_RULES)
        self.aligning()

    def aligning(self, unscaled: bool = False) -> AlignOptions:
        """Return by what the place is made metric and level.

        Args:
            unscaled: Do without markers and distances.

        Raises:
            AirworthyError: A marker or a dictionary is not understood.
        """
        return AlignOptions(
            side=self.side,
            markers=self.markers,
            dictionary=self.dictionary,
            marker_on=self.marker_on,
            # A distance beside it would make doing without a scale an option without effect, which is refused.
            known_distance=() if unscaled else self.known_distance,
            unscaled=unscaled,
            seed=self.seed,
        )

    def plan(self, reconstruction: ReconstructionOptions | None = None) -> VideoPlan:
        """Return what is done, every number resolved.

        Args:
            reconstruction: How poses are found; None: as `quick` says.
        """
        quick = self.quick
        found = reconstruction or ReconstructionOptions(
            features=2500 if quick else 4000, overlap=5 if quick else 6, alike=10 if quick else 12, seed=self.seed
        )
        training = TrainOptions(
            steps=self.steps or (3000 if quick else 8000),
            count=self.gaussians or (50_000 if quick else 150_000),
            degree=0 if quick else 1,
            exposure="on",
            seed=self.seed,
        )
        return VideoPlan(
            frames=self.frames or (60 if quick else 120),
            side=self.width or (640 if quick else 960),
            train_width=self.train_width or (400 if quick else 640),
            options=self,
            reconstruction=found,
            training=training,
        )


@dataclass(frozen=True)
class VideoPlan:
    """A film's way to a place, in numbers."""

    frames: int
    side: int
    train_width: int
    options: CaptureVideoOptions = field(default_factory=CaptureVideoOptions)
    reconstruction: ReconstructionOptions = field(default_factory=ReconstructionOptions)
    training: TrainOptions = field(default_factory=TrainOptions)

    def with_training(self, training: TrainOptions) -> VideoPlan:
        """Return the plan with other options of training."""
        if not isinstance(training, TrainOptions):
            raise AirworthyError(f"A training by {type(training).__name__}; expected TrainOptions.")
        return replace(self, training=training)
