"""Training through gsplat (Apache-2.0, https://docs.gsplat.studio) on a CUDA device: its rasterizer and torch's derivatives,
our step.

The step is that of `twin.step`, in torch: Gaussians that were in an image move by Adam, each by its own count. What differs
from our
own engine: gsplat's limits (see `gsplat_backend`), derivatives added in the order in which threads arrive, and random motion
drawn by torch; so a training is not the same bytes twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.splats.cameras import CameraView
from airworthy.splats.gsplat_backend import GsplatRenderer
from airworthy.splats.lanes import Arrays
from airworthy.splats.training.fields import (
    FIRST,
    LOGIT,
    NEEDLE,
    NOISE_MIDDLE,
    NOISE_STEEPNESS,
    RENDERED,
    SCALE,
    SECOND,
    SETTINGS,
    SHIFT,
    TURN,
    GaussianFields,
    Packed,
    pack,
)

__all__ = ["GsplatEngine"]

_COLUMNS = {"log_scale": slice(SCALE, SCALE + 3), "turn": slice(TURN, TURN + 4), "logit": slice(LOGIT, LOGIT + 1)}
"""Of `raw`: what is moved."""


class PoseSlopes:
    """Derivatives with respect to the cameras of the last step."""

    def __init__(self) -> None:
        self.poses: list[Array] = []
        """One array: position (3) and rotation matrix (9) of each camera, (c, 12)."""


class GsplatEngine:
    """An `Engine` whose cloud lies in torch tensors, one Gaussian per row in the order of its places.

    Args:
        packed: The cloud and its moments.
        device: A CUDA device of torch.

    Raises:
        AirworthyError: If gsplat, torch or the device is not there.
    """

    def __init__(self, packed: Packed, device: str):
        self._renderer = GsplatRenderer(packed.fields().splats(), device)
        self._torch, self._device = self._renderer._torch, device
        self.slopes = PoseSlopes()
        self.take(packed)

    def take(self, packed: Packed) -> None:
        """Work on this cloud from now on."""
        self._packed, found = packed, packed.fields()
        names = ("position", "raw", "harmonics", "moments", "shade_moments")
        self._held = {name: self._sent(getattr(found, name)) for name in names}
        self._shown: dict[str, Any] = {}
        self._seen: Any = None

    def _sent(self, array: ArrayAny) -> Any:
        # A copy: on a CPU torch would share the memory of arrays that others still read.
        return self._torch.tensor(np.ascontiguousarray(array, np.float32), device=self._device)

    def render(self, asked: CameraView, images: Arrays) -> None:
        """Fill images, one per channel, and keep what derivatives need.

        Raises:
            AirworthyError: Normals of Gaussians are asked for.
        """
        if "normal" in images:
            raise AirworthyError(
                "gsplat renders no normals of Gaussians; train with backend='own', or without the loss of normals."
            )
        self._leaves = self._open()
        self._matrices = self._renderer._view_matrices(asked, slice(0, asked.count)).requires_grad_(True)
        self._meta: dict[str, Any] = {}
        fields = self._fields(self._leaves)
        self._shown = self._renderer._images(asked, slice(0, asked.count), fields, self._matrices, self._meta)
        for name, image in images.items():
            image[...] = self._shown[name].detach().cpu().numpy()

    def _open(self) -> dict[str, Any]:
        """Tensors with respect to which a step differentiates."""
        raw = self._held["raw"]
        parts = {name: raw[:, columns] for name, columns in _COLUMNS.items()}
        parts |= {"position": self._held["position"], "harmonics": self._held["harmonics"]}
        return {name: part.detach().clone().requires_grad_(True) for name, part in parts.items()}

    def _fields(self, leaves: dict[str, Any]) -> dict[str, Any]:
        """Return what gsplat takes; its quaternions are w, x, y, z."""
        return {
            "means": leaves["position"],
            "quats": leaves["turn"][:, [3, 0, 1, 2]],
            "scales": self._torch.exp(leaves["log_scale"]),
            "opacities": self._torch.sigmoid(leaves["logit"][:, 0]),
            "colors": leaves["harmonics"],
        }

    def differentiate(self, asked: CameraView, images: Arrays, slopes: Arrays) -> None:
        """Carry slopes of the images back to the Gaussians and the cameras.

        Args:
            asked: What was rendered.
            images: By channel.
            slopes: Derivatives of the loss with respect to some of them, alike.
        """
        projected = self._meta.get("means2d")
        if projected is not None and projected.requires_grad:
            projected.retain_grad()
        given = [self._torch.as_tensor(np.ascontiguousarray(s, np.float32), device=self._device) for s in slopes.values()]
        self._torch.autograd.backward([self._shown[name] for name in slopes], given)
        self.slopes.poses[:] = [self._poses(asked)]
        n = len(self._held["raw"])
        self._times = self._torch.zeros(n, device=self._device)
        self._shift = self._torch.zeros(n, device=self._device)
        if "radii" in self._meta:
            self._times = (self._meta["radii"] > 0).all(dim=-1).sum(dim=0).to(self._times.dtype)
        if projected is not None and projected.grad is not None:
            self._shift = projected.grad.norm(dim=-1).sum(dim=0)

    def _poses(self, asked: CameraView) -> Array:
        """Return derivatives (c, 12): a matrix [R, t] with t = -R p depends on the position p, and on R twice."""
        rows = asked.cameras[: asked.count]
        found = np.zeros((asked.count, 12))
        if self._matrices.grad is None:
            return found
        turn, grad = rows["rotation"].reshape(-1, 3, 3).astype(np.float64), self._matrices.grad.cpu().numpy().astype(np.float64)
        matrix, moved = grad[:, :3, :3], grad[:, :3, 3]
        found[:, :3] = -np.einsum("nji,nj->ni", turn, moved)
        found[:, 3:] = (matrix - moved[:, :, None] * rows["position"].astype(np.float64)[:, None, :]).reshape(-1, 9)
        return found

    def move(self, settings: ArrayF32, draw: NDArray[np.int32]) -> None:
        """Take one step; what was in no image stays as it is."""
        torch, named = self._torch, dict(zip(SETTINGS, settings.tolist(), strict=True))
        with torch.no_grad():
            seen = (self._times > 0)[:, None]
            raw = self._held["raw"]
            new = raw.clone()
            new[:, FIRST] *= named["first_decay"]
            new[:, SECOND] *= named["second_decay"]
            new[:, SHIFT] += self._shift
            new[:, RENDERED] += self._times
            slope = torch.cat([self._slope("position"), *self._shape_slopes(named)], dim=1)
            moments, move = self._adam(self._held["moments"], slope, new, named)
            flat = self._slope("harmonics").reshape(len(raw), -1)
            shades, shade_move = self._adam(self._held["shade_moments"].reshape(len(raw), -1), flat, new, named)
            self._moved(new, move, named)
            rate = torch.full((flat.shape[1],), named["rest_rate"], device=self._device)
            rate[:3] = named["color_rate"]
            position = self._held["position"] + self._displacement(new, move, named, draw)
            harmonics = self._held["harmonics"] - (rate * shade_move).reshape(self._held["harmonics"].shape)
            found = {"position": position, "raw": new, "harmonics": harmonics, "moments": moments}
            found["shade_moments"] = shades.reshape(self._held["shade_moments"].shape)
            for name, values in found.items():
                which = seen.reshape(-1, *(1,) * (values.ndim - 1))
                self._held[name] = torch.where(which, values, self._held[name])

    def _slope(self, name: str) -> Any:
        leaf = self._leaves[name]
        return self._torch.zeros_like(leaf) if leaf.grad is None else leaf.grad

    def _shape_slopes(self, named: dict[str, float]) -> tuple[Any, Any, Any]:
        """With respect to logarithms of scales, quaternions along their sphere, logits, with what pulls at them."""
        torch, raw = self._torch, self._held["raw"]
        log_scale, turn = raw[:, _COLUMNS["log_scale"]], raw[:, _COLUMNS["turn"]]
        opacity = torch.sigmoid(raw[:, _COLUMNS["logit"]])
        by_scale = self._slope("log_scale") + torch.exp(log_scale) * named["scale_pull"] + self._pulls(log_scale, named)
        by_turn = self._slope("turn")
        by_turn = by_turn - turn * (turn * by_turn).sum(dim=1, keepdim=True)
        return by_scale, by_turn, self._slope("logit") + named["opacity_pull"] * opacity * (1.0 - opacity)

    def _pulls(self, log_scale: Any, named: dict[str, float]) -> Any:
        torch, found = self._torch, self._torch.zeros_like(log_scale)
        order = torch.argsort(log_scale, dim=1, stable=True)
        sorted_ = torch.gather(log_scale, 1, order)
        over = named["needle_pull"] * (sorted_[:, 2] - sorted_[:, 1] > NEEDLE)
        values = torch.stack([named["flat_pull"] * torch.exp(sorted_[:, 0]), -over, over], dim=1)
        return found.scatter_(1, order, values)

    def _adam(self, held: Any, slope: Any, raw: Any, named: dict[str, float]) -> tuple[Any, Any]:
        """Return new moments (n, 2 k) and what to subtract (n, k) at a rate of 1."""
        a, b, k = named["first_decay"], named["second_decay"], slope.shape[1]
        mean, square = a * held[:, :k] + (1.0 - a) * slope, b * held[:, k:] + (1.0 - b) * slope * slope
        over = [1.0 / (1.0 - raw[:, row : row + 1]) for row in (FIRST, SECOND)]
        move = mean * over[0] / (self._torch.sqrt(square * over[1]) + named["epsilon"])
        return self._torch.cat([mean, square], dim=1), move

    def _moved(self, raw: Any, move: Any, named: dict[str, float]) -> None:
        """Move logarithms of scales, quaternions and logits, in place."""
        torch = self._torch
        scale, turn, logit = (_COLUMNS[name] for name in ("log_scale", "turn", "logit"))
        raw[:, scale] = torch.clamp(
            raw[:, scale] - named["scale_rate"] * move[:, 3:6], named["least_scale"], named["most_scale"]
        )
        raw[:, turn] = torch.nn.functional.normalize(raw[:, turn] - named["turn_rate"] * move[:, 6:10], dim=1)
        raw[:, logit] = torch.clamp(
            raw[:, logit] - named["opacity_rate"] * move[:, 10:], -named["most_logit"], named["most_logit"]
        )

    def _displacement(self, raw: Any, move: Any, named: dict[str, float], draw: NDArray[np.int32]) -> Any:
        """Of the means: by their derivative, and at random within their own form, the less the more opaque they are."""
        torch = self._torch
        scale = torch.exp(raw[:, _COLUMNS["log_scale"]])
        found = -(named["place_rate"] + named["place_share"] * scale.amax(dim=1, keepdim=True)) * move[:, :3]
        if not named["noise"]:
            return found
        words = [int(word) & 0xFFFFFFFF for word in draw]
        generator = torch.Generator(device=self._device)
        generator.manual_seed((words[0] | words[1] << 32) * 1_000_003 + words[2] & (1 << 63) - 1)
        normal = torch.randn(scale.shape, generator=generator, device=self._device)
        axes = self._axes(raw[:, _COLUMNS["turn"]])
        inside = scale * scale * torch.einsum("nji,nj->ni", axes, normal)
        share = named["noise"] * torch.sigmoid(-NOISE_STEEPNESS * (torch.sigmoid(raw[:, _COLUMNS["logit"]]) - NOISE_MIDDLE))
        return found + share * torch.einsum("nij,nj->ni", axes, inside)

    def _axes(self, turn: Any) -> Any:
        """Rotation matrices (n, 3, 3)."""
        x, y, z, w = turn.T
        rows = (
            (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
        )
        return self._torch.stack([self._torch.stack(row, dim=1) for row in rows], dim=1)

    def pull(self) -> None:
        """Bring the cloud's arrays on the host up to date."""
        found = {name: tensor.cpu().numpy() for name, tensor in self._held.items()}
        anew = pack(GaussianFields(**found, number=self._packed.number))
        cloud, made = self._packed.cloud, anew.cloud
        pairs = [(cloud.geometry, made.geometry), (cloud.harmonics, made.harmonics), (cloud.chunks, made.chunks)]
        pairs += [(getattr(self._packed, name), getattr(anew, name)) for name in ("raw", "moments", "shade_moments")]
        for host, values in pairs:
            host[...] = values
