"""gsplat's own PyTorch reference (`gsplat.cuda._torch_impl`, Apache-2.0, version 1.5.3) as a rasterizer for a CPU.

Projection and harmonics are gsplat's; what it does per pixel (front to back, every Gaussian at every pixel, no cut but 1/255)
is written out here, since its own needs a GPU. Derivatives are torch's. `python -m tests.splats.gsplat_reference`
writes `gsplat_reference.json`, which tests read where torch is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

PATH = Path(__file__).with_suffix(".json")
SIZE = (16, 12)
LENS = (14.0, 15.0, 8.5, 5.5)
COUNT = 20
CASES = ("classic", "antialiased")
FIELDS = {"position": "means", "rotation": "quats", "scale": "scales", "opacity": "opacities", "harmonics": "colors"}


def rasterization(
    means: Any, quats: Any, scales: Any, opacities: Any, colors: Any, viewmats: Any, Ks: Any, width: int, height: int,
    near_plane: float, eps2d: float, sh_degree: int, rasterize_mode: str, **_: Any,
) -> Any:  # fmt: skip
    """As `gsplat.rasterization(packed=False, render_mode="RGB+ED")`."""
    import torch
    from gsplat.cuda import _torch_impl as theirs

    covariance, _ = theirs._quat_scale_to_covar_preci(quats, scales, compute_preci=False, triu=False)
    projected = theirs._fully_fused_projection(
        means, covariance, viewmats, Ks, width, height, eps2d, near_plane, 1e10, calc_compensations=True
    )
    radii, means2d, depths, conics, compensation = projected
    direction = means[None] - torch.inverse(viewmats)[:, None, :3, 3]
    shades = torch.clamp_min(
        theirs._spherical_harmonics(sh_degree, direction, colors[None].expand(len(viewmats), -1, -1, -1)) + 0.5, 0.0
    )
    opaque = opacities[None] * (compensation if rasterize_mode == "antialiased" else torch.ones_like(compensation))
    x, y = torch.arange(width) + 0.5, torch.arange(height) + 0.5
    pixels, covers = [], []
    for k in range(len(viewmats)):
        order = [int(i) for i in torch.argsort(depths[k], stable=True) if (radii[k, i] > 0).all()]
        dx, dy = x[None, None] - means2d[k, order, 0, None, None], y[None, :, None] - means2d[k, order, 1, None, None]
        a, b, c = conics[k, order].T[..., None, None]
        alpha = opaque[k, order, None, None] * torch.exp(-0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy)
        alpha = torch.where(alpha < 1.0 / 255.0, 0.0, torch.clamp_max(alpha, 0.999))
        left = torch.cumprod(torch.cat([torch.ones_like(alpha[:1]), 1.0 - alpha]), dim=0)
        assert bool((left.detach() > 1e-3).all())  # no pixel is finished early
        part = alpha * left[:-1]
        values = torch.cat([shades[k, order], depths[k, order, None]], dim=-1)
        found, cover = torch.einsum("nhw,nc->hwc", part, values), part.sum(dim=0)[..., None]
        pixels.append(torch.cat([found[..., :3], found[..., 3:] / cover.clamp(min=1e-10)], dim=-1))
        covers.append(cover)
    return torch.stack(pixels), torch.stack(covers), {"means2d": means2d, "radii": radii}


def given() -> dict[str, Any]:
    """Gaussians before a camera, some at the edges, numbers of few digits."""
    rng = np.random.default_rng(2024)
    turn = rng.normal(size=(COUNT, 4))
    return {
        "position": np.round(rng.uniform([-1.6, -1.2, 1.5], [1.6, 1.2, 4.0], (COUNT, 3)), 3).tolist(),
        "rotation": np.round(turn / np.linalg.norm(turn, axis=1, keepdims=True), 3).tolist(),
        "scale": np.round(np.exp(rng.normal(-1.7, 0.6, (COUNT, 3))), 3).tolist(),
        "opacity": np.round(rng.uniform(0.2, 0.9, COUNT), 3).tolist(),
        "harmonics": np.round(0.4 * rng.normal(size=(COUNT, 4, 3)), 3).tolist(),
        "camera_position": [0.1, -0.05, 0.2],
        "camera_attitude": [0.04, -0.06, 0.1, 0.992],
    }


def fields(numbers: dict[str, Any]) -> dict[str, Array]:
    """Arrays, rotations of length 1."""
    found = {name: np.array(value, np.float64) for name, value in numbers.items()}
    for name in ("rotation", "camera_attitude"):
        found[name] /= np.linalg.norm(found[name], axis=-1, keepdims=True)
    return found


def weights() -> dict[str, Array]:
    """Of a loss that is a sum over pixels."""
    count = SIZE[0] * SIZE[1]
    shape = (1, SIZE[1], SIZE[0])
    return {
        "rgb": np.cos(0.37 * np.arange(3 * count)).reshape(*shape, 3),
        "depth": 0.1 * np.sin(0.23 * np.arange(count)).reshape(shape),
        "alpha": np.cos(0.11 * np.arange(count) + 1.0).reshape(shape),
    }


def computed(numbers: dict[str, Any], mode: str) -> dict[str, Any]:
    """Images and derivatives, in float64."""
    import torch

    values, weight = fields(numbers), weights()
    x, y, z, w = values["camera_attitude"]
    view = np.eye(4)
    view[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
        [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
        [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)],
    ]
    view[:3, 3] = -view[:3, :3] @ values["camera_position"]
    lens = np.array([[LENS[0], 0.0, LENS[2]], [0.0, LENS[1], LENS[3]], [0.0, 0.0, 1.0]])
    tensors = {theirs: torch.tensor(values[name]) for name, theirs in FIELDS.items()}
    tensors["quats"] = tensors["quats"][:, [3, 0, 1, 2]]
    for tensor in tensors.values():
        tensor.requires_grad_(True)
    pixels, cover, _ = rasterization(
        **tensors, viewmats=torch.tensor(view)[None], Ks=torch.tensor(lens)[None], width=SIZE[0], height=SIZE[1],
        near_plane=0.05, eps2d=0.3, sh_degree=1, rasterize_mode=mode,
    )  # fmt: skip
    covered = cover[..., 0] >= 1.0 / 255.0
    loss = (pixels[..., :3] * torch.tensor(weight["rgb"])).sum() + (cover[..., 0] * torch.tensor(weight["alpha"])).sum()
    loss = loss + (torch.where(covered, pixels[..., 3], 0.0) * torch.tensor(weight["depth"])).sum()
    loss.backward()
    found = {"rgb": pixels[..., :3], "alpha": cover[..., 0], "depth": torch.where(covered, pixels[..., 3], -1.0)}
    arrays = {name: value.detach().numpy()[0] for name, value in found.items()}
    for name, theirs in FIELDS.items():
        slope = tensors[theirs].grad.numpy()
        arrays[f"d_{name}"] = slope[:, [1, 2, 3, 0]] if name == "rotation" else slope
    return arrays


def main() -> None:
    numbers = given()
    source = "gsplat 1.5.3, gsplat.cuda._torch_impl in float64; depth -1: nothing seen"
    results = {mode: {name: np.round(value, 7).tolist() for name, value in computed(numbers, mode).items()} for mode in CASES}
    PATH.write_text(json.dumps({"source": source, "given": numbers, **results}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
