"""How surfaces scatter light in still images, in float64: the twin of `native/scattering.h`, and the table that both need.

Lambert under a GGX gloss, metallic-roughness as glTF 2.0 has it. What a single bounce between facets loses is made up for by
scaling the gloss (Turquin, "Practical multiple scattering compensation for microfacet models", 2019), and the diffuse part gets
what the gloss leaves: a white surface sends back all that arrives. For lamps this is what `shading` computes up to a few per
cent: there the diffuse part gets 1 - F of the half vector, and nothing makes up for the bounces between facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.optics.tone import luminance
from airworthy.scenes.appearance import basis

__all__ = ["ALBEDO_STEPS", "COAT", "Lobes", "albedo_table", "gloss_albedo", "turned"]

ALBEDO_STEPS = 32
"""Entries of the table along the root of the cosine to the eye, and along the roughness."""
COAT = 0.04
"""Mirror reflectance of dielectrics at normal incidence: glTF's."""
WIDTH_MIN = 1e-5
"""Least square of GGX's width: as in `native/light.h`."""
_STRATA = 48
"""Samples of an entry of the table along each of two dimensions."""


def turned(u: Array) -> tuple[Array, Array]:
    """Return cosine and sine of 2 pi u - pi / 4: the angle that the kernel has its series for."""
    angle = 2.0 * np.pi * np.asarray(u) - 0.25 * np.pi
    return np.cos(angle), np.sin(angle)


def facets(towards: Array, width: Array, u1: Array, u2: Array) -> Array:
    """Return visible facets' normals (n, 3) in the surface's frame (Dupuy and Benyoub, "Sampling visible GGX normals with
    spherical caps", 2023).

    Args:
        towards: Unit vectors to the eye, (n, 3), the surface's normal being z.
        width: GGX's, (n,).
        u1: In (0, 1), (n,).
        u2: In (0, 1), (n,).
    """
    stretched = towards * np.stack([width, width, np.ones_like(width)], -1)
    stretched = stretched / np.linalg.norm(stretched, axis=-1, keepdims=True)
    cosine, sine = turned(u1)
    z = (1.0 - u2) * (1.0 + stretched[:, 2]) - stretched[:, 2]
    ring = np.sqrt(np.clip(1.0 - z * z, 0.0, 1.0))
    cap = np.stack([ring * cosine, ring * sine, z], -1) + stretched
    facet = np.stack([width * cap[:, 0], width * cap[:, 1], np.maximum(cap[:, 2], 1e-7)], -1)
    return np.asarray(facet / np.linalg.norm(facet, axis=-1, keepdims=True))


def _masking(width2: Array, cosine: Array) -> Array:
    """Root of Smith's term of GGX for a direction."""
    return np.sqrt(width2 + (1.0 - width2) * cosine * cosine)


@cache
def albedo_table() -> ArrayF32:
    """Return the directional albedo of the gloss, (roughness, root of the cosine, 2): what of it is multiplied by the mirror
    reflectance, and what comes of Schlick's term alone; made once, by stratified samples of visible facets.
    """
    step = np.linspace(0.0, 1.0, ALBEDO_STEPS)
    u1, u2 = ((np.arange(_STRATA) + 0.5) / _STRATA for _ in range(2))
    one, two = (grid.ravel() for grid in np.meshgrid(u1, u2))
    table = np.zeros((ALBEDO_STEPS, ALBEDO_STEPS, 2))
    for row, roughness in enumerate(step):
        width = np.sqrt(max(roughness**4, WIDTH_MIN))
        for column, root in enumerate(step):
            nv = max(root * root, 1e-4)
            towards = np.broadcast_to([np.sqrt(1.0 - nv * nv), 0.0, nv], (len(one), 3))
            facet = facets(towards, np.full(len(one), width), one, two)
            vh = np.sum(towards * facet, -1)
            nl = 2.0 * vh * facet[:, 2] - nv
            # The weight of such a sample is G2 / G1, both of Smith's, correlated in height.
            own, far = _masking(np.array(width**2), np.array(nv)), _masking(np.array(width**2), np.maximum(nl, 0.0))
            seen = nl * (nv + own) / np.maximum(nl * own + nv * far, 1e-300)
            weight = np.where(nl > 0.0, seen, 0.0)
            schlick = np.power(np.clip(1.0 - vh, 0.0, 1.0), 5)
            table[row, column] = np.mean(weight * (1.0 - schlick)), np.mean(weight * schlick)
    return table.astype(np.float32)


