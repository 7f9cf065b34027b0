"""Motion of a person as a tracker recorded it: a table of times, places of the root, and turns of the joints.

Columns, in any order: t [s]; root_x, root_y, root_z, the pelvis in the world [m]; and for each joint of `PERSON_JOINTS` its
quaternion NAME_x, NAME_y, NAME_z, NAME_w, the pelvis' in the world, every other joint's in its parent; the identity stands
upright with hanging arms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes, write_text
from airworthy.core.frames import normalize
from airworthy.logs.building import LogDraft, table
from airworthy.logs.readers.columns import text_columns
from airworthy.scenes.actors import ActorKit
from airworthy.scenes.formats.model import Clip, Track
from airworthy.scenes.people import PERSON_JOINTS, person
from airworthy.scenes.record import Color

__all__ = ["LENGTH_ERROR", "SkeletonRecording", "read_skeletons", "recorded_person", "write_skeletons"]

LENGTH_ERROR = 1e-2
"""By which a quaternion's length may differ from 1: float32 differs by some 1e-7, and what is farther off is something else."""
_ROOT = tuple(f"root_{axis}" for axis in "xyz")
_BYTES_MAX = 512 << 20
FAR = 1e6
"""Farther from the origin is no place of a person [m]."""
_HELD = 86_400.0
"""How long the last pose is held: a clip repeats after its last key, and no session lasts a day [s]."""


def _columns(joint: str) -> list[str]:
    return [f"{joint}_{axis}" for axis in "xyzw"]


@dataclass(frozen=True, eq=False)
class SkeletonRecording:
    """Poses of a person by rising times."""

    time: Array
    """Since the first one [s], (n,)."""
    position: Array
    """Of the pelvis, world [m], (n, 3)."""
    turns: Array
    """Of the joints, in the order of `PERSON_JOINTS`, x, y, z, w, (n, joints, 4)."""
    notes: tuple[str, ...] = ()
    """What was left out, a sentence each."""


def read_skeletons(path: str | Path) -> SkeletonRecording:
    """Read a recording (CSV).

    Rows with a number that is none, a place beyond `FAR`, a quaternion of another length than 1, or a time that does not come
    after the one before are left out, which its notes say.

    Raises:
        AssetError: It cannot be read, lacks a column, or holds no pose.
    """
    draft = LogDraft(str(path), "skeletons", "")
    columns = text_columns(read_bytes(path, _BYTES_MAX), draft)
    wanted = ["t", *_ROOT, *(name for joint in PERSON_JOINTS for name in _columns(joint))]
    missing = [name for name in wanted if name not in columns]
    if missing:
        joints = sum(all(name in columns for name in _columns(joint)) for joint in PERSON_JOINTS)
        named = ", ".join([*missing[:3], *(["..."] if missing[3:] else [])])
        raise AssetError(
            f"Recording {str(path)!r} lacks {len(missing)} columns ({named}): it"
            f" has {joints} of {len(PERSON_JOINTS)} joints ({', '.join(PERSON_JOINTS[:3])}, ...), and needs t, root_x, root_y,"
            " root_z and NAME_x, NAME_y, NAME_z, NAME_w of each."
        )
    values = table(columns, wanted)
    assert values is not None
    turns = values[:, 4:].reshape(len(values), len(PERSON_JOINTS), 4)
    with np.errstate(invalid="ignore", over="ignore"):
        length = np.linalg.norm(turns, axis=-1)
        near = (np.abs(values[:, 1:4]) <= FAR).all(axis=1)
        good = np.isfinite(values).all(axis=1) & near & (np.abs(length - 1.0) <= LENGTH_ERROR).all(axis=1)
    notes = [*draft.notes]
    if not good.all():
        notes.append(f"{int((~good).sum()):,} of {len(good):,} rows are no poses of a skeleton, and are left out.")
    rows = np.flatnonzero(good)
    newest = np.maximum.accumulate(np.concatenate([[-np.inf], values[rows, 0]]))[:-1]
    late = values[rows, 0] <= newest
    if late.any():
        notes.append(f"{int(late.sum()):,} rows do not come after the one before, and are left out.")
    rows = rows[~late]
    if not len(rows):
        raise AssetError(f"Recording {str(path)!r} holds no pose of a skeleton.")
    unknown = [name for name in columns if name not in wanted]
    if unknown:
        notes.append(f"{len(unknown)} columns are of no joint here ({', '.join(unknown[:3])}), and are not used.")
    time = values[rows, 0]
    return SkeletonRecording(time - time[0], values[rows, 1:4], normalize(turns[rows]), tuple(notes))


def write_skeletons(path: str | Path, recording: SkeletonRecording) -> Path:
    """Write a recording as `read_skeletons` reads it."""
    names = ["t", *_ROOT, *(name for joint in PERSON_JOINTS for name in _columns(joint))]
    flat = np.hstack([recording.time[:, None], recording.position, recording.turns.reshape(len(recording.time), -1)])
    lines = [",".join(names), *(",".join(map(repr, row)) for row in flat.tolist())]
    return write_text(path, "\n".join(lines) + "\n")


def recorded_person(name: str, recording: SkeletonRecording, height: float = 1.75, *, shirt: Color | None = None) -> ActorKit:
    """Return a person who moves as recorded, from time 0 on, and then keeps the last pose; `add_actor` puts it into a scene.

    It is a function of time: what is made with it repeats to the byte.

    Args:
        name: The actor's.
        recording: Its motion.
        height: Of the body whose capsules are moved [m].
        shirt: Its colour.

    Raises:
        AirworthyError: The height is out of range, or the recording lasts a day.
    """
    if recording.time[-1] >= _HELD:
        raise AirworthyError(f"The recording of {name!r} lasts {recording.time[-1]:,.0f} s; expected less than a day.")
    kit = person(name, height, shirt=shirt)
    (bare,) = kit.skeletons.values()
    times = np.append(recording.time, _HELD).astype(np.float32)
    if (np.diff(times) <= 0.0).any():
        raise AirworthyError(f"The recording of {name!r} has poses less than a few microseconds apart.")
    turns = np.concatenate([recording.turns, recording.turns[-1:]]).astype(np.float32)
    places: ArrayF32 = np.concatenate([recording.position, recording.position[-1:]]).astype(np.float32)
    rotation = {joint: Track(times, turns[:, joint]) for joint in range(len(PERSON_JOINTS))}
    moved = replace(bare, clips={"recorded": Clip(_HELD, {0: Track(times, places)}, rotation)})
    key = f"{name}/recorded"
    return replace(kit, actor=replace(kit.actor, skeleton=key, animation="recorded"), skeletons={key: moved})
