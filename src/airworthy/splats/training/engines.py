"""Where a cloud is trained: its memory, and the launches of a step."""

from __future__ import annotations

from functools import cache
from math import comb
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayFloat, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp, shared_source
from airworthy.splats.cameras import CameraView
from airworthy.splats.cloud import as_warp
from airworthy.splats.lanes import Arrays, CpuLanes, Slopes
from airworthy.splats.native_text import CHUNK, native_source
from airworthy.splats.single import Single, SingleSlopes
from airworthy.splats.training.fields import (
    LOGIT,
    RENDERED,
    SCALE,
    SHIFT,
    GaussianFields,
    Packed,
    forgotten,
    logits,
    opacities,
    step_numbers,
)

# ---- Builds the kernel that moves Gaussians by one step of Adam where the renderer reads them -----------------------------

_ARGUMENTS = """
    geometry: float32[]  # read and written: (block, GEOMETRY_ROWS, 16)
    harmonics: float32[]  # read and written: (block, k, 3, 16)
    chunks: float32[]  # read and written: ChunkRow
    order: int32[]  # of tasks
    raw: float32[]  # read and written: (block, RAW_ROWS, 16)
    moments: float32[]  # read and written: (block, 2 * MOVED, 16)
    shade_moments: float32[]  # read and written: (block, 2, k, 3, 16)
    slopes: float32[]  # read, then set to 0: (block, SLOPE_ROWS, 16)
    colour_slopes: float32[]  # read, then set to 0: as harmonics
    settings: float32[]  # SETTINGS
    draw: int32[]  # seed (2), step
    stage: int  # 0: all on a CPU, Gaussians on a GPU; 1: bounds of chunks on a GPU
"""