def gloss_albedo(nv: Array, roughness: Array) -> tuple[Array, Array]:
    """Return the two parts of `albedo_table`, (n,) each, between its entries.

    Args:
        nv: Cosine to the eye, (n,).
        roughness: Root of GGX's width, (n,).
    """
    table, last = albedo_table().astype(np.float64), ALBEDO_STEPS - 1
    x, y = np.clip(np.sqrt(nv), 0.0, 1.0) * last, np.clip(roughness, 0.0, 1.0) * last
    i, j = np.minimum(x.astype(int), last - 1), np.minimum(y.astype(int), last - 1)
    tx, ty = (x - i)[:, None], (y - j)[:, None]
    low, high = (table[k, i] * (1.0 - tx) + table[k, i + 1] * tx for k in (j, j + 1))
    found = low * (1.0 - ty) + high * ty
    return found[:, 0], found[:, 1]


def _share_of(passed: Array, diffuse: Array) -> Array:
    """Return the share of diffuse samples that pass, (n,), by albedos (n, 3)."""
    through = luminance(passed)
    return np.asarray(through / np.maximum(through + luminance(diffuse), 1e-6))


@dataclass(frozen=True, eq=False)
class Lobes:
    """What n surface points do with light."""

    normal: Array
    """(n, 3) unit, for shading."""
    geometric: Array
    """(n, 3) unit, of the shape: nothing passes below it."""
    towards: Array
    """(n, 3) unit, to the eye."""
    diffuse: Array
    """(n, 3) albedo of Lambert's part."""
    f0: Array
    """(n, 3) mirror reflectance at normal incidence."""
    gain: Array
    """(n, 3) on the gloss."""
    width2: Array
    """(n,) square of GGX's width."""
    glossy: Array
    """(n,) share of samples that the gloss gets."""
    passed: Array
    """(n, 3) albedo of what passes to the other side; 0 but for leaves."""
    through: Array
    """(n,) share of diffuse samples that pass."""

    @classmethod
    def of(
        cls,
        normal: Array,
        geometric: Array,
        towards: Array,
        albedo: Array,
        metallic: Array,
        roughness: Array,
        specular: bool = True,
        coat: bool = True,
        thin: Array | None = None,
        tint: Array | None = None,
    ) -> Lobes:
        """Return the lobes of points of given materials.

        Args:
            normal: (n, 3) unit.
            geometric: (n, 3) unit.
            towards: (n, 3) unit.
            albedo: (n, 3).
            metallic: (n,).
            roughness: (n,).
            specular: Gloss; False: Lambert alone, of metals too.
            coat: Whether dielectrics have gloss.
            thin: Share of the diffuse part that passes to the other side, (n,); None: nothing.
            tint: Of what passes, (n, 3); None: white.
        """
        share = np.zeros(len(albedo)) if thin is None else np.asarray(thin, float)
        passed = np.minimum(albedo * (1.0 if tint is None else tint), 1.0) * share[:, None]
        back = 1.0 - share[:, None]
        a = np.asarray(roughness, float) ** 2
        width2 = np.maximum(a * a, WIDTH_MIN)
        nv = np.maximum(np.sum(normal * towards, -1), 1e-3)
        zero = np.zeros_like(albedo)
        if not specular:
            diffuse = np.asarray(albedo * back)
            through = _share_of(passed, diffuse)
            return cls(normal, geometric, towards, diffuse, zero, zero, width2, zero[:, 0], passed, through)
        metal = np.asarray(metallic, float)[:, None]
        low = COAT if coat else 0.0
        f0 = low + (albedo - low) * metal
        scale, bias = (part[:, None] for part in gloss_albedo(nv, width2**0.25))
        gain = 1.0 + f0 * (1.0 / np.maximum(scale + bias, 0.05) - 1.0)
        gain = gain if coat else gain * metal
        gloss = np.clip((f0 * scale + bias) * gain, 0.0, 1.0)
        passed = passed * (1.0 - metal)
        through = _share_of(passed, albedo * (1.0 - metal) * back)
        diffuse, passed = albedo * (1.0 - metal) * back * (1.0 - gloss), passed * (1.0 - gloss)
        of_gloss, of_diffuse = luminance(gloss), luminance(diffuse) + luminance(passed)
        share = np.clip(of_gloss / np.maximum(of_gloss + of_diffuse, 1e-6), 0.1, 0.9)
        glossy = np.where(of_gloss > 0.0, np.where(of_diffuse > 0.0, share, 1.0), 0.0)
        return cls(normal, geometric, towards, diffuse, f0, gain, width2, glossy, passed, through)

    def with_diffuse(self, chosen: ArrayBool, albedo: Array) -> Lobes:
        """Return lobes of which the `chosen` (n,) are Lambert's alone, of an albedo (n, 3)."""
        one = chosen[:, None]
        part = np.where(one, albedo, self.diffuse), np.where(one, 0.0, self.f0), np.where(one, 0.0, self.gain)
        glossy = np.where(chosen, 0.0, self.glossy)
        rest = np.where(one, 0.0, self.passed), np.where(chosen, 0.0, self.through)
        return Lobes(self.normal, self.geometric, self.towards, *part, self.width2, glossy, *rest)

    @property
    def leaf(self) -> ArrayBool:
        """Which points, (n,), let light through."""
        return np.asarray(self.through > 0.0)

    def beneath(self, light: Array) -> ArrayBool:
        """Return for which points, (n,), a ray in a direction (n, 3) begins on the other side."""
        return self.leaf & (np.sum(self.geometric * light, -1) < 0.0)

    def sent(self, light: Array) -> tuple[Array, Array]:
        """Return what is sent to the eye per irradiance, times the cosine to the light, (n, 3), and how densely `sample` takes
        that direction, (n,) [1/sr].

        Args:
            light: Unit directions to the light, (n, 3).
        """
        nl = np.sum(self.normal * light, -1)
        above = (nl > 0.0) & (np.sum(self.geometric * light, -1) > 0.0)
        half = self.towards + light
        half = half / np.sqrt(np.maximum(np.sum(half * half, -1, keepdims=True), 1e-20))
        nh, vh = np.sum(self.normal * half, -1), np.clip(np.sum(self.towards * half, -1), 0.0, 1.0)
        off = np.cross(self.normal, half)
        distribution = self.width2 / np.pi / np.maximum((np.sum(off * off, -1) + self.width2 * nh * nh) ** 2, 1e-18)
        cosine, nv = np.maximum(nl, 1e-6), np.maximum(np.sum(self.normal * self.towards, -1), 1e-3)
        own, far = _masking(self.width2, nv), _masking(self.width2, cosine)
        smith = 0.5 / (cosine * own + nv * far)
        fresnel = self.f0 + (1.0 - self.f0) * ((1.0 - vh) ** 5)[:, None]
        value = self.diffuse / np.pi + fresnel * self.gain * (distribution * smith)[:, None]
        by_gloss, by_diffuse = distribution * 0.5 / (nv + own), cosine / np.pi
        density = np.where(above, by_diffuse + (by_gloss - by_diffuse) * self.glossy, 0.0)
        value = np.where(above[:, None], value * cosine[:, None], 0.0)
        # Leaves: from behind, or between the two normals, where there is no gloss; facets may be sampled there all the same.
        front, leaf = np.sum(self.geometric * light, -1) > 0.0, self.leaf
        even, part = np.abs(nl) / np.pi, np.where(front, 1.0 - self.through, self.through)
        mixed = even * part + (np.where(nv + nl > 0.0, by_gloss, 0.0) - even * part) * self.glossy
        scattered = np.where(front[:, None], self.diffuse, self.passed) * even[:, None]
        return np.where((leaf & ~above)[:, None], scattered, value), np.where(leaf, mixed, density)

    def sample(self, choice: Array, u1: Array, u2: Array) -> Array:
        """Return directions (n, 3) from which light may have come.

        Args:
            choice: Of the lobe, in (0, 1), (n,).
            u1: In (0, 1), (n,).
            u2: In (0, 1), (n,).
        """
        side, other = basis(self.normal)
        cosine, sine = turned(u1)
        reach, up = np.sqrt(u2), np.sqrt(1.0 - u2)
        by_cosine = side * (reach * cosine)[:, None] + other * (reach * sine)[:, None] + self.normal * up[:, None]
        rest = (choice - self.glossy) / np.maximum(1.0 - self.glossy, 1e-30)
        turned_over = self.leaf & ((rest < self.through) != (np.sum(self.geometric * by_cosine, -1) < 0.0))
        by_cosine = np.where(turned_over[:, None], -by_cosine, by_cosine)
        nv = np.maximum(np.sum(self.normal * self.towards, -1), 1e-3)
        local = np.stack([np.sum(side * self.towards, -1), np.sum(other * self.towards, -1), nv], -1)
        facet = facets(local, np.sqrt(self.width2), u1, u2)
        m = side * facet[:, :1] + other * facet[:, 1:2] + self.normal * facet[:, 2:]
        mirrored = m * 2.0 * np.sum(self.towards * m, -1, keepdims=True) - self.towards
        chosen: ArrayBool = choice < self.glossy
        found = np.where(chosen[:, None], mirrored, by_cosine)
        return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True))
