"""Guessed streams of one table have one body and one world: their frames are made to agree, by what numbers tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.frames import from_euler, normalize, rotate

_UPRIGHT = 0.5
"""Ours: least share of the specific force that attitudes must turn upright (or upside down) to tell which way the world's z
points; under it they are in no frame of these."""


@dataclass(frozen=True)
class MappingGuess:
    """One line of a mapping, with the reason for it."""

    name: str
    columns: tuple[str, ...]
    unit: str
    frame: str
    reason: str
    scale: float = 1.0
    """Further factor, of counts."""
    told: bool = False
    """Whether names or numbers say the frame, so that it is no convention that is taken for granted."""


def agreeing_frames(found: Sequence[MappingGuess], columns: Mapping[str, ArrayAny]) -> list[MappingGuess]:
    """Return guesses whose frames agree.

    An accelerometer shows which way the body's z points, so gyro and magnetometer of the same table, which do not, are taken
    for the same. Attitudes that turn its force upright have a world whose z points up, those that turn it upside down one
    whose z points down; positions and velocities are of that world, unless their names say another.

    Args:
        found: Guesses, each by itself.
        columns: The table.
    """
    force = next((item for item in found if item.name == "accelerometer"), None)
    body = "flu" if force is None else force.frame
    named = next((item for item in found if item.name in ("position", "velocity") and item.told), None)
    world, told = ("", "") if named is None else (named.frame, f"the {named.name}'s names")
    attitude = next((item for item in found if item.name == "attitude"), None)
    if attitude is not None and force is not None and (seen := _world_of(attitude, force, columns)):
        world, told = seen, "the accelerometer's force, turned by it"
    out = []
    for item in found:
        kind = item.name.partition(":")[0]
        if kind in ("gyro", "magnetometer") and item.frame != body:
            said = f"{item.reason}; {body.upper()}, as the accelerometer of the same table shows"
            item = replace(item, frame=body, reason=said)
        elif kind in ("position", "velocity") and world and not item.told and item.frame != world:
            item = replace(item, frame=world, reason=f"{item.reason}; {world.upper()} by {told}")
        elif kind == "attitude" and not item.told and (frame := f"{body}->{world or 'enu'}") != "flu->enu":
            because = " and ".join(t for t in ("the accelerometer's z" * (body != "flu"), told) if t)
            item = replace(item, frame=frame, reason=f"{item.reason}; but {frame}, by {because}")
        out.append(item)
    return out


def _world_of(attitude: MappingGuess, force: MappingGuess, columns: Mapping[str, ArrayAny]) -> str:
    """Which world attitudes turn a force of the same body into: "enu", "ned", or empty where it is neither."""
    turns = _values(attitude.columns, columns)
    if turns.shape[1] == 3:
        turns = from_euler(*(np.deg2rad(turns) if attitude.unit == "deg" else turns).T)
    felt = _values(force.columns, columns)
    good = np.isfinite(turns).all(axis=1) & np.isfinite(felt).all(axis=1)
    if not good.any():
        return ""
    share = rotate(normalize(turns[good]), felt[good])[:, 2].mean() / np.linalg.norm(felt[good], axis=1).mean()
    # What holds a vehicle up points up: with z up it is positive there.
    return "enu" if share > _UPRIGHT else "ned" if share < -_UPRIGHT else ""


def _values(names: Sequence[str], columns: Mapping[str, ArrayAny]) -> Array:
    return np.stack([np.asarray(columns[name], np.float64) for name in names], axis=1)
