"""Flights to learn from: expert or student fly, and at every instant that is kept the expert says what it would do there.

Ross, Gordon, Bagnell: A reduction of imitation learning and structured prediction to no-regret online learning, 2011. The
student flies in its own rounds; where it comes too far from its reference the expert takes over until it is back.
Source: specification of the planners, sections 8.3 and 8.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import NavigationMethod
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayInt, ArrayU8, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.core.random import flight_key
from airworthy.learning.agile_autonomy.config import StudentOptions
from airworthy.learning.agile_autonomy.instants import LABELS, Instants, stored_field
from airworthy.planners.agile_autonomy.layers import RATE
from airworthy.planners.agile_autonomy.level import level_views
from airworthy.planners.agile_autonomy.planner import AgileAutonomy, AgileAutonomySettings, Student
from airworthy.planners.agile_autonomy.sight import STEPS, DepthImages, reference_directions, state_rows
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.mapping import maps_of_scene
from airworthy.planners.sampling_expert import MAP_SETTINGS, SamplingSettings
from airworthy.planners.sampling_expert.descent import descended
from airworthy.planners.sampling_expert.planner import Polyline, find_route, reference_goal
from airworthy.planners.sampling_expert.sampling import DEGREE, TIMES, Goal, powers, sample
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["LABEL_SPEED", "BatchPlan", "LabellingPlanner", "collected", "expert_points", "plan_of", "stored_fields"]

# Ours: any number; chains of one's own draw otherwise than those of a flown expert.
_TAG = 0x5354
# Ours: the expert of a label looks far enough ahead for the next decision, wherever the mission's cap lies.
LABEL_SPEED = 9.0
"""Most that a label's reference flies [m/s]."""
# Ours: behind it the student flies again, far enough inside that hands do not change at every decision.
_BACK = 0.5
"""Share of the distance of taking over."""
_TIME_LIMIT = 30.0
"""Of a flight to learn from [s]; ours, three times what the slowest needs."""


# ---- Who flies, and who is asked ------------------------------------------------------------------------------------------


class _KnownPlaces(DepthImages):
    """Images, and what is truly there."""

    def __init__(self, count: int, reach: float, scene: Any):
        super().__init__(count, reach)
        self.scene = scene