@cache
def train_step_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    text = native_source("train_step.h", "train_step_task.h").replace(
        "// One step of Adam", shared_source("random.h") + step_numbers() + "\n// One step of Adam", 1
    )
    return native_kernel("splats_train_step", prefix + text, _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

# -----------------------------------------------------------------------------------------------------------------------------
# A fixed budget of Gaussians spent where it helps: those that show nothing move to ones that show much, and more are
# added.
#
# Source: Kheradmand, Rebain, Sharma, Sun, Tseng, Isack, Kar, Tagliasacchi, Yi: 3D Gaussian splatting as Markov chain Monte
# Carlo (2024). Where N Gaussians come to stand in place of one, equation 9's opacity and covariance keep its image nearly as
# it was.

DEAD = 0.005
"""Opacity at and below which a Gaussian is taken to show nothing."""
MOST_COPIES = 51
"""In place of one, itself among them."""


def shared(opacity: ArrayFloat, copies: NDArray[np.integer[Any]]) -> tuple[Array, Array]:
    """Return opacity and factor on standard deviations of each of N Gaussians that come to stand in place of one.

    With o' = 1 - (1 - o)^(1/N), N in a row stop as much light at their middle as the one did; the factor
    o / sum over i = 1..N, k = 0..i-1 of C(i-1, k) (-1)^k o'^(k+1) / sqrt(k+1) keeps the integral over the image.

    Args:
        opacity: Of the one, in (0, 1), (m,).
        copies: N >= 1, (m,).
    """
    o, n = np.asarray(opacity, np.float64), np.minimum(copies, MOST_COPIES)
    new = -np.expm1(np.log1p(-o) / n)
    powers = new[:, None] ** np.arange(1, MOST_COPIES + 1)
    total = np.sum(_terms()[n - 1] * powers, axis=1)
    return new, o / total


@cache
def _terms() -> Array:
    """Row N - 1: factors of o', o'^2, ...; by the sum over i of C(i-1, k) being C(N, k+1)."""
    table = np.zeros((MOST_COPIES, MOST_COPIES))
    for n in range(1, MOST_COPIES + 1):
        for k in range(n):
            table[n - 1, k] = comb(n, k + 1) * (-1.0) ** k / np.sqrt(k + 1.0)
    return table


def relocated(found: GaussianFields, rng: np.random.Generator, count: int, dead: float = DEAD) -> tuple[GaussianFields, int]:
    """Return gaussians of which none is dead, `count` of them or as many as there were.

    Those that show nothing, and new ones up to `count`, are put where others are, chosen by their opacity, and share the place
    with them. Whatever shares a place forgets its moments.

    Args:
        found: Gaussians.
        rng: Chooses.
        count: How many there shall be; fewer than there are: as many.
        dead: Opacity at and below which one shows nothing.

    Returns:
        The Gaussians, and how many were dead.
    """
    opacity = opacities(found.raw)
    alive = np.flatnonzero((opacity > dead) & np.isfinite(found.raw).all(axis=1))
    gone = len(found) - len(alive)
    wanted = max(count - len(found), 0) + gone
    if not len(alive) or not wanted:
        return _counted_anew(found), gone
    share = np.cumsum(opacity[alive])
    chosen = np.searchsorted(share / share[-1], rng.random(wanted), side="right").clip(max=len(alive) - 1)
    copies = np.bincount(chosen, minlength=len(alive))
    split = np.flatnonzero(copies)
    kept = found.taken(alive)
    new, factor = shared(opacity[alive[split]], copies[split] + 1)
    changed = forgotten(kept.taken(split))
    # At least a little above what counts as dead, or what is shared among many would be dead at once.
    changed.raw[:, LOGIT] = logits(np.maximum(new, 1.1 * dead))
    changed.raw[:, SCALE : SCALE + 3] += np.log(factor).astype(np.float32)[:, None]
    position = np.full(len(alive), -1)
    position[split] = np.arange(len(split))
    made = changed.taken(position[chosen])
    made.number[:] = -1
    for name in ("position", "raw", "harmonics", "moments", "shade_moments"):
        getattr(kept, name)[split] = getattr(changed, name)
    return _counted_anew(kept.joined(made)), gone


def _counted_anew(found: GaussianFields) -> GaussianFields:
    found.raw[:, [SHIFT, RENDERED]] = 0.0
    return found


# -----------------------------------------------------------------------------------------------------------------------------

_GAUSSIANS, _BOUNDS = 0, 1


class Engine(Protocol):
    """Renders, differentiates and moves one cloud."""

    slopes: Any
    """Derivatives of the last step's loss; a step uses them up."""

    def take(self, packed: Packed) -> None:
        """Work on this cloud from now on."""

    def render(self, asked: CameraView, images: Arrays) -> None:
        """Fill images, one per channel."""

    def differentiate(self, asked: CameraView, images: Arrays, slopes: Arrays) -> None:
        """Differentiate: lead from derivatives with respect to what was just rendered to those with respect to the cloud.

        Args:
            asked: The cameras that were rendered.
            images: By channel, as rendered.
            slopes: Of the loss with respect to some of them, in their shapes.
        """

    def move(self, settings: ArrayF32, draw: NDArray[np.int32]) -> None:
        """Take one step."""

    def pull(self) -> None:
        """Bring the cloud's arrays on the host up to date."""


def engine_on(device: str, packed: Packed, threads: int | None, backend: str = "own") -> Engine:
    """Return the engine of a device.

    Args:
        device: `cpu` or a CUDA device of Warp; for gsplat a CUDA device of torch.
        packed: The cloud and its moments.
        threads: Most of a CPU; None: all.
        backend: `own` or `gsplat`.

    Raises:
        AirworthyError: There is no such device or backend.
    """
    if backend == "gsplat":
        from airworthy.splats.training.gsplat_engine import GsplatEngine

        return GsplatEngine(packed, device)
    if backend != "own":
        raise unknown_name("backend", backend, ("own", "gsplat"))
    if device == "cpu":
        return LanesEngine(packed, threads)
    if device.startswith("cuda") and any(str(found) == device for found in quiet_warp().get_cuda_devices()):
        return SingleEngine(packed, device)
    raise AirworthyError(f"Splats cannot be trained on device {device!r}; expected cpu, or a CUDA device that is present.")


class _RenderingEngine:
    """What engines do alike; their renderers differ."""

    _renderer: Any
    slopes: Any

    def render(self, asked: CameraView, images: Arrays) -> None:
        self._renderer.render(asked, images)

    def differentiate(self, asked: CameraView, images: Arrays, slopes: Arrays) -> None:
        """Carry slopes of the images back to the Gaussians.

        Args:
            asked: What was rendered.
            images: By channel.
            slopes: Derivatives of the loss with respect to some of them, alike.
        """
        self.slopes.poses.clear()
        self.slopes.add(self._renderer, asked, images, slopes)


class LanesEngine(_RenderingEngine):
    """On a CPU: everything is changed in place."""

    def __init__(self, packed: Packed, threads: int | None):
        self._renderer = CpuLanes(packed.cloud, threads)
        self.take(packed)

    def take(self, packed: Packed) -> None:
        self._renderer.take(packed.cloud)
        self.slopes = Slopes(packed.cloud)
        self._chunks = len(packed.cloud.chunks)
        held = (packed.raw, packed.moments, packed.shade_moments, self.slopes.gaussians, self.slopes.harmonics)
        self._held = [as_warp(array) for array in held]

    def move(self, settings: ArrayF32, draw: NDArray[np.int32]) -> None:
        lanes, order = self._renderer, self._renderer.order(self._chunks)
        arrays = [*lanes.sent, order, *self._held, as_warp(settings), as_warp(draw)]
        lanes.launch(train_step_kernel, self._chunks, arrays, [_GAUSSIANS])

    def pull(self) -> None:
        pass


class SingleEngine(_RenderingEngine):
    """On a GPU, one Gaussian per thread; images and their loss pass through the host.

    Args:
        packed: The cloud.
        device: Of Warp.
        prefix: Before the kernels' text; with `#define SCALAR_PATH` the same runs on a CPU (tests do).
    """

    def __init__(self, packed: Packed, device: str, prefix: str = ""):
        self._device, self._prefix = device, prefix
        self._renderer = Single(packed.cloud, device, prefix)
        self.take(packed)

    def take(self, packed: Packed) -> None:
        self._packed = packed
        self._renderer.take(packed.cloud)
        self.slopes = SingleSlopes(packed.cloud, self._device)
        held = (packed.raw, packed.moments, packed.shade_moments)
        self._held = [as_warp(array, self._device) for array in held]

    def move(self, settings: ArrayF32, draw: NDArray[np.int32]) -> None:
        nothing = as_warp(np.zeros(1, np.int32), self._device)
        arrays = [*self._renderer._sent, nothing, *self._held, self.slopes._gaussians, self.slopes._harmonics]
        arrays += [as_warp(settings, self._device), as_warp(draw, self._device)]
        chunks = len(self._packed.cloud.chunks)
        for stage, tasks in ((_GAUSSIANS, chunks * CHUNK), (_BOUNDS, chunks)):
            quiet_launch(train_step_kernel(self._prefix), tasks, [*arrays, stage, 0], self._device)

    def pull(self) -> None:
        if self._device == "cpu":
            return
        packed, cloud = self._packed, self._packed.cloud
        hosts = (cloud.geometry, cloud.harmonics, cloud.chunks, packed.raw, packed.moments, packed.shade_moments)
        for host, held in zip(hosts, (*self._renderer._sent, *self._held), strict=True):
            host[...] = held.numpy().view(host.dtype).reshape(host.shape)
