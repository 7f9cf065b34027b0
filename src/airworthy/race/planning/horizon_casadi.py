"""Plans in flight by IPOPT through CasADi: the yardstick of `planning.shooting`, and what solves whole courses offline.

A solver is built once for each number of gates ahead, with state, gates and looks as its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import sha256
from airworthy.race.planning.glances import SOFT, looked
from airworthy.race.planning.horizon import (
    LEG,
    GateWindows,
    GlanceNeed,
    HorizonAnswer,
    HorizonOptions,
    NodeGuess,
    check_asked,
    horizon_answer,
    one_sign,
)
from airworthy.race.planning.minimum_time import casadi_module
from airworthy.race.planning.minimum_time_program import TURNING_COST, YAW_COST
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel

__all__ = ["HorizonPlanner", "casadi_planner"]

_SLACK_MAX = 10.0
"""Of windows [m] and glances [s]; more is no plan."""


class HorizonPlanner:
    """A solver for one vehicle and one number of gates.

    Args:
        model: Who flies.
        legs: Gates ahead.
        options: Bounds.

    Raises:
        AirworthyError: CasADi is not installed.
    """

    def __init__(self, model: RacerModel, legs: int, options: HorizonOptions) -> None:
        self.ca = casadi_module()
        self.model, self.legs, self.options = model, legs, options
        self.nodes = legs * options.bounds.nodes
        ca, asked = self.ca, max(options.glances, 1)
        self._x, self._u = ca.MX.sym("x", STATES, self.nodes + 1), ca.MX.sym("u", INPUTS, self.nodes)
        self._t = ca.MX.sym("t", legs)
        self._short, self._beside = ca.MX.sym("short", asked), ca.MX.sym("beside", legs)
        self._start = ca.MX.sym("start", STATES)
        self._gates = {name: ca.MX.sym(name, 3, legs) for name in ("center", "left", "up", "normal")}
        self._half = ca.MX.sym("half", 2, legs)
        self._target, self._counts = ca.MX.sym("target", 3, asked), ca.MX.sym("counts", asked, self.nodes)
        self._needed, self._soft = ca.MX.sym("needed", asked), ca.MX.sym("soft")
        each = options.bounds.nodes
        self._steps = ca.vec(ca.repmat(self._t.T / each, each, 1)).T
        self._terms: list[tuple[Any, Array, Array]] = []
        self._solver, self._limits = self._built()

    # ---- Solving ------------------------------------------------------------------------------------------------------------

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
            gates: As many as the planner has legs.
            guess: Where the solver begins.
            needs: Looks to take; those beyond `options.glances` are left out, so the most urgent come first.
            soft: Width of the field's edge, in tangents: a soft one is found from a guess that looks elsewhere, a sharp one
                from a guess that looks there.
            caps: Largest speed along each world axis at each node [m/s], (nodes + 1,); the first is not looked at. None: any.

        Raises:
            AirworthyError: Shapes that do not fit, or numbers that are not finite.
        """
        asked = max(self.options.glances, 1)
        target, counts, needed = np.zeros((asked, 3)), np.zeros((asked, self.nodes)), np.full(asked, -1.0)
        taken = list(needs)[: self.options.glances]
        for row, need in enumerate(taken):
            target[row], counts[row], needed[row] = need.target, need.steps, need.seconds
        start, states = one_sign(state, guess.states)
        check_asked(start, gates, guess, legs=self.legs, nodes=self.options.bounds.nodes, caps=caps)
        rows = (gates.center, gates.left, gates.up, gates.normal, gates.half)
        numbers = [start, *(row.ravel() for row in rows), target.ravel(), counts.ravel("F"), needed, np.array([soft])]
        # Slacks begin off their bounds: an interior point method starts inside.
        begun: list[Array] = [states.ravel(), guess.inputs.ravel(), guess.legs, np.full(asked, 0.05), np.full(self.legs, 0.01)]
        answer = self._solver(x0=np.concatenate(begun), p=np.concatenate(numbers), **self._capped(caps))
        stats = self._solver.stats()
        values = np.asarray(answer["x"]).ravel()
        ends = np.cumsum([self._x.numel(), self._u.numel(), self.legs, asked])
        found, inputs, legs, short, beside = np.split(values, ends)
        plan = RacePlan(found.reshape(-1, STATES), inputs.reshape(-1, INPUTS), legs, self.model, "", {})
        status = str(stats["return_status"])
        return horizon_answer(plan, gates, status, int(stats["iter_count"]), (beside, short[: len(taken)]))

    def _capped(self, caps: Array | None) -> dict[str, Array]:
        """Return the limits with speeds bounded; without caps the very same numbers as ever."""
        if caps is None:
            return self._limits
        lower, upper = self._limits["lbx"].copy(), self._limits["ubx"].copy()
        # Columns 3 to 5 of the states, which come first, from the second node on: the first is where the vehicle is.
        columns = np.arange(1, self.nodes + 1)[:, None] * STATES + np.arange(3, 6)
        lower[columns], upper[columns] = -caps[1:, None], caps[1:, None]
        return {**self._limits, "lbx": lower, "ubx": upper}

    # ---- Building -----------------------------------------------------------------------------------------------------------

    def _built(self) -> tuple[Any, dict[str, Array]]:
        ca, options = self.ca, self.options
        self._join()
        thrusts = ca.mtimes(ca.DM(self.model.mixer), self._u)
        self._bound(thrusts, options.bounds.rotor_min, options.bounds.power * self.model.rotor_max)
        for number in range(self.legs):
            self._pass(number)
        self._look()
        cost = ca.sum1(self._t) + options.window_price * ca.sum1(self._beside) + options.glance_price * ca.sum1(self._short)
        cost += TURNING_COST * ca.sum2(self._steps * ca.sum1((self._u[1:, :] / 10.0) ** 2))
        cost += YAW_COST * ca.sum2(self._steps * self._x[12, 1:] ** 2)
        unknowns = ca.vertcat(ca.vec(self._x), ca.vec(self._u), self._t, self._short, self._beside)
        gates = [ca.vec(item) for item in (*self._gates.values(), self._half)]
        given = ca.vertcat(self._start, *gates, ca.vec(self._target), ca.vec(self._counts), self._needed, self._soft)
        # Ours, after spec/race 5.4: a plan begins near the one before, so the barrier begins low; a millimetre is enough.
        strategy = {
            "mu_strategy": "monotone",
            "mu_init": 3e-3,
            "warm_start_init_point": "yes",
            "max_iter": options.bounds.iterations,
        }
        enough = {"tol": 1e-3, "constr_viol_tol": 1e-4, "dual_inf_tol": 1.0, "acceptable_tol": 1e-2, "acceptable_iter": 3}
        enough["acceptable_constr_viol_tol"] = 1e-3
        quiet = {"print_level": 0, "sb": "yes"}
        words = {f"ipopt.{key}": value for key, value in {**quiet, **strategy, **enough}.items()}
        problem = {"x": unknowns, "f": cost, "g": ca.vertcat(*(term for term, _, _ in self._terms)), "p": given}
        solver = ca.nlpsol("horizon", "ipopt", problem, {"print_time": 0, "expand": options.expand, **words})
        lower, upper = self._ranges()
        limits = {
            "lbg": np.concatenate([low for _, low, _ in self._terms]),
            "ubg": np.concatenate([high for *_, high in self._terms]),
        }
        return solver, {"lbx": lower, "ubx": upper, **limits}

    def _bound(self, term: Any, low: float, high: float) -> None:
        flat = self.ca.vec(term)
        self._terms.append((flat, np.full(flat.numel(), low), np.full(flat.numel(), high)))

    def _join(self) -> None:
        ca = self.ca
        x, u, h = ca.SX.sym("x", STATES), ca.SX.sym("u", INPUTS), ca.SX.sym("h")
        after = self.model.step([x[k] for k in range(STATES)], [u[k] for k in range(INPUTS)], h)
        step = ca.Function("step", [x, u, h], [ca.vertcat(*after)]).map(self.nodes)
        self._bound(step(self._x[:, :-1], self._u, self._steps) - self._x[:, 1:], 0.0, 0.0)
        self._bound(self._x[:, 0] - self._start, 0.0, 0.0)

    def _pass(self, number: int) -> None:
        """Bind a node to a gate's plane and window, and those around it to the cone; both yield to the gate's slack."""
        ca, bounds = self.ca, self.options.bounds
        node, slack = (number + 1) * bounds.nodes, self._beside[number]
        center, normal = self._gates["center"][:, number], self._gates["normal"][:, number]
        for index in range(max(1, node - bounds.cone_nodes), min(self.nodes + 1, node + bounds.cone_nodes + 1)):
            offset = self._x[:3, index] - center
            along = ca.dot(normal, offset)
            depth = along * (1.0 if index > node else -1.0 if index < node else 0.0)
            if index == node:
                self._bound(along, 0.0, 0.0)
            for row, axis in enumerate(("left", "up")):
                across = ca.dot(self._gates[axis][:, number], offset)
                window = self._half[row, number] + bounds.cone * depth + slack
                self._bound(across - window, -np.inf, 0.0)
                self._bound(across + window, 0.0, np.inf)

    def _look(self) -> None:
        ca = self.ca
        if self.options.glances == 0:
            return
        x, target, soft = ca.SX.sym("x", STATES), ca.SX.sym("target", 3), ca.SX.sym("soft")
        worth = looked([x[k] for k in range(STATES)], [target[k] for k in range(3)], ca, soft)
        sight = ca.Function("sight", [x, target, soft], [worth]).map(self.nodes)
        for row in range(self.options.glances):
            seen = sight(self._x[:, 1:], ca.repmat(self._target[:, row], 1, self.nodes), ca.repmat(self._soft, 1, self.nodes))
            total = ca.sum2(self._steps * seen * self._counts[row, :])
            self._bound(total + self._short[row] - self._needed[row], 0.0, np.inf)

    def _ranges(self) -> tuple[Array, Array]:
        bounds, nodes = self.options.bounds, self.nodes + 1
        high = np.full((nodes, STATES), np.inf)
        high[:, 10:13] = bounds.rate_max * np.array([1.0, 1.0, 2.0 / 3.0])
        low = -high
        low[1:, 2] = bounds.height_min
        # The first node is where the vehicle is, turning as it does: its own equation says so.
        low[0], high[0] = -np.inf, np.inf
        turn = bounds.turn_max * np.array([1.0, 1.0, 0.5])
        least = np.concatenate([[bounds.rotor_min * len(self.model.mixer)], -turn])
        most = np.concatenate([[bounds.power * self.model.thrust_max], turn])
        slacks = self._short.numel() + self.legs
        lower = [low.ravel(), np.tile(least, nodes - 1), np.full(self.legs, LEG[0]), np.zeros(slacks)]
        upper = [high.ravel(), np.tile(most, nodes - 1), np.full(self.legs, LEG[1]), np.full(slacks, _SLACK_MAX)]
        return np.concatenate(lower), np.concatenate(upper)


_BUILT: dict[str, HorizonPlanner] = {}


def casadi_planner(model: RacerModel, legs: int, options: HorizonOptions) -> HorizonPlanner:
    """Return a planner, built once in a process: building takes a second, a plan a fifth of one.

    Args:
        model: Who flies.
        legs: Gates ahead.
        options: Bounds.
    """
    numbers = [np.asarray(value, np.float64).tolist() for value in vars(model).values()]
    key = sha256(f"{numbers} {legs} {options}")
    if key not in _BUILT:
        _BUILT[key] = HorizonPlanner(model, legs, options)
    return _BUILT[key]
