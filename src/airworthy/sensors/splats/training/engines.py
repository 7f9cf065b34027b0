"""Where a cloud is trained: its memory, and the launches of a step."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_launch, quiet_warp
from airworthy.sensors.splats.buffers import as_warp
from airworthy.sensors.splats.lanes import Lanes
from airworthy.sensors.splats.lanes_back import Slopes
from airworthy.sensors.splats.native_text import CHUNK
from airworthy.sensors.splats.single import Single
from airworthy.sensors.splats.single_back import SingleSlopes
from airworthy.sensors.splats.training.fields import Packed
from airworthy.sensors.splats.training.step_kernel import train_step_kernel
from airworthy.sensors.splats.views import Shot

Array = NDArray[np.float32]
_GAUSSIANS, _BOUNDS = 0, 1


class Engine(Protocol):
    """Renders, differentiates and moves one cloud."""

    slopes: Any
    """Derivatives of the last step's loss; a step uses them up."""

    def take(self, packed: Packed) -> None:
        """Work on this cloud from now on."""

    def render(self, asked: Shot, image: Array) -> None:
        """Fill an image (c, H, W, 3)."""

    def differentiate(self, asked: Shot, image: Array, slopes: Array) -> None:
        """From the derivative with respect to what was just rendered to those with respect to the cloud."""

    def move(self, settings: Array, draw: NDArray[np.int32]) -> None:
        """One step."""

    def pull(self) -> None:
        """Bring the cloud's arrays on the host up to date."""


def engine_on(device: str, packed: Packed, threads: int | None) -> Engine:
    """The engine of a device.

    Raises:
        AirworthyError: There is no such device.
    """
    if device == "cpu":
        return LanesEngine(packed, threads)
    if device.startswith("cuda") and any(str(found) == device for found in quiet_warp().get_cuda_devices()):
        return SingleEngine(packed, device)
    raise AirworthyError(f"Splats cannot be trained on device {device!r}; expected cpu, or a CUDA device that is present.")


class LanesEngine:
    """On a CPU: everything is changed in place."""

    def __init__(self, packed: Packed, threads: int | None):
        self._lanes = Lanes(packed.cloud, threads)
        self.take(packed)

    def take(self, packed: Packed) -> None:
        self._lanes.take(packed.cloud)
        self.slopes = Slopes(packed.cloud)
        self._chunks = len(packed.cloud.chunks)
        held = (packed.raw, packed.moments, packed.shade_moments, self.slopes.gaussians, self.slopes.harmonics)
        self._held = [as_warp(array) for array in held]

    def render(self, asked: Shot, image: Array) -> None:
        self._lanes.render(asked, {"rgb": image})

    def differentiate(self, asked: Shot, image: Array, slopes: Array) -> None:
        self.slopes.poses.clear()
        self.slopes.add(self._lanes, asked, {"rgb": image}, {"rgb": slopes})

    def move(self, settings: Array, draw: NDArray[np.int32]) -> None:
        lanes, order = self._lanes, self._lanes.order(self._chunks)
        arrays = [*lanes.sent, order, *self._held, as_warp(settings), as_warp(draw)]
        lanes.launch(train_step_kernel, self._chunks, arrays, [_GAUSSIANS])

    def pull(self) -> None:
        pass


class SingleEngine:
    """On a GPU, one Gaussian per thread; images and their loss pass through the host.

    Args:
        packed: The cloud.
        device: Of Warp.
        prefix: Before the kernels' text; with `#define SCALAR_PATH` the same runs on a CPU (tests do).
    """

    def __init__(self, packed: Packed, device: str, prefix: str = ""):
        self._device, self._prefix = device, prefix
        self._single = Single(packed.cloud, device, prefix)
        self.take(packed)

    def take(self, packed: Packed) -> None:
        self._packed = packed
        self._single.take(packed.cloud)
        self.slopes = SingleSlopes(packed.cloud, self._device)
        held = (packed.raw, packed.moments, packed.shade_moments)
        self._held = [as_warp(array, self._device) for array in held]

    def render(self, asked: Shot, image: Array) -> None:
        self._single.render(asked, {"rgb": image})

    def differentiate(self, asked: Shot, image: Array, slopes: Array) -> None:
        self.slopes.poses.clear()
        self.slopes.add(self._single, asked, {"rgb": image}, {"rgb": slopes})

    def move(self, settings: Array, draw: NDArray[np.int32]) -> None:
        nothing = as_warp(np.zeros(1, np.int32), self._device)
        arrays = [*self._single._sent, nothing, *self._held, self.slopes._gaussians, self.slopes._harmonics]
        arrays += [as_warp(settings, self._device), as_warp(draw, self._device)]
        chunks = len(self._packed.cloud.chunks)
        for stage, tasks in ((_GAUSSIANS, chunks * CHUNK), (_BOUNDS, chunks)):
            quiet_launch(train_step_kernel(self._prefix), tasks, [*arrays, stage, 0], self._device)

    def pull(self) -> None:
        if self._device == "cpu":
            return
        packed, cloud = self._packed, self._packed.cloud
        hosts = (cloud.geometry, cloud.harmonics, cloud.chunks, packed.raw, packed.moments, packed.shade_moments)
        for host, held in zip(hosts, (*self._single._sent, *self._held), strict=True):
            host[...] = held.numpy().view(host.dtype).reshape(host.shape)
