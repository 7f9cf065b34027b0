"""Poses of people: turns of their joints, and where these stand over the floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.schema import check_fields
from airworthy.scenes.people import PERSON_JOINTS, lowest_foot, person_skeleton, standing_angles, walking_angles
from airworthy.scenes.skeletons import joint_matrices

__all__ = ["STANCES", "Stance", "joint_frames", "rest_frames", "stance_turns"]

StanceName = Literal["standing", "walking", "sitting", "working"]
STANCES: tuple[StanceName, ...] = ("standing", "walking", "sitting", "working")


@dataclass(frozen=True)
class Stance:
    """How somebody stands, walks, sits or works."""

    name: StanceName = "standing"
    phase: float = 0.0
    """Of a step's cycle when walking, else of slow sway, [cycles]."""
    look: float = 0.0
    """Turn of the head to the left [rad]."""

    def __post_init__(self) -> None:
        check_fields(self, "Stance.")


def stance_turns(stance: Stance) -> Array:
    """Return local turns of a person's joints, (joints, 4)."""
    angles = _angles(stance)
    turns = np.tile(frames.IDENTITY, (len(PERSON_JOINTS), 1))
    for name, angle in angles.items():
        turns[PERSON_JOINTS.index(name)] = frames.from_axis_angle((0.0, 1.0, 0.0), float(np.asarray(angle)))
    spread = 0.08 if stance.name in ("standing", "walking") else 0.14
    for side, sign in (("left", 1.0), ("right", -1.0)):
        joint = PERSON_JOINTS.index(f"upper_arm_{side}")
        turns[joint] = frames.multiply(frames.from_axis_angle((1.0, 0.0, 0.0), sign * spread), turns[joint])
    head = PERSON_JOINTS.index("head")
    turns[head] = frames.multiply(frames.from_axis_angle((0.0, 0.0, 1.0), stance.look), turns[head])
    return turns


def _angles(stance: Stance) -> dict[str, Array]:
    """Return turns about the joints' y axes [rad], as `walking_angles`."""
    if stance.name == "walking":
        return walking_angles(stance.phase)
    still = standing_angles(stance.phase)
    if stance.name == "sitting":
        for side in ("left", "right"):
            still[f"upper_leg_{side}"], still[f"lower_leg_{side}"] = np.array(-1.48), np.array(1.45)
            still[f"upper_arm_{side}"], still[f"lower_arm_{side}"] = np.array(-0.45), np.array(-0.95)
        still["torso"] = np.array(0.05)
    if stance.name == "working":
        still["torso"], still["head"] = np.array(0.16), np.array(0.22)
        for side, more in (("left", 0.0), ("right", 0.12)):
            still[f"upper_arm_{side}"], still[f"lower_arm_{side}"] = np.array(-0.55 - more), np.array(-1.05 + more)
    return still


def rest_frames(stature: float) -> dict[str, Array]:
    """Return matrices (4, 4) from joints' frames to that of a person of a stature [m] whose skeleton rests."""
    return dict(zip(PERSON_JOINTS, joint_matrices(person_skeleton(stature))[0], strict=True))


def joint_frames(stature: float, stance: Stance) -> dict[str, Array]:
    """Return matrices (4, 4) from joints' frames to that of a person who stands (or sits) on z = 0 and looks along x.

    Args:
        stature: [m]
        stance: How the joints are turned.
    """
    found = joint_matrices(person_skeleton(stature), "", 0.0, stance_turns(stance))[0]
    found[:, 2, 3] -= lowest_foot(found[None], stature)[0]
    return dict(zip(PERSON_JOINTS, found, strict=True))
