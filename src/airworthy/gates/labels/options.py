"""What the search of gate-to-gate labels depends on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import numpy as np

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import Bound, check_fields

# Ours, as everywhere in this project.
GRAVITY = 9.81
"""Of `Choices.thrust` [m/s^2]."""

__all__ = ["GRAVITY", "RANDOMISATIONS", "Choices", "Randomisation", "SearchOptions", "randomisation_named"]


@dataclass(frozen=True)
class Choices:
    """Candidates of a situation and the limit they must keep."""

    # Source of the published numbers: Algorithm 1, 10 speeds of 0 to 2 m/s times 7 durations of 0.5 to 1.1 t_lin; eq. 3 for the
    # limit.
    speeds: int = 10
    """Speeds through the gate, evenly from 0."""
    speed_max: float = 2.0
    """Largest of them [m/s]."""
    ratios: int = 7
    """Durations per speed, evenly spaced in parts of the duration at the mean speed."""
    ratio_min: float = 0.5
    """Smallest part."""
    ratio_max: float = 1.1
    """Largest part."""
    limit: Annotated[tuple[float, float], Bound(infinite=True)] = (2.0, 0.3)
    """a0 [m/s^2] and k [s^2/m^2] of |a| < a0 - k |v|^3 (eq. 3); a0 of inf: no limit."""
    thrust: float | None = None
    """Most thrust over mass, |a + g| [m/s^2]; None: no bound."""

    def __post_init__(self) -> None:
        check_fields(self, "Choices.")
        _whole("speeds", self.speeds, 2, 1000)
        _whole("ratios", self.ratios, 1, 1000)
        _positive("speed_max", self.speed_max)
        _positive("ratio_min", self.ratio_min)
        if not self.ratio_max >= self.ratio_min or not np.isfinite(self.ratio_max):
            raise AirworthyError(f"ratio_max is {self.ratio_max!r}: it must not be below ratio_min, {self.ratio_min!r}.")
        if len(self.limit) != 2 or not (self.limit[0] > 0.0 and self.limit[1] >= 0.0 and np.isfinite(self.limit[1])):
            raise AirworthyError(f"The limit is {self.limit!r}: give a0 > 0 [m/s^2] (or inf) and k >= 0 [s^2/m^2].")
        if self.thrust is not None and not (GRAVITY < self.thrust < np.inf):
            raise AirworthyError(f"thrust is {self.thrust!r} m/s^2: to hover it must exceed gravity, {GRAVITY:g}.")

    @property
    def count(self) -> int:
        """Candidates per situation."""
        return self.speeds * self.ratios


@dataclass(frozen=True)
class Randomisation:
    """Half widths of uniform laws about nominal, and the deviation of white noise (Table I)."""

    # Source: Table I of the paper (spec/boundary_predictor section 6): +-0.01 kg, +-1e-6 kg m^2, +-1e-6 N, 1e-6 N.
    mass: float = 0.01
    """[kg]"""
    inertia: float = 1e-6
    """Of each principal moment [kg m^2]."""
    force: float = 1e-6
    """Of each component of an outer force, drawn anew at each step [N]."""
    thrust: float = 1e-6
    """Standard deviation of each motor's thrust, drawn anew at each step [N]."""

    def __post_init__(self) -> None:
        check_fields(self, "Randomisation.")
        for name, value in asdict(self).items():
            if not (np.isfinite(value) and value >= 0.0):
                raise AirworthyError(f"The randomisation's {name} must be finite and not negative, but is {value!r}.")


RANDOMISATIONS = {
    "none": Randomisation(0.0, 0.0, 0.0, 0.0),
    "paper": Randomisation(),
    "strong": Randomisation(force=0.1, thrust=0.001),
}
"""Table I; "strong" has the sample values of the public competition for force and noise, 1e5 and 1e3 times Table I's."""


