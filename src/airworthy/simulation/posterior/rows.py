"""Vehicles drawn from what an identification left open, as parameter rows: once for NumPy, once traced into kernels.

`airworthy.vehicles.uncertainty` says what each uncertain value is, and draws records; here the same draws become rows of a
flight that begins. Draws that are no vehicle, or none that lifts its weight, are drawn anew, as they are there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt, ArrayU32, Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.ops import exp, log, maximum, minimum, sin_cos, sqrt, where
from airworthy.core.random import Stream, uniforms
from airworthy.dynamics.state import CONTACT_POINTS
from airworthy.simulation.config import Randomization, SimulatorConfig
from airworthy.simulation.stability import FASTEST
from airworthy.vehicles.check import DELAY_MAX, DRAWN_REACH, MASS, MOMENT_MIN, TRIANGLE_TOLERANCE, check
from airworthy.vehicles.record import UNCERTAIN, Rotor, Uncertainty, Vehicle
from airworthy.vehicles.uncertainty import DRAGS, uncertain_values, uncertainty_root

__all__ = [
    "ATTEMPTS",
    "DRAWN_ROWS",
    "DRAW_UNIFORMS",
    "Posterior",
    "bounded_config",
    "draw_rows",
    "drawn_values",
    "latest_command",
    "posterior_of",
    "posteriors_of",
    "rejected_share",
    "tried_draws",
]

DRAW_UNIFORMS = 16
"""Uniform numbers of a draw: pairs of them make as many normal ones, enough for each value of `UNCERTAIN`."""
ATTEMPTS = 16
"""Ours: draws that are tried for a flight. Where half of them are no vehicle, one flight in 65,536 finds none in so many."""
REJECTED_MAX = 0.5
"""Share of such draws from which a distribution is refused."""
REACH = DRAWN_REACH
"""Deviations beyond which delays and lags are drawn anew: what is on its way to the rotors has to find room."""
_FIRST_UNIFORM = 32
"""Of a flight's parameters: those before are of independent draws."""
DRAWN_ROWS = (
    "mass", "mass_inverse", "inertia", "inertia_inverse", "angular_linear", "command_delay", "rotor_thrust", "rotor_torque",
    "rotor_rise", "rotor_fall", "rotor_rise_keep", "rotor_fall_keep", "rotor_rise_keep_half", "rotor_fall_keep_half",
)  # fmt: skip
"""Parameters that a draw sets, whatever they were; `Posterior.sets` knows of more where they are drawn."""
_TRIED = 4096
"""Draws that tell how many are rejected; known to 2.4 % where it matters."""


