"""What people wear: garments over bodies, each a closed shape with hems, cuffs and folds, and the colours of everything.

Colours are linear, drawn by a seed, and by eye: skins from dark to pale, hair, cloth. All surfaces are white materials times
colours of vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.figures import body
from airworthy.scenes.figures.body import Build
from airworthy.scenes.figures.fields import Field, ball, blended, sheared, sheet, union
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Material

__all__ = ["FIGURE_MATERIALS", "OUTFITS", "GarmentPiece", "Outfit", "pieces", "whole"]

Outfit = Literal["shirt", "jacket", "worker"]
OUTFITS: tuple[Outfit, ...] = ("shirt", "jacket", "worker")
"""A T-shirt; a jacket over long sleeves; overalls with a vest that is seen from afar, and a helmet."""

FIGURE_MATERIALS: dict[str, Material] = {
    "person/skin": Material((1.0, 1.0, 1.0, 1.0), roughness=0.66),
    "person/cloth": Material((1.0, 1.0, 1.0, 1.0), roughness=0.95),
    "person/leather": Material((1.0, 1.0, 1.0, 1.0), roughness=0.66),
    "person/hair": Material((1.0, 1.0, 1.0, 1.0), roughness=0.66),
    "person/plastic": Material((1.0, 1.0, 1.0, 1.0), roughness=0.34),
    "person/tape": Material((1.0, 1.0, 1.0, 1.0), roughness=0.7),
}
"""Of figures, in the order of their faces' numbers. Skin and leather are as rough as what has no gloss traced (`rendering`):
with few rays theirs would be grain."""
SKIN, CLOTH, LEATHER, HAIR, PLASTIC, TAPE = range(6)

_SKINS = (
    (0.50, 0.30, 0.215), (0.56, 0.355, 0.265), (0.44, 0.245, 0.165),
    (0.34, 0.175, 0.105), (0.21, 0.10, 0.06), (0.105, 0.05, 0.032),
)  # fmt: skip
_HAIRS = (
    (0.010, 0.008, 0.007), (0.022, 0.014, 0.009), (0.05, 0.029, 0.016),
    (0.11, 0.066, 0.033), (0.26, 0.18, 0.10), (0.24, 0.235, 0.23),
)  # fmt: skip
_TOPS = (
    (0.62, 0.61, 0.58), (0.030, 0.034, 0.042), (0.035, 0.06, 0.13),
    (0.20, 0.025, 0.025), (0.10, 0.14, 0.10), (0.36, 0.30, 0.20), (0.14, 0.15, 0.16), (0.12, 0.23, 0.36), (0.42, 0.24, 0.06),
)  # fmt: skip
_JACKETS = (
    (0.018, 0.021, 0.030), (0.045, 0.055, 0.040), (0.11, 0.075, 0.042), (0.07, 0.072, 0.078), (0.030, 0.045, 0.085),
    (0.012, 0.012, 0.013), (0.22, 0.20, 0.16),
)  # fmt: skip
_TROUSERS = (
    (0.035, 0.055, 0.11), (0.055, 0.085, 0.15), (0.018, 0.026, 0.052), (0.016, 0.016, 0.018), (0.17, 0.13, 0.083),
    (0.055, 0.055, 0.057), (0.075, 0.072, 0.055),
)  # fmt: skip
_SHOES = ((0.018, 0.016, 0.015), (0.075, 0.040, 0.022), (0.55, 0.54, 0.52), (0.10, 0.10, 0.11), (0.035, 0.03, 0.028))
_VESTS = ((0.80, 0.30, 0.012), (0.62, 0.78, 0.03))
_HATS = ((0.82, 0.80, 0.76), (0.80, 0.55, 0.02), (0.05, 0.15, 0.50))
_OVERALLS = ((0.028, 0.042, 0.095), (0.055, 0.058, 0.062), (0.030, 0.034, 0.045))
_INWARDS = 0.011
"""How far arms that are seen hang nearer to the trunk than those that are hit, over the stature: some 2 cm."""
_TAPE_COLOR = (0.60, 0.61, 0.60)

Paint = Callable[[Array, Array], Array]
"""Colours (n, 3) of places (n, 3), world, and their normals."""


@dataclass(frozen=True, eq=False)
class GarmentPiece:
    """One closed surface of a figure."""

    field: Field
    joints: tuple[str, ...]
    """Around whose parts the surface is looked for."""
    slot: int
    paint: Paint
    cell: float
    """Side of a net's cells at the finest detail [m]."""
    reach: float = 0.18
    """How far it may lie from its joints' bones [m]."""
    least: int = 0
    """Least detail at which it is there: what is small or thin is left out from afar."""
    owner: str = ""
    """Joint with which it goes where a figure moves."""
    bones: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """More places to look around: joints and points in their frames, in shares of the stature."""