@dataclass(frozen=True)
class SearchOptions:
    """Candidates, vehicle, controller, randomisation and cost."""

    choices: Choices = field(default_factory=Choices)
    vehicle: str = "cf2x_scg_iros2022"
    """From the catalogue, or a vehicle's file; a quadrotor in X."""
    gains: str = "mellinger_firmware"
    """Set of Mellinger gains in motor-command units."""
    controller_mass: float | None = None
    """Mass the controller believes in [kg]; by default 0.027 where the vehicle has the legacy thrust chain (the firmware that
    the competition compiled), else the vehicle's own."""
    subtract_excess: bool = False
    """What the largest motor has too much is taken from all (recent firmware); else each motor is clipped (competition)."""
    # Source: spec/boundary_predictor section 10: the wrapper swaps its cut-offs, so the gyro is filtered at 30 Hz.
    gyro_cutoff: float = 30.0
    """Low-pass of the rates that the controller reads [Hz], as in the competition's wrapper; 0: none."""
    rotor_lag: bool = True
    """Rotors follow their commands as the vehicle's record says; the competition's at once."""
    drag: bool = True
    """Drag of the vehicle's record; the competition's has none."""
    optional_drag: bool = False
    """Drag by rotor speed that the competition's vehicle may have, in the body's frame."""
    # Source: eq. 4, R = 0.25.
    yaw_ramp: float = 0.25
    """Part of a segment in which the heading turns to that of its end; 0: it stays as it is at the start."""
    yaw_offset: float = 0.0
    """Added to headings [rad]; -pi/2 points body y through the gates, as in the paper."""
    command_rate: float = 500.0
    """Commands per second that the controller is given [Hz]; the paper's simulator: 30."""
    randomisation: Randomisation = field(default_factory=Randomisation)
    draws: int = 1
    """Flights of each candidate, with other masses, inertias and noises, over which the cost is averaged."""
    seed: int = 0
    """Of every draw, with the situation's index."""
    t_max: float = 2.0
    """Durations above it are saturated: the network's output ends there [s]."""
    exhaustive: bool = False
    """Fly every admissible candidate to its end, instead of only those that can still win; the labels are the same."""

    def __post_init__(self) -> None:
        check_fields(self, "SearchOptions.")
        _positive("command_rate", self.command_rate)
        _positive("t_max", self.t_max)
        _whole("draws", self.draws, 1, 1000)
        _whole("seed", self.seed, 0, 2**64 - 1)
        if self.controller_mass is not None:
            _positive("controller_mass", self.controller_mass)
        if not 0.0 <= self.gyro_cutoff < 250.0:
            raise AirworthyError(
                f"gyro_cutoff is {self.gyro_cutoff!r} Hz: it must be 0 (none) or below 250, half the loop's rate."
            )
        if not 0.0 <= self.yaw_ramp <= 1.0 or not np.isfinite(self.yaw_offset):
            raise AirworthyError(
                f"yaw_ramp must lie in [0, 1] and yaw_offset be finite; they are {self.yaw_ramp!r}, {self.yaw_offset!r}."
            )
        if self.command_rate > 500.0:
            raise AirworthyError(f"command_rate is {self.command_rate!r} Hz: the control loop itself runs at 500.")

    def described(self) -> dict[str, Any]:
        """Return the options as plain data; no limit is None instead of infinity, which JSON lacks."""
        plain = asdict(self)
        most, cubic = self.choices.limit
        plain["choices"]["limit"] = [most if np.isfinite(most) else None, cubic]
        if self.choices.thrust is None:  # as before there was such a bound: equal searches have equal digests
            del plain["choices"]["thrust"]
        return plain


def randomisation_named(name: str) -> Randomisation:
    """Return one of RANDOMISATIONS; raises AirworthyError where there is none of that name."""
    if name not in RANDOMISATIONS:
        raise unknown_name("randomisation", name, RANDOMISATIONS)
    return RANDOMISATIONS[name]


def _whole(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise AirworthyError(f"{name} must be a whole number from {low} to {high}, but is {value!r}.")


def _positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise AirworthyError(f"{name} must be positive and finite, but is {value!r}.")