class LabellingPlanner(AgileAutonomy):
    """Flies expert or student, and keeps instants with what the expert would do.

    Args:
        options: Of the training.
        student: That flies; None: the expert does.
    """

    settings = replace(MAP_SETTINGS, rate=60.0)

    def __init__(self, options: StudentOptions, student: Student | None):
        super().__init__(AgileAutonomySettings(speed_max=options.fastest), student)
        self._training = options
        self.parts: list[dict[str, ArrayAny]] = []
        self.scene: Any = None
        self.unlabelled = self.decisions = self.helped = 0

    def check_ready(self) -> None:
        """Accept a missing student: without one the expert flies."""

    def maps_for(self, mission: Mission, scenes: Any = None) -> DepthImages:
        """Return images, and the scenes' maps, which only labels are made by."""
        self.scene = maps_of_scene(scenes, mission, MAP_SETTINGS)
        return _KnownPlaces(len(mission.start), self._training.reach, self.scene)

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        super().reset(mission)
        count = len(mission.start)
        self._routes: list[Polyline | None] = [None] * count
        self._progress, self._expert_flies = np.zeros(count), np.full(count, self._student is None)
        self._key = flight_key(mission.seed, mission.flight, _TAG)

    def _decide(self, ids: ArrayIndex, motion: Motion, rate: Array, images: ArrayU8) -> None:
        mission, position, velocity = self._mission, motion.position[ids], motion.velocity[ids]
        for flight in ids:
            if self._routes[flight] is None:
                route = find_route(
                    self.scene, int(flight), motion.position[flight], mission.goal[flight], MAP_SETTINGS.resolution
                )
                self._routes[flight] = route
        cap = np.minimum(mission.speed[ids], self.options.speed_max)
        direction = reference_directions(position, mission.start[ids], mission.goal[ids], cap)
        state = state_rows(motion.attitude[ids], velocity, rate[ids], direction)
        self._hand_over(ids, position)
        self._short: dict[int, bool] = {}
        kept = (self._tick[ids] + ids) % self._training.every == 0
        asked = kept | self._expert_flies[ids]
        labels = np.full((len(ids), LABELS, len(TIMES), 3), np.nan)
        if asked.any():
            labels[asked] = self._labels(ids[asked], position[asked], velocity[asked], kept[asked])
        good = np.isfinite(labels).all(axis=(1, 2, 3))
        turn = np.asarray(to_matrix(motion.attitude[ids]), np.float64).reshape(-1, 3, 3)
        self._keep(ids, kept & good & self._far, images, state, position, turn, labels)
        self.decisions += len(ids)
        self.helped += int(self._expert_flies[ids].sum())
        for k, flight in enumerate(ids):
            if self._expert_flies[flight]:
                if good[k]:
                    self._follow(int(flight), np.zeros(1), labels[k, :1], motion, float(cap[k]))
            else:
                self._by_student(int(flight), images[k], state[k], position[k], turn[k], motion, float(cap[k]))

    def _by_student(
        self, flight: int, image: ArrayU8, state: Array, position: Array, turn: Array, motion: Motion, cap: float
    ) -> None:
        score, local = self.student(image[None], state[None])
        self._follow(flight, score[0], position + np.einsum("ij,mtj->mti", turn, local[0]), motion, cap)

    def _hand_over(self, ids: ArrayIndex, position: Array) -> None:
        """Let the expert take over flights that are far from their reference, and hand back those that are near."""
        if self._student is None:
            return
        for k, flight in enumerate(ids):
            route = self._routes[flight]
            assert route is not None
            # Between labels nobody else looks how far along the reference the flight is.
            self._progress[flight] = route.progress(position[k], self._progress[flight])
            away = float(np.linalg.norm(route.at(self._progress[flight : flight + 1])[0] - position[k]))
            limit = self._training.takeover * (_BACK if self._expert_flies[flight] else 1.0)
            self._expert_flies[flight] = away > limit

    def _labels(self, ids: ArrayIndex, position: Array, velocity: Array, kept: ArrayBool) -> Array:
        """Return the expert's best trajectories (k, 3, 10, 3), world [m]; NaN where it found none."""
        wanted = np.minimum(np.linalg.norm(velocity, axis=1) + 1.0, LABEL_SPEED)
        goal, speed = reference_goal(self._mission, self._routes, self._progress, ids, position, velocity, wanted)
        points = expert_points(self.scene, ids, goal, self._key[ids], self._tick[ids], self._training)
        there = np.isfinite(points[:, 0, 0, 0])
        self.unlabelled += int((kept & ~there).sum())
        # A reference that is cut short before the goal says nothing that a student could see.
        self._short = dict(zip(ids.tolist(), (speed < wanted - 1e-9).tolist(), strict=True))
        return points

    @property
    def _far(self) -> ArrayBool:
        """Of the flights that were just labelled, in the order of their decision: whether the goal is still far."""
        return np.array([not self._short.get(int(flight), True) for flight in np.flatnonzero(self._decided)])

    def _keep(
        self, ids: ArrayIndex, which: ArrayBool, images: ArrayU8, state: Array, position: Array, turn: Array, labels: Array
    ) -> None:
        if not which.any():
            return
        local = np.einsum("nji,nmtj->nmti", turn[which], labels[which] - position[which, None, None])
        self.parts.append(
            {
                "views": level_views(images[which], state[which], STEPS),
                "state": state[which].astype(np.float32),
                "expert": local.astype(np.float32),
                "position": position[which].astype(np.float32),
                "place": ids[which],
            }
        )


# ---- A batch of flights ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchPlan:
    """What a batch flies: a function of the options and its number alone."""

    scenario: str
    layouts: int
    """Seed of where things stand; never 0, the benchmark's own."""
    speed: float
    """Cap [m/s]."""
    flights: tuple[Flight, ...]


