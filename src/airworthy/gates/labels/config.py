"""What `airworthy synthesize gates` is told, flat, and the search's options that it means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.core.idle_options import IdleRule
from airworthy.core.schema import check_fields
from airworthy.gates.labels.controller_model import at_once
from airworthy.gates.labels.options import Choices, SearchOptions, randomisation_named
from airworthy.gates.labels.situations import Grid, grid_named
from airworthy.vehicles import Vehicle, read_vehicle, vehicle

__all__ = ["IDLE_RULES", "GateLabelsConfig", "identity_of", "vehicle_of"]


@dataclass(frozen=True)
class GateLabelsConfig:
    """Which labels to make: the published search by default."""

    grid: str = "paper"
    """Situations: paper (129,600), extended (v_prev up to 16/9 m/s, 220,320) or racing (up to 20/9 m/s, 142,560)."""
    every: int = 1
    """Label only every n-th situation of the grid."""
    vehicle: str = "cf2x_scg_iros2022"
    """From the catalogue, or a vehicle's file (.toml); a quadrotor in X."""
    gains: str = "mellinger_firmware"
    """Set of Mellinger gains in motor-command units."""
    controller_mass: float | None = None
    """Mass the controller believes in [kg]; by default 0.027 with the competition's thrust chain, else the vehicle's."""
    limit: tuple[float, float] = (2.0, 0.3)
    """a0 [m/s^2] and k [s^2/m^2] of the limit |a| < a0 - k |v|^3; inf 0: none."""
    thrust: float | None = None
    """Most thrust over mass that a candidate may ask for, |a + g| [m/s^2]; by default none."""
    speeds: int = 10
    """Speeds tried per situation, evenly from 0 to --speed-max."""
    speed_max: float = 2.0
    """Largest speed tried [m/s]."""
    ratios: int = 7
    """Durations tried per speed: 0.5 to 1.1 times the duration at the mean speed."""
    randomisation: str = "paper"
    """Masses, inertias, forces and noise: none, paper (Table I), or strong (force 0.1 N, noise 0.001 N)."""
    draws: int = 1
    """Flights per candidate, each with other random numbers, over which costs are averaged."""
    command_rate: float = 500.0
    """Commands per second that the controller is given [Hz]; the paper's simulator: 30."""
    gyro_cutoff: float = 30.0
    """Low-pass of the rates that the controller reads [Hz]; 0: none."""
    subtract_excess: bool = False
    """Take what the largest motor has too much from all (recent firmware) instead of clipping each."""
    rotor_lag: bool = True
    """Rotors follow as the vehicle's record says."""
    drag: bool = True
    """Drag of the vehicle's record; the competition's has none."""
    optional_drag: bool = False
    """Drag by rotor speed that the competition's vehicle may have."""
    yaw_ramp: float = 0.25
    """Part of a segment in which the heading turns; 0: it stays."""
    yaw_offset: float = 0.0
    """Added to headings [rad]; -1.5708 points body y through the gates, as in the paper."""
    t_max: float = 2.0
    """Durations above it count as saturated [s]."""
    seed: int = 0
    """Of every draw."""
    exhaustive: bool = False
    """Fly every admissible candidate to its end; the labels are the same."""
    shard: int = 6480
    """Situations per file."""
    trials: int = 20
    """Search every n-th situation again without randomisation and with a strong one, for the report; 0: not."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, low in (("every", 1), ("shard", 1), ("trials", 0)):
            if getattr(self, name) < low:
                raise AirworthyError(f"--{name} must be a whole number of at least {low}, but is {getattr(self, name)!r}.")

    def situations(self) -> Grid:
        """Return the grid."""
        return grid_named(self.grid)

    def numbers(self) -> Any:
        """Return situation numbers to label, (k,)."""
        return np.arange(0, self.situations().size, self.every)

    def options(self, randomisation: str = "") -> SearchOptions:
        """Return the options of the search; with another randomisation where one is named."""
        choices = Choices(
            speeds=self.speeds, speed_max=self.speed_max, ratios=self.ratios, limit=self.limit, thrust=self.thrust
        )
        same: tuple[str, ...] = (
            "vehicle",
            "gains",
            "controller_mass",
            "subtract_excess",
            "gyro_cutoff",
            "rotor_lag",
            "drag",
            "optional_drag",
        )
        same = (*same, "yaw_ramp", "yaw_offset", "command_rate", "draws", "seed", "t_max", "exhaustive")
        options = SearchOptions(choices=choices, **{name: getattr(self, name) for name in same})
        return replace(options, randomisation=randomisation_named(randomisation or self.randomisation))


def vehicle_of(config: GateLabelsConfig) -> Vehicle:
    """Return the vehicle that is flown.

    Raises:
        AirworthyError: There is none of this name, or its file cannot be used.
    """
    return read_vehicle(config.vehicle) if config.vehicle.endswith(".toml") else vehicle(config.vehicle)


def _dragless(flown: Vehicle) -> bool:
    return not any((*flown.drag.linear, *flown.drag.rotor_speed, *flown.rotors[0].hub_drag))


IDLE_RULES = (
    IdleRule(
        ("draws",),
        lambda config, flown: config.randomisation == "none",
        "with --randomisation none, under which every draw is the same flight",
        "choose another",
    ),
    IdleRule(
        ("drag",),
        lambda config, flown: _dragless(flown),
        "for a vehicle whose record has no drag",
        "name another --vehicle",
    ),
    IdleRule(
        ("rotor_lag",),
        lambda config, flown: at_once(flown),
        "for a vehicle whose rotors follow at once",
        "name another --vehicle",
    ),
)
"""Options that change nothing beside the others, or for a vehicle."""


def identity_of(config: GateLabelsConfig, device: str) -> dict[str, Any]:
    """Return everything on which the labels' bytes depend."""
    options = config.options()
    record = vehicle_of(config)
    # By what it is, so that an edited file of the same name is another vehicle; sources and extra facts do not fly.
    flying = sha256(repr(replace(record, sources={})))
    return {
        "airworthy": __version__,
        "kind": "gate labels",
        "grid": {"name": config.grid, "size": config.situations().size, "every": config.every},
        "options": options.described(),
        "vehicle_sha256": flying,
        "shard": config.shard,
        "device": "cpu" if device == "cpu" else "gpu",
    }
