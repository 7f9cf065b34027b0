"""From what a mounted sensor gives to the numbers that a navigation policy reads, in flight, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.pilots.navigation_policy.contract import ENCODER, NavigationContract
from airworthy.pilots.navigation_policy.encoder import encode, read_encoder_folder
from airworthy.pilots.navigation_policy.sight import (
    CAMERA,
    LIDAR,
    depth_image,
    navigation_camera,
    navigation_lidar,
    pooled_image,
    pooled_ranges,
    returned,
)
from airworthy.simulation.sensor_state import MountedSensor

__all__ = ["DepthSight", "FlownEye", "LatentSight", "LidarSight", "flown_eye"]


class FlownEye(Protocol):
    """What becomes of a sensor's samples."""

    sensor: str
    """Under which it is mounted."""

    @property
    def sensors(self) -> dict[str, MountedSensor]:
        """What has to be mounted, by name."""

    def read(self, samples: Mapping[str, Array]) -> ArrayF32:
        """Return what policies read of samples of some flights, (n, numbers)."""


class DepthSight:
    """Nearest return of each of 12 x 16 cells of a depth image, inverse."""

    sensor = CAMERA

    @property
    def sensors(self) -> dict[str, MountedSensor]:
        """What has to be mounted, by name."""
        return {CAMERA: MountedSensor(navigation_camera())}

    def read(self, samples: Mapping[str, Array]) -> ArrayF32:
        """Return 3 / depth - 0.6, (n, 192)."""
        return pooled_image(samples["depth"])


class LatentSight(DepthSight):
    """Latent of a depth image.

    Args:
        weights: Of the encoder, by the names of `encoder_shapes`.
    """

    def __init__(self, weights: Mapping[str, ArrayF32]):
        self._weights = dict(weights)

    def read(self, samples: Mapping[str, Array]) -> ArrayF32:
        """Return latents, (n, numbers)."""
        return encode(self._weights, depth_image(returned(samples["depth"])))


class LidarSight:
    """Nearest range of each of 16 x 20 cells of a LiDAR, inverse."""

    sensor = LIDAR

    @property
    def sensors(self) -> dict[str, MountedSensor]:
        """What has to be mounted, by name."""
        return {LIDAR: MountedSensor(navigation_lidar())}

    def read(self, samples: Mapping[str, Array]) -> ArrayF32:
        """Return 1 / range, (n, 320)."""
        return pooled_ranges(samples["range"])


def flown_eye(contract: NavigationContract, folder: str | Path) -> FlownEye:
    """Return the eye of a policy, with its encoder where it has one.

    Args:
        contract: Of the policy.
        folder: Its own, for the encoder in it.

    Raises:
        AssetError: The folder's encoder is missing or damaged.
        AirworthyError: The encoder is not the one that the policy learnt with, or gives other numbers.
    """
    if contract.task == "lidar_navigation":
        if contract.image == "latent":
            raise AirworthyError(
                f"The policy in {str(folder)!r} reads the latent of a LiDAR, and there is no encoder of LiDARs: give it one of"
                " `airworthy train lidar_navigation`."
            )
        return LidarSight()
    if contract.image != "latent":
        return DepthSight()
    found, weights, digest = read_encoder_folder(Path(folder) / ENCODER)
    if digest != contract.encoder or found.latent != contract.numbers:
        raise AirworthyError(f"The encoder in {str(folder)!r} is not the one that its policy learnt with.")
    return LatentSight(weights)
