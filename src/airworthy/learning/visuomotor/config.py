"""What a user chooses about a visuomotor policy, and what follows from how many minutes it may take."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.backbone import efficientnet
from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.machine import SEED_MAX, TrainingOptions
from airworthy.pilots.svnet import lite0
from airworthy.sensors.carried import policy_camera_name
from airworthy.vehicles import named_vehicle

__all__ = ["DATA_FOLDER", "IDLE_RULES", "JUDGED_SEED", "Augmentation", "VisuomotorOptions", "VisuomotorProtocol", "place_names"]

TRAINED = "trained"
"""Of features: convolutions learn with the heads."""
DATA_FOLDER = "data"
"""Of the expert's roll-outs in a training's folder, a data set as `airworthy synthesize` makes it."""
JUDGED_SEED = 7919
"""Of the flights by which policies are judged in the end; nothing is learnt of them (specification, learning by reward, section
8)."""

# Defaults are ours.
_PAIRS_PER_MINUTE = 1200.0
"""Of the expert that are made, by the minutes there are: a fifth of the time, at 5 ms an image on two cores."""
_PAIRS = (800, 24_000)
"""At least, and at most: beyond it the policy's own flights teach more."""
_PAIRS_OF_PLACES = 120_000
"""At most in several places together; ours: 1.1 GB of features."""
_ROLLOUT_PAIRS = 40
_REPETITIONS = 6
_ROUNDS_PER_MINUTE = 1.0
_FLIGHTS, _FEW_FLIGHTS, _FEW_MINUTES = 16, 8, 8.0
"""Of a round, and of one where there are few minutes. [M] Hall, five minutes: with 16 there is no time for a round or for one
(15 and 11 of 20 flights succeeded), with 8 for one to three (20 and 20)."""
# [M] 5,600 pairs of the hall, imitation alone: of the rates that the expert asks for on a policy's first flights heads explain
# 38 % (roll) and 45 % (pitch); of undisturbed roll-outs they had learnt to explain 11 and 7 %.
_NOISE = "disturbed"
_KEPT_WITHIN = 1.0
"""Of roll-outs' ends [m]: who is pushed about does not end on the course."""


@dataclass(frozen=True)
class Augmentation:
    """How looks differ from the image; all numbers are ours, 0 leaves a change out."""

    light: Annotated[float, Bound(0.0, 0.95)] = 0.6
    """Linear light is scaled by a factor between 1 - this and 1 / (1 - this), as many stops up as down."""
    contrast: Annotated[float, Bound(0.0, 0.9)] = 0.25
    """Exposure curves: display values are raised to a power of up to 1 + this, or one over it."""
    paste: Annotated[float, Bound(0.0, 1.0)] = 0.6
    """Share of looks into which things are pasted that do not belong there, people among them as upright rectangles."""
    blur: Annotated[float, Bound(0.0, 1.0)] = 0.3
    """Share of looks that are blurred by motion, over up to five pixels."""
    noise: Annotated[float, Bound(0.0, 100.0)] = 4.0
    """Standard deviation of a pixel's noise [counts of 255], at most; each look draws its own."""

    def __post_init__(self) -> None:
        check_fields(self, "Augmentation.")


