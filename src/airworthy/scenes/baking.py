"""Baked light: sun and sky, walls and floors sending light on to each other, traced once and kept.

The indirect light of a point is the mean of what comes from directions over its hemisphere; what a direction brings is asked
of a `Tracer` (`airworthy.sensors.light_baking` gives the renderer itself). Each pass lights surfaces with what the last one
found, so that n passes follow light over n bounces. Directions are the same for all nodes of a kind: results depend on nothing
but the scene and the settings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import GeometryBatch, bounds
from airworthy.scenes._bake_nodes import Surface, Tracer, Volume, joined
from airworthy.scenes.lightmaps import BakedLight, map_layout
from airworthy.scenes.occlusion import scene_occlusion
from airworthy.scenes.record import Scene

__all__ = ["DEFAULT_BAKE", "BakeSettings", "Tracer", "solve"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BakeSettings:
    """How finely light is baked.

    Raises:
        AirworthyError: If a number is out of range.
    """

    bounces: int = 3
    """Times that light is followed from surface to surface."""
    rays: int = 256
    """Directions per node and bounce."""
    probe_spacing: float = 1.0
    """[m]; wider where the scene would need more than `probes_max`."""
    probes_max: int = 12_000
    texel: float = 0.25
    """Distance of the nodes on boxes [m]."""
    nodes_max: int = 150_000
    """The texel is widened until no more nodes are needed."""
    occlusion_rays: int = 128
    """Per vertex of unique meshes; 0: none."""
    occlusion_distance: float = 2.0
    """Beyond it a mesh does not shade itself, since the volume knows more [m]."""
    vertices_max: int = 400_000
    """Meshes with more vertices are left open."""

    def __post_init__(self) -> None:
        whole = (self.bounces, self.rays, self.probes_max, self.nodes_max)
        lengths = (self.probe_spacing, self.texel, self.occlusion_distance)
        if min(whole) < 1 or min(lengths) <= 0.0 or min(self.occlusion_rays, self.vertices_max) < 0:
            raise AirworthyError(f"Light cannot be baked with {self}; expected counts of at least 1 and lengths above 0.")


DEFAULT_BAKE = BakeSettings()


def solve(scene: Scene, geometry: GeometryBatch, tracer: Tracer, settings: BakeSettings, quiet: bool = True) -> BakedLight:
    """Bake the light of a scene.

    Args:
        scene: Whose lights and bounds; its actors are not there.
        geometry: With the scene's static instances as layout 0.
        tracer: What directions bring.
        settings: How finely.
        quiet: Show no progress.
    """
    placement = geometry.layout(0)
    texel = settings.texel
    layout = map_layout(geometry.shapes, placement, texel)
    while len(layout.position) > settings.nodes_max:
        texel *= max(1.1, float(np.sqrt(len(layout.position) / settings.nodes_max)))
        layout = map_layout(geometry.shapes, placement, texel)
    lower, spacing, counts = probe_grid(scene, geometry, settings)
    volume = Volume(geometry, scene, lower, spacing, counts)
    surface = Surface(geometry, scene, layout)
    occlusion: dict[str, NDArray[np.float32]] = {}
    if settings.occlusion_rays:
        occlusion = scene_occlusion(scene, settings.occlusion_rays, settings.occlusion_distance, settings.vertices_max)
    baked = joined(volume, surface, occlusion)
    for bounce in range(settings.bounces):
        tracer.use(baked)
        text = f"Baking light, bounce {bounce + 1} of {settings.bounces}"
        volume.gather(tracer, settings.rays, text, quiet)
        surface.gather(tracer, settings.rays, text, quiet)
        baked = joined(volume, surface, occlusion)
    return baked


def probe_grid(scene: Scene, geometry: GeometryBatch, settings: BakeSettings) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Lower corner, spacing and counts of the probes: over the scene's bounds where something stands, and a little more."""
    corners = _extent(geometry)
    lower, upper = np.array(scene.bounds.lower, float), np.array(scene.bounds.upper, float)
    if corners is not None:
        lower, upper = np.maximum(lower, corners[0] - 1.0), np.minimum(upper, corners[1] + 1.0)
    upper = np.maximum(upper, lower + 0.5)
    spacing = settings.probe_spacing
    while True:
        counts = np.maximum(np.ceil((upper - lower) / spacing).astype(int) + 1, 2)
        if counts.prod() <= max(settings.probes_max, 8):
            break
        spacing *= 1.1
    return lower, (upper - lower) / (counts - 1), counts.astype(np.int32)


def _extent(geometry: GeometryBatch) -> tuple[Floats, Floats] | None:
    placement = geometry.layout(0)
    if not len(placement):
        return None
    reach = np.array([max(np.linalg.norm(c) for c in bounds(shape)) for shape in geometry.shapes])
    radius = (reach[placement.shape] * placement.scale)[:, None]
    return (placement.position - radius).min(0), (placement.position + radius).max(0)
