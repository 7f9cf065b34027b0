"""A person made of fifteen capsules, standing or walking.

Lengths of limbs are fractions of the height after Drillis and Contini, "Body segment parameters" (1966), as usually tabulated;
the gait is drawn by simple periodic functions near the angles of normal walking. It is a figure to be seen and avoided, not a
biomechanical model. Frame: on the floor between the feet, x forward, y left, z up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Capsule, Shape
from airworthy.scenes.actors import ActorKit
from airworthy.scenes.formats.model import Clip, Skeleton, Track
from airworthy.scenes.record import Actor, Color, Instance, Material, Vector3, Waypoint
from airworthy.scenes.skeletons import joint_matrices

__all__ = [
    "PERSON_JOINTS",
    "lowest_foot",
    "person",
    "person_skeleton",
    "standing_angles",
    "walk_path",
    "walking_angles",
]

_KEYS = 32
"""Keys of a clip's cycle."""
_STRIDE = 0.76
"""Length of a walking cycle over the height [-]."""


@dataclass(frozen=True)
class _Bone:
    joint: str
    parent: str
    offset: Vector3
    """Of the joint in its parent, over the height."""
    start: Vector3
    end: Vector3
    """Of the capsule's axis in the joint's frame, over the height."""
    radius: float
    """Over the height."""
    material: str


def _both(joint: str, parent: str, offset: Vector3, *rest: object) -> list[_Bone]:
    """Return a bone on the left and its mirror image on the right."""
    made = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        above = parent if parent in ("pelvis", "torso") else f"{parent}_{side}"
        made.append(_Bone(f"{joint}_{side}", above, (offset[0], sign * offset[1], offset[2]), *rest))  # type: ignore[arg-type]
    return made


_BONES: tuple[_Bone, ...] = (
    _Bone("pelvis", "", (0.0, 0.0, 0.53), (0.0, -0.04, 0.0), (0.0, 0.04, 0.0), 0.07, "trousers"),
    _Bone("torso", "pelvis", (0.0, 0.0, 0.06), (0.0, 0.0, 0.05), (0.0, 0.0, 0.15), 0.085, "shirt"),
    _Bone("head", "torso", (0.0, 0.0, 0.27), (0.0, 0.0, 0.02), (0.0, 0.0, 0.082), 0.058, "skin"),
    *_both("upper_arm", "torso", (0.0, 0.125, 0.215), (0.0, 0.0, 0.0), (0.0, 0.0, -0.17), 0.03, "shirt"),
    *_both("lower_arm", "upper_arm", (0.0, 0.0, -0.186), (0.0, 0.0, 0.0), (0.0, 0.0, -0.135), 0.024, "skin"),
    *_both("hand", "lower_arm", (0.0, 0.0, -0.146), (0.0, 0.0, -0.02), (0.0, 0.0, -0.075), 0.022, "skin"),
    *_both("upper_leg", "pelvis", (0.0, 0.052, 0.0), (0.0, 0.0, -0.02), (0.0, 0.0, -0.225), 0.045, "trousers"),
    *_both("lower_leg", "upper_leg", (0.0, 0.0, -0.245), (0.0, 0.0, 0.0), (0.0, 0.0, -0.225), 0.032, "trousers"),
    *_both("foot", "lower_leg", (0.0, 0.0, -0.246), (-0.015, 0.0, -0.015), (0.095, 0.0, -0.015), 0.024, "shoes"),
)
PERSON_JOINTS: tuple[str, ...] = tuple(bone.joint for bone in _BONES)
"""Joints of the person, parents first; each carries one capsule."""


def _bump(phase: Array, center: float, width: float) -> Array:
    """Return a periodic bump of height 1."""
    # Von Mises' curve: a Gaussian that closes on itself.
    return np.exp((np.cos(2.0 * np.pi * (phase - center)) - 1.0) / (2.0 * np.pi * width) ** 2)


def walking_angles(phase: ArrayLike) -> dict[str, Array]:
    """Return joint angles of a walking cycle.

    Args:
        phase: (n,) in cycles; 0: the left heel strikes.

    Returns:
        Rotation about the joint's y axis [rad] by joint: positive swings what hangs below the joint backwards.
    """
    at = np.asarray(phase, float)
    degree = math.pi / 180.0
    angles: dict[str, Array] = {"torso": np.full_like(at, 4.0 * degree)}
    for side, shift in (("left", 0.0), ("right", 0.5)):
        p = at + shift
        swing = np.cos(2.0 * np.pi * p)
        # Amplitudes near those of gait analysis: a hip swings by some 40 degrees, a knee bends by 60 in swing and by 15 under
        # load.
        hip = (8.0 + 21.0 * swing) * degree
        knee = (5.0 + 13.0 * _bump(p, 0.14, 0.08) + 55.0 * _bump(p, 0.72, 0.09)) * degree
        angles[f"upper_leg_{side}"] = -hip
        angles[f"lower_leg_{side}"] = knee
        angles[f"foot_{side}"] = 0.5 * (hip - knee) + 12.0 * degree * _bump(p, 0.62, 0.07)
        # Arms swing against the legs of their side.
        angles[f"upper_arm_{side}"] = (22.0 * swing - 2.0) * degree
        angles[f"lower_arm_{side}"] = -(22.0 - 10.0 * swing) * degree
    return angles


