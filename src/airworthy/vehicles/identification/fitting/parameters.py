"""The vector that a fit moves: values of the vehicle, the sensor's place, what each flight had of its own, with their priors.

A vehicle of a vector is made by `vehicles.uncertainty.with_values`, as draws are: what is predicted with is what is saved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.vehicles.bench.information import ValueInformation, combined_sd
from airworthy.vehicles.identification.fitting.plants import VehicleFamily
from airworthy.vehicles.identification.known import Known
from airworthy.vehicles.identification.prediction.plant import Plant
from airworthy.vehicles.record import UNCERTAIN, Rotor, RotorResponse, Vehicle
from airworthy.vehicles.trim import rotor_state_for_thrust
from airworthy.vehicles.uncertainty import DRAGS, uncertain_values, with_values

__all__ = ["Parameter", "Parameters", "believed_parameters"]

SENSOR = ("imu_x", "imu_y", "imu_z", "imu_tilt_x", "imu_tilt_y")
"""Place [m] and tilt [rad] of the inertial sensor."""
AIR = "drag_height"
"""Height of the point where drag acts over the centre of mass [m]: blades that flap and discs in a wind turn the vehicle."""
LATE = "force_delay"
"""By which the accelerometer is later than the gyro [s]."""
SPEEDS_LATE = "speed_delay"
"""By which measured rotor speeds are later than the gyro [s]."""
FALL = "fall_ratio"
"""Lag of rotors that slow down over that of rotors that speed up [1]."""
PER_FLIGHT = ("turn_x", "turn_y", "turn_z", "drift_x", "drift_y", "force_x", "force_y", "force_z")
"""Angular acceleration that no rotor tells in the middle of what is fitted [rad/s^2], by how much it drifts in a second about x
and y [rad/s^3], and bias of the accelerometer [m/s^2], of each flight."""

PRIOR_SD = {
    "thrust": 0.3,
    "thrust_linear": 0.3,
    "torque_ratio": 0.5,
    "lag": 0.7,
    "command_delay": 0.006,
    "inertia_xx": 0.5,
    "inertia_yy": 0.5,
    "inertia_zz_ratio": 0.1,
    "damping": 1.0,
    "sag": 0.5,
}
"""Of each value on its scale; that of the mass is given, those of lengths go with the arm."""
IZZ_RATIO_MAX = 1.98
"""Of Izz over the mean of Ixx and Iyy; no body has more about z than about x and y together."""
PRIOR_MEAN = {"thrust_linear": 0.2, "lag": 0.05, "command_delay": 0.008, "damping": 0.5, "sag": 0.5}
"""Where the record that one starts from tells nothing better [1, s, s, 1/s]."""
CENTER_SHARE, LEVER_SHARE = 0.1, 0.1
"""Deviations of the centre of mass and of the sensor's place over the arm."""
DRAG_HEIGHT_SHARE = 0.5
"""Deviation of the height where drag acts, over the arm."""
FORCE_DELAY_SD = 0.004
"""Of an accelerometer's delay against the gyro [s]: the difference of a low-pass of 30 Hz and one of 80 is 4.7 ms."""
SPEED_DELAY_SD = 0.004
"""Of measured speeds [s]: a sensor that counts passes of blades tells the mean of one to some periods."""
FALL_SD = 0.3
"""Of the logarithm of fall over rise: brushed motors coast, and those of published vehicles fall 0.7 to 2.1 times as slowly."""
TILT_SD = math.radians(1.5)
TURN_SHARE = 0.1
"""Moment about z that no rotor tells, over inertia: so much of gravity over the arm."""
DRIFT_SHARE = 0.04
"""The same about x and y, beside what the centre of mass tells: as a centre of mass that is off by 1 % of the arm from one
flight to the next turns a vehicle whose inertia is a quarter of its mass and squared arm."""
DRIFT_TIME = 30.0
"""Time in which the trim about x and y drifts as far as it differs from flight to flight [s]: motors that warm up unlike one
another. Of a brushed quadrotor it goes from -7 to 6 rad/s^2 within 36 s, and its pilot's integrators follow."""
BIAS_SD, BIAS_SD_REST = 0.1, 0.03
"""Of an accelerometer, and along z of one that was seen at rest [m/s^2]."""


