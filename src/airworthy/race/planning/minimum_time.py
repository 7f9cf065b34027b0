"""The fastest flight through a course, by multiple shooting: an offline plan, and the bound of what can be flown.

States at nodes and inputs between them are free, joined by Runge-Kutta steps; each leg, from gate to gate, has as many nodes
and a duration of its own (Betts, "Practical Methods for Optimal Control Using Nonlinear Programming", 2010, chapters 3 and 4;
gates are bound to nodes, since their order is given). The sum of the durations is minimised by IPOPT (Waechter and Biegler
2006) through CasADi. Bounds: spec/race 5.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound
from airworthy.race.gate_geometry import GateShape
from airworthy.race.planning.beginnings import LEAST_LEG, made_up, sampled, slowly
from airworthy.race.planning.bounds import PlanBounds
from airworthy.race.planning.interrupts import told_signals
from airworthy.race.planning.obstacles import KeepOff, node_range, obstacles_of
from airworthy.race.planning.plan import RacePlan, course_digest, flown_gates, start_state
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel
from airworthy.race.planning.ways import check_time, check_ways
from airworthy.race.record import Race

__all__ = ["RacePlanOptions", "minimum_time_plan", "rest_plan"]

TURNING_COST = 2e-4
"""Seconds charged per second of 10 rad/s^2, squared: between plans of one duration the calm one. Measured: 4 ms of a race."""
YAW_COST = 1e-3
"""Seconds charged per second of 1 rad/s of yaw, squared, which time alone leaves undetermined."""
_AGAIN = (0.7, 1.4, 0.4)
"""Speeds of further guesses over that of the first, where no plan was found from it; ours."""
_LONGEST_LEG = 20.0
"""Largest duration of a leg [s]."""
_BETWEEN = (0.25, 0.5, 0.75)
"""Parts of a step at which frames are kept off, besides its end."""
_THROUGH = 0.2
"""Least speed along a gate's direction [m/s]."""
_BEHIND = 0.4
"""Least way behind a plane that is crossed again at once, the other way [m]: several times what flying errs. Where nothing
asked for it plans dipped through by 5 mm, which flights that were off by 4 to 7 cm never did."""
_CROSSED = 0.01
"""Slack from which on a plan is looked for from another beginning, too: a centimetre beside a window, or a half per cent of the
distance from a post."""
_PATIENT = 4
"""Times as many iterations from there: the only way out was lost at 150."""
_TAKES = 0.6
"""Least duration of a leg that is flown slowly at first, over that of its guess."""
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
_TOLERANCE = 1e-3
"""Largest defect of a plan that is accepted: mm, mm/s (spec/race, acceptance 6)."""


@dataclass(frozen=True)
class RacePlanOptions(PlanBounds):
    """Bounds of an offline plan: those of every plan, and what a course keeps a racer off."""

    speed_max: Annotated[float, Bound(0.1, 1000.0, "m/s")] = 1000.0
    """Largest speed towards gates that may stand elsewhere yet, on the last part of the leg [m/s]; by default none."""
    cruise: Annotated[float, Bound(0.1, 1000.0, "m/s")] = 1000.0
    """Largest speed anywhere [m/s]; by default none."""
    substeps: Annotated[int, Bound(1, 20)] = 1
    """Steps of Runge and Kutta between nodes. More make a coarse plan as exact as a fine one, for less than its price: of eight
    nodes on a leg of 1.6 s that turns by 8 rad/s one step each errs by decimetres."""
    slew: Annotated[float, Bound(0.0, 1e6, "N/s")] = 0.0
    """Fastest change of each rotor's thrust from step to step, at first from hover [N/s]; 0: any. For rotors with a lag that a
    tracker cannot hide, near their limit."""
    clearance: Annotated[float, Bound(0.0, 5.0, "m")] = 0.35
    """Between path and posts, and frames of gates that a leg is not through [m]: as `margin`, and half of a frame's depth."""
    wall: Annotated[float, Bound(0.0, 5.0, "m")] = 0.2
    """Between path and the limits of the race [m]."""
    slack: Annotated[float, Bound(0.0, 1e6, "s/m")] = 0.0
    """Seconds that a metre beside a window or within a clearance costs [s/m]; 0: neither may be. For plans in flight: a gate
    that is told late may stand where its window cannot be reached."""


