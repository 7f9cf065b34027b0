"""The nonlinear programme of the fastest flight through a course: its unknowns, what they must keep, and where a solver ends.

States at nodes and inputs between them are free, joined by Runge-Kutta steps; each leg, from gate to gate, has as many nodes
and a duration of its own (Betts, "Practical Methods for Optimal Control Using Nonlinear Programming", 2010, chapters 3 and 4;
gates are bound to nodes, since their order is given). The sum of the durations is minimised by IPOPT (Waechter and Biegler
2006) through CasADi. Bounds: spec/race 5.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.gate_geometry import GateShape
from airworthy.race.planning.beginnings import LEAST_LEG, made_up, slowly
from airworthy.race.planning.bounds import RacePlanOptions
from airworthy.race.planning.interrupts import told_signals
from airworthy.race.planning.obstacles import SHARE, KeepOff, node_range
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel

__all__ = ["SOLVED", "TURNING_COST", "YAW_COST", "MinimumTimeProgram", "ProgramEnd"]

TURNING_COST = 2e-4
"""Seconds charged per second of 10 rad/s^2, squared: between plans of one duration the calm one. Measured: 4 ms of a race."""
YAW_COST = 1e-3
"""Seconds charged per second of 1 rad/s of yaw, squared, which time alone leaves undetermined."""
_LONGEST_LEG = 20.0
"""Largest duration of a leg [s]."""
_BETWEEN = (0.25, 0.5, 0.75)
"""Parts of a step at which frames are kept off, besides its end."""
_THROUGH = 0.2
"""Least speed along a gate's direction [m/s]."""
_BEHIND = 0.4
"""Least way behind a plane that is crossed again at once, the other way [m]: several times what flying errs. Where nothing
asked for it plans dipped through by 5 mm, which flights that were off by 4 to 7 cm never did."""
_PATIENT = 4
"""Times as many iterations from a guess that is far from what is looked for: the only way out was lost at 150."""
_DETOUR, _DETOUR_S = 2.0, 0.8
"""A leg is looked at twice that takes so many times its straight line at the largest speed, and so much more [s]: of LSY's
usual ones none does, and those around a post take 2.5 s for 0.9 m."""
_SLACKS = 3
"""Kinds of slack of each leg."""
_SLACK_MAX = 1.0
"""Largest slack: metres, or the whole of what is kept off."""
_APPROACH = 0.4
"""From where on a leg its gate is approached: what is left is then a metre or so of LSY's legs, which tell a gate at 0.7 m."""
_FAST = 1000.0
"""A largest speed from here on is none."""
_MOTION, _ROTORS = "the equations of motion", "the limits of its rotors"
SOLVED = ("Solve_Succeeded", "Solved_To_Acceptable_Level")


@dataclass(frozen=True)
class ProgramEnd:
    """What a solver ended with."""

    states: Array
    inputs: Array
    legs: Array
    slacks: Array
    """(3, legs), as of `MinimumTimeProgram`; zeros where nothing is slack."""
    cost: float
    status: str
    broken: str
    """What the path keeps least, and by how much; for messages."""

    @property
    def rank(self) -> tuple[bool, float]:
        """Smaller is better: what failed comes last."""
        return self.status not in SOLVED, self.cost


def _slope(gate: GateShape, half: Sequence[float], point: Array) -> float:
    """Return how much farther sideways than a window a point before a gate lies, per metre from its plane."""
    away = point - gate.center
    depth = max(-float(away @ gate.normal), 1e-3)
    aside = (abs(float(away @ axis)) - window for axis, window in zip((gate.left, gate.up), half, strict=True))
    return max(aside) / depth