@dataclass(frozen=True)
class Posterior:
    """Of a vehicle, what draws need to know; hashable, since kernels are built for it."""

    vehicle: Vehicle
    names: tuple[str, ...]
    mean: tuple[float, ...]
    """On the scales of `UNCERTAIN`."""
    root: tuple[tuple[float, ...], ...]
    """A matrix whose square is the covariance, widened."""
    state: float
    """Rotor state at which thrust is told."""

    @property
    def now(self) -> dict[str, float]:
        """Values as the record has them; of drag and supply those alone that are drawn, since without them they stay."""
        values = uncertain_values(self.vehicle, self.state)
        return {name: value for name, value in values.items() if name in self.names or name not in (*DRAGS, "sag")}

    def sets(self, row: str) -> bool:
        """Tell whether a draw sets a parameter of the dynamics.

        Args:
            row: Its name.
        """
        return row in DRAWN_ROWS or (row == "drag_linear" and not set(DRAGS).isdisjoint(self.names))

    def reach(self, name: str) -> tuple[float, float]:
        """Return the least and the largest value that is drawn of one that is named, SI units."""
        k = self.names.index(name)
        sd = math.sqrt(sum(x * x for x in self.root[k]))
        low, high = self.mean[k] - REACH * sd, self.mean[k] + REACH * sd
        return (math.exp(low), math.exp(high)) if UNCERTAIN[name] == "log" else (low, high)

    def values(self, chance: Vector) -> dict[str, Scalar]:
        """Return drawn values, SI units, all together: what is not named is as in the record.

        Args:
            chance: `DRAW_UNIFORMS` uniform numbers in (0, 1).
        """
        normals = _normals(chance)[: len(self.names)]
        drawn: dict[str, Scalar] = dict(self.now)
        for name, mean, row in zip(self.names, self.mean, self.root, strict=True):
            value: Any = mean
            for weight, normal in zip(row, normals, strict=True):
                value = value + weight * normal
            drawn[name] = exp(value) if UNCERTAIN[name] == "log" else value
        drawn["command_delay"] = maximum(drawn["command_delay"], 0.0)
        return drawn

    def sound(self, values: Mapping[str, Scalar]) -> Scalar:
        """Return 1 where values make a vehicle that can exist, whose thrust grows and lifts its weight; else 0.

        Args:
            values: Of `values`.
        """
        margins = [
            *self._body_margins(values),
            *self._rotor_margins(values),
            *(m for name in ("command_delay", "lag") if name in self.names for m in self._reach_margins(name, values[name])),
            DELAY_MAX - values["command_delay"],
        ]
        least: Any = 1.0
        for margin in margins:
            # Compared on the right: what is not a number then stays, and is no vehicle.
            least = minimum(least, margin)
        return where(least > 0.0, 1.0, 0.0)

    def _reach_margins(self, name: str, value: Scalar) -> list[Scalar]:
        low, high = self.reach(name)
        if high <= low:  # known for certain, it is never beyond
            return []
        if name == "command_delay":  # whose values under 0 are drawn as 0, as all of them may be
            return [high - value] if high > 0.0 else []
        return [high - value, value - low]

    def _body_margins(self, values: Mapping[str, Scalar]) -> list[Scalar]:
        """Positive where mass and inertia are those of a body, as `vehicles.check` asks."""
        inertia = self._inertia(values)
        xx, yy, zz = inertia[:3]
        # The largest moment may exceed the sum of the others by a share: (2 - share) of it is at most the trace.
        most = (xx + yy + zz) * (1.0 / (2.0 - TRIANGLE_TOLERANCE))
        least = _minors((xx, yy, zz, *inertia[3:]))
        rest = _minors((most - xx, most - yy, most - zz, *(-x for x in inertia[3:])))
        diagonal = [xx - MOMENT_MIN, yy - MOMENT_MIN, zz - MOMENT_MIN]
        mass = values["mass"]
        return [*diagonal, *least, *rest, mass - MASS.low, MASS.high - mass]

    def _rotor_margins(self, values: Mapping[str, Scalar]) -> list[Scalar]:
        """Positive where thrust grows with the rotors' state and lifts the weight."""
        found, lift = [], -values["mass"] * self.vehicle.gravity
        for rotor, (thrust, torque) in zip(self.vehicle.rotors, self._curves(values), strict=True):
            c0, c1, c2 = thrust
            low, high = max(rotor.speed_min, 0.0), rotor.speed_max
            push, slope = c0 + c1 * high + c2 * (high * abs(high)), c1 + c2 * (2.0 * high)
            found += [push, slope, maximum(slope, c1 + c2 * (2.0 * low))]
            # Its sign belongs in the spin; nothing at all is allowed.
            found.append(torque[0] + torque[1] * high + torque[2] * (high * abs(high)) + 1e-30)
            lift = lift + push * rotor.axis[2]
        return [*found, lift]

    def _inertia(self, values: Mapping[str, Scalar]) -> Vector:
        xx, yy = values["inertia_xx"], values["inertia_yy"]
        return (xx, yy, values["inertia_zz_ratio"] * 0.5 * (xx + yy), *self.vehicle.inertia[3:])

    def _curves(self, values: Mapping[str, Scalar]) -> list[tuple[Vector, Vector]]:
        """Thrust and torque of each rotor over its state, the latter without its sign."""
        factor = values["thrust"] * (1.0 / self.now["thrust"])
        return [self._curve(rotor, values, factor) for rotor in self.vehicle.rotors]

    def _curve(self, rotor: Rotor, values: Mapping[str, Scalar], factor: Scalar) -> tuple[Vector, Vector]:
        w = self.state
        c0, c1, c2 = (factor * c for c in rotor.thrust)
        if "thrust_linear" in self.names:
            whole, linear = c1 * w + c2 * (w * abs(w)), values["thrust_linear"]
            c1, c2 = whole * linear * (1.0 / w), whole * (1.0 - linear) * (1.0 / (w * abs(w)))
        thrust = (c0, c1, c2)
        if "thrust_linear" in self.names or "torque_ratio" in self.names:
            return thrust, tuple(values["torque_ratio"] * c for c in thrust)
        return thrust, tuple(factor * c for c in rotor.torque)

    def rows(self, values: Mapping[str, Scalar], rows: Mapping[int, Scalar], layout: Layout, dt: float) -> dict[int, Scalar]:
        """Return parameter rows of a drawn vehicle; what is not uncertain stays, and what a controller believes does, too.

        Args:
            values: Of `values`.
            rows: Of the record, by number; those that nobody reads may be missing.
            layout: Of them.
            dt: Physics step [s].
        """
        made = dict(rows)

        def put(name: str, numbers: Sequence[Scalar], first: int = 0) -> None:
            start = layout.offsets[name] + first
            made.update({start + k: x for k, x in enumerate(numbers) if start + k in made})

        put("mass", [values["mass"]])
        put("mass_inverse", [1.0 / values["mass"]])
        if {"inertia_xx", "inertia_yy", "inertia_zz_ratio"} & set(self.names):
            inertia = self._inertia(values)
            put("inertia", inertia)
            put("inertia_inverse", _inverse(inertia))
        if "damping" in self.names:
            put("angular_linear", [values["damping"] * x for x in self._inertia(values)[:3]])
        for axis, name in enumerate(DRAGS):
            if name in self.names:
                put("drag_linear", [values["mass"] * values[name]], axis)
        if "command_delay" in layout:
            put("command_delay", [values["command_delay"] * (1.0 / dt)])
        stretch = self.now["lag"] / values["lag"]
        for i, (rotor, (thrust, torque)) in enumerate(zip(self.vehicle.rotors, self._curves(values), strict=True)):
            put("rotor_thrust", thrust, 3 * i)
            put("rotor_torque", [rotor.spin * c for c in torque], 3 * i)
            for way, (a, b) in (("rise", rotor.response.rise), ("fall", rotor.response.fall)):
                put(f"rotor_{way}", [a * stretch, b * stretch], 2 * i)
                put(f"rotor_{way}_keep", [exp(-dt * a * stretch)], i)
                put(f"rotor_{way}_keep_half", [exp(-0.5 * dt * a * stretch)], i)
        self._move(made, values, layout)
        return made

    def _move(self, made: dict[int, Scalar], values: Mapping[str, Scalar], layout: Layout) -> None:
        """Take what is told from the centre of mass along where that moves."""
        was = self.vehicle.center_of_mass
        dx, dy = values["center_x"] - was[0], values["center_y"] - was[1]

        def shift(name: str, numbers: Sequence[Scalar], first: int = 0) -> None:
            start = layout.offsets[name] + first
            for k, x in enumerate(numbers):
                if start + k in made:
                    made[start + k] = made[start + k] - x

        for i, rotor in enumerate(self.vehicle.rotors):
            ax, ay, az = rotor.axis
            shift("rotor_position", (dx, dy), 3 * i)
            shift("rotor_lever", (dy * az, -dx * az, dx * ay - dy * ax), 3 * i)
        for i in range(CONTACT_POINTS):
            shift("contact_point", (dx, dy), 3 * i)
        shift("imu_position", (dx, dy))
        points = [layout.offsets["contact_point"] + k for k in range(3 * CONTACT_POINTS)]
        radius, reach = layout.offsets["contact_radius"], layout.offsets["contact_reach"]
        if reach in made and radius in made and all(k in made for k in points):
            away: Any = 0.0
            for x, y, z in zip(points[0::3], points[1::3], points[2::3], strict=True):
                away = maximum(away, made[x] * made[x] + made[y] * made[y] + made[z] * made[z])
            made[reach] = sqrt(away) + made[radius]


