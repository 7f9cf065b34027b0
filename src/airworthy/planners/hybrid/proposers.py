"""Learnt networks that propose where to fly within the next second: a student of Agile-Autonomy, or an avoiding policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.pilots.avoid_policy.contract import GAIN
from airworthy.pilots.avoid_policy.contract import KIND as AVOID_KIND
from airworthy.pilots.avoid_policy.fleet import SHARE_MOST, KnownVehicles, feature_rows, thrust_limited
from airworthy.pilots.avoid_policy.pilot import GRAVITY, AvoidPolicy, limited, read_avoid_policy, towards
from airworthy.pilots.avoid_policy.sight import turned
from airworthy.pilots.avoid_policy.wide_view import WideView
from airworthy.pilots.network_files import folder_contract
from airworthy.planners.agile_autonomy import AgileAutonomySettings, Student, read_student
from airworthy.planners.agile_autonomy.contract import KIND as STUDENT_KIND
from airworthy.planners.agile_autonomy.layers import POINTS, SPACING
from airworthy.planners.agile_autonomy.planner import BodyRates
from airworthy.planners.agile_autonomy.sight import encoded, reference_directions, state_rows
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.mapping.boxes import MODES

__all__ = ["RATE", "TIMES", "AvoidProposer", "Proposer", "StudentProposer", "read_proposer"]

RATE = 15.0
"""Proposals per second of flight, the rate at which both kinds of network learnt [Hz]."""
TIMES = SPACING * np.arange(1, POINTS + 1)
"""Ahead of the points of a proposal [s]."""
_HELD = 0.5
"""Ours: an acceleration is taken to act so long [s], and the velocity that it leads to for the rest of the second."""


class Proposer(Protocol):
    """Proposes; whatever it proposes, it is certified before it is flown."""

    name: str
    title: str
    work: str
    """Kind of work that an inference counts as."""

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        ...

    def update(self, motion: Motion) -> None:
        """Take in odometry of all flights; called at every tick."""
        ...

    def propose(self, ids: ArrayIndex, motion: Motion, images: Array) -> Array:
        """Return what is proposed, the best first, (k, modes, 10, 3) [m], world: places at `TIMES` from now.

        Args:
            ids: Flights that decide, (k,).
            motion: Odometry of all flights.
            images: Of those that decide, depth of the benchmark's camera, (k, H, W) [m].
        """
        ...


class StudentProposer:
    """Modes of Agile-Autonomy's student, in the order of their scores.

    Args:
        student: The network.
    """

    name, title, work = "agile_autonomy", "Agile-Autonomy's student", "student_inferences"

    def __init__(self, student: Student):
        self._student, self._fastest = student, AgileAutonomySettings().speed_max

    def reset(self, mission: Mission) -> None:
        """Begin n flights."""
        self._mission, self._rates = mission, BodyRates(len(mission.start))
        self._rate = np.zeros((len(mission.start), 3))

    def update(self, motion: Motion) -> None:
        """Take in odometry, of which body rates are made."""
        self._rate = self._rates.update(motion)

    def propose(self, ids: ArrayIndex, motion: Motion, images: Array) -> Array:
        """See `Proposer.propose`.

        Args:
            ids: Flights that decide, (k,).
            motion: Odometry of all flights.
            images: Of those that decide, (k, H, W) [m].
        """
        mission, position = self._mission, motion.position[ids]
        cap = np.minimum(np.asarray(mission.speed)[ids], self._fastest)
        direction = reference_directions(position, mission.start[ids], mission.goal[ids], cap)
        state = state_rows(motion.attitude[ids], motion.velocity[ids], self._rate[ids], direction)
        score, local = self._student(encoded(images, self._student.contract.reach), state)
        turn = np.asarray(to_matrix(motion.attitude[ids]), np.float64).reshape(-1, 3, 3)
        points = position[:, None, None] + np.einsum("nij,nmtj->nmti", turn, local)
        order = np.argsort(np.abs(score), axis=1, kind="stable")
        return np.asarray(np.take_along_axis(points, order[:, :, None, None], 1))


class AvoidProposer:
    """An avoiding policy's acceleration, as the way that it leads.

    The planner knows its vehicle: a policy of a fleet is told it here, also one that learnt to identify it, since in a flight
    that mostly others fly there is nothing to identify it by.

    Args:
        policy: The network.
    """

    name, title, work = "avoid", "an avoiding policy", "policy_inferences"

    def __init__(self, policy: AvoidPolicy):
        self._policy = policy

    def reset(self, mission: Mission) -> None:
        """Begin n flights.

        Raises:
            AirworthyError: A policy of a fleet is not told what is flown.
        """
        count, fleet = len(mission.start), self._policy.contract.fleet
        self._mission = mission
        self._memory = np.zeros((count, self._policy.contract.hidden), np.float32)
        self._views: dict[tuple[int, ...], WideView] = {}
        self._told, self._most = np.zeros((count, 0)), None
        if fleet is None:
            return
        vehicles = mission.vehicle
        if vehicles is None:
            raise AirworthyError("A policy of a fleet proposes nothing for vehicles of which the mission does not tell.")
        known = KnownVehicles(feature_rows(vehicles.thrust_to_weight, vehicles.alpha_xy, vehicles.alpha_z))
        self._most = SHARE_MOST * GRAVITY * known.ratio
        if fleet.sees:
            self._told = np.clip(known.features, fleet.least, fleet.most)

    def update(self, motion: Motion) -> None:
        """Take in odometry: nothing of it is kept."""

    def propose(self, ids: ArrayIndex, motion: Motion, images: Array) -> Array:
        """See `Proposer.propose`.

        Args:
            ids: Flights that decide, (k,).
            motion: Odometry of all flights.
            images: Of those that decide, (k, H, W) [m].
        """
        mission, policy = self._mission, self._policy
        position, velocity = motion.position[ids], motion.velocity[ids]
        axes = np.asarray(to_matrix(motion.attitude[ids]), np.float64).reshape(-1, 3, 3)
        nose = axes[:, :2, 0] / np.maximum(np.linalg.norm(axes[:, :2, 0], axis=1, keepdims=True), 1e-9)
        cap = np.minimum(np.asarray(mission.speed)[ids], policy.contract.speed)
        wanted, _ = towards(mission.goal[ids], position, cap)
        parts = [turned(vectors, nose) for vectors in (velocity, wanted, axes[:, :, 2])]
        margin = np.full((len(ids), 1), policy.contract.margin)
        state = np.concatenate([*parts, margin, self._told[ids]], axis=1)
        out, self._memory[ids] = policy.decide(self._seen(images), state, self._memory[ids])
        asked = turned(np.asarray(GAIN * out[:, :3] - out[:, 3:], np.float64), nose, back=True)
        if self._most is None:
            given = limited(asked, np)
        else:
            given = thrust_limited(asked, self._most[ids], np) - np.array([0.0, 0.0, GRAVITY])
        held, rest = np.minimum(TIMES, _HELD)[:, None], np.maximum(TIMES - _HELD, 0.0)[:, None]
        reached = velocity[:, None] + given[:, None] * _HELD
        points = position[:, None] + velocity[:, None] * held + 0.5 * given[:, None] * held**2 + reached * rest
        return np.asarray(points[:, None])

    def _seen(self, images: Array) -> Any:
        shape = images.shape[1:]
        if shape not in self._views:
            camera = next(item for item in MODES.values() if (item.height, item.width) == shape)
            self._views[shape] = WideView(camera)
        return self._views[shape](images)


def read_proposer(folder: str | Path) -> StudentProposer | AvoidProposer:
    """Return the proposer of a folder: a student of Agile-Autonomy, or an avoiding policy.

    Raises:
        AssetError: The folder cannot be read, or is damaged.
        AirworthyError: It holds a network of another kind.
    """
    table, where = folder_contract(folder, "a network that proposes")
    kind = table.get("kind") if isinstance(table, dict) else None
    if kind == STUDENT_KIND:
        return StudentProposer(read_student(folder))
    if kind == AVOID_KIND:
        return AvoidProposer(read_avoid_policy(folder))
    raise AirworthyError(
        f"{where!r} is of the kind {str(kind)[:60]!r}; expected {STUDENT_KIND!r} or {AVOID_KIND!r}: name a folder that"
        " `airworthy train agile_autonomy` or `airworthy train avoid` made."
    )
