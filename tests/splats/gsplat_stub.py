"""A rasterizer with gsplat's signature and conventions over our own renderer: a CPU's stand-in for one that needs a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer


def rasterization(
    means: Any, quats: Any, scales: Any, opacities: Any, colors: Any, viewmats: Any, Ks: Any, width: int, height: int,
    near_plane: float, eps2d: float, packed: bool, render_mode: str, rasterize_mode: str, sh_degree: int, **_: Any,
) -> Any:  # fmt: skip
    """As `gsplat.rasterization(packed=False, render_mode="RGB+ED")`."""
    import torch

    assert (packed, render_mode) == (False, "RGB+ED")
    assert colors.shape[1] == (sh_degree + 1) ** 2
    view = viewmats.detach().numpy().astype(np.float64)
    turn = view[:, :3, :3]
    lens = Ks.numpy()[:, [0, 1, 0, 1], [0, 1, 2, 2]]
    place = -np.einsum("nji,nj->ni", turn, view[:, :3, 3])
    camera = (width, height, lens, place, frames.from_matrix(turn.swapaxes(1, 2)))
    options = {"near": near_plane, "dilation": eps2d, "antialiased": rasterize_mode == "antialiased"}

    class Rasterized(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *fields: Any) -> Any:
            where, turned, scale, opacity, shades, _ = (field.detach().numpy() for field in fields)
            ctx.renderer = SplatRenderer(Splats(where, turned[:, [1, 2, 3, 0]], scale, opacity, shades))
            found = ctx.renderer.render(*camera, **options)
            depth = np.where(np.isfinite(found["depth"]), found["depth"], 0.0)
            pixels = np.concatenate([found["rgb"], depth[..., None]], axis=-1)
            return torch.tensor(pixels), torch.tensor(found["alpha"][..., None])

        @staticmethod
        def backward(ctx: Any, by_pixels: Any, by_alpha: Any) -> Any:
            pixels, cover = by_pixels.numpy(), by_alpha.numpy()[..., 0]
            given = {"rgb": pixels[..., :3], "depth": pixels[..., 3], "alpha": cover}
            (found,), poses = ctx.renderer.gradients(
                lambda images, some: {k: v[some] for k, v in given.items()}, *camera, **options
            )
            rows = (found.position, found.rotation[:, [3, 0, 1, 2]], found.scale, found.opacity, found.harmonics)
            return *(torch.tensor(part) for part in rows), torch.tensor(_of_matrices(poses, turn, place), dtype=viewmats.dtype)

    pixels, alpha = Rasterized.apply(means, quats, scales, opacities, colors, viewmats)
    return pixels, alpha, {"means2d": torch.zeros((len(view), len(means), 2)), "radii": _radii(torch, means, view)}


def _of_matrices(poses: Any, turn: Any, place: Any) -> Any:
    """Derivatives with respect to [R, t] that say of positions and turns what `poses` does."""
    found = np.zeros((len(turn), 4, 4))
    found[:, :3, 3] = -np.einsum("nij,nj->ni", turn, poses.position)
    x, y, z = 0.5 * poses.rotation.T
    part, none = np.zeros((len(turn), 3, 3)), np.zeros_like(x)
    for row, values in enumerate(((none, z, -y), (-z, none, x), (y, -x, none))):
        part[:, row] = np.stack(values, axis=1)
    found[:, :3, :3] = part @ turn + found[:, :3, 3][:, :, None] * place[:, None, :]
    return found


def _radii(torch: Any, means: Any, view: Any) -> Any:
    """Above 0 for everything ahead."""
    depth = np.einsum("cj,nj->cn", view[:, 2, :3], means.detach().numpy()) + view[:, 2, 3:]
    return torch.tensor(np.repeat((depth > 0.05)[..., None], 2, axis=-1).astype(np.int32))