@dataclass(frozen=True)
class Parameter:
    """One number that is fitted."""

    name: str
    mean: float
    """Of the prior, on its scale."""
    sd: float
    """Of the prior, on its scale."""
    scale: str = "linear"
    """"log" or "linear"."""
    flight: int | None = None
    """Of which flight; None: of all."""
    most: float = math.inf
    """No fit goes beyond, on its scale: what lies there is no body."""

    @property
    def label(self) -> str:
        """Name, and number of the flight from 1."""
        return self.name if self.flight is None else f"{self.name}[{self.flight + 1}]"


@dataclass(frozen=True, eq=False)
class Parameters:
    """All numbers that are fitted, and the vehicle that they change."""

    base: Vehicle
    state: float
    """Rotor state in hover, at which thrust is told."""
    items: tuple[Parameter, ...]
    """Of the vehicle's, also those that are not free stand here: their priors are what is known of them."""
    free: tuple[bool, ...]
    """Which are fitted."""
    middles: tuple[float, ...] = ()
    """Time of each flight at which its trim is told [s]."""
    information: tuple[ValueInformation, ...] = ()
    """What stands beside priors and flights: a bench, names of motor and propeller."""

    @cached_property
    def family(self) -> VehicleFamily:
        """The base, and the vehicles that vectors make of it."""
        return VehicleFamily(self.base, self.state)

    @property
    def mean(self) -> Array:
        """Prior means, (parameters,)."""
        return np.array([item.mean for item in self.items])

    @property
    def sd(self) -> Array:
        """Prior standard deviations, (parameters,)."""
        return np.array([item.sd for item in self.items])

    @property
    def believed_sd(self) -> Array:
        """Standard deviations before any flight, by priors and what stands beside them, (parameters,)."""
        names = [item.name if item.flight is None else "" for item in self.items]
        return combined_sd(self.sd, names, self.information)

    def beside(self, theta: Array) -> Array:
        """Return scaled errors of what stands beside, (sets, numbers).

        Args:
            theta: (sets, parameters).
        """
        found = [np.zeros((len(theta), 0))]
        for item in self.information:
            places = [self.place(name) for name in item.names]
            found.append((theta[:, places] - item.mean) @ item.root.T)
        return np.concatenate(found, axis=1)

    @property
    def most(self) -> Array:
        """Largest values, (parameters,)."""
        return np.array([item.most for item in self.items])

    @property
    def index(self) -> ArrayIndex:
        """Places of those that are fitted."""
        return np.flatnonzero(self.free)

    def place(self, name: str) -> int:
        """Return where a value of the vehicle or sensor stands."""
        return next(k for k, item in enumerate(self.items) if item.name == name and item.flight is None)

    def values(self, theta: Array) -> dict[str, float]:
        """Return a vehicle's values of a vector, SI units."""
        return {
            item.name: math.exp(min(value, 50.0)) if item.scale == "log" else float(value)
            for item, value in zip(self.items, theta.tolist(), strict=True)
            if item.name in UNCERTAIN
        }

    def vehicle(self, theta: Array) -> Vehicle:
        """Return the vehicle of a vector; it is not checked."""
        made = with_values(self.base, self.values(theta), self.state)
        height = (*made.drag.center[:2], float(theta[self.place(AIR)]))
        ratio = math.exp(min(float(theta[self.place(FALL)]), 50.0))
        rotors = tuple(_falling(rotor, ratio) for rotor in made.rotors)
        return replace(made, rotors=rotors, drag=replace(made.drag, center=height))

    def plant(self, theta: Array, flight: int) -> Plant:
        """Return what predicts a flight with each of several vectors.

        Args:
            theta: (sets, parameters).
            flight: Its number.
        """
        theta = np.asarray(theta, np.float64)
        places = {item.name: k for k, item in enumerate(self.items) if item.flight in (None, flight)}
        values = {
            name: np.exp(np.minimum(theta[:, k], 50.0)) if self.items[k].scale == "log" else theta[:, k]
            for name, k in places.items()
            if name in UNCERTAIN
        }
        made = self.family.plants(values, theta[:, places[AIR]], np.exp(np.minimum(theta[:, places[FALL]], 50.0)))

        def told(*names: str) -> Array:
            columns = [theta[:, places[name]] if name in places else np.zeros(len(theta)) for name in names]
            return np.stack(columns, axis=1)

        return replace(
            made,
            lever=made.lever + told("imu_x", "imu_y", "imu_z"),
            # The record has no negative dead time; a fit that wants one must be able to say so.
            delay=theta[:, places["command_delay"]].copy(),
            tilt=told("imu_tilt_x", "imu_tilt_y", ""),
            turn_offset=told("turn_x", "turn_y", "turn_z"),
            turn_drift=told("drift_x", "drift_y", ""),
            turn_since=np.full(len(theta), self.middles[flight] if flight < len(self.middles) else 0.0),
            force_offset=told("force_x", "force_y", "force_z"),
            force_delay=told(LATE)[:, 0],
            speed_delay=told(SPEEDS_LATE)[:, 0],
        )

    def of_flight(self, flight: int) -> ArrayIndex:
        """Return the places of what predicts a flight: all but what other flights have of their own."""
        return np.array([k for k, item in enumerate(self.items) if item.flight in (None, flight)], np.intp)


