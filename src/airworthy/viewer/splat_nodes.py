"""A scene's clouds of Gaussian splats as nodes of the viewer: standing, riding on actors, cropped, coloured for an eye."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayLike
from airworthy.scenes.carved import BACKGROUND
from airworthy.scenes.record import Scene, SplatPlacement
from airworthy.scenes.splats import Splats, selected, thinned
from airworthy.scenes.splats.placing import placed
from airworthy.scenes.splats.record import basis
from airworthy.viewer.flights import ActorPoses, node_name

__all__ = ["SPLATS_MAX", "SplatNodes", "ViewColors", "add_splats", "colors_from"]

ROOT = "/splats"
ROOF, BEYOND = "roof", "beyond"
"""Parts of clouds that are hidden by themselves: of a roof, and what lies beyond the known space of a captured place."""
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
    kind: str = ""
    """ROOF, BEYOND, or neither."""


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
        self._shown = {"": True, ROOF: True, BEYOND: True}
        self._sent: dict[str, _Sent] = {}
        self._lock = threading.Lock()
        share = min(1.0, limit / max(self.whole, 1))
        merged: dict[int, Splats] = {}  # a cloud that stands in several places is merged once
        api.add_frame(ROOT, show_axes=False)
        parts = _parts(scene, lowered)
        for part in parts:
            key = id(part.splats)
            if key not in merged:
                merged[key] = thinned(part.splats, max(1, int(share * len(part.splats))))
            self.nodes[part.name] = add_splats(api, part.name, merged[key], part.placement)
            self._sent[part.name] = _Sent(merged[key], float(part.placement.scale), not part.placement.attached)
            self.count += len(merged[key])
        self._kinds = {part.name: part.kind for part in parts}
        self._riding = [(part.name, part.placement) for part in parts if part.placement.attached]

    @property
    def kinds(self) -> frozenset[str]:
        """Which parts there are that can be hidden by themselves: ROOF, BEYOND."""
        return frozenset(self._kinds.values()) - {""}

    def switch(self, on: bool, kind: str = "") -> None:
        """Show or hide all clouds, or those of a kind."""
        self._shown[kind] = on
        for name, handle in self.nodes.items():
            handle.visible = self._shown[""] and self._shown[self._kinds[name]]

    @property
    def degree(self) -> int:
        """The highest of their harmonics; above 0, colours depend on where one looks from."""
        return max((sent.splats.degree for sent in self._sent.values()), default=0)

    def color(self, eye: ArrayLike) -> None:
        """Give gaussians the colours that they have from a place, world [m], (3,)."""
        with self._lock:
            for name, sent in self._sent.items():
                if sent.splats.degree:
                    local = self._local(name, sent, np.asarray(eye, np.float64))
                    self.nodes[name].rgbs = colors_from(selected(sent.splats, sent.kept) if sent.cut else sent.splats, local)

    def crop(self, box: tuple[ArrayLike, ArrayLike] | None) -> int:
        """Show only gaussians whose centre is in a box, world [m]; what rides on actors stays. None: all.

        Returns:
            How many are shown.
        """
        with self._lock:
            for name, sent in self._sent.items():
                if sent.stands:
                    inside = _inside(self._world(name, sent), box)
                    if not (inside == sent.kept).all():
                        sent.kept = inside
                        self._send(name, sent)
            return sum(int(sent.kept.sum()) for sent in self._sent.values())

    def replace(self, splats: Splats, limit: int = SPLATS_MAX) -> None:
        """Show another cloud in the place of the one that there is: a training that went on.

        Args:
            splats: In the world.
            limit: Most gaussians to send.
        """
        (name,) = self._sent  # a training has one cloud
        few = thinned(splats, min(len(splats), limit))
        with self._lock:
            sent = self._sent[name] = _Sent(few, 1.0, True)
            self.nodes[name].scale = 1.0 / _unit(few)
            self._send(name, sent)
            self.whole, self.count = len(splats), len(few)

    def advance(self, poses: ActorPoses) -> None:
        """Put what rides on actors where they are."""
        for name, item in self._riding:
            position, attitude = poses.actor(item.attached)
            self.nodes[name].position = position + frames.rotate(attitude, np.array(item.position))
            self.nodes[name].wxyz = frames.to_wxyz(frames.multiply(attitude, np.array(item.attitude)))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _send(self, name: str, sent: _Sent) -> None:
        """Send the gaussians that are kept, in mean colours; one that is nothing to see where none is kept."""
        kept = selected(sent.splats, sent.kept) if sent.kept.any() else selected(sent.splats, np.arange(len(sent.splats)) < 1)
        unit, cover = _unit(sent.splats), kept.opacity[:, None] * float(sent.kept.any())
        self.nodes[name].set_gaussians(kept.position * np.float32(unit), covariances(kept, unit), _mean_colors(kept), cover)

    def _world(self, name: str, sent: _Sent) -> Array:
        handle = self.nodes[name]
        turn = frames.from_wxyz(np.asarray(handle.wxyz, np.float64))
        return sent.scale * frames.rotate(turn, sent.splats.position.astype(np.float64)) + np.asarray(handle.position)

    def _local(self, name: str, sent: _Sent, eye: Array) -> Array:
        handle = self.nodes[name]
        turn = frames.from_wxyz(np.asarray(handle.wxyz, np.float64))
        return np.asarray(frames.rotate_inverse(turn, eye - np.asarray(handle.position, np.float64))) / sent.scale


@dataclass(eq=False)
class _Sent:
    """A cloud as it was sent."""

    splats: Splats
    scale: float
    stands: bool
    kept: ArrayBool = field(init=False)
    """(n,) those that are shown."""

    def __post_init__(self) -> None:
        self.kept = np.ones(len(self.splats), bool)

    @property
    def cut(self) -> bool:
        """Whether some are not shown."""
        return not bool(self.kept.all())


def _inside(points: Array, box: tuple[ArrayLike, ArrayLike] | None) -> ArrayBool:
    if box is None:
        return np.ones(len(points), bool)
    low, high = np.asarray(box[0], float), np.asarray(box[1], float)
    return np.asarray(((points >= low) & (points <= high)).all(axis=1))


def colors_from(splats: Splats, eye: Array) -> ArrayF32:
    """Return the colours (n, 3) in [0, 1], sRGB, that gaussians have from a place in their own frame, (3,).

    Args:
        splats: With harmonics of any degree.
        eye: Where one looks from, in the frame and unit of the cloud.
    """
    made = np.empty((len(splats), 3), np.float32)
    for start in range(0, len(splats), _BLOCK):
        rows = slice(start, start + _BLOCK)
        away = splats.position[rows] - eye.astype(np.float32)
        away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-9)
        at = basis(away, splats.degree).astype(np.float32)
        made[rows] = np.einsum("nk,nkc->nc", at, splats.harmonics[rows].astype(np.float32), optimize=True)
    return np.clip(made + 0.5, 0.0, 1.0)


REST = 0.35
"""A camera that was not moved for this long is at rest [s]."""
NOTICED = 0.01
"""Colours are renewed where the eye moved by this share of what is shown: by less, nobody sees a difference."""


class ViewColors:
    """Colours splats for the browser whose camera came to rest last: the browser itself draws them without harmonics.

    Args:
        server: `viser.ViserServer`.
        color: Gives all gaussians the colours from a place, `SplatNodes.color`.
        size: Of what is shown [m].
    """

    def __init__(self, server: Any, color: Callable[[ArrayLike], None], size: float):
        self._color, self._step = color, NOTICED * size
        self.on = True
        self._changed = threading.Condition()
        self._eye: Array | None = None
        self._colored: Array | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="viewer colours", daemon=True)
        self._thread.start()
        server.on_client_connect(self._watch)

    def look(self, eye: ArrayLike) -> None:
        """Note where a camera is now, world [m], (3,)."""
        with self._changed:
            self._eye = np.array(eye, np.float64)
            self._changed.notify_all()

    def renew(self) -> None:
        """Give colours again, since gaussians were sent without."""
        with self._changed:
            self._colored = None
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(5.0)

    def _watch(self, client: Any) -> None:
        client.camera.on_update(lambda camera: self.look(camera.position))

    def _wanted(self) -> bool:
        if self._eye is None or not self.on:
            return False
        return self._colored is None or float(np.linalg.norm(self._eye - self._colored)) > self._step

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._wanted())
                # As long as it is moved, wait on.
                while not self._ended and self._changed.wait(REST):
                    pass
                if self._ended:
                    return
                eye = self._colored = self._eye
            assert eye is not None  # it was waited for
            self._color(eye)


def _mean_colors(splats: Splats) -> ArrayF32:
    return np.asarray(np.clip(0.5 + _BAND_0 * splats.harmonics[:, 0], 0.0, 1.0), np.float32)


def _parts(scene: Scene, lowered: Scene) -> list[_Part]:
    """Return every placement, in two parts where there is a roof."""
    found: list[_Part] = []
    for number, item in enumerate(scene.splats):
        name = f"{ROOT}/{number}_{node_name(item.name or item.cloud)}"
        below = None if lowered is scene or item.attached else lowered.clouds[lowered.splats[number].cloud]
        if below is None or not len(below):
            found.append(_Part(name, scene.clouds[item.cloud], item, BEYOND if _is_beyond(scene, item) else ""))
            continue
        stood = placed(scene.clouds[item.cloud], item)
        above = selected(stood, stood.position[:, 2] > below.position[:, 2].max())
        found += [_Part(name, below, SplatPlacement("")), _Part(f"{name}_roof", above, SplatPlacement(""), ROOF)]
    return [part for part in found if len(part.splats)]


def _is_beyond(scene: Scene, item: SplatPlacement) -> bool:
    return scene.carved is not None and item.cloud == BACKGROUND


def without_beyond(scene: Scene) -> Scene:
    """Return a captured place without the gaussians that lie beyond its known space; any other scene as it is."""
    return replace(scene, splats=tuple(item for item in scene.splats if not _is_beyond(scene, item)))


def add_splats(api: Any, name: str, splats: Splats, placement: SplatPlacement) -> Any:
    """Show one cloud in its mean colours, without what depends on the direction of view (`ViewColors`).

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
        _mean_colors(splats),
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
    """Return (n, 3, 3) in `unit`-ths of a metre, squared; in blocks, since double-precision matrices of a million are large."""
    made = np.empty((len(splats), 3, 3), np.float32)
    for start in range(0, len(splats), _BLOCK):
        rows = slice(start, start + _BLOCK)
        scale = np.minimum(unit * splats.scale[rows, None, :], _LARGEST)
        axes = frames.to_matrix(splats.rotation[rows].astype(np.float64)) * scale
        made[rows] = axes @ axes.transpose(0, 2, 1)
    return made
