"""gsplat's rasterizer (Apache-2.0, https://docs.gsplat.studio) behind the calls of our renderer: a backend and a reference.

Same conventions of the image (pixel k spans k to k + 1, variance 0.3 added, form held beyond 0.15 of the image, opacities under
1/255 left out). What differs: gsplat stops a pixel before less than 1e-4 of the light would pass, we after; one Gaussian counts
up to 0.999 there and 0.99 here; it cuts a Gaussian at 3.33 standard deviations, we where its opacity falls under 1/255. It adds
derivatives in the order in which threads arrive, so they are not the same bits twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import ArrayF32, NDArray
from airworthy.core.errors import AirworthyError, telling_broken, unknown_name
from airworthy.core.native_kernel import quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.splats.cameras import CameraView, RenderRequest, camera_view, gradient_request
from airworthy.splats.native_text import FAR_LIMIT, FLAGS, LEAST_ALPHA
from airworthy.splats.renderer import Gradients, Loss, PoseGradients, SplatRenderer, answered, turns

# ---- Derivatives that torch carries back through gsplat, in the forms of ours -----------------------------------------------

_FIELDS = {"position": "means", "rotation": "quats", "scale": "scales", "opacity": "opacities", "harmonics": "colors"}


class CameraGroupSums:
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
        self._counts = [np.zeros(len(one), np.float32) for one in scenes]
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
        slopes: dict[str, ArrayF32],
        matrices: Any,
        meta: dict[str, Any],
    ) -> None:
        """Carry back derivatives with respect to images of cameras `some`, all of one scene.

        Args:
            some: Which of all cameras these are, neighbours.
            scene: Its number.
            images: Tensors by channel.
            slopes: Derivatives of the loss with respect to them.
            matrices: World to camera, (c, 4, 4).
            meta: What gsplat said besides the images.
        """
        roots = {name: slope for name, slope in slopes.items() if images[name].requires_grad}
        projected = meta.get("means2d")
        if not roots or projected is None:
            return
        projected.retain_grad()
        given = [self._torch.as_tensor(slope, device=images[name].device) for name, slope in roots.items()]
        self._torch.autograd.backward([images[name] for name in roots], given)
        if matrices.grad is not None:
            self._views[some] = matrices.grad.cpu().numpy()
        if projected.grad is not None:
            self._shift[scene] += projected.grad.norm(dim=-1).sum(dim=0).cpu().numpy()
        self._counts[scene] += (meta["radii"] > 0).all(dim=-1).sum(dim=0).cpu().numpy()

    def gaussians(self) -> list[Gradients]:
        """Return gradients per scene."""
        found = []
        for splats, fields, shift, times in zip(self._scenes, self._fields, self._shift, self._counts, strict=True):
            parts: dict[str, ArrayF32] = {}
            for name, theirs in _FIELDS.items():
                grad = fields[theirs].grad
                parts[name] = np.zeros(getattr(splats, name).shape, np.float32) if grad is None else grad.cpu().numpy()
                fields[theirs].requires_grad_(False)
                fields[theirs].grad = None
            turn, unit = parts["rotation"][:, [1, 2, 3, 0]], splats.rotation
            parts["rotation"] = turn - unit * (unit * turn).sum(axis=1, keepdims=True)
            found.append(Gradients(**parts, image_shift=shift, image_count=times))
        return found

    def poses(self, cameras: NDArray[np.void]) -> PoseGradients:
        """Return gradients of rows of `CAMERA`: a matrix [R, t] with t = -R p depends on the position p, and on R twice."""
        turn = cameras["rotation"].reshape(-1, 3, 3).astype(np.float64)
        moved, matrix = self._views[:, :3, 3], self._views[:, :3, :3]
        whole = matrix - moved[:, :, None] * cameras["position"].astype(np.float64)[:, None, :]
        return PoseGradients(-np.einsum("nji,nj->ni", turn, moved), turns(whole, turn))


# -----------------------------------------------------------------------------------------------------------------------------

BACKENDS = ("auto", "own", "gsplat")
_OWN_ONLY = ("lens", "dynamic_instances", "limit", "distances", "window", "reduced")
"""Fields of a request that only our renderer can answer."""
Fields = dict[str, Any]
"""Tensors by name."""
_AT_ONCE = 1 << 25
"""Gaussians times cameras in one go."""
_NEEDS = "gsplat renders on a CUDA device through torch: pip install 'airworthy[splat-cuda]', or use backend='own'."


def splat_renderer(
    splats: Splats | Sequence[Splats], device: str = "cpu", backend: Literal["auto", "own", "gsplat"] = "auto"
) -> SplatRenderer | GsplatRenderer:
    """Return a renderer of clouds.

    Args:
        splats: A scene or several.
        device: `cpu` or `cuda:0`.
        backend: `own`: ours, with lenses, dynamic instances and limits, deterministic, on any device; `gsplat`; `auto`: ours,
            or gsplat on a CUDA device that only torch can use.

    Raises:
        AirworthyError: If there is no such backend or device, or gsplat is not there.
    """
    if backend not in BACKENDS:
        raise unknown_name("backend", backend, BACKENDS)
    if backend == "auto":
        ours = device == "cpu" or any(str(found) == device for found in quiet_warp().get_cuda_devices())
        backend = "own" if ours or not _torch_has(device) else "gsplat"
    return SplatRenderer(splats, device) if backend == "own" else GsplatRenderer(splats, device)


class GsplatRenderer:
    """`SplatRenderer` over gsplat: pinholes only, expected depths only.

    Args:
        splats: A scene or several.
        device: A CUDA device of torch.

    Raises:
        AirworthyError: If gsplat, torch or the device is not there, or there are no scenes.
    """

    def __init__(self, splats: Splats | Sequence[Splats], device: str = "cuda:0"):
        scenes = [splats] if isinstance(splats, Splats) else list(splats)
        if not scenes:
            raise AirworthyError("A splat renderer got no scenes; expected at least one.")
        self.device, self.scene_count = device, len(scenes)
        self._torch, self._rasterization = _gsplat(device)
        self._scenes = scenes
        self._fields = [self._sent(one) for one in scenes]

    def render(self, *camera: Any, **options: Any) -> dict[str, ArrayF32]:
        """Return images of c cameras; arguments as of `SplatRenderer.render`.

        Raises:
            AirworthyError: As there; or for a median depth, a lens, dynamic instances, a limit or a window.
        """
        asked = self._asked(RenderRequest(*camera, **options))
        images: dict[str, Any] = {}
        with self._torch.no_grad():
            for some, fields in self._groups(asked):
                for name, part in self._images(asked, some, fields, self._view_matrices(asked, some)).items():
                    whole = images.setdefault(name, np.empty((asked.count, *part.shape[1:]), np.float32))
                    whole[some] = part.cpu().numpy()
        shape = (0, asked.height, asked.width)
        empty = {name: np.zeros((*shape, 3) if name == "rgb" else shape, np.float32) for name in asked.channels}
        return images or empty

    def gradients(self, loss: Loss, *camera: Any, **options: Any) -> tuple[list[Gradients], PoseGradients]:
        """Return derivatives as of `SplatRenderer.gradients`; the loss is called once per run of neighbouring cameras of one
        scene.

        Raises:
            AirworthyError: As there, and as `render`.
        """
        asked = self._asked(gradient_request(*camera, **options))
        found = CameraGroupSums(self._torch, self._scenes, self._fields, asked.count)
        for some, fields in self._groups(asked):
            meta: Fields = {}
            matrices = self._view_matrices(asked, some).requires_grad_(True)
            images = self._images(asked, some, fields, matrices, meta)
            shown = {name: image.detach().cpu().numpy() for name, image in images.items()}
            slopes = answered(loss, asked.part(some), some, shown)
            found.add(some, asked.cameras["first_chunk"][some.start], images, slopes, matrices, meta)
        return found.gaussians(), found.poses(asked.cameras)

    def replace(self, splats: Splats | Sequence[Splats]) -> None:
        """Render other clouds from now on.

        Raises:
            AirworthyError: If the number of scenes is another.
        """
        scenes = [splats] if isinstance(splats, Splats) else list(splats)
        if len(scenes) != self.scene_count:
            raise AirworthyError(f"{len(scenes)} scenes were to replace {self.scene_count}; expected as many as before.")
        self._scenes, self._fields = scenes, [self._sent(one) for one in scenes]

    def _sent(self, splats: Splats) -> Fields:
        """gsplat's quaternions are w, x, y, z; its opacities, scales and harmonics are ours."""
        fields = {
            "means": splats.position,
            "quats": splats.rotation[:, [3, 0, 1, 2]],
            "scales": splats.scale,
            "opacities": splats.opacity,
            "colors": splats.harmonics,
        }
        as_tensor = self._torch.as_tensor
        return {name: as_tensor(np.ascontiguousarray(value, np.float32), device=self.device) for name, value in fields.items()}

    def _asked(self, request: RenderRequest) -> CameraView:
        unknown = [name for name in _OWN_ONLY if getattr(request, name) is not None and getattr(request, name) is not False]
        if request.depth_at == "plane" or "normal" in request.channels:
            unknown.append("depths of planes" if request.depth_at == "plane" else "normals")
        if unknown or request.depth_mode == "median":
            what = unknown[0] if unknown else "median depths"
            raise AirworthyError(f"The gsplat backend does not know {what}; use backend='own', which does on every device.")
        # Each scene as one chunk, so that rows name their scene.
        spans = np.column_stack([np.arange(self.scene_count), np.ones(self.scene_count)]).astype(np.int32)
        return camera_view(spans, request)

    def _groups(self, asked: CameraView) -> list[tuple[slice, Fields | None]]:
        """Neighbouring cameras of one scene, and its fields; None where a camera sees none."""
        rows = asked.cameras
        number = np.where(rows["chunk_count"] > 0, rows["first_chunk"], -1)
        edges = [0, *(np.flatnonzero(np.diff(number)) + 1), asked.count]
        groups: list[tuple[slice, Fields | None]] = []
        for begin, end in pairwise(edges):
            if begin == end or not asked.channels:
                continue
            fields = self._fields[number[begin]] if number[begin] >= 0 else None
            size = end - begin if fields is None else max(1, _AT_ONCE // max(1, len(fields["means"])))
            groups += [(slice(k, min(k + size, int(end))), fields) for k in range(int(begin), int(end), size)]
        return groups

    def _view_matrices(self, asked: CameraView, some: slice) -> Any:
        """World to camera, (c, 4, 4)."""
        rows = asked.cameras[some]
        turn = rows["rotation"].reshape(-1, 3, 3).astype(np.float64)
        matrices = np.tile(np.eye(4), (len(rows), 1, 1))
        matrices[:, :3, :3] = turn
        matrices[:, :3, 3] = -np.einsum("nij,nj->ni", turn, rows["position"].astype(np.float64))
        return self._torch.as_tensor(matrices.astype(np.float32), device=self.device)

    def _images(
        self, asked: CameraView, some: slice, fields: Fields | None, matrices: Any, meta: Fields | None = None
    ) -> Fields:
        """Images of some cameras as tensors; what gsplat says besides them goes to `meta`."""
        torch, rows = self._torch, asked.cameras[some]
        shape = (len(rows), asked.height, asked.width)
        if fields is None or not len(fields["means"]):
            pixels, alpha = torch.zeros((*shape, 4), device=self.device), torch.zeros((*shape, 1), device=self.device)
        else:
            pixels, alpha, extra = self._rasterized(asked, rows, fields, matrices)
            if meta is not None:
                meta.update(extra)
        behind = torch.as_tensor(np.ascontiguousarray(rows["background"]), device=self.device)[:, None, None, :]
        images = {
            "rgb": pixels[..., :3] + (1.0 - alpha) * behind,
            "depth": torch.where(alpha[..., 0] >= LEAST_ALPHA, pixels[..., 3], torch.inf),
            "alpha": alpha[..., 0],
        }
        return {name: images[name] for name in asked.channels}

    def _rasterized(self, asked: CameraView, rows: NDArray[np.void], fields: Fields, matrices: Any) -> Any:
        """Colours and expected depths (c, H, W, 4), alphas (c, H, W, 1), and more."""
        lens = np.tile(np.eye(3, dtype=np.float32), (len(rows), 1, 1))
        lens[:, [0, 1, 0, 1], [0, 1, 2, 2]] = rows["intrinsics"]
        return self._rasterization(
            **fields,
            viewmats=matrices,
            Ks=self._torch.as_tensor(lens, device=self.device),
            width=asked.width,
            height=asked.height,
            near_plane=asked.near,
            far_plane=FAR_LIMIT,
            radius_clip=0.0,
            eps2d=asked.dilation,
            sh_degree=int(np.sqrt(fields["colors"].shape[1])) - 1,
            packed=False,
            render_mode="RGB+ED",
            rasterize_mode="antialiased" if asked.flags & FLAGS["antialiased"] else "classic",
        )


def _gsplat(device: str) -> tuple[Any, Any]:
    """torch and gsplat's `rasterization`.

    Raises:
        AirworthyError: If they, or the device, are not there, or cannot be loaded.
    """
    try:
        with telling_broken(["torch", "gsplat"]):
            torch, rasterization = import_module("torch"), import_module("gsplat").rasterization
    except ImportError as error:
        raise AirworthyError(f"There is no package {error.name!r}. {_NEEDS}") from error
    if not _torch_has(device):
        raise AirworthyError(f"torch sees no device {device!r}. {_NEEDS}")
    return torch, rasterization


def _torch_has(device: str) -> bool:
    kind, _, number = device.partition(":")
    try:
        cuda = import_module("torch").cuda
    except (ImportError, OSError):
        return False
    return bool(kind == "cuda" and (number or "0").isdigit() and int(number or 0) < cuda.device_count())