def _normals(chance: Vector) -> Vector:
    """Make standard normal numbers of uniform ones, by pairs (Box and Muller)."""
    found: list[Scalar] = []
    for one, other in zip(chance[0::2], chance[1::2], strict=True):
        radius = sqrt(-2.0 * log(one))
        sine, cosine = sin_cos(2.0 * math.pi * other)
        found += [radius * cosine, radius * sine]
    return tuple(found)


def _minors(six: Vector) -> list[Scalar]:
    """Leading minors of a symmetric matrix; positive where it is positive definite."""
    xx, yy, zz, xy, xz, yz = six
    two = xx * yy - xy * xy
    return [xx, two, zz * two + xy * yz * xz * 2.0 - yy * xz * xz - xx * yz * yz]


def _inverse(six: Vector) -> Vector:
    xx, yy, zz, xy, xz, yz = six
    cofactors = (
        yy * zz - yz * yz,
        xx * zz - xz * xz,
        xx * yy - xy * xy,
        xz * yz - xy * zz,
        xy * yz - xz * yy,
        xy * xz - yz * xx,
    )
    inverse = 1.0 / (xx * cofactors[0] + xy * cofactors[3] + xz * cofactors[4])
    return tuple(c * inverse for c in cofactors)


# ---- Of vehicles -------------------------------------------------------------------------------------------------------------


