"""The planner in flight: the fastest way through the next gates from the present state, with glances, solved again and again.

The programme is that of `minimum_time`, in parameters: state, gates with their windows, and what has still to be looked at are
given anew at each solve. Gates and glances have slacks with a price, so that there is always a plan, and its slacks say what
it lacks. Two solvers take it: a kernel of our own (`planning.shooting`), and CasADi with IPOPT (`horizon_casadi`), by which
the former is judged. Source: spec/race 5.4 and 5.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.race.gate_geometry import GateShape
from airworthy.race.planning.bounds import PlanBounds
from airworthy.race.planning.glances import SOFT
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel

__all__ = [
    "LEG",
    "GateWindows",
    "GlanceNeed",
    "HorizonAnswer",
    "HorizonOptions",
    "HorizonSolver",
    "NodeGuess",
    "check_asked",
    "horizon_answer",
    "horizon_planner",
    "one_sign",
    "whole_openings",
]

LEG = (0.03, 8.0)
"""Least and largest duration of a leg [s]."""
_OFF_MAX = 1e-3
"""What equations of a plan that is flown may be off at most, whatever its solver says: steps from node to node [m, m/s, rad/s],
and crossings beside their gate's plane [m] (spec/race, acceptance 6)."""
_MISSED = 0.5
"""A plan that leaves a window by more [m] is none."""


@dataclass(frozen=True)
class HorizonOptions:
    """What a plan in flight is bound by."""

    bounds: PlanBounds = field(default_factory=lambda: PlanBounds(nodes=12, iterations=60))
    """Of the vehicle and of the frames' cone, nodes on each leg, and the solver's iterations."""
    ahead: Annotated[int, Bound(1, 100)] = 4
    """Gates that a plan reaches through; with 2 a race takes 0.25 s longer (spec/race 6)."""
    glances: Annotated[int, Bound(0, 100)] = 4
    """Glances that one plan can ask for."""
    window_price: Annotated[float, Bound(0.0, 1e6, "s/m")] = 30.0
    """Seconds that a metre beside a window costs [s/m]."""
    glance_price: Annotated[float, Bound(0.0, 1e6)] = 5.0
    """Seconds that a second of sight costs that a plan lacks."""

    solver: Literal["native", "casadi"] = "native"
    """Who solves it: the kernel of `planning.shooting`, or IPOPT through CasADi, which takes some twenty times as long."""
    expand: bool = True
    """Whether CasADi's programme is written out: plans are solved three times as quickly, and building takes far longer."""

    def __post_init__(self) -> None:
        check_fields(self, "HorizonOptions.")
        # An offline plan's further options have no effect here: posts and walls are not kept off.
        if type(self.bounds) is not PlanBounds:
            raise AirworthyError(
                f"HorizonOptions.bounds is a {type(self.bounds).__name__}; expected PlanBounds, as a plan in flight keeps."
            )
        if self.solver == "native" and not self.expand:
            raise AirworthyError("HorizonOptions.expand has no effect on the solver 'native'; leave it, or plan with 'casadi'.")


@dataclass(frozen=True)
class GateWindows:
    """The next gates, as believed, and where in their openings a path may cross."""

    center: Array
    """World [m], (gates, 3)."""
    left: Array
    """Unit vectors across the opening, (gates, 3)."""
    up: Array
    """(gates, 3)."""
    normal: Array
    """Along the flight, (gates, 3)."""
    half: Array
    """Half width and half height of the windows [m], (gates, 2): openings less margins."""


def whole_openings(shapes: Sequence[GateShape]) -> GateWindows:
    """Return gates with their openings as windows.

    Args:
        shapes: In the order of flight, normals along it.
    """
    center, left, up, normal = (
        np.array([getattr(shape, name) for shape in shapes]) for name in ("center", "left", "up", "normal")
    )
    return GateWindows(center, left, up, normal, np.array([[shape.half_width, shape.half_height] for shape in shapes]))


@dataclass(frozen=True)
class GlanceNeed:
    """One gate that has still to be looked at."""

    target: Array
    """Its centre, world [m], (3,)."""
    steps: Array
    """Steps of the plan that count, 1 or 0, (nodes,)."""
    seconds: float
    """Of `looked`."""


@dataclass(frozen=True)
class NodeGuess:
    """Where the solver begins."""

    states: Array
    """(nodes + 1, 13)."""
    inputs: Array
    """(nodes, 4)."""
    legs: Array
    """[s], (gates,)."""


@dataclass(frozen=True)
class HorizonAnswer:
    """What a solve gave."""

    plan: RacePlan
    usable: bool
    """Whether it can be flown: its steps lead from node to node, and it crosses all gates in their planes and windows."""
    status: str
    """What the solver says."""
    iterations: int
    defect: float
    """Largest of `plan.defects()`."""
    plane: float
    """Farthest that a crossing lies from its gate's plane [m]."""
    window_slack: Array
    """By how much the path leaves each window [m], (gates,)."""
    glance_slack: Array
    """Seconds of sight that are lacking, (glances asked for,)."""