def _even(color: Sequence[float]) -> Paint:
    return lambda points, normals: np.broadcast_to(np.asarray(color, float), points.shape)


def _folds(rng: np.random.Generator, build: Build, depth: float = 1.0) -> Callable[[Array], Array]:
    """Return how far cloth stands out [m] at places: slow, mostly slanting waves of some centimetres."""
    count = 9
    slant = rng.normal(0.0, 1.0, (count, 3)) * np.array((0.7, 0.7, 1.0))
    slant /= np.linalg.norm(slant, axis=1, keepdims=True)
    wave = 2.0 * np.pi / (rng.uniform(0.055, 0.16, count) * build.stature / 1.75)
    phase = 2.0 * np.pi * rng.random(count)
    size = 0.0011 * depth * rng.uniform(0.5, 1.0, count)

    def out(points: Array) -> Array:
        turn = points @ (slant * wave[:, None]).T + phase
        # Ridges are sharper than hollows.
        return np.asarray(((1.0 - np.abs(np.sin(0.5 * turn))) * 2.0 - 0.7) @ size)

    return out


def _creases(build: Build, at: float, reach: float, size: float, pitch: float, phase: float) -> Callable[[Array], Array]:
    """Return rings of creases in a limb's frame about a height on it, as cloth has them over a cuff or in a knee."""
    s = build.stature

    def out(points: Array) -> Array:
        z = points[:, 2] / s
        slant = 0.35 * np.arctan2(points[:, 1], points[:, 0])
        near = np.exp(-(((z - at) / reach) ** 2))
        return np.asarray(size * near * np.sin(2.0 * np.pi * z / pitch + slant + phase))

    return out


def _puffed(base: Field, out: Callable[[Array], Array]) -> Field:
    return lambda points: base(points) - out(points)


def _cut(base: Field, *planes: Field) -> Field:
    def distance(points: Array) -> Array:
        found = base(points)
        for plane in planes:
            found = np.maximum(found, plane(points))
        return found

    return distance


def _above(z: float) -> Field:
    return sheet((0.0, 0.0, -1.0), -z)


def _below(z: float) -> Field:
    return sheet((0.0, 0.0, 1.0), z)


_Choice = TypeVar("_Choice")
_Covering = tuple[str, str, Field, float]
"""With which joint it goes where a figure moves, in whose frame it is, the field, and the width of its seam [m]."""
_ENDS: dict[str, tuple[float, ...]] = {
    "torso": (0.0, 0.0, 0.25), "upper_arm": (0.0, 0.0, -0.19), "lower_arm": (0.0, 0.0, -0.15), "upper_leg": (0.0, 0.0, -0.25),
    "lower_leg": (0.0, 0.0, -0.25),
}  # fmt: skip
"""Far ends of what joints bear, in their frames, over the stature."""


