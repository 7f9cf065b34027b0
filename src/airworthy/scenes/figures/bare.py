"""What of people is not cloth: heads with faces and hair, arms, hands, shoes; and what is drawn by a seed for a whole figure.

Colours are linear and by eye: skins from dark to pale, hair, cloth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.figures import body
from airworthy.scenes.figures.body import Build
from airworthy.scenes.figures.fields import Field, ball, blended, sheared
from airworthy.scenes.figures.surfaces import (
    HAIR,
    LEATHER,
    PLASTIC,
    SKIN,
    GarmentPiece,
    Paint,
    below,
    beyond,
    cut,
    even,
)  # fmt: skip
from airworthy.scenes.generators.seeding import generator

__all__ = ["OUTFITS", "BareParts", "Outfit"]

Outfit = Literal["shirt", "jacket", "worker"]
OUTFITS: tuple[Outfit, ...] = ("shirt", "jacket", "worker")
"""A T-shirt; a jacket over long sleeves; overalls with a vest that is seen from afar, and a helmet."""

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
_HATS = ((0.82, 0.80, 0.76), (0.80, 0.55, 0.02), (0.05, 0.15, 0.50))
_OVERALLS = ((0.028, 0.042, 0.095), (0.055, 0.058, 0.062), (0.030, 0.034, 0.045))
_INWARDS = 0.011
"""How far arms that are seen hang nearer to the trunk than those that are hit, over the stature: some 2 cm."""

_Choice = TypeVar("_Choice")


class BareParts:
    """Makes the pieces of one figure in one pose that are not cloth.

    Args:
        build: Of the body.
        outfit: What it wears.
        seed: Of colours, hair, face and folds.
        frames_of: Of every joint by its name: (4, 4) from its frame to the figure's.
        apart: Cut at the joints, each piece closed and with its `owner`.
    """

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
        """Return a part in a joint's frame where the joint is."""
        return sheared(base, self.frames[joint])

    def on_arm(self, joint: str, base: Field) -> Field:
        """Return a part of an arm, nearer to the trunk than the joint: those of the capsules are as far out as their girth."""
        inwards = np.eye(4)
        inwards[1, 3] = (-1.0 if joint.endswith("left") else 1.0) * _INWARDS * self.build.stature
        return sheared(base, self.frames[joint] @ inwards)

    def _head(self) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        face = self.at("head", body.head(b, self.chance))
        more = (("head", (0.0, 0.0, 0.13)), ("head", (0.0, 0.0, -0.02)))
        made = [GarmentPiece(face, ("head",), SKIN, self._face_paint(), 0.0135, 0.082 * s, 0, "head", more)]
        if self.outfit == "worker":
            hat = self.at("head", body.hard_hat(b))
            white = even(_HATS[int(self.chance[5] * 3)])
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
            upper, lower = cut(body.arm(b, 0.0), below(-0.06 * s)), body.forearm(b, 0.0)
            upper, lower = self.on_arm(f"upper_arm_{side}", upper), self.on_arm(f"lower_arm_{side}", lower)
            bones = beyond((f"lower_arm_{side}",))
            over = (f"upper_arm_{side}", f"lower_arm_{side}")
            if self.apart:
                made.append(GarmentPiece(upper, over, SKIN, even(self.skin), 0.026, 0.05 * s, 0, over[0]))
                made.append(GarmentPiece(lower, over[1:], SKIN, even(self.skin), 0.026, 0.05 * s, 0, over[1], bones))
            else:
                bare = blended([(upper, 0.0), (lower, 0.012 * s)])
                made.append(GarmentPiece(bare, over, SKIN, even(self.skin), 0.026, 0.05 * s, bones=bones))
        made.append(GarmentPiece(palm, (f"hand_{side}",), SKIN, self._hand_paint(), 0.0140, 0.035 * s, 0, f"hand_{side}", tips))
        shoe = self.at(f"foot_{side}", body.foot(b))
        toes = ((f"foot_{side}", (0.09, 0.0, -0.03)), (f"foot_{side}", (-0.03, 0.0, -0.03)))
        foot = f"foot_{side}"
        made.append(GarmentPiece(shoe, (foot,), LEATHER, self._shoe_paint(side), 0.020, 0.045 * s, 0, foot, toes))
        return made

    def _hand_paint(self) -> Paint:
        return even(np.array(self.skin) * np.array((1.0, 0.94, 0.93)))

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
    rim = below(0.090 * build.stature)
    return lambda points: np.maximum(locks(points), rim(points))