def standing_angles(phase: ArrayLike) -> dict[str, Array]:
    """Return joint angles of standing at ease, with the slight sway of somebody who breathes; as `walking_angles`."""
    at = np.asarray(phase, float)
    sway = np.sin(2.0 * np.pi * at)
    angles = {"torso": 0.012 * sway, "head": -0.02 * sway}
    for side in ("left", "right"):
        angles[f"upper_arm_{side}"] = 0.02 * sway
        angles[f"lower_arm_{side}"] = -0.18 + 0.01 * sway
    return angles


def person_skeleton(height: float, speed: float = 1.3) -> Skeleton:
    """Return the joints of a person of a height [m], with clips of standing and of walking at a speed [m/s]."""
    names = list(PERSON_JOINTS)
    count = len(names)
    bare = Skeleton(
        names=PERSON_JOINTS,
        parents=np.array([names.index(bone.parent) if bone.parent else -1 for bone in _BONES], np.int32),
        position=np.array([bone.offset for bone in _BONES], np.float32) * np.float32(height),
        attitude=np.tile(np.array(frames.IDENTITY, np.float32), (count, 1)),
        scale=np.ones((count, 3), np.float32),
        inverse_bind=np.zeros((count, 4, 4), np.float32),
    )
    inverse = np.linalg.inv(joint_matrices(bare)[0]).astype(np.float32)
    bare.inverse_bind[:] = inverse
    bare.clips["standing"] = _clip(bare, height, standing_angles(np.linspace(0.0, 1.0, _KEYS + 1)), 4.0)
    bare.clips["walking"] = _clip(bare, height, walking_angles(np.linspace(0.0, 1.0, _KEYS + 1)), _STRIDE * height / speed)
    return bare


def _clip(skeleton: Skeleton, height: float, angles: dict[str, Array], duration: float) -> Clip:
    """Keys of a cycle; the pelvis is as high as it must be for the lower foot to touch the floor."""
    count = _KEYS + 1
    times = np.linspace(0.0, duration, count).astype(np.float32)
    turns = np.tile(frames.IDENTITY, (count, len(_BONES), 1))
    for name, angle in angles.items():
        turns[:, PERSON_JOINTS.index(name)] = frames.from_axis_angle((0.0, 1.0, 0.0), angle)
    for side, sign in (("left", 1.0), ("right", -1.0)):  # arms a little away from the body
        joint = PERSON_JOINTS.index(f"upper_arm_{side}")
        turns[:, joint] = frames.multiply(frames.from_axis_angle((1.0, 0.0, 0.0), sign * 0.08), turns[:, joint])
    # From the feet upwards: a pelvis of fixed height would let feet sink into the floor or hover.
    lift = -lowest_foot(joint_matrices(skeleton, "", np.zeros(count), turns), height)
    pelvis = np.tile(np.asarray(skeleton.position[0], float), (count, 1))
    pelvis[:, 2] += lift
    rotation = {joint: Track(times, turns[:, joint].astype(np.float32)) for joint in range(len(_BONES))}
    return Clip(duration, {0: Track(times, pelvis.astype(np.float32))}, rotation)


def lowest_foot(matrices: Array, height: float) -> Array:
    """Return the lowest point of the feet (n,) [m] of joints' matrices (n, joints, 4, 4) of a person of a height [m]."""
    low = np.full(len(matrices), np.inf)
    for joint, bone in enumerate(_BONES):
        if bone.joint.startswith("foot"):
            for end in (bone.start, bone.end):
                point = matrices[:, joint, :3, :3] @ (np.array(end) * height) + matrices[:, joint, :3, 3]
                low = np.minimum(low, point[:, 2] - bone.radius * height)
    return low


def _part(bone: _Bone, at_rest: Array, height: float) -> tuple[Capsule, Vector3, tuple[float, float, float, float]]:
    """Return a bone's capsule and its pose in the person's frame at rest."""
    start, end = np.array(bone.start) * height, np.array(bone.end) * height
    axis = end - start
    length = float(np.linalg.norm(axis))
    turn = frames.from_rotation_vector(_to_axis(axis / length))
    center = at_rest[:3, :3] @ (0.5 * (start + end)) + at_rest[:3, 3]
    x, y, z = (float(value) for value in center)
    qx, qy, qz, qw = (float(value) for value in turn)
    return Capsule(bone.radius * height, 0.5 * length), (x, y, z), (qx, qy, qz, qw)