def minimum_time_plan(
    race: Race,
    model: RacerModel,
    options: RacePlanOptions | None = None,
    unseen: Collection[str] = (),
    like: RacePlan | None = None,
) -> RacePlan:
    """Solve the fastest flight through a course, from rest at its start to its last gate.

    Args:
        race: Its course: gates are where the record says.
        model: Who flies it.
        options: Bounds.
        unseen: Gates that may stand elsewhere yet (`RacePlanOptions.speed_max`).
        like: A plan through the same gates from a place near the start, with which the solver begins; None: it begins with
            lines and curves from gate to gate.

    Raises:
        AirworthyError: CasADi is not installed, or no plan was found.
    """
    options = options or RacePlanOptions()
    problem = _Problem(casadi_module(), model, flown_gates(race), start_state(race), options, _obstacles(race, options, 0))
    problem.unseen = frozenset(unseen)
    lower, upper = problem.ranges()
    if np.any(lower > upper):
        raise AirworthyError(
            f"No plan was found through the race {race.name!r}: its limits leave no room between height_min and the walls."
        )
    if like is not None:
        problem.warm = sampled(like, 0.0, len(problem.gates), problem.options.nodes, problem.start)
    check_ways(race, problem.obstacles, options)
    check_time(race, model, options.cruise)
    found = problem.solve()
    for share in (1.0, *_AGAIN) if like is not None else _AGAIN:
        # Where a guess leads nowhere another one does: which, nobody knows before.
        if found.status not in _SOLVED:
            problem.warm, problem.guess_share = None, share
            found = min(found, problem.solve(), key=lambda one: one.rank)
    return _checked(problem, race, problem.shorter(found))


def rest_plan(
    race: Race,
    model: RacerModel,
    options: RacePlanOptions,
    *,
    state: Array,
    passed: int,
    before: RacePlan,
    clock: float,
    unseen: Collection[str] = (),
) -> RacePlan:
    """Solve the fastest flight through the rest of a race, from a state in flight, warm from the plan in force.

    Args:
        race: Gates and posts where they are believed to be.
        model: Who flies it.
        options: Bounds.
        state: Where the plan begins, (13,).
        passed: Passages that lie behind.
        before: The plan in force; its last legs are those that are left.
        clock: Its time at that state [s].
        unseen: As of `minimum_time_plan`.

    Raises:
        AirworthyError: CasADi is not installed, nothing is left, or no plan was found.
    """
    gates = flown_gates(race)[passed:]
    if not gates or len(gates) > len(before.legs):
        raise AirworthyError(
            f"{passed} passages of {len(race.passes)} lie behind, which the plan in force does not go on from."
        )
    problem = _Problem(casadi_module(), model, gates, state, options, _obstacles(race, options, passed))
    problem.unseen = frozenset(unseen)
    problem.held = before.at([clock])[1][0]
    problem.warm = sampled(before, clock, len(gates), options.nodes, state)
    found = problem.shorter(problem.solve())
    crossed = [leg for leg in range(len(gates)) if np.max(found.slacks[:2, leg]) > _CROSSED]
    if crossed:
        # From a path that led elsewhere the solver may end at a bar, or on the wrong side of a post, where braking or the other
        # side was the way: slowly and straight is another beginning, and the better of both ends is taken.
        problem.far = True
        first = found
        # A post right before a gate that stands elsewhere leaves a window out of reach on one of its sides, too.
        for around in (False, True) if len(problem.obstacles.posts) else (False,):
            posts = problem.obstacles.posts if around else None
            problem.warm = slowly((first.states, first.inputs, first.legs), crossed, state, gates, problem.hover, posts)
            # Without a least duration the solver hurries back to where it came from.
            problem.least[crossed] = _TAKES * problem.warm[-len(gates) :][crossed]
            found = min(found, problem.solve(), key=lambda one: one.rank)
    return _checked(problem, race, found)


