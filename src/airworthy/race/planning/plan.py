"""A plan through a race: states and inputs at its nodes, what it was made for, and its file."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, parse_json, read_json, sha256, write_text
from airworthy.race.gate_geometry import GateShape, gate_shape
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel
from airworthy.race.record import Race

__all__ = ["RacePlan", "course_digest", "flown_gates", "read_plan", "start_state", "stored_plan", "write_plan"]

_KIND, _VERSION = "race plan", 1
_DIGITS = 7
"""Decimals kept in a file: 0.1 um, below the defects that a solver leaves."""
_FINE = 0.002
"""Longest time between samples of a plan [s]: lines between them err by 20 um at 40 m/s^2."""
_NUMBERS = re.compile(r"\[([-+.,\s\deE]+)\]")
"""A list of numbers and nothing else, as JSON has it."""


def flown_gates(race: Race) -> tuple[GateShape, ...]:
    """Return the opening of each passage, its normal along the flight, in order of all laps."""
    shapes = {gate.name: gate_shape(gate) for gate in race.gates}
    turned = {name: replace(shape, normal=-shape.normal, left=-shape.left) for name, shape in shapes.items()}
    return tuple((turned if reverse else shapes)[name] for name, reverse in race.passes)


def start_state(race: Race) -> Array:
    """Return the state at rest on the nominal start, (13,)."""
    half = 0.5 * np.radians(race.start.yaw_deg)
    return np.array([*race.start.position, 0.0, 0.0, 0.0, 0.0, 0.0, np.sin(half), np.cos(half), 0.0, 0.0, 0.0])


def course_digest(race: Race, model: RacerModel) -> str:
    """Return a digest of what a plan depends on: start, openings in the order of flight, and the vehicle.

    Args:
        race: Its course.
        model: Who flies it.
    """
    rows = [row for gate in flown_gates(race) for row in (gate.center, gate.left, gate.up, gate.normal)]
    sizes = [np.array([gate.half_width, gate.half_height]) for gate in flown_gates(race)]
    numbers = [start_state(race), *rows, *sizes, model.mixer.ravel()]
    numbers.append(np.array([model.mass, model.gravity, model.drag, *model.inertia, model.rotor_max]))
    # What a course or vehicle has not leaves digests as they are.
    if model.has_axial_drag:
        numbers.append(np.array([*model.linear, *model.quadratic]))
    numbers += [np.array([*post.position, post.top, post.radius]) for post in race.posts]
    numbers += [np.array([frames.width, frames.depth]) for frames in [race.frames] if frames is not None]
    # Rounded to a micrometre: sums of corners may end in another last bit on another machine.
    return sha256(json.dumps([[round(float(x), 6) + 0.0 for x in row] for row in numbers]))


@dataclass(frozen=True)
class RacePlan:
    """One solved plan."""

    states: Array
    """At nodes: position [m], velocity [m/s], attitude x y z w, body rate [rad/s], (nodes + 1, 13)."""
    inputs: Array
    """Held from node to node: collective thrust [N], angular acceleration [rad/s^2], (nodes, 4)."""
    legs: Array
    """Duration of each leg, from gate to gate [s], (gates,)."""
    model: RacerModel
    digest: str
    """`course_digest` of what it was solved for."""
    options: dict[str, Any]
    """With which it was solved, for the reader."""

    def __post_init__(self) -> None:
        count = len(self.inputs)
        if self.states.shape != (count + 1, STATES) or self.inputs.shape != (count, INPUTS) or count % max(1, len(self.legs)):
            raise AirworthyError(
                f"A plan of {len(self.legs)} legs has states {self.states.shape} and inputs {self.inputs.shape}; expected"
                f" (nodes + 1, {STATES}) and (nodes, {INPUTS}), as many nodes on each leg."
            )

    @property
    def duration(self) -> float:
        """To the last gate [s]."""
        return float(np.sum(self.legs))

    @property
    def steps(self) -> Array:
        """Duration of each step from node to node [s], (nodes,)."""
        each = len(self.inputs) // len(self.legs)
        return np.repeat(self.legs / each, each)

    @property
    def gate_times(self) -> Array:
        """When each gate is passed [s], (gates,)."""
        return np.asarray(np.cumsum(self.legs))

    @property
    def _substeps(self) -> int:
        """Steps of Runge and Kutta between nodes."""
        return int(self.options.get("substeps", 1))

    def defects(self) -> Array:
        """Return by how much each node differs from where the step before leads, (nodes, 13): m, m/s, -, rad/s."""
        reached = np.stack(self.model.advanced(self.states[:-1].T, self.inputs.T, self.steps, self._substeps), axis=1)
        return np.abs(reached - self.states[1:])

    def thrusts(self) -> Array:
        """Return what the plan asks of each rotor [N], (nodes, rotors)."""
        return self.inputs @ self.model.mixer.T

    @cached_property
    def _dense(self) -> tuple[Array, Array]:
        steps = self.steps
        fine = max(1, int(np.ceil(float(np.max(steps)) / _FINE)))
        part = np.arange(fine) / fine
        ahead = (steps[:, None] * part).ravel()
        held = np.repeat(self.inputs, fine, axis=0)
        begin = np.repeat(self.states[:-1], fine, axis=0)
        states = np.stack(self.model.advanced(begin.T, held.T, ahead, self._substeps), axis=1)
        begun = np.concatenate([[0.0], np.cumsum(steps)])
        time = np.concatenate([np.repeat(begun[:-1], fine) + ahead, begun[-1:]])
        rows = np.vstack([np.hstack([states, held]), np.concatenate([self.states[-1], self.inputs[-1]])])
        return time, rows

    def at(self, time: ArrayLike) -> tuple[Array, Array]:
        """Return states and inputs at instants; behind the last gate it goes on straight ahead, with the last thrust.

        Args:
            time: Since the start [s], (n,).

        Returns:
            (n, 13) and (n, 4), as of `states` and `inputs`.
        """
        instants = np.maximum(np.asarray(time, np.float64), 0.0)
        clock, rows = self._dense
        inside = np.minimum(instants, clock[-1])
        last = np.clip(np.searchsorted(clock, inside, side="right"), 1, len(clock) - 1)
        share = ((inside - clock[last - 1]) / (clock[last] - clock[last - 1]))[:, None]
        row = rows[last - 1] * (1.0 - share) + rows[last] * share
        row[:, 6:10] /= np.linalg.norm(row[:, 6:10], axis=1, keepdims=True)
        beyond = (instants - inside)[:, None]
        row[:, :3] += row[:, 3:6] * beyond
        # Behind the end nobody turns: neither a rate nor its change has a meaning there.
        row[:, 10:13] *= beyond <= 0.0
        row[:, 14:] *= beyond <= 0.0
        return row[:, :STATES], row[:, STATES:]


# ---- Files ------------------------------------------------------------------------------------------------------------------


def write_plan(plan: RacePlan, path: str | Path) -> None:
    """Write a plan, atomically; a node is a line, so that a changed plan can be read in a diff.

    Args:
        plan: Solved.
        path: A JSON file.
    """
    model = asdict(plan.model)
    rows = {name: np.round(getattr(plan, name), _DIGITS).tolist() for name in ("legs", "states", "inputs")}
    head = {"airworthy": _KIND, "version": _VERSION, "digest": plan.digest, "options": plan.options}
    text = json_text({**head, "model": {**model, "mixer": plan.model.mixer.tolist()}, **rows})
    write_text(path, _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text))


def read_plan(path: str | Path, race: Race, model: RacerModel) -> RacePlan:
    """Read a plan and check that it is one for a course and a vehicle.

    Args:
        path: Of `write_plan`.
        race: Its course.
        model: Who is to fly it.

    Raises:
        AssetError: No plan, or one for another course or vehicle.
    """
    return _plan(read_json(path), str(path), race, model)


def stored_plan(race: Race, model: RacerModel) -> RacePlan:
    """Return the nominal plan of a race that comes with the package.

    Args:
        race: Its nominal course.
        model: Who is to fly it.

    Raises:
        AssetError: There is none, or it is for another course or vehicle.
    """
    name = f"{race.name}_nominal.json"
    try:
        text = files("airworthy.race.planning").joinpath(name).read_text("utf-8")
    except OSError as error:
        raise AssetError(
            f"No plan is stored for the race {race.name!r}: minimum_time_plan solves one, with the extra 'race'."
        ) from error
    return _plan(parse_json(text, name), name, race, model)


def packaged_plan(name: str, model: RacerModel) -> RacePlan:
    """Return a plan that comes with the package, whatever course it is flown on: where a solver begins.

    Args:
        name: Of the file, without its ending.
        model: Who is to fly it.

    Raises:
        AssetError: There is none.
    """
    try:
        text = files("airworthy.race.planning").joinpath(f"{name}.json").read_text("utf-8")
    except OSError as error:
        raise AssetError(f"No plan {name!r} comes with the package.") from error
    return _unchecked(parse_json(text, name), name, model, "")


def _plan(data: Any, name: str, race: Race, model: RacerModel) -> RacePlan:
    if not isinstance(data, dict) or data.get("airworthy") != _KIND or data.get("version") != _VERSION:
        raise AssetError(f"{name!r} is no {_KIND} of version {_VERSION}; write_plan writes one.")
    digest = course_digest(race, model)
    if data.get("digest") != digest:
        raise AssetError(
            f"{name!r} is a plan for another course or vehicle than {race.name!r} as it is here (digest"
            f" {str(data.get('digest'))[:12]}, expected {digest[:12]}): solve it anew with minimum_time_plan."
        )
    return _unchecked(data, name, model, digest)


def _unchecked(data: Any, name: str, model: RacerModel, digest: str) -> RacePlan:
    try:
        states, inputs, legs = (np.asarray(data[key], np.float64) for key in ("states", "inputs", "legs"))
        options = dict(data["options"])
    except (KeyError, TypeError, ValueError) as error:
        raise AssetError(f"{name!r} is damaged: states, inputs, legs or options are missing or no numbers.") from error
    if not all(np.all(np.isfinite(x)) for x in (states, inputs, legs)) or not np.all(legs > 0.0):
        raise AssetError(f"{name!r} is damaged: a number is not finite, or a leg takes no time.")
    return RacePlan(states, inputs, legs, model, digest, options)