@dataclass(frozen=True)
class VisuomotorOptions(TrainingOptions):
    """How a policy that sees learns to fly a course in a place.

    Raises:
        AirworthyError: A number is out of range.
    """

    scene: tuple[str, ...] = ("hall",)
    """Where: names or files of scenes (see `airworthy scenes`); mid_gate:0-199@1 names 200 drawn ones, and
    other_look:mid_gate:0-199@1 these, each with sky, lamps and surfaces of its own. One policy learns in all of them."""
    course: tuple[str, ...] = ("robustness",)
    """What is flown, in every place: names or JSON files; of several the policy is told which by its objective."""
    vehicle: str = "carl"
    """What flies: a catalogue name or a vehicle TOML file, with a camera."""
    features: str = "own"
    """Frozen features of images: own (the backbone that comes with the package), hall (the shipped policy's), random,
    efficientnet_lite0 (ImageNet's, from the extra imagenet), a folder of `airworthy train backbone`, or a .safetensors file of
    SqueezeNet 1.1; trained: convolutions learn, too, from random ones, or, as trained:own, from any of these of SqueezeNet."""
    minutes: Annotated[float, Bound(1.0, 1440.0, "min")] = 10.0
    """What all of it may take, evaluation included, on a machine with nothing else to do: a round that would not end in time is
    not begun. Fewer pairs are made for fewer minutes."""
    rounds: Annotated[int, Bound(0, 1000)] = 0
    """Rounds of flights of its own that it learns from, whatever the clock says, so that the same bits come out anywhere; 0: as
    many as there is time for, and fewer where flights say that it is good."""
    flights: Annotated[int, Bound(0, 1000)] = 0
    """In a round: half with the equations of a rigid body, half semi-kinematic; of several courses and places as many of each,
    at least so many in all, or, where there are more of them, in turn; 0: 16, and 8 where there are less than 8 minutes."""
    drones: Annotated[float, Bound(0.0, 0.9)] = 0.3
    """Mass and thrust of drones that are learnt from are within this share of the record's."""
    delay: Annotated[float, Bound(0.0, 0.2, "s")] = 0.04
    """Of commands, at most, in rounds; each round draws its own, in hundredths of a second."""
    pickup: Annotated[float, Bound(0.0, 1.0)] = 0.3
    """Share of the mass, at most, that is hung on in flight in half of a round's blocks; each draws its own."""
    start: Annotated[float, Bound(0.0, 2.0, "m")] = 0.3
    """By which starts of rounds lie off the course's, along each axis; velocities by as much [m/s]."""
    channels: Annotated[int, Bound(8, 512)] = 64
    """Kept of a cell's features."""
    looks: Annotated[int, Bound(1, 8)] = 2
    """At each image: as it is, and changed."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    """How changed looks differ."""
    good_percent: Annotated[float, Bound(0.0, 100.0)] = 100.0
    """It is good where this share of a round's flights succeeds without help, twice in a row, and"""
    good_m: Annotated[float, Bound(0.0, 10.0, "m")] = 0.1
    """their mean tracking error is no more than this."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of everything that is drawn."""

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_idle(self, IDLE_RULES)
        place_names(self.scene)
        if self.trains_trunk and self.trunk == efficientnet.WORD:
            raise AirworthyError(f"Convolutions of {efficientnet.WORD} stay as they are; expected trained, or as trained:own.")
        if self.features == efficientnet.WORD and self.channels > lite0.CHANNELS:
            raise AirworthyError(
                f"channels is {self.channels}; {efficientnet.WORD} gives {lite0.CHANNELS} of a cell: keep at most as many."
            )
        if not self.course:
            raise AirworthyError("A policy needs a course to fly, as --course robustness.")
        if twice := next((name for name in self.course if self.course.count(name) > 1), ""):
            raise AirworthyError(f"The course {twice!r} is named twice; name each once.")
        if self.seed == JUDGED_SEED:
            raise AirworthyError(f"Seed {JUDGED_SEED} is that of the flights on which policies are judged; take another.")
        if self.flights % 2:
            raise AirworthyError(f"flights is {self.flights}; expected an even number, half for each family of dynamics.")

    @property
    def trains_trunk(self) -> bool:
        """Whether convolutions learn with the heads."""
        return self.features.split(":")[0] == TRAINED

    @property
    def trunk(self) -> str:
        """Word of the convolutions that are seen with, or at least begun with."""
        return self.features if not self.trains_trunk else self.features.partition(":")[2] or "random"

    @property
    def places(self) -> tuple[str, ...]:
        """Names of all scenes."""
        return place_names(self.scene)

    @property
    def round_flights(self) -> int:
        """Flights of a round."""
        return self.flights or (_FLIGHTS if self.minutes >= _FEW_MINUTES else _FEW_FLIGHTS)

    @property
    def iterations(self) -> int:
        """Steps at most: imitation, then rounds; without a number of them about as many as there is ever time for."""
        return 1 + (self.rounds or max(1, round(_ROUNDS_PER_MINUTE * self.minutes)))

    @property
    def pairs(self) -> int:
        """Pairs of the expert that are aimed at."""
        least, most = _PAIRS
        most = most if len(self.places) == 1 else _PAIRS_OF_PLACES
        return int(min(max(_PAIRS_PER_MINUTE * self.minutes, least), most))

    def dataset(self, seconds: float, place: str) -> DatasetConfig:
        """Return what the expert's pairs in a place are made of.

        Args:
            seconds: Of all courses together.
            place: Name of the scene.
        """
        count = len(self.places)
        # Few pairs of a place are spread along its courses rather than drawn again from one start.
        repetitions = _REPETITIONS if count == 1 else 1
        points = self.pairs / (count * _ROLLOUT_PAIRS * repetitions)
        least = 0.1 if count == 1 else 0.01
        return DatasetConfig(
            courses=self.course,
            vehicle=self.vehicle,
            per_second=max(least, round(points / seconds, 3)),
            repetitions=repetitions,
            mass=self.drones,
            thrust=self.drones,
            # By the published rule, but on a finer grid: at 2 m/s samples at 10 Hz lie 0.2 m apart.
            keep_rate=100.0,
            noise=_NOISE,
            keep_within=_KEPT_WITHIN,
            scene=place,
            camera=policy_camera_name(named_vehicle(self.vehicle)),
            view="112",
            shard=20,
            seed=self.seed,
        )