def posterior_of(vehicle: Vehicle, spread: Randomization) -> Posterior:
    """Return what draws of a vehicle need.

    Raises:
        AirworthyError: Its record cannot be, tells no uncertainty, or hardly a draw of it is a vehicle that flies.
    """
    told = _told(check(vehicle))
    root = spread.widen * uncertainty_root(told)
    made = Posterior(vehicle, told.names, told.mean, tuple(map(tuple, root.tolist())), told.state)
    share = rejected_share(made)
    if share > REJECTED_MAX:
        raise AirworthyError(
            f"{100.0 * share:.0f} % of the draws from the uncertainty of {vehicle.name} are no vehicles that lift their weight:"
            " identify it from more, or lower widen."
        )
    return made


def _told(vehicle: Vehicle) -> Uncertainty:
    if vehicle.uncertainty is None:
        raise AirworthyError(
            f"{vehicle.name} tells no uncertainty, from which identified vehicles are drawn: `airworthy vehicles identify`"
            " writes vehicles that do, and --randomize mass=0.1 draws others by shares."
        )
    return vehicle.uncertainty


def rejected_share(posterior: Posterior) -> float:
    """Return the share of draws that are no vehicle, or none that flies; of always the same 4096."""
    return 1.0 - float(np.mean(tried_draws(posterior)[1]))


def tried_draws(posterior: Posterior) -> tuple[dict[str, Array], ArrayBool]:
    """Return always the same 4096 draws, SI units, (4096,) each, and which of them are vehicles that fly, (4096,)."""
    chance = np.random.default_rng(0).uniform(1e-7, 1.0 - 1e-7, (DRAW_UNIFORMS, _TRIED))
    values = posterior.values(tuple(chance))
    sound = np.broadcast_to(np.asarray(posterior.sound(values)) > 0.5, _TRIED)
    return {name: np.broadcast_to(value, _TRIED) for name, value in values.items()}, sound


