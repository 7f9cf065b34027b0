"""What people wear: garments over bodies, each a closed shape with hems, cuffs and folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.figures import body
from airworthy.scenes.figures.bare import BareParts, Outfit
from airworthy.scenes.figures.body import Build
from airworthy.scenes.figures.fields import Field, blended, sheet, union
from airworthy.scenes.figures.surfaces import (
    CLOTH,
    TAPE,
    GarmentPiece,
    Paint,
    above,
    below,
    beyond,
    creases,
    cut,
    even,
    folds,
    puffed,
)  # fmt: skip

__all__ = ["pieces", "whole"]

_VESTS = ((0.80, 0.30, 0.012), (0.62, 0.78, 0.03))
_TAPE_COLOR = (0.60, 0.61, 0.60)
_Covering = tuple[str, str, Field, float]
"""With which joint it goes where a figure moves, in whose frame it is, the field, and the width of its seam [m]."""


class _Dresser(BareParts):
    """Makes all pieces of one figure in one pose."""

    def all(self) -> list[GarmentPiece]:
        made = [*self._legs(), *self._trunk(), *self._head()]
        for side, sign in (("left", 1.0), ("right", -1.0)):
            made += [*self._extremities(side, sign)]
        if self.outfit == "worker":
            made += self._vest()
        return made

    def _garment(self, parts: list[_Covering], depth: float, paint: Paint, cell: float) -> list[GarmentPiece]:
        """Return cloth over parts of the body as one surface, or, where it moves, as one for each joint that turns."""
        waves = folds(self.rng, self.build, depth)
        groups: dict[str, list[_Covering]] = {}
        for part in parts:
            groups.setdefault(part[0] if self.apart else parts[0][0], []).append(part)
        made = []
        for owner, group in groups.items():
            field = puffed(blended([(self._placed(joint, base), blend) for _, joint, base, blend in group]), waves)
            joints = tuple(dict.fromkeys(joint for _, joint, _, _ in group))
            made.append(GarmentPiece(field, joints, CLOTH, paint, cell, owner=owner, bones=beyond(joints)))
        return made

    def _placed(self, joint: str, base: Field) -> Field:
        return self.on_arm(joint, base) if "arm" in joint or "hand" in joint else self.at(joint, base)

    def _sleeve(self, side: str, swell: float) -> list[_Covering]:
        """Return what covers an arm."""
        b, s = self.build, self.build.stature
        if self.outfit == "shirt":
            upper = cut(body.arm(b, swell, 0.007), above(-0.098 * s))
            return [(f"upper_arm_{side}", f"upper_arm_{side}", upper, 0.012 * s)]
        phase = 6.28 * self.rng.random()
        loose = 0.005
        upper = puffed(body.arm(b, swell, loose), creases(b, -0.175, 0.035, 0.0032, 0.021, phase))
        crease = creases(b, 0.0, 0.030, 0.0032, 0.021, phase)
        hem = creases(b, -0.125, 0.020, 0.0022, 0.016, phase + 2.0)
        lower = body.forearm(b, swell + 0.5 * loose, 0.0245 * s)
        lower = cut(puffed(lower, lambda p: crease(p) + hem(p)), above(-0.146 * s))
        return [
            (f"upper_arm_{side}", f"upper_arm_{side}", upper, 0.014 * s),
            (f"lower_arm_{side}", f"lower_arm_{side}", lower, 0.012 * s),
        ]

    def _trunk(self) -> list[GarmentPiece]:
        b, s = self.build, self.build.stature
        swell = {"shirt": 0.006, "jacket": 0.010, "worker": 0.003}[self.outfit]
        hem = {"shirt": -0.046, "jacket": -0.052, "worker": 0.02}[self.outfit]
        lower = cut(body.hips(b, swell + 0.004), above(hem * s))
        collar = {"shirt": 0.232, "jacket": 0.252, "worker": 0.246}[self.outfit]
        upper = cut(body.trunk(b, swell), self._neckline(collar))
        parts: list[_Covering] = [("torso", "pelvis", lower, 0.0), ("torso", "torso", upper, 0.03 * s)]
        for side in ("left", "right"):
            # Over the trousers, thighs and all.
            skirt = cut(body.thigh(b, swell + 0.010), self._over(side, hem * s))
            parts.append(("torso", f"upper_leg_{side}", skirt, 0.02 * s))
        for side in ("left", "right"):
            parts += self._sleeve(side, swell)
        depth = {"shirt": 1.5, "jacket": 1.9, "worker": 1.2}[self.outfit]  # what a vest lies over must not come through it
        made = self._garment(parts, depth, self._top_paint(), 0.036)
        if self.outfit == "jacket":
            # What is worn below shows at the neck.
            inner = cut(body.trunk(b, 0.004), above(0.17 * s), below(0.250 * s))
            around = (("torso", (0.0, 0.0, 0.25)),)
            inside = self.at("torso", inner)
            made.append(GarmentPiece(inside, ("torso",), CLOTH, even(self.inner), 0.03, 0.12 * s, 1, "torso", around))
        return made

    def _over(self, side: str, z: float) -> Field:
        """Return the plane of a hem, level in the pelvis's frame at a height [m] over its joint, in a thigh's frame."""
        motion = np.linalg.inv(self.frames["pelvis"]) @ self.frames[f"upper_leg_{side}"]
        plane = above(z)
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
        parts: list[_Covering] = [("pelvis", "pelvis", cut(body.hips(b, 0.004), below(0.045 * s)), 0.0)]
        for side in ("left", "right"):
            thigh, calf = f"upper_leg_{side}", f"lower_leg_{side}"
            knee = creases(b, -0.245, 0.045, 0.0026, 0.026, phase)
            upper = puffed(body.thigh(b, 0.003, loose), knee)
            bend = creases(b, 0.0, 0.035, 0.0026, 0.026, phase)
            hem = creases(b, -0.205, 0.035, 0.0042, 0.021, phase + 1.0)
            lower = body.shank(b, 0.003 + loose, 0.0335 * s)
            lower = cut(puffed(puffed(lower, bend), hem), above(-0.243 * s))
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
        parts = [(self.at("pelvis", cut(body.hips(b, 0.016), above(hem))), 0.0)]
        parts.append((self.at("torso", cut(body.trunk(b, 0.0125), self._neckline(0.232))), 0.03 * s))
        for side in ("left", "right"):
            leg = f"upper_leg_{side}"
            parts.append((self.at(leg, cut(body.thigh(b, 0.023), self._over(side, hem))), 0.02 * s))
        base = puffed(blended(parts), folds(self.rng, b, 1.6))
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
            return np.asarray(np.maximum(vest(points) - 0.0045, s * np.minimum(rings, straps)))

        color = _VESTS[self.number]
        joints, more = ("pelvis", "torso"), (("torso", (0.0, 0.0, 0.25)),)
        return [
            GarmentPiece(vest, joints, CLOTH, even(color), 0.026, 0.12 * s, 0, "torso", more),
            GarmentPiece(taped, joints, TAPE, even(_TAPE_COLOR), 0.022, 0.12 * s, 1, "torso", more),
        ]


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
