"""Splats and meshes in one view, ordered by depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.splats.views import DEPTH_MODES

Images = Mapping[str, NDArray[Any]]
_SPLAT_NAMES = ("rgb", "alpha", "depth")
_MESH_NAMES = ("rgb", "depth")


def composite(
    splat_images: Images, mesh_images: Images, background: ArrayLike = (0.0, 0.0, 0.0), depth_mode: str = "expected"
) -> dict[str, NDArray[np.float32]]:
    """One view of splats and meshes: in each pixel the splats before the mesh, or behind it.

    Each pixel has one depth of its splats. Where the mesh is nearer, it hides them all; else they lie over it by their alpha,
    and over what the mesh image shows where it meets nothing (its sky). This is exact wherever all the gaussians of a pixel lie
    on one side of the mesh. Where a mesh stands among gaussians that are half transparent the order in the pixel is decided as
    a whole by their mean depth: the colour is then off by at most the share of the light that the gaussians on the wrong
    side stop. Opaque captures have such pixels at their outlines only.

    Args:
        splat_images: `rgb` (c, H, W, 3), `alpha` and `depth` (c, H, W) of `SplatRenderer.render`.
        mesh_images: `rgb` (c, H, W, 3) as float, encoded as the splats' (sRGB: `sensors.tone` of a shaded image), and `depth`
            (c, H, W) along the optical axis [m], +inf where nothing is, of the same cameras.
        background: (3,) or (c, 3) colour over which the splats were rendered; it is taken off again.
        depth_mode: Of the result: `expected`, the mean of what is seen; or `median`, of that which is seen most.

    Returns:
        `rgb` (c, H, W, 3); `depth` (c, H, W) [m], +inf where neither is; `alpha` (c, H, W), 1 on meshes; `mesh` (c, H, W), how
        much of the mesh, or of its sky, is seen, in [0, 1]: above 0.5 the mesh's labels hold.

    Raises:
        AirworthyError: If an image is missing, shapes do not fit or colours are whole numbers.
    """
    if depth_mode not in DEPTH_MODES:
        raise unknown_name("depth mode", depth_mode, DEPTH_MODES)
    color, alpha, near = _taken("splat", splat_images, _SPLAT_NAMES)
    behind, far = _taken("mesh", mesh_images, _MESH_NAMES, alpha.shape)
    under = _background(background, len(alpha))
    hidden = far < near
    cover = np.where(hidden, np.float32(0.0), alpha)
    own = color - (1.0 - alpha)[..., None] * under
    rgb = np.where(hidden[..., None], np.float32(0.0), own) + (1.0 - cover)[..., None] * behind
    return {
        "rgb": rgb.astype(np.float32, copy=False),
        "depth": _depth(cover, near, far, depth_mode),
        "alpha": np.where(np.isfinite(far), np.float32(1.0), alpha),
        "mesh": np.subtract(np.float32(1.0), cover),
    }


def _depth(cover: NDArray[np.float32], near: NDArray[np.float32], far: NDArray[np.float32], mode: str) -> NDArray[np.float32]:
    """Depth of splats of which `cover` is seen, before what is far."""
    # A pixel whose splats are too faint for a depth has an infinite one; what is left counts whole.
    share = np.where(np.isfinite(near), cover, np.float32(0.0))
    if mode == "median":
        return np.where(share >= 0.5, near, far)
    both = (share > 0.0) & np.isfinite(far)
    mixed = np.where(both, near, np.float32(0.0)) * share + np.where(both, far, np.float32(0.0)) * (1.0 - share)
    return np.where(both, mixed, np.where(share > 0.0, near, far))


def _taken(
    kind: str, images: Images, names: tuple[str, ...], shape: tuple[int, ...] | None = None
) -> list[NDArray[np.float32]]:
    """The images of these names, float32, all of one size."""
    for name in names:
        if name not in images:
            raise AirworthyError(f"The {kind} images are {', '.join(images)}; compositing needs {', '.join(names)}.")
    shape = shape or np.shape(images["depth"])
    taken = []
    for name in names:
        image = np.asarray(images[name])
        wanted = (*shape, 3) if name == "rgb" else shape
        if len(shape) != 3 or image.shape != wanted:
            raise AirworthyError(
                f"The {kind} image {name!r} has shape {image.shape}; expected {wanted}, (cameras, H, W) first."
            )
        if image.dtype.kind != "f":
            raise AirworthyError(f"The {kind} image {name!r} is of {image.dtype}; expected floats (8-bit colours / 255).")
        taken.append(image.astype(np.float32, copy=False))
    return taken


def _background(background: ArrayLike, count: int) -> NDArray[np.float32]:
    color = np.asarray(background, np.float32)
    if color.shape not in ((3,), (count, 3)) or not np.isfinite(color).all():
        raise AirworthyError(f"`background` has shape {color.shape}; expected (3,) or ({count}, 3) finite numbers.")
    return np.broadcast_to(color, (count, 3))[:, None, None]
