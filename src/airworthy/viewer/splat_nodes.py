"""Clouds of Gaussian splats as nodes of the viewer, standing or riding on actors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import ArrayF32
from airworthy.scenes.record import Scene, SplatPlacement
from airworthy.scenes.splats import Splats, selected, thinned
from airworthy.scenes.splats.placing import placed
from airworthy.viewer.flights import ActorPoses, node_name

__all__ = ["SPLATS_MAX", "SplatNodes", "add_splats"]

ROOT = "/splats"
SPLATS_MAX = 1_000_000
"""More are merged to this many, which a browser still sorts."""
_BAND_0 = 0.28209479177387814
"""Value of the constant spherical harmonic, 1 / (2 sqrt(pi))."""
_LARGEST, _SPREAD = 200.0, 2000.0
"""Standard deviations as sent are at most this, and 1 / 2000 of it or more in the middle of a cloud: the browser keeps
covariances in half precision, from 6e-5 to 65,504 with all its digits, so that in metres whatever is fine would blur."""
_BLOCK = 1 << 17


@dataclass(frozen=True, eq=False)
class _Part:
    """A cloud and where it stands or rides; of one under a roof, what is below it or what belongs to it."""

    name: str
    splats: Splats
    placement: SplatPlacement
    roof: bool = False


class SplatNodes:
    """The clouds of a scene; `advance` moves those that ride on actors, `switch` shows and hides.

    Args:
        api: `viser.ViserServer.scene`.
        scene: What to show.
        lowered: The scene without its roof (`scenes.viewpoints.roofless`); itself where it has none.
        limit: Most gaussians to send, over all placements together.
    """

    def __init__(self, api: Any, scene: Scene, lowered: Scene, limit: int = SPLATS_MAX):
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        self.whole = sum(len(scene.clouds[item.cloud]) for item in scene.splats)
        """Gaussians that the scene shows."""
        self.count = 0
        """Gaussians that are sent."""
        self._shown = {False: True, True: True}
        share = min(1.0, limit / max(self.whole, 1))
        merged: dict[int, Splats] = {}  # a cloud that stands in several places is merged once
        api.add_frame(ROOT, show_axes=False)
        parts = _parts(scene, lowered)
        for part in parts:
            key = id(part.splats)
            if key not in merged:
                merged[key] = thinned(part.splats, max(1, int(share * len(part.splats))))
            self.nodes[part.name] = add_splats(api, part.name, merged[key], part.placement)
            self.count += len(merged[key])
        self._roofs = {part.name for part in parts if part.roof}
        self._riding = [(part.name, part.placement) for part in parts if part.placement.attached]

    @property
    def has_roof(self) -> bool:
        """Whether some of them show a roof."""
        return bool(self._roofs)

    def switch(self, on: bool, roof: bool = False) -> None:
        """Show or hide all clouds, or those of the roof."""
        self._shown[roof] = on
        for name, handle in self.nodes.items():
            handle.visible = self._shown[False] and (self._shown[True] or name not in self._roofs)

    def advance(self, poses: ActorPoses) -> None:
        """Put what rides on actors where they are."""
        for name, item in self._riding:
            position, attitude = poses.actor(item.attached)
            self.nodes[name].position = position + frames.rotate(attitude, np.array(item.position))
            self.nodes[name].wxyz = frames.to_wxyz(frames.multiply(attitude, np.array(item.attitude)))


def _parts(scene: Scene, lowered: Scene) -> list[_Part]:
    """Return every placement, in two parts where there is a roof."""
    found: list[_Part] = []
    for number, item in enumerate(scene.splats):
        name = f"{ROOT}/{number}_{node_name(item.name or item.cloud)}"
        below = None if lowered is scene or item.attached else lowered.clouds[lowered.splats[number].cloud]
        if below is None or not len(below):
            found.append(_Part(name, scene.clouds[item.cloud], item))
            continue
        stood = placed(scene.clouds[item.cloud], item)
        above = selected(stood, stood.position[:, 2] > below.position[:, 2].max())
        found += [_Part(name, below, SplatPlacement("")), _Part(f"{name}_roof", above, SplatPlacement(""), True)]
    return [part for part in found if len(part.splats)]


def add_splats(api: Any, name: str, splats: Splats, placement: SplatPlacement) -> Any:
    """Show one cloud; the browser draws its mean colours, without what depends on the direction of view.

    Args:
        api: `viser.ViserServer.scene`.
        name: Of the node.
        splats: In their own frame.
        placement: Of that frame in the world.
    """
    unit = _unit(splats)
    return api.add_gaussian_splats(
        name,
        splats.position * np.float32(unit),
        covariances(splats, unit),
        np.clip(0.5 + _BAND_0 * splats.harmonics[:, 0], 0.0, 1.0),
        splats.opacity[:, None],
        scale=float(placement.scale) / unit,
        position=np.asarray(placement.position, float),
        wxyz=frames.to_wxyz(np.asarray(placement.attitude, float)),
    )


def _unit(splats: Splats) -> float:
    """Return what to multiply a cloud by before it is sent; the node's scale divides by it."""
    longest = splats.scale.max(axis=1) if len(splats) else np.ones(1)
    return float(_LARGEST / max(min(float(longest.max()), _SPREAD * float(np.median(longest))), 1e-9))


def covariances(splats: Splats, unit: float = 1.0) -> ArrayF32:
    """(n, 3, 3) in `unit`-ths of a metre, squared; in blocks, since double-precision matrices of a million are large."""
    made = np.empty((len(splats), 3, 3), np.float32)
    for start in range(0, len(splats), _BLOCK):
        rows = slice(start, start + _BLOCK)
        scale = np.minimum(unit * splats.scale[rows, None, :], _LARGEST)
        axes = frames.to_matrix(splats.rotation[rows].astype(np.float64)) * scale
        made[rows] = axes @ axes.transpose(0, 2, 1)
    return made
