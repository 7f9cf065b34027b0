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
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.gradients import Gradients, Loss, PoseGradients, answered
from airworthy.sensors.splats.gsplat_back import Found
from airworthy.sensors.splats.native_text import FAR_LIMIT, FLAGS, LEAST_ALPHA
from airworthy.sensors.splats.renderer import SplatRenderer
from airworthy.sensors.splats.views import CHANNELS, DILATION, Shot, shot

BACKENDS = ("auto", "own", "gsplat")
Fields = dict[str, Any]
"""Tensors by name."""
_AT_ONCE = 1 << 25
"""Gaussians times cameras in one go."""
_NEEDS = "gsplat renders on a CUDA device through torch: pip install 'airworthy[splat-cuda]', or use backend='own'."


def splat_renderer(
    splats: Splats | Sequence[Splats], device: str = "cpu", backend: Literal["auto", "own", "gsplat"] = "auto"
) -> SplatRenderer | GsplatRenderer:
    """A renderer of clouds.

    Args:
        splats: A scene or several.
        device: `cpu` or `cuda:0`.
        backend: `own`: ours, with lenses, movers and limits, deterministic, on any device; `gsplat`; `auto`: ours, or gsplat on
            a CUDA device that only torch can use.

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

    def render(
        self,
        width: int,
        height: int,
        intrinsics: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        scene: ArrayLike | None = None,
        background: ArrayLike = (0.0, 0.0, 0.0),
        antialiased: bool = False,
        near: float = 0.05,
        channels: Sequence[str] = CHANNELS,
        depth_mode: str = "expected",
        dilation: float = DILATION,
        **others: Any,
    ) -> dict[str, NDArray[np.float32]]:
        """Images of c cameras; arguments as of `SplatRenderer.render`.

        Raises:
            AirworthyError: As there; or for a median depth, a lens, movers, a limit or a window.
        """
        camera = (intrinsics, position, attitude, scene, background)
        asked = self._asked(width, height, *camera, antialiased, near, dilation, channels, depth_mode, others)
        images: dict[str, Any] = {}
        with self._torch.no_grad():
            for some, fields in self._groups(asked):
                for name, part in self._images(asked, some, fields, self._view_matrices(asked, some)).items():
                    whole = images.setdefault(name, np.empty((asked.count, *part.shape[1:]), np.float32))
                    whole[some] = part.cpu().numpy()
        shape = (0, height, width)
        empty = {name: np.zeros((*shape, 3) if name == "rgb" else shape, np.float32) for name in asked.channels}
        return images or empty

    def gradients(
        self,
        loss: Loss,
        width: int,
        height: int,
        intrinsics: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        scene: ArrayLike | None = None,
        background: ArrayLike = (0.0, 0.0, 0.0),
        antialiased: bool = False,
        near: float = 0.05,
        dilation: float = DILATION,
        **others: Any,
    ) -> tuple[list[Gradients], PoseGradients]:
        """Derivatives as of `SplatRenderer.gradients`; the loss is called once per run of neighbouring cameras of one scene.

        Raises:
            AirworthyError: As there, and as `render`.
        """
        camera = (intrinsics, position, attitude, scene, background)
        asked = self._asked(width, height, *camera, antialiased, near, dilation, CHANNELS, "expected", others)
        found = Found(self._torch, self._scenes, self._fields, asked.count)
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

    def _asked(
        self,
        width: int,
        height: int,
        intrinsics: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        scene: ArrayLike | None,
        background: ArrayLike,
        antialiased: bool,
        near: float,
        dilation: float,
        channels: Sequence[str],
        depth_mode: str,
        others: dict[str, Any],
    ) -> Shot:
        unknown = [name for name, value in others.items() if value is not None and value is not False]
        if unknown or depth_mode == "median":
            what = unknown[0] if unknown else "median depths"
            raise AirworthyError(f"The gsplat backend does not know {what}; use backend='own', which does on every device.")
        # Each scene as one chunk, so that rows name their scene.
        spans = np.column_stack([np.arange(self.scene_count), np.ones(self.scene_count)]).astype(np.int32)
        camera = (intrinsics, position, attitude, scene, background)
        return shot(spans, width, height, *camera, antialiased, near, dilation, channels, depth_mode)

    def _groups(self, asked: Shot) -> list[tuple[slice, Fields | None]]:
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

    def _view_matrices(self, asked: Shot, some: slice) -> Any:
        """World to camera, (c, 4, 4)."""
        rows = asked.cameras[some]
        turn = rows["rotation"].reshape(-1, 3, 3).astype(np.float64)
        matrices = np.tile(np.eye(4), (len(rows), 1, 1))
        matrices[:, :3, :3] = turn
        matrices[:, :3, 3] = -np.einsum("nij,nj->ni", turn, rows["position"].astype(np.float64))
        return self._torch.as_tensor(matrices.astype(np.float32), device=self.device)

    def _images(self, asked: Shot, some: slice, fields: Fields | None, matrices: Any, meta: Fields | None = None) -> Fields:
        """Images of some cameras as tensors; what gsplat says besides them goes to `meta`."""
        torch, rows = self._torch, asked.cameras[some]
        shape = (len(rows), asked.height, asked.width)
        if fields is None or not len(fields["means"]):
            pixels, alpha = torch.zeros((*shape, 4), device=self.device), torch.zeros((*shape, 1), device=self.device)
        else:
            pixels, alpha, told = self._rasterized(asked, rows, fields, matrices)
            if meta is not None:
                meta.update(told)
        behind = torch.as_tensor(np.ascontiguousarray(rows["background"]), device=self.device)[:, None, None, :]
        images = {
            "rgb": pixels[..., :3] + (1.0 - alpha) * behind,
            "depth": torch.where(alpha[..., 0] >= LEAST_ALPHA, pixels[..., 3], torch.inf),
            "alpha": alpha[..., 0],
        }
        return {name: images[name] for name in asked.channels}

    def _rasterized(self, asked: Shot, rows: NDArray[np.void], fields: Fields, matrices: Any) -> Any:
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
        AirworthyError: If they, or the device, are not there.
    """
    try:
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
    except ImportError:
        return False
    return bool(kind == "cuda" and (number or "0").isdigit() and int(number or 0) < cuda.device_count())