def believed_parameters(
    base: Vehicle,
    known: Known,
    rested: Sequence[bool],
    hover: float,
    told: Mapping[str, bool],
    trusted: Sequence[str] = (),
    square: bool = False,
    apart: bool = False,
    middles: Sequence[float] = (),
    information: Sequence[ValueInformation] = (),
) -> Parameters:
    """Return what is fitted, with priors.

    Args:
        base: Geometry, and what is believed of the rest; a command of 1 is its rotors' largest state.
        known: Mass, and numbers that were measured.
        rested: Of each flight, whether its accelerometer was seen at rest.
        hover: Mean command in hover, fraction of full.
        told: By name of a value: whether the logs can tell it.
        trusted: Values of which the base itself tells the prior's mean.
        square: Whether rotors respond by the square of their speeds; else by the first power.
        apart: Whether the lags of rise and fall are fitted apart; else they are one, where the logs tell a lag at all.
        middles: Time of each flight at which its trim is told [s].
        information: What stands beside the logs; what it tells is fitted even where no log does.
    """
    beside = {name for item in information for name in item.names}
    measured = known.measured_values()
    assert known.mass is not None
    mass, mass_sd = known.mass
    fall = base.rotors[0].response
    full = float(np.mean([rotor.speed_max for rotor in base.rotors]))
    state = full * hover
    believed_ratio = _rate(fall.rise, state) / _rate(fall.fall, state) if "lag" in trusted else 1.0
    base = _responding(_hovering(replace(base, mass=mass), state), state, square)
    believed = uncertain_values(base, state)
    arm = float(np.mean([math.hypot(*rotor.position[:2]) for rotor in base.rotors]))
    items, free = [], []
    for name, scale in UNCERTAIN.items():
        if name in DRAGS or (name == "sag" and base.command_sag is None):
            # No inertial sensor tells drag per speed, and no log without a voltage what the supply does.
            continue
        mean = PRIOR_MEAN.get(name, believed[name])
        mean = believed[name] if name in trusted and (believed[name] > 0.0 or scale == "linear") else mean
        if name == "sag" and not told.get(name, False):
            mean = believed[name]
        sd = mass_sd / mass if name == "mass" else PRIOR_SD.get(name, CENTER_SHARE * arm)
        if name in ("center_x", "center_y"):
            sd = max(sd, 1e-4)
        if name in measured:
            mean, sd = measured[name]
            sd = sd / mean if scale == "log" else sd
        if name in known.fixed:
            mean, sd = known.fixed[name], 1e-9
        most = math.log(IZZ_RATIO_MAX) if name == "inertia_zz_ratio" else math.inf
        items.append(Parameter(name, math.log(mean) if scale == "log" else mean, sd, scale, most=most))
        free.append(name not in known.fixed and (told.get(name, False) or name in known.free or name in beside))
    for name in SENSOR:
        sd = TILT_SD if "tilt" in name else max(LEVER_SHARE * arm, 0.002)
        items.append(Parameter(name, 0.0, sd))
        free.append(told.get("imu_tilt" if "tilt" in name else "imu_lever", False))
    items.append(Parameter(AIR, base.drag.center[2], DRAG_HEIGHT_SHARE * arm))
    free.append(told.get(AIR, False))
    items.append(Parameter(LATE, 0.0, FORCE_DELAY_SD))
    free.append(told.get("turns", False) and told.get("lag", False))
    items.append(Parameter(SPEEDS_LATE, 0.0, SPEED_DELAY_SD))
    free.append(False)
    # One lag is a lag of rise and fall alike, whatever the record that one starts from says: only a fit of both tells two.
    one = told.get("lag", False) and not apart
    items.append(Parameter(FALL, 0.0 if one else math.log(believed_ratio), FALL_SD, "log"))
    free.append(told.get("lag", False) and apart)
    pull = TURN_SHARE * base.gravity / arm
    spread = {"turn_z": pull} | dict.fromkeys(("turn_x", "turn_y"), DRIFT_SHARE * base.gravity / arm)
    spread |= dict.fromkeys(("drift_x", "drift_y"), DRIFT_SHARE * base.gravity / arm / DRIFT_TIME)
    for flight, seen in enumerate(rested):
        for name in PER_FLIGHT:
            bias = BIAS_SD_REST if seen and name == "force_z" else BIAS_SD
            items.append(Parameter(name, 0.0, spread.get(name, bias), flight=flight))
            # About x and y the centre of mass says the same, of all flights together.
            turn = name in spread
            free.append(told.get(name if name == "turn_z" else "center_x", False) if turn else True)
    items = [_measured(item, measured) for item in items]
    return Parameters(base, state, tuple(items), tuple(free), tuple(middles), tuple(information))


