"""A recorded flight, ready to be asked for poses at any time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from airworthy.benchmarks.fly.run_record import recorded_scene, recorded_vehicles
from airworthy.core import frames
from airworthy.core.arrays import ArrayF32, ArrayFloat, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.files import read_json
from airworthy.evaluation.statistics import SUMMARY_FILE
from airworthy.logs import LogStream
from airworthy.scenes.actors import PathTable, actor_table, look_rows, riding_looks
from airworthy.scenes.extent import seen_from_near
from airworthy.scenes.instance_tables import InstanceTable, MaterialTable, ShapeTable, actor_instances
from airworthy.scenes.record import Instance, Scene
from airworthy.scenes.skeletons import PartJoints, part_joints
from airworthy.simulation.flights import FLIGHT_FILE, FlightTable, read_flight
from airworthy.vehicles import Vehicle

__all__ = ["ActorPoses", "Event", "PlaybackTrack", "ShownFlight", "load_flight"]

# ---- Poses over time, and between the frames of files and the viewer's ------------------------------------------------------

# -----------------------------------------------------------------------------------------------------------------------------
# Where the actors of a scene are at a time, and their parts: asked thirty times a second, so prepared once.


class ActorPoses:
    """Poses of actors as the scene scripts them; `advance` sets the time.

    Looks that ride on actors (`Instance.attached`), as figures of people, follow the parts, as an eye beside them sees them.
    People without one are the capsules that rays and vehicles meet: a skin would have to be sent to the browser anew at every
    time.
    """

    def __init__(self, scene: Scene):
        self._names = [actor.name for actor in scene.actors]
        riding = tuple(replace(item, collide=False) for item in seen_from_near(riding_looks(scene)))
        self.parts: tuple[Instance, ...] = (*(part for actor in scene.actors for part in actor.parts), *riding)
        """All actors' parts in order, in the frames of their actors at rest, and what rides on them behind these."""
        self._paths = PathTable()
        self._table = actor_table(scene, self._paths)
        self._moved: list[tuple[InstanceTable, PartJoints]] = []
        if self._names:
            rows = actor_instances(scene, 0, ShapeTable(), MaterialTable())
            self._moved.append((rows, part_joints(scene, rows)))
        if riding:
            rows, names = look_rows(scene, riding)
            self._moved.append((rows, part_joints(scene, rows, names)))
        self.advance(0.0)

    def advance(self, time: float) -> None:
        """Go to a time [s]."""
        at = np.full(len(self._names), float(time))
        self._position, self._attitude = self._table.pose(self._paths, at)
        if not self._moved:
            return
        at, first = np.array([float(time)]), np.zeros(1, np.int64)
        poses = [(rows.actor, *joints.poses(rows, first, at, {})) for rows, joints in self._moved]
        actor = np.concatenate([one[0] for one in poses])
        local, turn = (np.concatenate([one[k][0] for one in poses]) for k in (1, 2))
        self.part_position: ArrayFloat = self._position[actor] + frames.rotate(self._attitude[actor], local)
        """(parts, 3) world [m]."""
        self.part_attitude: ArrayFloat = frames.normalize(frames.multiply(self._attitude[actor], turn))
        """(parts, 4) world."""

    def actor(self, name: str) -> tuple[ArrayFloat, ArrayFloat]:
        """Return the world position (3,) and attitude (4,) of an actor."""
        row = self._names.index(name)
        return self._position[row], self._attitude[row]


# -----------------------------------------------------------------------------------------------------------------------------

GLTF_TURN = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
"""x, y, z, w: the y-up frame of a .glb file to z up; viser takes the file's numbers as they are."""


def between(times: ArrayFloat, position: ArrayFloat, attitude: ArrayFloat, time: float) -> tuple[ArrayFloat, ArrayFloat]:
    """Return the pose at a time [s] from rows in order of time: linear in position, spherical-linear in attitude, held at the
    ends.

    Args:
        times: (n,) [s], rising; n at least 1.
        position: (n, 3)
        attitude: (n, 4) unit quaternions.
        time: [s]
    """
    after = int(np.clip(np.searchsorted(times, time, side="right"), 1, max(len(times) - 1, 1)))
    before, after = after - 1, min(after, len(times) - 1)
    span = float(times[after] - times[before])
    share = float(np.clip((time - times[before]) / span, 0.0, 1.0)) if span > 0.0 else 0.0
    at = (1.0 - share) * position[before].astype(np.float64) + share * position[after].astype(np.float64)
    return at, frames.slerp(attitude[before].astype(np.float64), attitude[after].astype(np.float64), share)


