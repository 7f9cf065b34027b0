"""Splats over the shaded image of a scene.

Splats hold what a picture shows, since they are trained on pictures: colours after the filmic curve, sRGB-encoded. So a pixel
is blended in that space, over what a picture would show of the surface or the sky behind, and the result is taken back to
linear radiance by the inverse of the same curves: `tone.to_8bit` of the image then shows the splats' own colours. Pixels
without splats keep their radiance, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import quiet_warp
from airworthy.geometry import RayTable
from airworthy.geometry.launching import Repeated
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.projections import Projection
from airworthy.sensors.shading_options import Cameras
from airworthy.sensors.splats.blend_kernel import PIXELS_PER_TASK, blend_kernel
from airworthy.sensors.splats.scene_images import SplatView, splats_of
from airworthy.sensors.tone import decoding_table, encoding_table, paleness_table

__all__ = ["BEHIND", "blended", "overlaid"]

Arrays = dict[str, NDArray[Any]]
BEHIND = 0.2
"""Splats up to this far behind a covered surface are seen [m]: they lie on it as well as its mesh and theirs agree."""
_OPAQUE = 1.0 - 2e-4
"""Splats that cover more hide what is behind: it would change 8 bits by a twentieth of a count."""
_FAINT = 1e-3
"""Splats that cover less have no depth."""


def overlaid(
    batch: SceneBatch,
    table: RayTable,
    cameras: Cameras,
    projection: Projection | None,
    front: Arrays,
    behind: NDArray[np.float32] | None,
    names: Sequence[str],
) -> Arrays:
    """Images of c cameras with the splats of their scenes.

    Args:
        batch: The scenes.
        table: Rays in the camera's frame.
        cameras: Poses.
        projection: Of the rays, if known.
        front: `depth` and `instance` of what colours see, (c, H, W).
        behind: Linear radiance (c, H, W, 3) of the scenes without their splats; None: no `rgb` is wanted.
        names: Further channels: `splat_depth`, `splat_alpha`.

    Returns:
        `rgb` (c, H, W, 3), linear, where `behind` is given; and those asked for.
    """
    shape = front["depth"].shape
    out: Arrays = {} if behind is None else {"rgb": behind}
    blank = {"splat_depth": np.inf, "splat_alpha": 0.0}
    out |= {name: np.full(shape, blank[name], np.float32) for name in names}
    splats = splats_of(batch.origin)
    some = splats.seen_in(batch, cameras.env)
    if not len(some):
        return out
    rows = cameras.rows[some] if cameras.columns else cameras.rows[some, 0]
    where, turned = rows["position"].astype(np.float64) + rows["rest"], rows["attitude"].astype(np.float64)
    limit = _limits(batch, cameras.env[some], front["depth"][some], front["instance"][some])
    view = SplatView(table, where, turned, cameras.env[some], limit, projection)
    channels = ["alpha", *(["rgb"] if behind is not None else []), *(["depth"] if "splat_depth" in names else [])]
    images = splats.render(batch, view, channels)
    alpha = images["alpha"]
    if behind is not None:
        out["rgb"][some] = blended(images["rgb"], alpha, behind[some])
    if "splat_alpha" in names:
        out["splat_alpha"][some] = alpha
    if "splat_depth" in names:
        out["splat_depth"][some] = np.where(alpha > _FAINT, images["depth"], np.float32(np.inf))
    return out


def blended(color: NDArray[np.float32], alpha: NDArray[np.float32], behind: NDArray[np.float32]) -> NDArray[np.float32]:
    """Linear radiance of splats (premultiplied, encoded; over black) over linear radiance, (c, H, W, 3)."""
    result = np.array(behind, np.float32, order="C")
    wp = quiet_warp()
    tables = (encoding_table(), decoding_table(), _paleness())
    arrays = [
        wp.array(np.ascontiguousarray(array, np.float32).reshape(-1), dtype=wp.float32, device="cpu", copy=False)
        for array in (color, alpha, *tables, result)
    ]
    pixels = alpha.size
    blocks = -(-pixels // PIXELS_PER_TASK)
    if blocks not in _launches:
        if len(_launches) >= _LAUNCHES_KEPT:
            _launches.clear()
        _launches[blocks] = Repeated(blend_kernel(_OPAQUE), blocks, [*arrays, pixels, len(tables[2])], "cpu")
    launch = _launches[blocks]
    for index, argument in enumerate([*arrays, pixels]):
        launch.exchange(index, argument)
    launch.launch()
    return result


@cache
def _paleness() -> NDArray[np.float32]:
    return paleness_table()[1].astype(np.float32)


_LAUNCHES_KEPT = 16
_launches: dict[int, Repeated] = {}


def _limits(batch: SceneBatch, env: NDArray[np.int32], depth: NDArray[Any], instance: NDArray[Any]) -> NDArray[np.float32]:
    """Depth beyond which splats are hidden, (c, H, W): that of what is met, and a little more where splats cover it."""
    covered = _covered(batch.origin)[batch.scene_of_env[env]]
    if not covered.any():
        return np.asarray(depth, np.float32)
    number = np.maximum(instance, 0).reshape(len(env), -1)
    on = np.take_along_axis(covered, number, axis=1).reshape(depth.shape) & (instance >= 0)
    return np.where(on, depth + BEHIND, depth).astype(np.float32)


_CACHE: WeakKeyDictionary[SceneBatch, tuple[tuple[int, int], NDArray[np.bool_]]] = WeakKeyDictionary()


def _covered(batch: SceneBatch) -> NDArray[np.bool_]:
    """Whether each instance number of each unique scene is of something covered, (scene, number)."""
    state = (len(batch.scenes), id(batch.geometry))
    kept = _CACHE.get(batch)
    if kept is None or kept[0] != state:
        first, count = batch.geometry.mover_start, batch.geometry.mover_count
        table = np.zeros((len(batch.scenes), max(first + count, 1)), bool)
        for index, scene in enumerate(batch.scenes):
            table[index, : len(scene.instances)] = [item.covered for item in scene.instances]
            parts = [part.covered for actor in scene.actors for part in actor.parts]
            table[index, first + batch.extra_count :][: len(parts)] = parts
        kept = _CACHE[batch] = (state, table)
    return kept[1]