IDLE_RULES = (
    IdleRule(
        ("good_percent", "good_m"),
        lambda asked: asked.rounds > 0,
        "with --rounds, all of which are flown",
        "leave --rounds out",
    ),
    IdleRule(
        tuple(f"augmentation.{item.name}" for item in fields(Augmentation)),
        lambda asked: asked.looks == 1,
        "with --looks 1, the image as it is",
        "raise that",
    ),
    IdleRule(
        ("delay",),
        lambda asked: 0.0 < asked.delay < 0.01,
        "below a hundredth of a second, in which it is drawn",
        "raise it",
    ),
)
"""Options that change nothing beside the others."""


@dataclass(frozen=True)
class VisuomotorProtocol:
    """How the policy is judged in the end: `airworthy evaluate` with these.

    Raises:
        AirworthyError: A number is out of range.
    """

    conditions: tuple[str, ...] = ("baseline", "drones")
    """As of `airworthy evaluate`."""
    flights: Annotated[int, Bound(1, 10_000)] = 20
    """Per condition and family."""
    family: tuple[str, ...] = ("rigid",)
    """Equations of motion."""
    scene: tuple[str, ...] = ()
    """Places, as of --scene; none: those that it learns in."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = JUDGED_SEED
    """Of the flights."""

    def __post_init__(self) -> None:
        check_fields(self, "judge.")
        if self.scene:
            place_names(self.scene)
        for name, words in (("condition", self.conditions), ("family", self.family)):
            if not words:
                raise AirworthyError(f"A policy is judged under no {name}; name one, as {_JUDGED[name]}.")
            if twice := next((word for word in words if words.count(word) > 1), ""):
                raise AirworthyError(f"The {name} {twice!r} is named twice; name each once.")
        for word in self.family:
            if word not in _FAMILIES:
                raise unknown_name("family of dynamics", word, _FAMILIES)


_FAMILIES = ("rigid", "semi_kinematic")
_JUDGED = {"condition": "--judge.conditions baseline", "family": "--judge.family rigid"}
_RANGE = re.compile(r"(?P<head>.+:)(?P<first>\d{1,6})-(?P<last>\d{1,6})(?P<tail>@\d+)?")
_PLACES_MAX = 10_000


def place_names(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of places: `mid_gate:0-199@1` stands for `mid_gate:0@1` to `mid_gate:199@1`.

    Args:
        words: Names, files, and such ranges.

    Raises:
        AirworthyError: There is none, a range is empty, or a place is named twice.
    """
    found: list[str] = []
    for word in words:
        made = _RANGE.fullmatch(word)
        if made is None:
            found.append(word)
            continue
        first, last = int(made["first"]), int(made["last"])
        if not first <= last < first + _PLACES_MAX:
            raise AirworthyError(
                f"{word!r} names places {first} to {last}; expected a range of 1 to {_PLACES_MAX:,}, as mid_gate:0-199@1."
            )
        found += [f"{made['head']}{number}{made['tail'] or ''}" for number in range(first, last + 1)]
    if not found:
        raise AirworthyError("A policy needs a place to fly in, as --scene hall.")
    # One file has many names.
    whole = [str(Path(name).resolve()) if Path(name).exists() else name for name in found]
    if twice := next((name for name, path in zip(found, whole, strict=True) if whole.count(path) > 1), ""):
        raise AirworthyError(f"The place {twice!r} is named twice; name each once.")
    return tuple(found)
