"""What a user chooses about learning from the sampling expert, and about judging what was learnt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airworthy.benchmarks.navigation.config import FLEET, scenario_names, vehicle_names_of
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import SEED, Bound, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions, TrainingRunOptions

__all__ = ["BASELINES", "StudentOptions", "StudentProtocol", "StudentRunOptions"]

BASELINES = ("expert", "blanked", "straight")
"""Beside the student: its teacher, which knows the scene; the same student with empty images; a straight line."""


@dataclass(frozen=True)
class StudentOptions(TrainingOptions):
    """What is learnt, from how much, and how.

    Raises:
        AirworthyError: A number is out of range, or a name is none.
    """

    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, places, vehicles, speeds and the order of learning."""
    rounds: Annotated[int, Bound(1, 1000)] = 3
    """Rounds of flights: in the first the expert flies, then the student itself (DAgger)."""
    batches: Annotated[int, Bound(1, 1000)] = 4
    """Batches of flights in each round, every one in layouts of its own."""
    flights: Annotated[int, Bound(1, 256)] = 8
    """Flights in a batch, of drawn vehicles."""
    posed: Annotated[int, Bound(0, 10_000)] = 0
    """Batches of drawn poses, in place of the flights of the first round; 0: the expert flies it, as published."""
    poses: Annotated[int, Bound(1, 1_000_000)] = 2000
    """Instants that are drawn in each of them."""
    epochs: Annotated[int, Bound(1, 10_000)] = 4
    """Over all data so far, behind each round but the last."""
    last_epochs: Annotated[int, Bound(1, 10_000)] = 16
    """The same behind the last round."""
    batch: Annotated[int, Bound(1, 4096)] = 16
    """Instants in a gradient step; 8 as published."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-3
    """Of Adam, at its largest; it falls by cosines that begin again, each half as long again and three quarters as high."""
    cycle: Annotated[int, Bound(1, 100_000_000)] = 2000
    """Gradient steps of the first cosine; 50,000 as published."""
    clearance: Annotated[float, Bound(0.0, 1000.0)] = 1.0
    """Weight of the distance that the student's own points lack to what is near; 0: only the expert teaches, as published."""
    modes: Annotated[int, Bound(1, 16)] = 3
    """Trajectories that it gives at once."""
    reach: Annotated[float, Bound(0.5, 100.0, "m")] = 5.0
    """Depth beyond which its images are all alike: the benchmark's cameras see no farther; 20 as published."""
    samples: Annotated[int, Bound(16, 1_000_000)] = 512
    """Trajectories that the expert looks at per decision; 50,000 as published."""
    descent: Annotated[int, Bound(0, 1000)] = 15
    """Steps by which each of its trajectories is brought to the nearest least cost before it is learnt; 0: as sampled."""
    every: Annotated[int, Bound(1, 100)] = 3
    """Of its flights every so many-th decision is kept to learn from."""
    scenarios: tuple[str, ...] = ("forest", "random_cylinder", "urban", "perlin")
    """Kinds of places, one after the other."""
    vehicles: tuple[str, ...] = FLEET
    """Of which each flight draws one."""
    slowest: Annotated[float, Bound(0.5, 30.0, "m/s")] = 3.0
    """Least speed cap of a batch [m/s]."""
    fastest: Annotated[float, Bound(0.5, 30.0, "m/s")] = 8.0
    """Largest speed cap of a batch [m/s]."""
    depth_noise: Annotated[float, Bound(0.0, 1.0)] = 0.02
    """Standard deviation of depth per metre."""
    depth_dropout: Annotated[float, Bound(0.0, 1.0)] = 0.01
    """Probability that a pixel tells nothing."""
    takeover: Annotated[float, Bound(0.1, 100.0, "m")] = 3.0
    """Distance from its reference at which the expert takes over from the student; 10 as published [m]."""
    blind: bool = False
    """Learn with empty images: the baseline of what seeing is worth."""

    def __post_init__(self) -> None:
        check_fields(self, "StudentOptions.")
        if self.slowest > self.fastest:
            raise AirworthyError(f"Speed caps go from {self.slowest:g} to {self.fastest:g} m/s; the first may not be larger.")
        if not self.scenarios or not self.vehicles:
            raise AirworthyError("A student needs at least one scenario and one vehicle to learn from.")
        scenario_names(self.scenarios)
        vehicle_names_of(self.vehicles)

    @property
    def iterations(self) -> int:
        """Steps of the training in all: batches of flights or poses, and epochs."""
        flown = (self.posed or self.batches) + (self.rounds - 1) * self.batches
        return flown + (self.rounds - 1) * self.epochs + self.last_epochs


@dataclass(frozen=True)
class StudentProtocol:
    """How a student is judged: flights of the navigation benchmark, beside its teacher and baselines.

    Raises:
        AirworthyError: A number is out of range, or a name is none.
    """

    speeds: tuple[float, ...] = (4.0, 6.0, 8.0)
    """Speed caps at which it is judged [m/s]."""
    scenarios: tuple[str, ...] = ("forest", "random_cylinder")
    """Kinds of places."""
    configurations: Annotated[int, Bound(1, 10)] = 10
    """Of each kind, the first ones of the benchmark's own layouts."""
    vehicles: tuple[str, ...] = ("real_03", "virt_05")
    """Each flies in every configuration: strong ones, as the publication's; with 1.4 times its weight in thrust the expert
    itself hits things at these speeds."""
    baselines: tuple[str, ...] = BASELINES
    """Who flies the same flights: expert, blanked (the student with empty images), straight, or pilots of the benchmark."""
    seed: Annotated[int, SEED] = 0
    """Of everything that is drawn."""

    def __post_init__(self) -> None:
        check_fields(self, "StudentProtocol.")
        if not self.speeds or not all(0.5 <= speed <= 30.0 for speed in self.speeds):
            raise AirworthyError(f"Speeds to be judged at are {self.speeds}; expected some from 0.5 to 30 m/s.")
        if not self.scenarios or not self.vehicles:
            raise AirworthyError("A student is judged in at least one scenario, by at least one vehicle.")
        scenario_names(self.scenarios)
        vehicle_names_of(self.vehicles)


@dataclass(frozen=True)
class StudentRunOptions:
    """For how long it runs, and on how many processors."""

    threads: int = 1
    """Of the processor."""
    minutes: float = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def training_run(self) -> TrainingRunOptions:
        """Return the same of any training: its steps are long, so that each is saved."""
        return TrainingRunOptions("cpu", self.threads, 0.01, self.minutes)