def plan_of(options: StudentOptions, number: int) -> BatchPlan:
    """Return what the batch of a number flies.

    Args:
        options: Of the training.
        number: From 0 on, over all rounds.
    """
    rng = np.random.default_rng([options.seed, number, _TAG])
    scenario = options.scenarios[number % len(options.scenarios)]
    # Speeds are spread evenly over a cycle of golden steps: few batches already hold slow and fast ones of each kind.
    share = (0.5 + number // len(options.scenarios) * 0.618034 + number * 0.381966) % 1.0
    configurations = 1 + rng.permutation(10)[np.arange(options.flights) % 10]
    vehicles = rng.choice(len(options.vehicles), options.flights)
    layouts = 1 + int(rng.integers(1, 1 << 31))
    flights = tuple(
        Flight(scenario, int(c), options.vehicles[v], repeat)
        for repeat, (c, v) in enumerate(zip(configurations, vehicles, strict=True))
    )
    return BatchPlan(scenario, layouts, options.slowest + share * (options.fastest - options.slowest), flights)


def collected(
    options: StudentOptions, number: int, student: Student | None, alive: Callable[[], None] = lambda: None
) -> Instants:
    """Fly a batch, and return what can be learnt of it.

    Args:
        options: Of the training.
        number: Of the batch.
        student: That flies it; None: the expert.
        alive: Called as flights end; raises where they are not wanted any more.

    Raises:
        AirworthyError: The expert labelled nothing.
    """
    plan, planner = plan_of(options, number), LabellingPlanner(options, student)
    config = NavigationConfig(
        pilots=("agile_autonomy",),
        seed=options.seed,
        layouts=plan.layouts,
        compute="zero",
        a_max="vehicle",
        protocol=NavigationProtocol(time_limit_s=_TIME_LIMIT, speed_m_s=plan.speed),
        perturb=Perturbation(depth_noise=options.depth_noise, depth_dropout=options.depth_dropout),
    )
    method = NavigationMethod("labelling", lambda: planner, privileged=True)
    flown = fly_flights(plan.flights, method, config, lambda _: alive())
    if not planner.parts:
        raise AirworthyError(
            f"The expert found no way in any of {len(plan.flights)} flights through {plan.scenario} (batch {number}): give more"
            " samples, or other scenarios."
        )
    figures = {
        "flights": len(plan.flights),
        "success": int((flown.watch.outcome == "success").sum()),
        "unlabelled": planner.unlabelled,
        "helped": planner.helped,
        "decisions": planner.decisions,
    }
    return _gathered(planner, plan.flights, figures)


def _gathered(planner: LabellingPlanner, flights: Sequence[Flight], figures: dict[str, Any]) -> Instants:
    found = {name: np.concatenate([part[name] for part in planner.parts]) for name in planner.parts[0]}
    # Flights in one configuration are in one place: its distances are kept once.
    first = {flight.configuration: k for k, flight in reversed(list(enumerate(flights)))}
    used = sorted(first.values())
    place = np.array([used.index(first[flight.configuration]) for flight in flights])
    found["place"] = place[found["place"]]
    cells, corners = stored_fields(planner.scene, used)
    return Instants(**found, fields=cells, corners=corners, figures=figures)


def stored_fields(maps: Any, flights: Sequence[int]) -> tuple[tuple[ArrayU8, ...], Array]:
    """Return what instants keep of the distances in the places of some flights, and their lower corners (places, 3) [m].

    Args:
        maps: With a distance field.
        flights: One of each place.
    """
    found = [maps.field(k) for k in flights]
    made = [stored_field(away, corner, MAP_SETTINGS.resolution) for away, corner in found]
    return tuple(cells for cells, _ in made), np.array([corner for _, corner in made])


def expert_points(maps: Any, flights: ArrayInt, goal: Goal, key: ArrayU32, tick: ArrayInt, options: StudentOptions) -> Array:
    """Return what the expert would do, (n, 3, 10, 3), world [m]: the first again where it found fewer, NaN where none.

    Args:
        maps: With a distance field.
        flights: Flights (n,) in the maps.
        goal: Where they are and where to.
        key: Of each, (n, 4).
        tick: Number of the decision of each, (n,).
        options: How much is sampled, and how far descended.
    """
    found = sample(maps, flights, goal, key, tick, SamplingSettings(options.samples, kept=LABELS))
    points = np.einsum("tk,nmkj->nmtj", powers(TIMES, DEGREE), found.coefficients)
    there = np.isfinite(found.cost)
    points = np.where(there[:, :, None, None], points, points[:, :1])
    points[~there[:, 0]] = np.nan
    return descended(maps, flights, goal, points, options.descent) if options.descent else np.asarray(points)


assert RATE == 15.0  # the expert's
