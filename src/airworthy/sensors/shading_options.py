"""How colours are found, and from where: options and poses, checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.geometry.cast import camera_rows, sensor_environments
from airworthy.geometry.placement import unit_quaternions
from airworthy.scenes.appearance import Appearance
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.pixel_rays import SUPERSAMPLES
from airworthy.sensors.shading_kernel import FLAGS

__all__ = ["DEFAULT_OPTIONS", "Cameras", "ShadingOptions"]


@dataclass(frozen=True)
class ShadingOptions:
    """How colours are found.

    Raises:
        AirworthyError: If a number is out of range.
    """

    shadows: bool = True
    shadow_distance: float = 1000.0
    """Of the eye's way; surfaces farther off are lit, or take what was baked of the sun [m]."""
    specular: bool = True
    """Gloss; False: only Lambert, which has closed forms."""
    reflections: bool = False
    """Trace one mirror ray on smooth surfaces, instead of the sky or the volume."""
    mirror_roughness: float = 0.4
    """Surfaces rougher than this do not mirror; half of it mirrors fully."""
    baked: bool = True
    """Use baked light where a scene has it (`sensors.light_baking.bake`)."""
    samples: int = 1
    """Rays per pixel for colours: 1, 2, 4 or 8."""
    sun_disc: bool = True
    """Draw the sun."""
    texture_scale: float = 1.0
    """1, 0.5, 0.25 or 0.125: what of the textures is kept in memory."""
    texture_bias: float = 0.0
    """Added to the mip level: above 0 blurrier, below sharper."""
    max_range: float = 1000.0
    """Farther things are sky [m]."""

    def __post_init__(self) -> None:
        if self.samples not in SUPERSAMPLES:
            raise AirworthyError(f"A pixel cannot have {self.samples} samples; expected 1, 2, 4 or 8.")
        if not (self.shadow_distance >= 0.0 and self.max_range > 0.0 and 0.0 < self.mirror_roughness <= 1.0):
            raise AirworthyError(
                f"Shadows reach {self.shadow_distance} m, rays {self.max_range} m, mirrors have roughness below "
                f"{self.mirror_roughness}; expected 0 or more, more than 0, and 0 to 1."
            )
        if not -8.0 <= self.texture_bias <= 8.0:
            raise AirworthyError(f"A texture bias of {self.texture_bias} levels arrived; expected -8 to 8.")

    def flags(self, appearance: Appearance) -> int:
        """Switches of the kernel."""
        asked = {
            "USE_SHADOWS": self.shadows,
            "USE_SPECULAR": self.specular,
            "USE_REFLECTIONS": self.reflections,
            "USE_BAKED": self.baked,
            "USE_SUN_DISC": self.sun_disc,
            "USE_HOLES": appearance.has_holes,
        }
        return sum(FLAGS[name] for name, on in asked.items() if on)


DEFAULT_OPTIONS = ShadingOptions()


@dataclass(frozen=True, eq=False)
class Cameras:
    """Poses of c cameras, checked: rows of the kernel, (c, 1 or width, 12) words."""

    rows: NDArray[np.void]
    env: NDArray[np.int32]
    columns: bool

    @classmethod
    def of(
        cls,
        batch: SceneBatch,
        table: RayTable,
        position: ArrayLike,
        attitude: ArrayLike,
        env: ArrayLike | None = None,
        ignore: ArrayLike | None = None,
        column_position: ArrayLike | None = None,
        column_attitude: ArrayLike | None = None,
    ) -> Cameras:
        """Check and pack poses.

        Raises:
            AirworthyError: If shapes do not fit or a value is not finite.
        """
        columns = column_position is not None and column_attitude is not None
        where = np.asarray(column_position if columns else position, np.float64)
        turned = np.asarray(column_attitude if columns else attitude, np.float64)
        if not columns:
            where, turned = where.reshape(-1, 1, 3), turned.reshape(-1, 1, 4)
        count, width = len(where), table.width if columns else 1
        if where.shape != (count, width, 3) or turned.shape != (count, width, 4):
            raise AirworthyError(
                f"Cameras got positions {where.shape} and attitudes {turned.shape}; expected a pose each, (c, 3) and (c, 4)."
            )
        if not np.isfinite(where).all():
            raise AirworthyError("A camera's position is not finite.")
        envs = sensor_environments(env, count, batch.env_count)
        ignored = np.broadcast_to(np.asarray(-1 if ignore is None else ignore, np.int32), (count,))
        rows = camera_rows(where, unit_quaternions(turned, "A camera's attitude"), envs, np.ascontiguousarray(ignored))
        return cls(rows, envs, columns)

    def __len__(self) -> int:
        return len(self.rows)
