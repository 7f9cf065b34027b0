"""How wide a device sees."""

from __future__ import annotations

import math

import numpy as np

from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Fisheye, Pinhole, Spherical


def fields_of_view(item: Device) -> tuple[float | None, float | None]:
    """Horizontal and vertical field of view [deg]; None where a sensor has none."""
    projection = item.projection
    if isinstance(projection, Pinhole):
        angles = (projection.horizontal_fov, projection.vertical_fov)
    elif isinstance(projection, Spherical):
        angles = (projection.azimuth[1] - projection.azimuth[0], projection.elevation[1] - projection.elevation[0])
    elif isinstance(projection, Fisheye):
        middle = (0.5 * projection.width, 0.5 * projection.height)
        rays = projection.unproject(
            [[0.0, middle[1]], [projection.width, middle[1]], [middle[0], 0.0], [middle[0], projection.height]]
        )
        off = np.arccos(np.clip(rays[:, 2], -1.0, 1.0))
        angles = (float(off[0] + off[1]), float(off[2] + off[3]))
    else:
        return None, None
    return round(math.degrees(angles[0]), 4), round(math.degrees(angles[1]), 4)