def _to_axis(direction: Array) -> Array:
    """Rotation vector that turns z to a unit direction by the shortest way."""
    cross = np.cross((0.0, 0.0, 1.0), direction)
    sine = float(np.linalg.norm(cross))
    angle = math.atan2(sine, float(direction[2]))
    return cross / sine * angle if sine > 1e-12 else np.array([angle, 0.0, 0.0])


_COLORS: dict[str, Color] = {
    "skin": (0.55, 0.33, 0.24),
    "shirt": (0.75, 0.12, 0.08),
    "trousers": (0.06, 0.08, 0.16),
    "shoes": (0.02, 0.02, 0.02),
}


def person(
    name: str = "person",
    height: float = 1.75,
    *,
    position: Vector3 = (0.0, 0.0, 0.0),
    yaw: float = 0.0,
    animation: str = "standing",
    speed: float = 1.3,
    motion: str = "external",
    path: Sequence[Waypoint] = (),
    repeat: bool = False,
    shirt: Color | None = None,
) -> ActorKit:
    """Return a person as an actor with what it is made of; `actors.add_actor` puts it into a scene.

    Args:
        name: The actor's.
        height: [m], 0.5 to 2.5.
        position: Where it stands, world [m]: the floor between its feet.
        yaw: Where it looks [rad].
        animation: "standing" or "walking".
        speed: At which the walking clip keeps step with the floor [m/s].
        motion: As `Actor.motion`.
        path: Of a scripted one (`walk_path`).
        repeat: The path.
        shirt: Its colour.

    Raises:
        AirworthyError: The height or speed is out of range.
    """
    if not 0.5 <= height <= 2.5 or not 0.05 <= speed <= 12.0:
        raise AirworthyError(f"A person of {height} m at {speed} m/s: expected 0.5 to 2.5 m, and 0.05 to 12 m/s.")
    # Shapes are named by height, materials by person: people of one height share their capsules.
    kind = f"person_{height:g}"
    skeleton = person_skeleton(height, speed)
    rest = joint_matrices(skeleton)[0]
    colors = {**_COLORS, **({"shirt": shirt} if shirt else {})}
    materials = {f"{name}/{key}": Material((*color, 1.0), roughness=0.85) for key, color in colors.items()}
    shapes: dict[str, Shape] = {}
    parts: list[Instance] = []
    for joint, bone in enumerate(_BONES):
        shape, center, turn = _part(bone, rest[joint], height)
        key = f"{kind}/{bone.joint.removesuffix('_left').removesuffix('_right')}"
        shapes[key] = shape
        parts.append(Instance(key, center, turn, 1.0, (f"{name}/{bone.material}",), "person", name=bone.joint))
    heading = (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw))
    actor = Actor(
        name,
        tuple(parts),
        motion,  # type: ignore[arg-type]
        position,
        heading,
        tuple(path),
        repeat,
        skeleton=f"{kind}_{speed:g}",
        animation=animation,
    )
    return ActorKit(actor, shapes, materials, {}, {actor.skeleton: skeleton})


def walk_path(
    points: Sequence[Sequence[float]], speed: float = 1.3, closed: bool = False, turn: float = 0.6
) -> tuple[Waypoint, ...]:
    """Return a path along points, heading forward, turning on the spot at corners.

    Args:
        points: (n, 3) [m], at least two, each apart from the next.
        speed: [m/s]
        closed: Lead back to the first point (for a path that repeats).
        turn: Time that a corner takes [s].

    Raises:
        AirworthyError: There are fewer than two points, or two that follow each other are the same.
    """
    # The first point again, as an end that a repeated path goes on from without a jump.
    corners = np.asarray([*points, *(points[:1] if closed else [])], float)
    if len(corners) < 2 or not speed > 0.0 or not turn > 0.0:
        raise AirworthyError(f"A walk of {len(points)} points at {speed} m/s: expected at least 2 points and a speed above 0.")
    steps = np.diff(corners, axis=0)
    lengths = np.linalg.norm(steps[:, :2], axis=1)
    if (lengths < 1e-6).any():
        raise AirworthyError("A walk has two points above each other; each must be apart from the next.")
    headings = [(0.0, 0.0, math.sin(0.5 * a), math.cos(0.5 * a)) for a in np.arctan2(steps[:, 1], steps[:, 0])]
    path: list[Waypoint] = []
    time = 0.0
    for leg, heading in enumerate(headings):
        x, y, z = (float(value) for value in corners[leg])
        path.append(Waypoint(time, (x, y, z), heading))
        time += float(np.linalg.norm(steps[leg])) / speed
        x, y, z = (float(value) for value in corners[leg + 1])
        path.append(Waypoint(time, (x, y, z), heading))
        time += turn
    if closed:
        path.append(Waypoint(time, path[0].position, path[0].attitude))
    return tuple(path)