def posteriors_of(vehicles: Sequence[Vehicle], config: SimulatorConfig) -> list[tuple[Posterior, ArrayIndex]]:
    """Return what draws need of each record of a batch, and which environments fly it; nothing where none are drawn.

    Raises:
        AirworthyError: A record tells no uncertainty, or the dynamics have no rotors to draw.
    """
    if not config.randomization.posterior:
        return []
    if config.dynamics != "rigid":
        raise AirworthyError(
            f"Identified vehicles are drawn in rigid dynamics, not in {config.dynamics.replace('_', '-')} ones."
        )
    records = {id(item): item for item in vehicles}
    of = np.array([id(item) for item in vehicles])
    return [(posterior_of(item, config.randomization), np.flatnonzero(of == key)) for key, item in records.items()]


def latest_command(vehicle: Vehicle, config: SimulatorConfig) -> float:
    """Return the longest dead time from command to rotor that flights of a vehicle may have [s].

    Args:
        vehicle: The record.
        config: With the spread between flights.
    """
    told = vehicle.uncertainty
    if not config.randomization.posterior or told is None or "command_delay" not in told.names:
        return vehicle.command_delay
    k = told.names.index("command_delay")
    return max(vehicle.command_delay, min(told.mean[k] + REACH * config.randomization.widen * told.sd[k], DELAY_MAX))


def bounded_config(config: SimulatorConfig, posteriors: Sequence[Posterior]) -> SimulatorConfig:
    """Return a configuration whose independent spread of lags holds all that is drawn: what stability is judged by."""
    if not posteriors:
        return config
    fastest = [p.reach("lag")[0] / p.now["lag"] for p in posteriors if "lag" in p.names]
    lag = max(0.0, 1.0 - min(fastest, default=1.0))
    return replace(config, randomization=replace(config.randomization, posterior=False, widen=1.0, lag=min(lag, FASTEST)))


def draw_rows(posterior: Posterior, rows: Array, layout: Layout, keys: ArrayU32, dt: float) -> tuple[Array, ArrayInt]:
    """Return parameter rows of flights, each drawn from its own key, and how many draws of each were no vehicle, (env,).

    Args:
        posterior: Of the vehicle that all of them fly.
        rows: Of the record, (rows, env); not changed.
        layout: Their layout.
        keys: Flight keys, (env, 4).
        dt: Physics step [s].

    Raises:
        AirworthyError: A flight found none in `ATTEMPTS` draws.
    """
    values, rejected = drawn_values(posterior, keys)
    made = posterior.rows(values, dict(enumerate(rows)), layout, dt)
    return np.stack([np.broadcast_to(made[row], rows.shape[1]) for row in range(layout.size)]), rejected


def drawn_values(posterior: Posterior, keys: ArrayU32) -> tuple[dict[str, Array], ArrayInt]:
    """Return what flights draw, SI units, (env,) each, and how many draws of each flight were no vehicle, (env,).

    Args:
        posterior: Of the vehicle that all of them fly.
        keys: Flight keys, (env, 4).

    Raises:
        AirworthyError: A flight found none in `ATTEMPTS` draws.
    """
    count = len(keys)
    found = {name: np.full(count, value) for name, value in posterior.now.items()}
    left, rejected = np.arange(count), np.zeros(count, np.int64)
    for attempt in range(ATTEMPTS):
        first = _FIRST_UNIFORM + DRAW_UNIFORMS * attempt
        values = posterior.values(tuple(uniforms(keys[left], 0, Stream.PARAMETERS, DRAW_UNIFORMS, first).T))
        sound = np.broadcast_to(np.asarray(posterior.sound(values)) > 0.5, left.shape)
        for name, column in found.items():
            column[left[sound]] = np.broadcast_to(values[name], left.shape)[sound]
        left = left[~sound]
        rejected[left] += 1
        if not left.size:
            return found, rejected
    raise AirworthyError(
        f"{posterior.vehicle.name}: none of {ATTEMPTS} draws from its uncertainty was a vehicle that lifts its weight."
    )