def _obstacles(race: Race, options: RacePlanOptions, passed: int) -> KeepOff:
    return obstacles_of(race, options.clearance, options.wall).after(passed)


@dataclass(frozen=True)
class _Found:
    """What a solver ended with."""

    states: Array
    inputs: Array
    legs: Array
    slacks: Array
    """(3, legs), as of `_Problem`; zeros where nothing is slack."""
    cost: float
    status: str
    broken: str
    """What the path keeps least, and by how much; for messages."""

    @property
    def rank(self) -> tuple[bool, float]:
        """Smaller is better: what failed comes last."""
        return self.status not in _SOLVED, self.cost


def _slope(gate: GateShape, half: Sequence[float], point: Array) -> float:
    """Return how much farther sideways than a window a point before a gate lies, per metre from its plane."""
    away = point - gate.center
    depth = max(-float(away @ gate.normal), 1e-3)
    aside = (abs(float(away @ axis)) - window for axis, window in zip((gate.left, gate.up), half, strict=True))
    return max(aside) / depth


_SOLVED = ("Solve_Succeeded", "Solved_To_Acceptable_Level")


def _checked(problem: _Problem, race: Race, found: _Found) -> RacePlan:
    model, options = problem.model, problem.options
    plan = RacePlan(found.states, found.inputs, found.legs, model, course_digest(race, model), asdict(options))
    worst = float(np.max(plan.defects()))
    if found.status in _SOLVED and worst < _TOLERANCE:
        return plan
    why = (
        f"steps of its path err by {worst:.2g}, expected below {_TOLERANCE:g}"
        if found.status in _SOLVED
        else f"it ends with a path that does not keep {found.broken}"
    )
    raise AirworthyError(
        f"No plan was found through the race {race.name!r}: the solver says {found.status}, and {why}; check that its gates can"
        " be flown, or change RacePlanOptions: raise iterations or nodes, or lower margin."
    )


def casadi_module() -> Any:
    """Import CasADi where it is first needed; raises AirworthyError where it is not installed."""
    try:
        import casadi
    except ModuleNotFoundError as error:
        raise AirworthyError("Solving a plan needs the package 'casadi': pip install 'airworthy[race]'.") from error
    return casadi


class _Problem:
    """The nonlinear programme of one course."""

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
        self.least = np.full(len(gates), LEAST_LEG)
        """Least duration of each leg [s]."""
        self.far = False
        """Whether that guess is far from what is looked for."""
        self._terms: list[tuple[Any, Array, Array]] = []
        self._whats: list[str] = []
        """What each term is."""

    def solve(self) -> _Found:
        """Return where the solver ends from the first guess."""
        ca, options = self.ca, self.options
        self._terms, self._whats = [], []
        self._join()
        self._rotors()
        for number, gate in enumerate(self.gates):
            self._pass(number, gate)
            self._go_behind(number, gate)
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
        return _Found(states.reshape(-1, STATES), inputs.reshape(-1, INPUTS), legs, slacks, cost, status, broken)

    def shorter(self, found: _Found) -> _Found:
        """Return what is found, or a faster end from straight ways where legs lead far around.

        At a limited speed a leg says by its duration that it is a detour; the other side of a post, or a curve where there
        was a loop, is another end of the same programme, which a solver that begins with the detour does not see.
        """
        gates, most = self.gates, self.options.cruise
        if most >= _FAST or found.status not in _SOLVED:
            return found
        corners = np.vstack([self.start[:3], *(gate.center for gate in gates)])
        straight = np.linalg.norm(np.diff(corners, axis=0), axis=1) / most
        for posts in (None, self.obstacles.posts if len(self.obstacles.posts) else None):
            long = np.flatnonzero(found.legs > _DETOUR * straight + _DETOUR_S).tolist()
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
        return made_up(self.start, self.gates, self.model, self.options.nodes, self.guess_share)

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