def _beyond(joints: Sequence[str]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return where parts of the body end, for the box in which they are looked for."""
    return tuple((name, _ENDS[kind]) for name in joints if (kind := name.removesuffix("_left").removesuffix("_right")) in _ENDS)


class _Dresser:
    """Makes the pieces of one figure in one pose."""

    def __init__(self, build: Build, outfit: Outfit, seed: int, frames_of: dict[str, Array], apart: bool):
        self.build, self.outfit, self.frames, self.apart = build, outfit, frames_of, apart
        self.rng = generator("figure", seed, outfit, "woman" if build.woman else "man")
        self.chance = self.rng.random(6)
        self.skin = self._one(_SKINS)
        self.hair_color = self._one(_HAIRS)
        self.shoes = self._one(_SHOES)
        self.trousers = self._one(_OVERALLS if outfit == "worker" else _TROUSERS)
        self.top = self.trousers if outfit == "worker" else self._one(_JACKETS if outfit == "jacket" else _TOPS)
        self.inner = self._one(_TOPS)
        self.number = int(self.rng.random() * 2)
        self.style = self._one(("long", "tied", "long", "short") if build.woman else ("short",))

    def _one(self, choices: Sequence[_Choice]) -> _Choice:
        return choices[int(self.rng.random() * len(choices))]

    def at(self, joint: str, base: Field) -> Field:
        return sheared(base, self.frames[joint])

    def on_arm(self, joint: str, base: Field) -> Field:
        """Return a part of an arm, nearer to the trunk than the joint: those of the capsules are as far out as their girth."""
        inwards = np.eye(4)
        inwards[1, 3] = (-1.0 if joint.endswith("left") else 1.0) * _INWARDS * self.build.stature
        return sheared(base, self.frames[joint] @ inwards)

    def all(self) -> list[GarmentPiece]:
        made = [*self._legs(), *self._trunk(), *self._head()]
        for side, sign in (("left", 1.0), ("right", -1.0)):
            made += [*self._extremities(side, sign)]
        if self.outfit == "worker":
            made += self._vest()
        return made

    # ---- Clothes

    def _garment(self, parts: list[_Covering], depth: float, paint: Paint, cell: float) -> list[GarmentPiece]:
        """Return cloth over parts of the body as one surface, or, where it moves, as one for each joint that turns."""
        folds = _folds(self.rng, self.build, depth)
        groups: dict[str, list[_Covering]] = {}
        for part in parts:
            groups.setdefault(part[0] if self.apart else parts[0][0], []).append(part)
        made = []
        for owner, group in groups.items():
            field = _puffed(blended([(self._placed(joint, base), blend) for _, joint, base, blend in group]), folds)
            joints = tuple(dict.fromkeys(joint for _, joint, _, _ in group))
            made.append(GarmentPiece(field, joints, CLOTH, paint, cell, owner=owner, bones=_beyond(joints)))
        return made

    def _placed(self, joint: str, base: Field) -> Field:
        return self.on_arm(joint, base) if "arm" in joint or "hand" in joint else self.at(joint, base)

    def _sleeve(self, side: str, swell: float) -> list[_Covering]:
        """Return what covers an arm."""
        b, s = self.build, self.build.stature
        if self.outfit == "shirt":
            upper = _cut(body.arm(b, swell, 0.007), _above(-0.098 * s))
            return [(f"upper_arm_{side}", f"upper_arm_{side}", upper, 0.012 * s)]
        phase = 6.28 * self.rng.random()
        loose = 0.005
        upper = _puffed(body.arm(b, swell, loose), _creases(b, -0.175, 0.035, 0.0032, 0.021, phase))
        crease = _creases(b, 0.0, 0.030, 0.0032, 0.021, phase)
        hem = _creases(b, -0.125, 0.020, 0.0022, 0.016, phase + 2.0)
        lower = body.forearm(b, swell + 0.5 * loose, 0.0245 * s)
        lower = _cut(_puffed(lower, lambda p: crease(p) + hem(p)), _above(-0.146 * s))
        return [
            (f"upper_arm_{side}", f"upper_arm_{side}", upper, 0.014 * s),
            (f"lower_arm_{side}", f"lower_arm_{side}", lower, 0.012 * s),
        ]

    def _trunk(self) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        swell = {"shirt": 0.006, "jacket": 0.012, "worker": 0.009}[self.outfit]
        hem = {"shirt": -0.046, "jacket": -0.052, "worker": 0.02}[self.outfit]
        lower = _cut(body.hips(b, swell + 0.004), _above(hem * s))
        collar = {"shirt": 0.232, "jacket": 0.252, "worker": 0.246}[self.outfit]
        upper = _cut(body.trunk(b, swell), self._neckline(collar))
        parts: list[_Covering] = [("torso", "pelvis", lower, 0.0), ("torso", "torso", upper, 0.03 * s)]
        for side in ("left", "right"):
            # Over the trousers, thighs and all.
            skirt = _cut(body.thigh(b, swell + 0.010), self._over(side, hem * s))
            parts.append(("torso", f"upper_leg_{side}", skirt, 0.02 * s))
        for side in ("left", "right"):
            parts += self._sleeve(side, swell)
        made = self._garment(parts, 1.5 if self.outfit == "shirt" else 1.9, self._top_paint(), 0.036)
        if self.outfit == "jacket":
            # What is worn below shows at the neck.
            inner = _cut(body.trunk(b, 0.004), _above(0.17 * s), _below(0.250 * s))
            around = (("torso", (0.0, 0.0, 0.25)),)
            inside = self.at("torso", inner)
            made.append(GarmentPiece(inside, ("torso",), CLOTH, _even(self.inner), 0.03, 0.12 * s, 1, "torso", around))
        return made

    def _over(self, side: str, z: float) -> Field:
        """Return the plane of a hem, level in the pelvis's frame at a height [m] over its joint, in a thigh's frame."""
        motion = np.linalg.inv(self.frames["pelvis"]) @ self.frames[f"upper_leg_{side}"]
        plane = _above(z)
        return lambda points: plane(points @ motion[:3, :3].T + motion[:3, 3])

    def _neckline(self, height: float) -> Field:
        """Return a plane through the neck, lower in front; of a jacket a V."""
        s = self.build.stature
        ring = sheet((0.40, 0.0, 0.9165), (height * 0.9165 + 0.40 * -0.004) * s)
        if self.outfit != "jacket":
            return ring

        def distance(points: Array) -> Array:
            # Open above a point on the breast, wider upwards.
            x, y, z = points.T
            gap = np.minimum(x - 0.01 * s, 0.5 * ((z - 0.165 * s) * 0.42 - np.abs(y)))
            return np.maximum(ring(points), gap)

        return distance

    def _top_paint(self) -> Paint:
        frame, s, color = self.frames["torso"], self.build.stature, np.array(self.top)

        def paint(points: Array, normals: Array) -> Array:
            local = (points - frame[:3, 3]) @ frame[:3, :3]
            found = np.tile(color, (len(points), 1))
            if self.outfit == "jacket":
                zip_line = (np.abs(local[:, 1]) < 0.006 * s) & (local[:, 0] > 0.0)
                found[zip_line] *= 0.45
            return found

        return paint

    def _legs(self) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        loose, phase = 0.006, 6.28 * self.rng.random()
        parts: list[_Covering] = [("pelvis", "pelvis", _cut(body.hips(b, 0.004), _below(0.045 * s)), 0.0)]
        for side in ("left", "right"):
            thigh, calf = f"upper_leg_{side}", f"lower_leg_{side}"
            knee = _creases(b, -0.245, 0.045, 0.0026, 0.026, phase)
            upper = _puffed(body.thigh(b, 0.003, loose), knee)
            bend = _creases(b, 0.0, 0.035, 0.0026, 0.026, phase)
            hem = _creases(b, -0.205, 0.035, 0.0042, 0.021, phase + 1.0)
            lower = body.shank(b, 0.003 + loose, 0.0335 * s)
            lower = _cut(_puffed(_puffed(lower, bend), hem), _above(-0.243 * s))
            parts += [(thigh, thigh, upper, 0.012 * s), (calf, calf, lower, 0.012 * s)]
            phase += 1.7
        return self._garment(parts, 1.3, self._trouser_paint(), 0.038)

    def _trouser_paint(self) -> Paint:
        color = np.array(self.trousers)
        denim = color[2] > 1.7 * color[0]
        frames_of = [self.frames[f"upper_leg_{side}"] for side in ("left", "right")]
        s = self.build.stature

        def paint(points: Array, normals: Array) -> Array:
            found = np.tile(color, (len(points), 1))
            if denim and self.outfit != "worker":
                # Washed out over the thighs and knees.
                pale = np.zeros(len(points))
                for frame in frames_of:
                    local = (points - frame[:3, 3]) @ frame[:3, :3]
                    front = np.clip((normals @ frame[:3, :3])[:, 0], 0.0, 1.0)
                    pale = np.maximum(pale, front * np.exp(-(((local[:, 2] + 0.15 * s) / (0.11 * s)) ** 2)))
                found *= 1.0 + 0.7 * pale[:, None]
            return found

        return paint

    def _vest(self) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        hem = -0.036 * s
        parts = [(self.at("pelvis", _cut(body.hips(b, 0.021), _above(hem))), 0.0)]
        parts.append((self.at("torso", _cut(body.trunk(b, 0.017), self._neckline(0.232))), 0.03 * s))
        for side in ("left", "right"):
            leg = f"upper_leg_{side}"
            parts.append((self.at(leg, _cut(body.thigh(b, 0.027), self._over(side, hem))), 0.02 * s))
        base = _puffed(blended(parts), _folds(self.rng, b, 1.6))
        torso = self.frames["torso"]

        def local(points: Array) -> Array:
            return np.asarray((points - torso[:3, 3]) @ torso[:3, :3])

        # Arm holes: from the ribs up nothing beyond the shoulders.
        hole = sheet((0.0, 1.0, 0.0), 0.088 * s)

        def vest(points: Array) -> Array:
            at = local(points)
            at[:, 1] = np.abs(at[:, 1])
            return np.asarray(np.maximum(base(points), np.minimum(hole(at), at[:, 2] - 0.135 * s)))

        def taped(points: Array) -> Array:
            at = local(points) / s
            rings = np.minimum(np.abs(at[:, 2] - 0.018), np.abs(at[:, 2] - 0.098)) - 0.0145
            straps = np.maximum(np.abs(np.abs(at[:, 1]) - 0.062) - 0.0145, 0.098 - at[:, 2])
            return np.asarray(np.maximum(vest(points) - 0.007, s * np.minimum(rings, straps)))

        color = _VESTS[self.number]
        joints, more = ("pelvis", "torso"), (("torso", (0.0, 0.0, 0.25)),)
        return [
            GarmentPiece(vest, joints, CLOTH, _even(color), 0.026, 0.12 * s, 0, "torso", more),
            GarmentPiece(taped, joints, TAPE, _even(_TAPE_COLOR), 0.022, 0.12 * s, 1, "torso", more),
        ]

    # ---- Skin, hair, shoes

    def _head(self) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        face = self.at("head", body.head(b, self.chance))
        more = (("head", (0.0, 0.0, 0.13)), ("head", (0.0, 0.0, -0.02)))
        made = [GarmentPiece(face, ("head",), SKIN, self._face_paint(), 0.0135, 0.082 * s, 0, "head", more)]
        if self.outfit == "worker":
            hat = self.at("head", body.hard_hat(b))
            white = _even(_HATS[int(self.chance[5] * 3)])
            made.append(GarmentPiece(hat, ("head",), PLASTIC, white, 0.020, 0.10 * s, 0, "head", more))
        tail = (*more, ("head", (-0.05, 0.0, -0.05)))
        locks = self.at("head", _under_hat(body.hair(b, self.style, self.chance), b, self.outfit == "worker"))
        made.append(GarmentPiece(locks, ("head",), HAIR, self._hair_paint(), 0.0155, 0.085 * s, 0, "head", tail))
        m = np.array
        for side in (-1.0, 1.0):
            eye = self.at("head", ball(m((0.0445, side * 0.0185, 0.0690)) * s, m((0.0038, 0.0078, 0.0030)) * s))
            middle = (("head", (0.0445, side * 0.0185, 0.0690)),)
            made.append(GarmentPiece(eye, (), PLASTIC, self._eye_paint(side), 0.0045, 0.012 * s, 2, "head", middle))
        return made

    def _local(self, joint: str, points: Array) -> Array:
        frame = self.frames[joint]
        return np.asarray((points - frame[:3, 3]) @ frame[:3, :3] / self.build.stature)

    def _face_paint(self) -> Paint:
        skin, beard = np.array(self.skin), (not self.build.woman) and self.chance[4] > 0.35
        hair_color, man = np.array(self.hair_color), not self.build.woman

        def paint(points: Array, normals: Array) -> Array:
            at = self._local("head", points)
            found = np.tile(skin, (len(points), 1))

            def spot(center: tuple[float, ...], size: tuple[float, ...]) -> Array:
                return np.asarray(np.exp(-(((at - np.array(center)) / np.array(size)) ** 2).sum(-1))[:, None])

            for side in (-1.0, 1.0):
                cheek = spot((0.043, side * 0.022, 0.046), (0.02, 0.012, 0.012))
                found = found * (1.0 + cheek * (np.array((1.10, 0.92, 0.90)) - 1.0))
                socket = spot((0.046, side * 0.0185, 0.069), (0.012, 0.011, 0.006))
                found = found * (1.0 - 0.30 * socket)
            lips = spot((0.049, 0.0, 0.0305), (0.010, 0.0115, 0.0050))
            found = found + lips * 0.75 * (skin * np.array((0.88, 0.56, 0.58)) - found)
            nose = spot((0.059, 0.0, 0.046), (0.008, 0.010, 0.008))
            found = found * (1.0 + nose * (np.array((1.06, 0.94, 0.93)) - 1.0))
            if man:
                jaw = np.clip((0.036 - at[:, 2]) / 0.012, 0.0, 1.0) * np.clip((at[:, 0] - 0.002) / 0.01, 0.0, 1.0)
                jaw = (jaw * np.clip((at[:, 2] + 0.004) / 0.01, 0.0, 1.0))[:, None] * (1.0 - lips)
                shade = 0.62 if beard else 0.20
                found = found + shade * jaw * (0.6 * hair_color + 0.10 * skin - found)
            return np.clip(found, 0.0, 1.0)

        return paint

    def _hair_paint(self) -> Paint:
        color, s = np.array(self.hair_color), self.build.stature

        def paint(points: Array, normals: Array) -> Array:
            at = self._local("head", points) * s
            angle = np.arctan2(at[:, 1], at[:, 0] + 0.02 * s)
            strand = np.sin(23.0 * angle + 70.0 * at[:, 2]) * np.sin(11.0 * angle - 31.0 * at[:, 2])
            return np.clip(color * (1.0 + 0.35 * strand[:, None]), 0.0, 1.0)

        return paint

    def _eye_paint(self, side: float) -> Paint:
        def paint(points: Array, normals: Array) -> Array:
            at = self._local("head", points)
            iris = np.hypot(at[:, 1] - side * 0.0185, at[:, 2] - 0.0690) < 0.0034
            return np.where(iris[:, None], np.array((0.018, 0.013, 0.010)), np.array((0.42, 0.40, 0.38)))

        return paint

    def _extremities(self, side: str, sign: float) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        made = []
        palm = self.on_arm(f"hand_{side}", body.hand(b, sign))
        tips = ((f"hand_{side}", (0.01, 0.0, -0.06)), (f"hand_{side}", (0.0, 0.0, -0.09)))
        if self.outfit == "shirt":
            upper, lower = _cut(body.arm(b, 0.0), _below(-0.06 * s)), body.forearm(b, 0.0)
            upper, lower = self.on_arm(f"upper_arm_{side}", upper), self.on_arm(f"lower_arm_{side}", lower)
            bones = _beyond((f"lower_arm_{side}",))
            over = (f"upper_arm_{side}", f"lower_arm_{side}")
            if self.apart:
                made.append(GarmentPiece(upper, over, SKIN, _even(self.skin), 0.026, 0.05 * s, 0, over[0]))
                made.append(GarmentPiece(lower, over[1:], SKIN, _even(self.skin), 0.026, 0.05 * s, 0, over[1], bones))
            else:
                bare = blended([(upper, 0.0), (lower, 0.012 * s)])
                made.append(GarmentPiece(bare, over, SKIN, _even(self.skin), 0.026, 0.05 * s, bones=bones))
        made.append(GarmentPiece(palm, (f"hand_{side}",), SKIN, self._hand_paint(), 0.0140, 0.035 * s, 0, f"hand_{side}", tips))
        shoe = self.at(f"foot_{side}", body.foot(b))
        toes = ((f"foot_{side}", (0.09, 0.0, -0.03)), (f"foot_{side}", (-0.03, 0.0, -0.03)))
        foot = f"foot_{side}"
        made.append(GarmentPiece(shoe, (foot,), LEATHER, self._shoe_paint(side), 0.020, 0.045 * s, 0, foot, toes))
        return made

    def _hand_paint(self) -> Paint:
        return _even(np.array(self.skin) * np.array((1.0, 0.94, 0.93)))

    def _shoe_paint(self, side: str) -> Paint:
        color = np.array(self.shoes)
        sole = np.array((0.50, 0.49, 0.46)) if self.chance[1] > 0.5 and self.outfit != "worker" else 0.35 * color

        def paint(points: Array, normals: Array) -> Array:
            at = self._local(f"foot_{side}", points)
            return np.where((at[:, 2] < -0.0315)[:, None], sole, color)

        return paint


def _under_hat(locks: Field, build: Build, worn: bool) -> Field:
    """Return hair as a hat leaves it: nothing over its rim."""
    if not worn:
        return locks
    below = _below(0.090 * build.stature)
    return lambda points: np.maximum(locks(points), below(points))


def pieces(build: Build, outfit: Outfit, seed: int, frames_of: dict[str, Array], apart: bool = False) -> list[GarmentPiece]:
    """Return the surfaces of a figure in a pose.

    Args:
        build: Of the body.
        outfit: What it wears.
        seed: Of colours, hair, face and folds.
        frames_of: Of every joint by its name: (4, 4) from its frame to the figure's, which stands on z = 0 and looks along x.
        apart: Cut at the joints, each piece closed and with its `owner`.
    """
    return _Dresser(build, outfit, seed, frames_of, apart).all()


def whole(made: Sequence[GarmentPiece]) -> Field:
    """Return the field of all pieces together: what hides the light from each other's surfaces."""

    def distance(points: Array) -> Array:
        found = made[0].field(points)
        for piece in made[1:]:
            found = union(found, piece.field(points))
        return found

    return distance