class MinimumTimeProgram:
    """The nonlinear programme of one course; see the module."""

    def __init__(
        self,
        casadi: Any,
        model: RacerModel,
        gates: Sequence[GateShape],
        start: Array,
        options: RacePlanOptions,
        obstacles: KeepOff,
    ) -> None:
        self.ca, self.model, self.gates, self.start, self.options = casadi, model, gates, start, options
        self.obstacles = obstacles
        count = len(gates) * options.nodes
        self.x, self.u = casadi.MX.sym("x", STATES, count + 1), casadi.MX.sym("u", INPUTS, count)
        self.legs = casadi.MX.sym("legs", len(gates))
        self.steps = casadi.vec(casadi.repmat(self.legs.T / options.nodes, options.nodes, 1)).T
        # Of each leg: beside its gate's window [m], within what it keeps off, and above its largest speed.
        self.slacks = casadi.MX.sym("slacks", _SLACKS, len(gates))
        self.unseen: Collection[str] = ()
        self.hover = [model.mass * model.gravity, 0.0, 0.0, 0.0]
        self.held: Array | None = None
        """Inputs until the start; none: of hovering."""
        self.warm: Array | None = None
        """First guess of states, inputs and legs; none: made up."""
        self.guess_share = 1.0
        """Speed of a guess that is made up, over the usual one; one that is not 1 leads along curves."""
        self.guess_side = 1.0
        """On which side such a guess leads round a gate that is flown again: 1 on its left, -1 on its right."""
        self.least = np.full(len(gates), LEAST_LEG)
        """Least duration of each leg [s]."""
        self.far = False
        """Whether that guess is far from what is looked for."""
        self._terms: list[tuple[Any, Array, Array]] = []
        self._whats: list[str] = []
        """What each term is."""

    def solve(self) -> ProgramEnd:
        """Return where the solver ends from the first guess."""
        ca, options = self.ca, self.options
        self._terms, self._whats = [], []
        self._join()
        self._rotors()
        for number, gate in enumerate(self.gates):
            self._pass(number, gate)
            self._go_behind(number, gate)
            self._go_round(number, gate)
        self._avoid()
        cost = ca.sum1(self.legs)
        cost += TURNING_COST * ca.sum2(self.steps * ca.sum1((self.u[1:, :] / 10.0) ** 2))
        cost += YAW_COST * ca.sum2(self.steps * self.x[12, 1:] ** 2)
        unknowns = ca.vertcat(ca.vec(self.x), ca.vec(self.u), self.legs)
        if options.slack:
            cost += options.slack * ca.sum1(ca.vec(self.slacks))
            unknowns = ca.vertcat(unknowns, ca.vec(self.slacks))
        quiet = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes", "expand": True}
        # Seconds and metres are near 1, so a thousandth of each is enough; defects are tested afterwards.
        limits = {
            "ipopt.tol": 1e-4,
            "ipopt.constr_viol_tol": 1e-5,
            "ipopt.max_iter": options.iterations * (_PATIENT if self.far else 1),
        }
        # From a plan in force the barrier begins low: with a high one the solver leaves a guess that is nearly right.
        near = {"ipopt.mu_strategy": "monotone", "ipopt.mu_init": 1e-3, "ipopt.bound_push": 1e-4, "ipopt.bound_frac": 1e-4}
        strategy: dict[str, Any] = {"ipopt.mu_strategy": "adaptive"} if self.warm is None or self.far else near
        bounds = ca.vertcat(*(term for term, _, _ in self._terms))
        problem = {"x": unknowns, "f": cost, "g": bounds}
        solver = ca.nlpsol("minimum_time", "ipopt", problem, {**quiet, **limits, **strategy})
        lower, upper = self.ranges()
        lower, upper = self._slackened(lower, 0.0), self._slackened(upper, _SLACK_MAX)
        with told_signals():
            answer = solver(
                x0=self._slackened(self._begin(), 0.0),
                lbx=lower,
                ubx=upper,
                lbg=np.concatenate([low for _, low, _ in self._terms]),
                ubg=np.concatenate([high for _, _, high in self._terms]),
            )
        values = np.asarray(answer["x"]).ravel()
        states, inputs, legs, slacks = np.split(values, np.cumsum([self.x.numel(), self.u.numel(), self.legs.numel()]))
        slacks = slacks.reshape(-1, _SLACKS).T if options.slack else np.zeros((_SLACKS, len(legs)))
        status = str(solver.stats()["return_status"])
        cost, broken = float(np.asarray(answer["f"]).item()), self._broken(np.asarray(answer["g"]).ravel())
        return ProgramEnd(states.reshape(-1, STATES), inputs.reshape(-1, INPUTS), legs, slacks, cost, status, broken)

    def shorter(self, found: ProgramEnd) -> ProgramEnd:
        """Return what is found, or a faster end from straight ways where legs lead far around.

        At a limited speed a leg says by its duration that it is a detour; the other side of a post, or a curve where there
        was a loop, is another end of the same programme, which a solver that begins with the detour does not see.
        """
        gates, most = self.gates, self.options.cruise
        if most >= _FAST or found.status not in SOLVED:
            return found
        corners = np.vstack([self.start[:3], *(gate.center for gate in gates)])
        straight = np.linalg.norm(np.diff(corners, axis=0), axis=1) / most
        for posts in (None, self.obstacles.posts if len(self.obstacles.posts) else None):
            long = np.flatnonzero(found.legs > _DETOUR * straight + _DETOUR_S).tolist()
            # Who flies through a gate again goes round it, and no straight line says how far that is.
            long = [leg for leg in long if not self.obstacles.is_round(leg)]
            if long:
                self.warm = slowly((found.states, found.inputs, found.legs), long, self.start, gates, self.hover, posts)
                self.far = True
                found = min(found, self.solve(), key=lambda one: one.rank)
                self.far = False
        return found

    def _broken(self, values: Array) -> str:
        """Return which term is farthest beyond its bounds, and by how much."""
        ends = np.cumsum([len(low) for _, low, _ in self._terms])[:-1]
        parts = zip(np.split(values, ends), self._terms, self._whats, strict=True)
        off = [(float(np.max(np.maximum(low - part, part - high))), what) for part, (_, low, high), what in parts]
        most, what = max(off)
        return f"{what} (by {most:.2g})"

    def _begin(self) -> Array:
        if self.warm is not None:
            return self.warm
        return made_up(self.start, self.gates, self.model, self.options.nodes, self.guess_share, self.guess_side)

    def _slackened(self, values: Array, slack: float) -> Array:
        """Append a value for each slack, where there are any."""
        return np.concatenate([values, np.full(self.slacks.numel(), slack)]) if self.options.slack else values

    def _slack(self, kind: int, leg: int) -> Any:
        return self.slacks[kind, leg] if self.options.slack else 0.0

    def _bound(self, term: Any, low: float, high: float, what: str) -> None:
        """Keep every element of a term within bounds."""
        flat = self.ca.vec(term)
        self._whats.append(what)
        self._terms.append((flat, np.full(flat.numel(), low), np.full(flat.numel(), high)))

    def _join(self) -> None:
        ca = self.ca
        x, u, h = ca.SX.sym("x", STATES), ca.SX.sym("u", INPUTS), ca.SX.sym("h")
        after = self.model.advanced([x[k] for k in range(STATES)], [u[k] for k in range(INPUTS)], h, self.options.substeps)
        step = ca.Function("step", [x, u, h], [ca.vertcat(*after)]).map(self.u.shape[1])
        self._bound(step(self.x[:, :-1], self.u, self.steps) - self.x[:, 1:], 0.0, 0.0, _MOTION)
        self._bound(self.x[:, 0] - self.start, 0.0, 0.0, "its start")

    def _rotors(self) -> None:
        thrusts = self.ca.mtimes(self.ca.DM(self.model.mixer), self.u)
        self._bound(thrusts, self.options.rotor_min, self.options.power * self.model.rotor_max, _ROTORS)
        if self.options.slew:
            held = self.hover if self.held is None else self.held
            first = self.ca.mtimes(self.ca.DM(self.model.mixer), self.ca.DM(held))
            change = self.ca.horzcat(thrusts[:, 0] - first, thrusts[:, 1:] - thrusts[:, :-1])
            reach = self.options.slew * self.ca.repmat(self.steps, thrusts.shape[0], 1)
            self._bound(change - reach, -np.inf, 0.0, _ROTORS)
            self._bound(change + reach, 0.0, np.inf, _ROTORS)

    def _pass(self, number: int, gate: GateShape) -> None:
        """Bind a node to a gate's plane and window, and those around it to the cone."""
        ca, options = self.ca, self.options
        node, what = (number + 1) * options.nodes, f"the way through gate {self.obstacles.passes[number]!r}"
        half = [max(size - options.margin, options.window) for size in (gate.half_width, gate.half_height)]
        near = range(max(1, node - options.cone_nodes), min(self.x.shape[1], node + options.cone_nodes + 1))
        cones = [(index, options.cone) for index in near]
        if number == 0 and self.obstacles.is_before(0, self.start[:3]):
            # In flight a plan may begin right before its gate, within what is kept off the frame: the way there lies in a cone
            # then, too, as wide as its beginning asks for.
            cones += [(index, max(options.cone, _slope(gate, half, self.start[:3]))) for index in range(1, near.start)]
        for index, cone in cones:
            offset = self.x[:3, index] - gate.center
            along = ca.dot(ca.DM(gate.normal), offset)
            # Distance from the plane on the side where this node belongs: a node on the wrong side has a narrower window.
            depth = along * (1.0 if index > node else -1.0 if index < node else 0.0)
            if index == node:
                self._bound(along, 0.0, 0.0, what)
                # The window alone lets a path through the wrong way round, if it is near the middle.
                self._bound(ca.dot(ca.DM(gate.normal), self.x[3:6, index]), _THROUGH, np.inf, what)
            else:
                # Through the plane once: who comes from the wrong side would cross it twice within a moment.
                self._bound(depth, 0.0, np.inf, what)
            for axis, window in ((gate.left, half[0]), (gate.up, half[1])):
                across = ca.dot(ca.DM(axis), offset)
                wide = window + cone * depth + self._slack(0, number)
                self._bound(across - wide, -np.inf, 0.0, what)
                self._bound(across + wide, 0.0, np.inf, what)

    def _go_behind(self, number: int, gate: GateShape) -> None:
        """Lead a leg far enough behind the gate that it ends in, where it begins in the same gate, flown the other way."""
        if not self.obstacles.is_back(number):
            return
        # In flight such a leg may be half flown: who comes back already has been behind.
        before = self.gates[number - 1].normal if number else self.start[3:6]
        if before @ gate.normal >= 0.0:
            return
        middle = number * self.options.nodes + self.options.nodes // 2
        depth = -self.ca.dot(self.ca.DM(gate.normal), self.x[:3, middle] - gate.center) + self._slack(0, number)
        self._bound(
            depth, _BEHIND, np.inf, f"the way behind gate {self.obstacles.passes[number]!r}, which is flown back through"
        )

    def _go_round(self, number: int, gate: GateShape) -> None:
        """Lead a leg that ends in the gate in which it begins, the same way through, round its frame.

        In the middle third of the leg the frame is kept off; it begins behind the plane and ends before it, so that the leg
        crosses the plane beside the frame there.
        """
        obstacles, begin = self.obstacles, self.gates[number - 1].center if number else self.start[:3]
        if not obstacles.is_round(number) or not (number or (begin - gate.center) @ gate.normal >= 0.0):
            return
        nodes, what = self.options.nodes, f"the way round gate {obstacles.passes[number]!r}, which is flown again"
        sides = [(1.0 - SHARE, -1.0)]
        if number or obstacles.is_before(0, begin):
            # In flight it may be beside the frame already, and about to cross the plane.
            sides.append((SHARE, 1.0))
        for share, side in sides:
            place = self.x[:3, number * nodes + round(share * nodes)]
            depth = side * self.ca.dot(self.ca.DM(gate.normal), place - gate.center) + self._slack(0, number)
            self._bound(depth, _BEHIND, np.inf, what)

    def _avoid(self) -> None:
        """Keep nodes off posts and off frames of gates that they do not fly through."""
        ca, nodes = self.ca, self.options.nodes
        ends = [self.start[:3], *(gate.center for gate in self.gates)]
        for leg, (begin, end) in enumerate(pairwise(ends)):
            first, slack, to = leg * nodes, self._slack(1, leg), f"on the way to gate {self.obstacles.passes[leg]!r}"
            for number, (x, y, least) in enumerate(self.obstacles.posts, 1):
                here = self.x[:2, first + 1 : first + nodes + 1]
                for place in (here, 0.5 * (here + self.x[:2, first : first + nodes])):
                    self._bound(
                        ca.sum1((place - ca.DM([x, y])) ** 2) / least**2 + slack, 1.0, np.inf, f"off post {number} {to}"
                    )
            for frame, low, high in self.obstacles.blocking(leg, begin, end):
                off = f"off the frame of gate {frame.name!r} {to}"
                for index in (first + k for k in node_range(nodes, low, high)):
                    here, before = self.x[:3, index], self.x[:3, index - 1]
                    # Between nodes, too: up to two metres lie between them, and a bar measures 0.15 m. The chord is off the
                    # arc by 5 cm at 45 m/s^2 and 0.09 s, which clearances hold.
                    for place in (here, *(before + share * (here - before) for share in _BETWEEN)):
                        self._bound(frame.level([place[k] for k in range(3)]) + slack, 1.0, np.inf, off)
            ways = [(1, self.options.cruise)]
            if self.obstacles.passes[leg] in self.unseen:
                ways.append((round(_APPROACH * nodes), self.options.speed_max))
            for node, most in ways:
                if most < _FAST:
                    speeds = ca.sum1(self.x[3:6, first + node : first + nodes + 1] ** 2)
                    self._bound(speeds / most**2 - self._slack(2, leg), -np.inf, 1.0, f"within {most:g} m/s {to}")

    def ranges(self) -> tuple[Array, Array]:
        """Return the least and largest value of each unknown."""
        options, nodes = self.options, self.x.shape[1]
        high = np.full((nodes, STATES), np.inf)
        high[:, 10:13] = options.rate_max * np.array([1.0, 1.0, 2.0 / 3.0])
        low = -high
        low[1:, 2] = options.height_min
        if self.obstacles.lower is not None and self.obstacles.upper is not None:
            low[1:, :3] = np.maximum(low[1:, :3], self.obstacles.lower)
            high[1:, :3] = self.obstacles.upper
        # Who starts below or beyond a bound, as on the floor, is asked to be within it by the first gate, not after one step.
        first = slice(1, options.nodes)
        low[first, :3] = np.minimum(low[first, :3], self.start[:3])
        high[first, :3] = np.maximum(high[first, :3], self.start[:3])
        turn = options.turn_max * np.array([1.0, 1.0, 0.5])
        least = np.concatenate([[options.rotor_min * len(self.model.mixer)], -turn])
        most = np.concatenate([[options.power * self.model.thrust_max], turn])
        lower = [low.ravel(), np.tile(least, nodes - 1), self.least]
        upper = [high.ravel(), np.tile(most, nodes - 1), np.full(len(self.gates), _LONGEST_LEG)]
        return np.concatenate(lower), np.concatenate(upper)