def _measured(item: Parameter, measured: Mapping[str, tuple[float, float]]) -> Parameter:
    """Return what a fit has besides the vehicle's values - place of the sensor, air, ratio of lags - as it was measured."""
    if item.name in UNCERTAIN or item.flight is not None or item.name not in measured:
        return item
    mean, sd = measured[item.name]
    if item.scale == "log":
        return replace(item, mean=math.log(mean), sd=sd / mean)
    return replace(item, mean=mean, sd=sd)


def _rate(pair: tuple[float, float], state: float) -> float:
    """Rate at which a state follows about another [1/s]."""
    return pair[0] + 2.0 * pair[1] * state


def _responding(base: Vehicle, state: float, square: bool) -> Vehicle:
    """Return a vehicle whose rotors respond by one power alone, rise and fall alike, as fast about hover as they rose."""
    found = []
    for rotor in base.rotors:
        rate = _rate(rotor.response.rise, state)
        pair = (0.0, 0.5 * rate / state) if square else (rate, 0.0)
        found.append(replace(rotor, response=RotorResponse(pair, pair)))
    return replace(base, rotors=tuple(found))


def _falling(rotor: Rotor, ratio: float) -> Rotor:
    """Return a rotor whose lag of fall is so many times that of its rise."""
    if ratio == 1.0:
        return rotor
    a, b = rotor.response.rise
    return replace(rotor, response=RotorResponse(rotor.response.rise, (a / ratio, b / ratio)))


def _hovering(base: Vehicle, state: float) -> Vehicle:
    """Return a vehicle that carries its weight at a rotor state, by a curve that is square in the state."""
    share = base.mass * base.gravity / sum(rotor.axis[2] for rotor in base.rotors)
    square = share / (state * abs(state))
    ratios = []
    for rotor in base.rotors:
        now = abs(rotor_state_for_thrust(rotor, share))
        thrust = rotor.thrust[0] + rotor.thrust[1] * now + rotor.thrust[2] * now**2
        torque = rotor.torque[0] + rotor.torque[1] * now + rotor.torque[2] * now**2
        ratios.append(torque / thrust)
    rotors = tuple(
        replace(rotor, thrust=(0.0, 0.0, square), torque=(0.0, 0.0, square * ratio))
        for rotor, ratio in zip(base.rotors, ratios, strict=True)
    )
    return replace(base, rotors=rotors)
