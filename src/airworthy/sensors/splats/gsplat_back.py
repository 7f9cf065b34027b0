"""Derivatives that torch carries back through gsplat, in the forms of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.gradients import Gradients, PoseGradients, turns

_FIELDS = {"position": "means", "rotation": "quats", "scale": "scales", "opacity": "opacities", "harmonics": "colors"}


class Found:
    """Sums over groups of cameras; the fields' tensors need derivatives until `gaussians` is called.

    Args:
        torch: The module.
        scenes: What is differentiated.
        fields: Its tensors, by scene.
        cameras: How many.
    """

    def __init__(self, torch: Any, scenes: list[Splats], fields: list[dict[str, Any]], cameras: int):
        self._torch, self._scenes, self._fields = torch, scenes, fields
        self._shift = [np.zeros(len(one), np.float32) for one in scenes]
        self._seen = [np.zeros(len(one), np.float32) for one in scenes]
        self._views = np.zeros((cameras, 4, 4))
        for tensors in fields:
            for tensor in tensors.values():
                tensor.requires_grad_(True)
                tensor.grad = None

    def add(
        self,
        some: slice,
        scene: int,
        images: dict[str, Any],
        slopes: dict[str, NDArray[np.float32]],
        matrices: Any,
        told: dict[str, Any],
    ) -> None:
        """Carry back derivatives with respect to images of cameras `some`, all of one scene."""
        roots = {name: slope for name, slope in slopes.items() if images[name].requires_grad}
        place = told.get("means2d")
        if not roots or place is None:
            return
        place.retain_grad()
        given = [self._torch.as_tensor(slope, device=images[name].device) for name, slope in roots.items()]
        self._torch.autograd.backward([images[name] for name in roots], given)
        if matrices.grad is not None:
            self._views[some] = matrices.grad.cpu().numpy()
        if place.grad is not None:
            self._shift[scene] += place.grad.norm(dim=-1).sum(dim=0).cpu().numpy()
        self._seen[scene] += (told["radii"] > 0).all(dim=-1).sum(dim=0).cpu().numpy()

    def gaussians(self) -> list[Gradients]:
        """Per scene."""
        found = []
        for splats, fields, shift, seen in zip(self._scenes, self._fields, self._shift, self._seen, strict=True):
            parts: dict[str, NDArray[np.float32]] = {}
            for name, theirs in _FIELDS.items():
                grad = fields[theirs].grad
                parts[name] = np.zeros(getattr(splats, name).shape, np.float32) if grad is None else grad.cpu().numpy()
                fields[theirs].requires_grad_(False)
                fields[theirs].grad = None
            turn, unit = parts["rotation"][:, [1, 2, 3, 0]], splats.rotation
            parts["rotation"] = turn - unit * (unit * turn).sum(axis=1, keepdims=True)
            found.append(Gradients(**parts, image_shift=shift, seen=seen))
        return found

    def poses(self, cameras: NDArray[np.void]) -> PoseGradients:
        """Of rows of `CAMERA`: a matrix [R, t] with t = -R p depends on the position p, and on R twice."""
        turn = cameras["rotation"].reshape(-1, 3, 3).astype(np.float64)
        moved, matrix = self._views[:, :3, 3], self._views[:, :3, :3]
        whole = matrix - moved[:, :, None] * cameras["position"].astype(np.float64)[:, None, :]
        return PoseGradients(-np.einsum("nji,nj->ni", turn, moved), turns(whole, turn))