class HorizonSolver(Protocol):
    """Whoever solves plans in flight."""

    def solve(
        self,
        state: Array,
        gates: GateWindows,
        guess: NodeGuess,
        needs: Sequence[GlanceNeed] = (),
        soft: float = SOFT,
        caps: Array | None = None,
    ) -> HorizonAnswer:
        """Solve one plan.

        Args:
            state: From which it flies: position, velocity, attitude x y z w, body rate, (13,).
            gates: To fly through, one for each leg.
            guess: Where the solver begins.
            needs: Looks to take; those beyond `options.glances` are left out, so the most urgent come first.
            soft: Width of the field's edge, in tangents: a soft one is found from a guess that looks elsewhere, a sharp one
                from a guess that looks there.
            caps: Largest speed along each world axis at each node [m/s], (nodes + 1,); the first is not looked at. None: any.

        Raises:
            AirworthyError: Shapes that do not fit, or numbers that are not finite.
        """
        ...


def horizon_answer(
    plan: RacePlan, gates: GateWindows, status: str, iterations: int, slacks: tuple[Array, Array]
) -> HorizonAnswer:
    """Return an answer, and judge by the plan itself whether it can be flown: a solver that broke down may say anything.

    Args:
        plan: As the solver left it.
        gates: That it was asked to fly through.
        status: What the solver says.
        iterations: Of the solver.
        slacks: Of windows and of looks.
    """
    finite = bool(np.all(np.isfinite(plan.states)) and np.all(np.isfinite(plan.inputs)) and np.all(plan.legs > 0.0))
    defect = float(np.max(plan.defects())) if finite else np.inf
    plane, beside = _crossed(plan, gates)
    wide = max(beside, float(np.max(slacks[0])))
    # A number that is not finite is below nothing.
    usable = finite and defect < _OFF_MAX and plane < _OFF_MAX and wide < _MISSED
    return HorizonAnswer(plan, usable, status, iterations, defect, plane, *slacks)


def _crossed(plan: RacePlan, gates: GateWindows) -> tuple[float, float]:
    """Return how far a plan's crossings lie from their planes at most, and beside their windows [m]."""
    each = len(plan.inputs) // len(plan.legs)
    offset = plan.states[each::each, :3] - gates.center
    along, left, up = (np.abs(np.sum(offset * axis, axis=1)) for axis in (gates.normal, gates.left, gates.up))
    return float(np.max(along)), float(np.max(np.column_stack([left, up]) - gates.half))


def check_asked(
    state: Array, gates: GateWindows, guess: NodeGuess, *, legs: int, nodes: int, caps: Array | None = None
) -> None:
    """Check what a plan is asked for with.

    Args:
        state: (13,)
        gates: (legs, ...)
        guess: Where the solver begins.
        legs: Gates ahead.
        nodes: On each leg.
        caps: Largest speeds, if any.

    Raises:
        AirworthyError: Shapes that do not fit, or numbers that are not finite.
    """
    given = [state, gates.center, gates.left, gates.up, gates.normal, gates.half, guess.states, guess.inputs, guess.legs]
    count = legs * nodes
    shapes = [(STATES,), *(4 * [(legs, 3)]), (legs, 2), (count + 1, STATES), (count, INPUTS), (legs,)]
    if [item.shape for item in given] != shapes or not all(np.all(np.isfinite(item)) for item in given):
        raise AirworthyError(
            f"A plan through {legs} gates is asked for with numbers that are not finite or of shapes"
            f" {[item.shape for item in given]}; expected {shapes}."
        )
    if caps is not None and (caps.shape != (count + 1,) or not np.all(caps > 0.0)):
        raise AirworthyError(
            f"A plan is asked for with largest speeds of shape {caps.shape}; expected ({count + 1},), each above 0."
        )


def one_sign(state: Array, guess: Array) -> tuple[Array, Array]:
    """Return a state and the guess that begins with it, their quaternions' signs following on: q and -q are one attitude, and a
    solver that is begun across the two turns round fully.

    Args:
        state: Where the plan begins, (13,).
        guess: Of states, (nodes + 1, 13).
    """
    states = np.array(guess, np.float64)
    states[0] = state
    signs = np.sign(np.sum(states[1:, 6:10] * states[:-1, 6:10], axis=1))
    states[1:, 6:10] *= np.cumprod(np.where(signs < 0.0, -1.0, 1.0))[:, None]
    return np.asarray(state, np.float64), states


def horizon_planner(model: RacerModel, legs: int, options: HorizonOptions) -> HorizonSolver:
    """Return a planner, built once in a process: by CasADi building takes a second or more for each number of gates.

    Args:
        model: Who flies.
        legs: Gates ahead, at most `options.ahead`.
        options: Bounds, and who solves.

    Raises:
        AirworthyError: CasADi is asked for and not installed, or the kernel cannot be built.
    """
    # Each imports what it needs: the one Warp, the other CasADi.
    if options.solver == "native":
        from airworthy.race.planning.shooting.planner import shooting_planner

        return shooting_planner(model, options)
    from airworthy.race.planning.horizon_casadi import casadi_planner

    return casadi_planner(model, legs, options)
