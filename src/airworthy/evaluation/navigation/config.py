"""What a user chooses about the navigation benchmark."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from airworthy.evaluation.navigation.plan import CONFIGURATIONS
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["NavigationConfig", "Perturbation"]


@dataclass(frozen=True)
class Perturbation:
    """What is worse than ideal; every draw is a function of seed and flight."""

    depth_noise: float = 0.0
    """Standard deviation of depth per metre."""
    depth_dropout: float = 0.0
    """Probability that a depth pixel tells nothing."""
    latency: float = 0.0
    """From a depth image's instant until it can be read [s]."""
    drift: float = 0.0
    """Random walk of the estimated position per axis [m/sqrt(s)]."""
    gain_error: float = 0.0
    """Half width of the relative error of each flight's control gains, uniform."""
    motor_degradation: float = 0.0
    """Most thrust that each rotor may have lost, uniform from 0."""
    moving_obstacles: int = 0
    """Pillars that cross the area, per layout."""
    moving_speed: float = 1.0
    """Theirs [m/s]."""

    @property
    def any(self) -> bool:
        """Whether anything is worse than ideal."""
        return self != Perturbation(moving_speed=self.moving_speed)


@dataclass(frozen=True)
class NavigationConfig:
    """Who flies what where, and how it is judged."""

    pilots: tuple[str, ...] = ("straight",)
    """Pilots: straight, ego, fast, pgo (also ego_published, fast_published, pgo_published), navrl, navrl_full_3d, expert, or
    FILE.py:CLASS for one of your own."""
    vehicles: tuple[str, ...] = ("all",)
    """Vehicles of the catalogue; all, real and virtual name the benchmark's 36 and its halves."""
    scenarios: tuple[str, ...] = ("all",)
    """Of forest, urban, random_cylinder, narrow_gap, sudden_drop, maze, perlin; all of these; or sudden_drop_plus."""
    trials: int = CONFIGURATIONS
    """Trials per combination; trial k is flown in configuration k."""
    repeats: int = 1
    """Flights per trial, each with other draws."""
    seed: int = 0
    """Of everything that is drawn; flight k draws the same for every pilot."""
    layouts: int = 0
    """Seed of the configurations: 0 for the benchmark's own, any other for held-out ones."""
    compute: Literal["fixed", "measured", "zero"] = "fixed"
    """When a plan holds: after counted work times recorded constants, after the time that it took, or at once."""
    a_max: Literal["common", "vehicle"] = "common"
    """Limit of acceleration: the protocol's, or the vehicle's where that is less."""
    body: Literal["sphere", "body"] = "sphere"
    """What collides: a sphere of 0.3 m for every vehicle, or one that encloses it."""
    sensing: Literal["fast", "full"] = "fast"
    """Depth images: 320 x 240 at the map's rate and only what mapping reads, or as published."""
    controller: str = "so3"
    """What follows planners: so3 for the benchmark's own, or another of docs/controllers.md (dfbc_indi, nmpc, rate_mpc ...)."""
    device: str = "cpu"
    """Where vehicles are simulated and images rendered: cpu, or a CUDA device such as cuda:0; pilots stay on the processor."""
    protocol: NavigationProtocol = field(default_factory=NavigationProtocol)
    """Limits and thresholds."""
    perturb: Perturbation = field(default_factory=Perturbation)
    """What is worse than ideal."""
    patience: float = 10.0
    """Longest time for one decision of a pilot [s]; beyond it its flight has failed."""
    warm_up: float = 120.0
    """The same in the two seconds that a pilot of your own flies in each process before the first flight that counts, so that
    it can compile; 0 leaves them out [s]."""
    batch: int = 144
    """Flights at once; those of a batch are kept together when a run is stopped."""
    workers: int = 1
    """Processes."""
    cluster: str = ""
    """Address of a Ray cluster (auto, local, HOST:PORT) that flies instead of this machine; needs the extra cluster."""
    system: Path | None = None
    """TOML file that describes the system under test; it is kept with the results."""
    out: Path = Path("runs/navigation")
    """Folder of the results; a stopped run goes on where it was, and more pilots join."""
    report: bool = True
    """Write report.html."""
    quick: bool = False
    """Four vehicles, one trial: a look in under two minutes."""
    json: bool = False
    """Print JSON, and no progress."""
