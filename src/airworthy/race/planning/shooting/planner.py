"""Plans in flight by the kernel of this folder: takes and gives what `HorizonPlanner` does, and needs no CasADi."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.race.planning.glances import SOFT
from airworthy.race.planning.horizon import (
    GateWindows,
    GlanceNeed,
    HorizonAnswer,
    HorizonOptions,
    NodeGuess,
    check_asked,
    horizon_answer,
    one_sign,
)
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.shooting.kernel import ShootingKernel
from airworthy.race.planning.shooting.problem import shooting_problem

__all__ = ["HorizonAsked", "ShootingPlanner", "prepare_shooting"]

HorizonAsked = tuple[Array, GateWindows, NodeGuess, Sequence[GlanceNeed]]
"""State, gates, guess and looks of one plan, as of `HorizonPlanner.solve`."""
_CAPPED = 3
"""Plans with largest speeds may take so many times the iterations: they begin at a plan that knew of none. Ours: of eight such
plans through AlphaPilot's gates four were found with 60 iterations and six with 102, as many as by IPOPT with 55."""


class ShootingPlanner:
    """Solves plans of one vehicle, several at once.

    Args:
        model: Who flies.
        options: Bounds; plans reach through at most `ahead` gates.
        count: Plans that are solved at once, at most.
        device: `cpu`, or a CUDA device of Warp.
        threads: Most threads of a CPU; None: as many as the machine allows.

    Raises:
        AirworthyError: The cones of two gates reach one node: nodes belong to one gate here.
    """

    def __init__(
        self, model: RacerModel, options: HorizonOptions, count: int = 1, device: str = "cpu", threads: int | None = None
    ) -> None:
        bounds = options.bounds
        if 2 * bounds.cone_nodes >= bounds.nodes:
            raise AirworthyError(
                f"Cones of {bounds.cone_nodes} nodes before and behind a gate overlap on legs of {bounds.nodes} nodes; the"
                f" solver 'native' needs less than half a leg each: lower cone_nodes, raise nodes, or plan with 'casadi'."
            )
        self.model, self.options = model, options
        self._kernel = ShootingKernel(model, options, count, device, threads)

    def solve(
        self,
        state: Array,
        gates: GateWindows,
        guess: NodeGuess,
        needs: Sequence[GlanceNeed] = (),
        soft: float = SOFT,
        caps: Array | None = None,
    ) -> HorizonAnswer:
        """Solve one plan, as `HorizonPlanner.solve`.

        Args:
            state: From which it flies, (13,).
            gates: At most `ahead`.
            guess: Where the solver begins.
            needs: Looks to take; those beyond `options.glances` are left out.
            soft: Width of the field's edge, in tangents.
            caps: Largest speeds at the nodes [m/s], (nodes + 1,); None: any.

        Raises:
            AirworthyError: Shapes that do not fit, or numbers that are not finite.
        """
        return self.solve_all([(state, gates, guess, needs)], soft, [caps])[0]

    def solve_all(
        self, asked: Sequence[HorizonAsked], soft: float = SOFT, caps: Sequence[Array | None] | None = None
    ) -> list[HorizonAnswer]:
        """Solve several plans at once; each is what it is alone.

        Args:
            asked: At most `count`, of one to `ahead` gates each.
            soft: See `solve`.
            caps: Of each plan; None: of none.

        Raises:
            AirworthyError: As of `solve`, or more plans than there is room for.
        """
        if len(asked) > self._kernel.count:
            raise AirworthyError(f"{len(asked)} plans are asked for at once; this planner has room for {self._kernel.count}.")
        problems, iterations = [], []
        for (state, gates, guess, needs), most in zip(asked, caps or [None] * len(asked), strict=True):
            legs = min(len(np.atleast_1d(guess.legs)), self.options.ahead)
            start, states = one_sign(state, guess.states)
            check_asked(start, gates, replace(guess, states=states), legs=legs, nodes=self.options.bounds.nodes, caps=most)
            problem = shooting_problem(self.model, self.options, start=start, gates=gates, needs=needs, soft=soft, caps=most)
            problems.append((problem, states, guess.inputs, guess.legs))
            iterations.append(self.options.bounds.iterations * (1 if most is None else _CAPPED))
        answers = []
        for (_, gates, *_), found in zip(asked, self._kernel.solve(problems, iterations), strict=True):
            plan = RacePlan(found.x, found.u, found.t, self.model, "", {})
            answers.append(horizon_answer(plan, gates, found.status, found.iterations, (found.b, found.lack)))
        return answers


_BUILT: dict[str, ShootingPlanner] = {}


def shooting_planner(model: RacerModel, options: HorizonOptions) -> ShootingPlanner:
    """Return a planner of one plan at a time, built once in a process.

    Args:
        model: Who flies.
        options: Bounds.
    """
    numbers = [np.asarray(value, np.float64).tolist() for value in vars(model).values()]
    key = sha256(f"{numbers} {options}")
    if key not in _BUILT:
        # One thread: a single plan cannot be shared out.
        _BUILT[key] = ShootingPlanner(model, options, threads=1)
    return _BUILT[key]


def prepare_shooting(options: HorizonOptions, rotors: int = 4) -> None:
    """Have the kernel compiled into Warp's cache, where whoever is confined can only read it.

    Args:
        options: Bounds: the kernel depends on their numbers of gates, nodes and looks, and on nothing of a vehicle but this:
        rotors: Of the vehicles to come, without drag of body axes.
    """
    mixer = np.hstack([np.full((rotors, 1), 1.0 / rotors), np.zeros((rotors, 3))])
    ShootingKernel(RacerModel(1.0, 9.81, 0.0, (1.0, 1.0, 1.0), mixer, 10.0), options, threads=1)
