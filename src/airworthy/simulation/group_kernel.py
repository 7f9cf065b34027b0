"""Downwash among the vehicles of a group: an ordinary Warp kernel, one environment per thread."""

# No postponed annotations here: Warp reads them.
from functools import cache
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_launch, quiet_warp
from airworthy.simulation.config import Downwash


def downwash_force(position: Array, members: ArrayInt, env: int, model: Downwash) -> float:
    """Return the twin of the kernel: force along world z on one vehicle from the others of its group [N].

    The published formula, with its width taken in size: below offset / spread it is negative, and squared all the same.

    Args:
        position: World [m], (env, 3).
        members: The group, including `env`.
        env: On whom.
        model: Coefficients.
    """
    total = 0.0
    for other in members:
        dx, dy, dz = position[other] - position[env]
        r = np.hypot(dx, dy)
        width = model.spread * dz + model.offset
        if other == env or dz <= 0.0 or r >= model.reach or width == 0.0:
            continue
        strength = model.strength * (model.radius / (4.0 * dz)) ** 2
        total -= strength * np.exp(-0.5 * (r / width) ** 2)
    return float(total)


class Group:
    """Members of each environment's group, by flight id, so that sums do not depend on the order of the batch."""

    def __init__(self, groups: ArrayLike, flight_ids: ArrayU32, device: str):
        group = np.asarray(groups)
        if group.shape != flight_ids.shape or not np.issubdtype(group.dtype, np.integer):
            raise AirworthyError(
                f"`groups` is an array of {group.dtype}, shape {group.shape}; expected whole numbers, one per environment,"
                f" shape {flight_ids.shape}."
            )
        order = np.lexsort((flight_ids, group))
        values, first, count = np.unique(group[order], return_index=True, return_counts=True)
        where = np.searchsorted(values, group)
        wp = quiet_warp()
        self.members = order
        self.first, self.count = first[where], count[where]
        self._arrays = [wp.array(a.astype(np.int32), device=device) for a in (self.members, self.first, self.count)]
        self._device = device

    def blow(self, state: Any, force: Any, rows: tuple[int, int, int], stride: int, env_count: int, model: Downwash) -> None:
        """Write the downwash on every environment.

        Args:
            state: Warp array of the state rows.
            force: Warp array of the input rows.
            rows: First row of the position and row of the status in `state`, row of the downwash in `force`.
            stride: Environments per row.
            env_count: Environments.
            model: Coefficients.
        """
        numbers = [model.strength, model.spread, model.offset, model.radius, model.reach]
        inputs = [state, force, *self._arrays, *rows, stride, *numbers]
        quiet_launch(_downwash_kernel(), env_count, inputs, self._device)


@cache
def _downwash_kernel() -> Any:
    wp = quiet_warp()

    def airworthy_downwash(
        state: wp.array[wp.float32],
        inputs: wp.array[wp.float32],
        members: wp.array[wp.int32],
        first: wp.array[wp.int32],
        count: wp.array[wp.int32],
        position_row: int,
        status_row: int,
        downwash_row: int,
        stride: int,
        strength: float,
        spread: float,
        offset: float,
        radius: float,
        reach: float,
    ):
        env = wp.tid()
        x = state[position_row * stride + env]
        y = state[(position_row + 1) * stride + env]
        z = state[(position_row + 2) * stride + env]
        total = float(0.0)  # noqa: UP018 - Warp takes a bare 0.0 for a constant
        for k in range(count[env]):
            other = members[first[env] + k]
            dx = state[position_row * stride + other] - x
            dy = state[(position_row + 1) * stride + other] - y
            dz = state[(position_row + 2) * stride + other] - z
            r = wp.sqrt(dx * dx + dy * dy)
            width = spread * dz + offset
            flying = state[status_row * stride + other] == 0.0
            if flying and other != env and dz > 0.0 and r < reach and width != 0.0:
                size = radius / (4.0 * dz)
                total -= strength * size * size * wp.exp(-0.5 * (r / width) * (r / width))
        inputs[downwash_row * stride + env] = total

    options = {"enable_backward": False, "fuse_fp": False}
    return wp.kernel(airworthy_downwash, module="unique", module_options=options)