def node_name(text: str) -> str:
    """Return a name as a part of a node's path."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[:48] or "part"


# -----------------------------------------------------------------------------------------------------------------------------

GROUNDED, RECORDED = 4, 5
"""Status of a row of a log at which the vehicle does not fly, and of one that nothing tells of; our flights have neither."""
STATUS = {0: "flying", 1: "diverged", 2: "collided", 3: "out of bounds"} | {GROUNDED: "on the ground", RECORDED: "recorded"}
EVENTS_MAX = 200
"""Most events of a flight that are marked: one that respawns may collide every second."""
_POINTS_MAX = 4000
"""Points of a drawn path."""


@dataclass(frozen=True)
class Event:
    """Something that happened at a time of a flight."""

    time: float
    """[s]"""
    label: str
    position: tuple[float, float, float]
    """World [m]."""


@dataclass(frozen=True, eq=False)
class PlaybackTrack:
    """One environment's flight."""

    times: ArrayFloat
    """(n,) [s]."""
    position: ArrayFloat
    """(n, 3) [m]."""
    attitude: ArrayFloat
    """(n, 4)."""
    velocity: ArrayFloat
    """(n, 3) [m/s]."""
    status: NDArray[np.int8]
    planned: ArrayFloat | None
    """(n, 3) [m], what the pilot was asked to follow; None where it was not recorded."""
    rotors: ArrayFloat
    """(n, rotors) as recorded, rad/s or N; 0 where nothing is known."""
    marks: tuple[Event, ...] = ()
    """Events that a log tells of besides."""
    joints: ArrayFloat | None = None
    """(n, joints) [rad] of a vehicle that has some."""

    def bent(self, time: float) -> ArrayFloat | None:
        """Return the joints' angles at a time [s], (joints,); None of a vehicle without."""
        if self.joints is None:
            return None
        return np.array([np.interp(time, self.times, column) for column in self.joints.T])

    def pose(self, time: float) -> tuple[ArrayFloat, ArrayFloat]:
        """Return the position (3,) and attitude (4,) at a time [s], held before the first row and after the last."""
        return between(self.times, self.position, self.attitude, time)

    def row(self, time: float) -> int:
        """Return the last row up to a time [s]."""
        return int(np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, len(self.times) - 1))

    def caption(self, time: float) -> str:
        """Return what is told beside the picture: time, speed, distance from the plan, status."""
        row = self.row(time)
        said = [f"{time:.2f} s", f"{float(np.linalg.norm(self.velocity[row])):.2f} m/s"]
        if self.planned is not None:
            said.append(f"{float(np.linalg.norm(self.position[row] - self.planned[row])):.3f} m from the plan")
        return ", ".join([*said, STATUS.get(int(self.status[row]), "ended")])

    def turning(self, time: float) -> ArrayFloat:
        """Return how fast each rotor turns at a time [s], as a share of the fastest of the flight, (rotors,) in [0, 1]."""
        return self._share[self.row(time)]

    def turned(self, time: float) -> ArrayFloat:
        """Return how long each rotor would have turned at the highest speed to be where it is [s], (rotors,)."""
        row = self.row(time)
        rest = float(np.clip(time, self.times[0], self.times[-1]) - self.times[row])
        return self._turned[row] + rest * self._share[row]

    @cached_property
    def _share(self) -> ArrayFloat:
        fastest = float(np.abs(self.rotors).max(initial=0.0))
        return np.abs(self.rotors).astype(np.float64) / (fastest or 1.0)

    @cached_property
    def _turned(self) -> ArrayFloat:
        steps = np.diff(self.times, prepend=self.times[:1])[:, None]
        # The speed of a row holds until the next one.
        return np.cumsum(steps * np.vstack((np.zeros((1, self._share.shape[1])), self._share[:-1])), axis=0)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Rows at which the status changes to something else than flying: collisions, and how the flight ended; and what a
        log tells of."""
        before = np.concatenate(([0], self.status[:-1]))
        rows = np.flatnonzero((self.status != before) & ~np.isin(self.status, (0, GROUNDED, RECORDED)))
        return (*(self._event(int(row)) for row in rows[:EVENTS_MAX]), *self.marks)

    def _event(self, row: int) -> Event:
        x, y, z = (float(v) for v in self.position[row])
        return Event(float(self.times[row]), STATUS.get(int(self.status[row]), "ended"), (x, y, z))


@dataclass(frozen=True, eq=False)
class ShownFlight:
    """The flights of a folder."""

    folder: Path
    table: FlightTable
    scene: str | None
    """Name of the scene that was flown in."""
    vehicles: tuple[Vehicle, ...]
    """Dealt out to the environments in turn."""
    outcomes: Mapping[int, str] = field(default_factory=dict)
    """How each environment's flight ended, by the task's judgement; without those that nobody judged."""
    streams: tuple[LogStream, ...] = ()
    """Of a log: what it holds, to be plotted."""
    marks: tuple[Event, ...] = ()
    """Of a log: its events."""

    @property
    def envs(self) -> tuple[int, ...]:
        """Environments that have rows."""
        return tuple(int(env) for env in self.table.envs)

    @cached_property
    def duration(self) -> float:
        """Last recorded time [s]."""
        return float(self.table.t.max())

    def vehicle(self, env: int) -> Vehicle:
        """Return who flew in an environment."""
        return self.vehicles[env % len(self.vehicles)]

    def track(self, env: int) -> PlaybackTrack:
        """Return one environment's flight; raises AirworthyError where it has none."""
        table = self.table.flight(env)
        keep = np.isfinite(table.vector("position")).all(1) & np.isfinite(table.vector("attitude")).all(1)
        if not keep.any():
            raise AirworthyError(f"The flight of environment {env} in {str(self.folder)!r} has no finite pose to show.")
        planned = table.vector("reference_position")[keep] if table.has_reference else None
        rotors = np.nan_to_num(table.rotors("rotor_speed")[keep], posinf=0.0, neginf=0.0)
        return PlaybackTrack(
            table.t[keep],
            table.vector("position")[keep],
            table.vector("attitude")[keep],
            table.vector("velocity")[keep],
            table.status[keep],
            planned,
            rotors[:, : self.vehicle(env).rotor_count],
            self.marks,
            np.nan_to_num(table.joints[keep]) if table.joints.shape[1] == self.vehicle(env).joint_count > 0 else None,
        )


