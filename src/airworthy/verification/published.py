"""One acceptance figure: what was measured beside what it must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.core.files import data_dir, read_json
from airworthy.core.frames import z_down_attitude, z_down_vector
from airworthy.simulation import SemiKinematicTwin, Simulator, SimulatorConfig
from airworthy.trajectories import course, kinematic_state, septic
from airworthy.trajectories.polynomial import differentiate, evaluate
from airworthy.vehicles import control_effectiveness, import_urdf, indicators, vehicle, vehicle_names


@dataclass(frozen=True)
class Figure:
    """A measured figure and its aim."""

    name: str
    """What was checked, with where the aim comes from."""
    measured: float
    """In `unit`."""
    aim: str
    """What it must be, in words."""
    passed: bool
    """Whether it is."""
    unit: str = ""
    """Of the measured number."""
    note: str = ""
    """Why it is not as it must be, where that is known, or the sentence that was looked for."""


def within(name: str, measured: float, expected: float, share: float, unit: str = "") -> Figure:
    """Check a figure that must lie within a share of an expected value.

    Args:
        name: Of the figure.
        measured: In `unit`.
        expected: In `unit`.
        share: Of the expected value that it may be off.
        unit: Shown behind the number.
    """
    aim = f"{expected:.6g} +- {100 * share:g} %"
    return Figure(name, measured, aim, bool(abs(measured - expected) <= share * abs(expected)), unit)


def below(name: str, measured: float, bound: float, unit: str = "") -> Figure:
    """Check a figure that must not exceed a bound.

    Args:
        name: Of the figure.
        measured: In `unit`.
        bound: In `unit`.
        unit: Shown behind the number.
    """
    return Figure(name, measured, f"at most {bound:g}", bool(measured <= bound), unit)


def at_least(name: str, measured: float, bound: float, unit: str = "") -> Figure:
    """Check a figure that must reach a bound.

    Args:
        name: Of the figure.
        measured: In `unit`.
        bound: In `unit`.
        unit: Shown behind the number.
    """
    return Figure(name, measured, f"at least {bound:g}", bool(measured >= bound), unit)


def between(name: str, measured: float, low: float, high: float, unit: str = "") -> Figure:
    """Check a figure that must lie in a range.

    Args:
        name: Of the figure.
        measured: In `unit`.
        low: Of the range, itself in it, in `unit`.
        high: The same.
        unit: Shown behind the number.
    """
    return Figure(name, measured, f"{low:g} to {high:g}", bool(low <= measured <= high), unit)


def zero(name: str, count: int) -> Figure:
    """Check a count that must be zero."""
    return Figure(name, float(count), "0", count == 0)


def explained(figure: Figure, why: str) -> Figure:
    """Return a figure with the reason why it is not as it must be; one that is stays without.

    Args:
        figure: Measured.
        why: One sentence.
    """
    return figure if figure.passed else replace(figure, note=why)


# ---- Figures against published tables, and against reference files where AIRWORTHY_DATA names them --------------------------

SOUSVIDE_COURSES = ("robustness", "extended", "cluttered", "infinity", "line", "hover", "sigmoid")
URDF_ROBOTS = {"base_quadrotor": "quad__quad", "tinyprop": "tinyprop__tinyprop", "base_random": "random__random"}


def published_figures() -> Iterator[Figure]:
    """Run the checks one after the other; those without their reference files are left out."""
    yield from _indicators()
    yield from _semi_kinematic()
    data = data_dir()
    if data is not None:
        yield from _courses(data / "sousvide")
        yield from _segments(data / "boundary_predictor" / "reference_vectors.json")
        yield from _effectiveness(data / "aerial_gym")


def _indicators() -> Iterator[Figure]:
    worst, count = {"twr": 0.0, "alpha": 0.0}, 0
    for name in vehicle_names():
        model = vehicle(name)
        if "published_thrust_to_weight" not in model.extra:
            continue
        count += 1
        found = indicators(model)
        worst["twr"] = max(worst["twr"], abs(found.thrust_to_weight - float(model.extra["published_thrust_to_weight"])))
        for value, key in ((found.alpha_xy_max, "published_alpha_xy_max"), (found.alpha_z_max, "published_alpha_z_max")):
            worst["alpha"] = max(worst["alpha"], abs(value / float(model.extra[key]) - 1.0))
    yield below(f"FlyingTrust table, {count} vehicles: thrust-to-weight, worst", worst["twr"], 0.05)
    yield below(f"FlyingTrust table, {count} vehicles: angular accelerations, worst", 100.0 * worst["alpha"], 0.2, "%")


def _semi_kinematic() -> Iterator[Figure]:
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
    model = vehicle("carl")
    twin = SemiKinematicTwin(Simulator(model, config))
    twin.advance(1000, [model.mass * model.gravity, 0.0, 0.0, 0.0])
    drift = float(np.linalg.norm(twin.field("position")))
    yield below("SOUS VIDE 1: hover drift in 10 s, semi-kinematic, float64", drift, 1e-6, "m")
    norm = abs(float(np.linalg.norm(twin.field("attitude"))) - 1.0)
    yield below("SOUS VIDE 1: quaternion norm error", norm, 1e-9)
    coarse = SemiKinematicTwin(Simulator(model, config))
    fine = SemiKinematicTwin(Simulator(model, replace(config, physics_rate=1000.0)))
    command = [1.1 * model.mass * model.gravity, 0.8, -0.6, 0.4]
    coarse.advance(200, command)
    fine.advance(2000, command)
    gap = float(np.linalg.norm(coarse.field("position") - fine.field("position")))
    yield below("SOUS VIDE: RK4 against a ten times finer one, 2 s", gap, 1e-6, "m")


def _courses(folder: Path) -> Iterator[Figure]:
    model, worst = vehicle("carl"), 0.0
    for name in SOUSVIDE_COURSES:
        rows = np.loadtxt(folder / f"reference_{name}.csv", delimiter=",", skiprows=1)
        sample = course(name).trajectory().sample(rows[:, 0])
        state = kinematic_state(sample)
        attitude = z_down_attitude(rows[:, 7:11])
        sign = np.where(np.sum(state.attitude * attitude, axis=1, keepdims=True) < 0.0, -1.0, 1.0)
        thrust = -rows[:, 11] * 27.6 / model.mass
        gaps = (
            sample.position - z_down_vector(rows[:, 1:4]),
            sample.velocity - z_down_vector(rows[:, 4:7]),
            sign * state.attitude - attitude,
            (state.thrust - thrust) * model.mass / 27.6,
            state.body_rate - z_down_vector(rows[:, 12:15]),
        )
        worst = max(worst, *(float(np.abs(gap).max()) for gap in gaps))
    yield below("SOUS VIDE 2: seven courses against references, p, v, q, u, worst", worst, 1e-4)


def _segments(path: Path) -> Iterator[Figure]:
    worst = 0.0
    for segment in read_json(path)["segments"]:
        duration = float(segment["T"])
        coefficients = septic(segment["b0"], segment["bf"], duration)
        for sample in segment["samples"]:
            for order, quantity in enumerate("xvaj"):
                value = evaluate(differentiate(coefficients, order), sample["t"] / duration) / duration**order
                worst = max(worst, abs(float(value) - sample[quantity]))
    yield below("BoundaryPredictor reference vectors, x, v, a, j, worst", worst, 1e-9)


def _effectiveness(folder: Path) -> Iterator[Figure]:
    robots = read_json(folder / "robots.json")["robots"]
    rotors = Path(__file__).parents[1] / "vehicles" / "urdf_rotors"
    for name, file in URDF_ROBOTS.items():
        model = import_urdf(folder / "urdf" / f"{file}.urdf", rotors / f"{name}.toml")
        published = np.array(robots[name]["config"]["control_allocator_config"]["allocation_matrix"])
        gap = float(np.abs(control_effectiveness(model, reference="root") - published).max())
        yield below(f"Aerial Gym: effectiveness of {name} from its URDF", gap, 1e-6)
