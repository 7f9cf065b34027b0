"""The fastest flight through a course, by multiple shooting: an offline plan, and the bound of what can be flown.

States at nodes and inputs between them are free, joined by Runge-Kutta steps; each leg, from gate to gate, has as many nodes
and a duration of its own (Betts, "Practical Methods for Optimal Control Using Nonlinear Programming", 2010, chapters 3 and 4;
gates are bound to nodes, since their order is given). The sum of the durations is minimised by IPOPT (Waechter and Biegler
2006) through CasADi. Bounds: spec/race 5.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.race.gate_geometry import GateShape
from airworthy.race.planning.plan import RacePlan, course_digest, flown_gates, start_state
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel
from airworthy.race.record import Race

__all__ = ["RacePlanOptions", "minimum_time_plan"]

TURNING_COST = 2e-4
"""Seconds charged per second of 10 rad/s^2, squared: between plans of one duration the calm one. Measured: 4 ms of a race."""
YAW_COST = 1e-3
"""Seconds charged per second of 1 rad/s of yaw, squared, which time alone leaves undetermined."""
_GUESS_SPEED = 9.0
"""Of the first guess, straight from gate to gate [m/s]: two thirds of what comes out."""
_GUESS_THRUST = 1.3
"""Its thrust over the weight."""
_LEG = (0.03, 20.0)
"""Least and largest duration of a leg [s]."""
_TOLERANCE = 1e-3
"""Largest defect of a plan that is accepted: mm, mm/s (spec/race, acceptance 6)."""


@dataclass(frozen=True)
class RacePlanOptions:
    """Bounds of a plan, and how finely it is cut."""

    nodes: Annotated[int, Bound(4, 100)] = 24
    """On each leg. Spec/race 5.4 has 12, for plans in flight, which are solved in half the time; a Runge-Kutta step of 0.17 s
    then errs by 8 mm and 8 cm/s where the start turns, against 0.1 mm with 24."""
    power: Annotated[float, Bound(0.2, 1.0)] = 0.94
    """Largest thrust of each rotor, over what it can give: the rest is the tracker's."""
    rotor_min: Annotated[float, Bound(0.0, 10.0, "N")] = 0.15
    """Least thrust of each rotor [N]."""
    margin: Annotated[float, Bound(0.0, 5.0, "m")] = 0.4
    """Between path and edge of an opening [m]: the vehicle's 0.15 m, half the tube's 0.15 m, and what flying errs."""
    window: Annotated[float, Bound(0.0, 5.0, "m")] = 0.08
    """Least half width and half height that the margin leaves [m]."""
    turn_max: Annotated[float, Bound(1.0, 1000.0, "rad/s^2")] = 80.0
    """Largest angular acceleration of roll and pitch; half of it of yaw [rad/s^2]."""
    rate_max: Annotated[float, Bound(0.5, 100.0, "rad/s")] = 12.0
    """Largest rate of roll and pitch [rad/s]; two thirds of it of yaw."""
    height_min: Annotated[float, Bound(-1000.0, 1000.0, "m")] = 0.4
    """Lowest path [m]."""
    cone: Annotated[float, Bound(0.1, 10.0)] = 1.0
    """Near a gate the path stays within its window and this much more sideways per metre from the plane."""
    cone_nodes: Annotated[int, Bound(0, 50)] = 3
    """Nodes before and behind a gate for which that holds; without them an oblique path shaves a post."""
    iterations: Annotated[int, Bound(1, 100000)] = 500
    """Of the solver, at most."""

    def __post_init__(self) -> None:
        check_fields(self, "RacePlanOptions.")


def minimum_time_plan(race: Race, model: RacerModel, options: RacePlanOptions | None = None) -> RacePlan:
    """Solve the fastest flight through a course, from rest at its start to its last gate.

    Args:
        race: Its course: gates are where the record says.
        model: Who flies it.
        options: Bounds.

    Raises:
        AirworthyError: CasADi is not installed, or no plan was found.
    """
    casadi = casadi_module()
    options = options or RacePlanOptions()
    problem = _Problem(casadi, model, flown_gates(race), start_state(race), options)
    found, status = problem.solve()
    plan = RacePlan(*found, model, course_digest(race, model), asdict(options))
    worst = float(np.max(plan.defects()))
    if status not in ("Solve_Succeeded", "Solved_To_Acceptable_Level") or not worst < _TOLERANCE:
        raise AirworthyError(
            f"No plan was found through the race {race.name!r}: the solver says {status} with defects of {worst:.2g}, expected"
            f" below {_TOLERANCE:g}; raise iterations or nodes, or lower margin."
        )
    return plan


def casadi_module() -> Any:
    try:
        import casadi
    except ModuleNotFoundError as error:
        raise AirworthyError("Solving a plan needs the package 'casadi': pip install 'airworthy[race]'.") from error
    return casadi