def load_flight(folder: str | Path) -> ShownFlight:
    """Read the folder of `airworthy fly`.

    Raises:
        AssetError: It is none, or damaged.
        AirworthyError: It has no rows, or its vehicle is unknown.
    """
    folder = Path(folder)
    table, meta = read_flight(folder)
    if not table.row_count:
        raise AirworthyError(f"{str(folder / FLIGHT_FILE)!r} has no rows: nothing was flown.")
    flown_by = tuple(recorded_vehicles(folder, meta))
    return ShownFlight(folder, table, recorded_scene(folder, meta), flown_by, _outcomes(folder))


def _outcomes(folder: Path) -> dict[int, str]:
    """Return what summary.json says of each flight; a folder without one, as a recorder leaves it, has none."""
    path = folder / SUMMARY_FILE
    if not path.is_file():
        return {}
    content = read_json(path)
    flights = content.get("flights") if isinstance(content, dict) else None
    rows = [row for row in flights if isinstance(row, dict)] if isinstance(flights, list) else []
    return {row["env"]: str(row["outcome"])[:40] for row in rows if isinstance(row.get("env"), int) and "outcome" in row}


def segments(points: ArrayFloat, limit: int = _POINTS_MAX) -> ArrayF32:
    """Return (m, 2, 3) pieces of a path through the finite ones of points (n, 3), thinned to `limit` points."""
    few = points[np.isfinite(points).all(1)].astype(np.float32)
    if len(few) > limit:
        few = few[np.linspace(0, len(few) - 1, limit).astype(int)]
    return np.stack([few[:-1], few[1:]], axis=1) if len(few) > 1 else np.zeros((0, 2, 3), np.float32)