class _Problem:
    """The nonlinear programme of one course."""

    def __init__(
        self, casadi: Any, model: RacerModel, gates: Sequence[GateShape], start: Array, options: RacePlanOptions
    ) -> None:
        self.ca, self.model, self.gates, self.start, self.options = casadi, model, gates, start, options
        count = len(gates) * options.nodes
        self.x, self.u = casadi.MX.sym("x", STATES, count + 1), casadi.MX.sym("u", INPUTS, count)
        self.legs = casadi.MX.sym("legs", len(gates))
        self.steps = casadi.vec(casadi.repmat(self.legs.T / options.nodes, options.nodes, 1)).T
        self._terms: list[tuple[Any, Array, Array]] = []

    def solve(self) -> tuple[tuple[Array, Array, Array], str]:
        """Return states, inputs and durations as of `RacePlan`, and what the solver says."""
        ca, options = self.ca, self.options
        self._join()
        self._rotors()
        for number, gate in enumerate(self.gates):
            self._pass(number, gate)
        cost = ca.sum1(self.legs)
        cost += TURNING_COST * ca.sum2(self.steps * ca.sum1((self.u[1:, :] / 10.0) ** 2))
        cost += YAW_COST * ca.sum2(self.steps * self.x[12, 1:] ** 2)
        unknowns = ca.vertcat(ca.vec(self.x), ca.vec(self.u), self.legs)
        quiet = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes", "expand": True}
        # Seconds and metres are near 1, so a thousandth of each is enough; defects are tested afterwards.
        limits = {"ipopt.tol": 1e-4, "ipopt.constr_viol_tol": 1e-5, "ipopt.max_iter": options.iterations}
        strategy = {"ipopt.mu_strategy": "adaptive"}
        bounds = ca.vertcat(*(term for term, _, _ in self._terms))
        problem = {"x": unknowns, "f": cost, "g": bounds}
        solver = ca.nlpsol("minimum_time", "ipopt", problem, {**quiet, **limits, **strategy})
        lower, upper = self._ranges()
        answer = solver(
            x0=self._guess(),
            lbx=lower,
            ubx=upper,
            lbg=np.concatenate([low for _, low, _ in self._terms]),
            ubg=np.concatenate([high for _, _, high in self._terms]),
        )
        values = np.asarray(answer["x"]).ravel()
        states, inputs, legs = np.split(values, np.cumsum([self.x.numel(), self.u.numel()]))
        return (states.reshape(-1, STATES), inputs.reshape(-1, INPUTS), legs), str(solver.stats()["return_status"])

    def _bound(self, term: Any, low: float, high: float) -> None:
        """Keep every element of a term within bounds."""
        flat = self.ca.vec(term)
        self._terms.append((flat, np.full(flat.numel(), low), np.full(flat.numel(), high)))

    def _join(self) -> None:
        ca = self.ca
        x, u, h = ca.SX.sym("x", STATES), ca.SX.sym("u", INPUTS), ca.SX.sym("h")
        after = self.model.step([x[k] for k in range(STATES)], [u[k] for k in range(INPUTS)], h)
        step = ca.Function("step", [x, u, h], [ca.vertcat(*after)]).map(self.u.shape[1])
        self._bound(step(self.x[:, :-1], self.u, self.steps) - self.x[:, 1:], 0.0, 0.0)
        self._bound(self.x[:, 0] - self.start, 0.0, 0.0)

    def _rotors(self) -> None:
        thrusts = self.ca.mtimes(self.ca.DM(self.model.mixer), self.u)
        self._bound(thrusts, self.options.rotor_min, self.options.power * self.model.rotor_max)

    def _pass(self, number: int, gate: GateShape) -> None:
        """Bind a node to a gate's plane and window, and those around it to the cone."""
        ca, options = self.ca, self.options
        node = (number + 1) * options.nodes
        half = [max(size - options.margin, options.window) for size in (gate.half_width, gate.half_height)]
        for index in range(max(1, node - options.cone_nodes), min(self.x.shape[1], node + options.cone_nodes + 1)):
            offset = self.x[:3, index] - gate.center
            along = ca.dot(ca.DM(gate.normal), offset)
            # Distance from the plane on the side where this node belongs: a node on the wrong side has a narrower window.
            depth = along * (1.0 if index > node else -1.0 if index < node else 0.0)
            if index == node:
                self._bound(along, 0.0, 0.0)
            for axis, window in ((gate.left, half[0]), (gate.up, half[1])):
                across = ca.dot(ca.DM(axis), offset)
                self._bound(across - window - options.cone * depth, -np.inf, 0.0)
                self._bound(across + window + options.cone * depth, 0.0, np.inf)

    def _ranges(self) -> tuple[Array, Array]:
        """Least and largest value of each unknown."""
        options, nodes = self.options, self.x.shape[1]
        high = np.full((nodes, STATES), np.inf)
        high[:, 10:13] = options.rate_max * np.array([1.0, 1.0, 2.0 / 3.0])
        low = -high
        low[1:, 2] = options.height_min
        turn = options.turn_max * np.array([1.0, 1.0, 0.5])
        least = np.concatenate([[options.rotor_min * len(self.model.mixer)], -turn])
        most = np.concatenate([[options.power * self.model.thrust_max], turn])
        legs = np.ones(len(self.gates))
        lower = [low.ravel(), np.tile(least, nodes - 1), _LEG[0] * legs]
        upper = [high.ravel(), np.tile(most, nodes - 1), _LEG[1] * legs]
        return np.concatenate(lower), np.concatenate(upper)

    def _guess(self) -> Array:
        """Straight from gate to gate at one speed, upright."""
        nodes, model = self.options.nodes, self.model
        corners = np.vstack([self.start[:3], *(gate.center for gate in self.gates)])
        gaps = np.diff(corners, axis=0)
        lengths = np.maximum(np.linalg.norm(gaps, axis=1), 1e-3)
        part = (np.arange(nodes) / nodes)[:, None]
        places = np.vstack([*(a + part * gap for a, gap in zip(corners, gaps, strict=False)), corners[-1:]])
        velocities = np.repeat(gaps / lengths[:, None] * _GUESS_SPEED, nodes, axis=0)
        states = np.tile(self.start, (len(places), 1))
        states[:, :3] = places
        states[1:, 3:6] = velocities
        inputs = np.tile([_GUESS_THRUST * model.mass * model.gravity, 0.0, 0.0, 0.0], (len(velocities), 1))
        return np.concatenate([states.ravel(), inputs.ravel(), lengths / _GUESS_SPEED])
