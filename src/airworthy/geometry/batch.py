"""The shapes of many environments, ready for queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayIndex, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import on_cache_line, quiet_warp
from airworthy.geometry.hierarchy import INSTANCE, LAYOUT, NODE, as_warp, build_kernel, run_build, shape_arrays
from airworthy.geometry.native_text import BATCH_ARGUMENTS
from airworthy.geometry.placement import POSITION_LIMIT, SHADOWS, Placement, Shape, unit_quaternions
from airworthy.geometry.query_arguments import Repeated

# ---- Rows of instances as `native/batch.h` reads them -----------------------------------------------------------------------

VISIBLE, COLLIDES, NO_SHADOW, SHADOW_ONLY = 1, 2, 4, 8
"""Flags of an instance; neither: it is not there."""


def fill_instances(rows: NDArray[np.void], placement: Placement, active: ArrayBool) -> None:
    """Fill everything of instance rows but the pose.

    Args:
        rows: Instance rows that are written, (n,).
        placement: Where the values come from, n instances.
        active: Whether each is there at all, (n,); one that is not is neither rendered nor met.
    """
    for name in ("shape", "instance_id", "semantic_id", "material", "group"):
        rows[name] = getattr(placement, name)
    shadow = np.asarray(placement.shadow)
    flags = VISIBLE * placement.visible + COLLIDES * placement.collide
    flags = flags + np.where(shadow == SHADOWS["none"], NO_SHADOW, 0) + np.where(shadow == SHADOWS["only"], SHADOW_ONLY, 0)
    rows["flags"] = np.where(active, flags, 0)
    rows["footprint"] = footprint_bits(np.asarray(placement.footprint))


def _has_shadows(placement: Placement) -> bool:
    """Tell whether some instance casts no shadow, or is a shadow alone: the top level is three trees then."""
    return bool(np.any(placement.shadow))


def footprint_bits(footprint: Array) -> NDArray[np.uint32]:
    """Return pairs of widths (n, 2) as words (n,): the upper halves of both as single floats, the first in the lower half.

    Two levels of detail that meet at one number meet in its word as well.
    """
    halves = np.ascontiguousarray(footprint, np.float32).view(np.uint32) >> np.uint32(16)
    return np.asarray(halves[:, 0] | (halves[:, 1] << np.uint32(16)), np.uint32)


def pose_fields(position: Array, attitude: Array, scale: Array) -> ArrayF32:
    """Return (n, 11): position, what single precision leaves of it, quaternion, scale.

    Args:
        position: World [m], (n, 3).
        attitude: Quaternions x, y, z, w, local to world, (n, 4).
        scale: Size over the shape's own, (n,).
    """
    high = position.astype(np.float32)
    return np.concatenate([high, position - high, attitude, scale[:, None]], 1).astype(np.float32)


# -----------------------------------------------------------------------------------------------------------------------------


class GeometryBatch:
    """Shapes of many environments.

    Every environment has a static layer (a *layout*, which many environments may share) and a small layer of *dynamic
    instances* of its own. There is one hierarchy per unique mesh, one top level per layout, and one per environment's dynamic
    instances. Memory is unique triangles plus instances.

    Args:
        shapes: What instances refer to by index.
        layouts: Static layers.
        env_layout: (env,) layout of each environment; by default environment k has layout k.
        dynamic_instances: One per environment, with the same number of instances in all; None: no dynamic instances.
        device: Warp device name.
        threads: Most threads of a launch on a CPU.

    Raises:
        AirworthyError: If an index is out of range or the counts of dynamic instances differ.
    """

    def __init__(
        self,
        shapes: Sequence[Shape],
        layouts: Sequence[Placement],
        env_layout: ArrayLike | None = None,
        dynamic_instances: Sequence[Placement] | None = None,
        device: str = "cpu",
        threads: int | None = None,
    ):
        self.shapes, self.device, self.threads = tuple(shapes), str(device), threads
        if not layouts:
            raise AirworthyError("A batch got no layouts; give at least one, `Placement.empty()` for a place without anything.")
        self.layout_count = len(layouts)
        chosen = np.arange(self.layout_count) if env_layout is None else np.asarray(env_layout)
        self._env_layout = np.ascontiguousarray(self._checked_layouts(np.atleast_1d(chosen)))
        self.env_count = len(self._env_layout)
        self.revision = 0
        """Rises whenever something is placed, switched or moved: what was found around a point may no longer hold."""
        self.version = 0
        """Rises whenever an array is replaced by another; recorded launches are then made anew."""
        self._shape_arrays = shape_arrays(self.shapes)
        self._placements = [self._checked(p) for p in layouts]
        self._active = [np.ones(len(p), bool) for p in layouts]
        self._device_arrays: dict[str, Any] = {}
        self._scratch: dict[str, Any] = {}
        # Sent when a query asks, not when it changes: whoever poses and switches many things pays once.
        self._stale = set(BATCH_ARGUMENTS)
        """Arrays whose content changed on the host since they were last sent."""
        self._make_layouts()
        self._make_dynamic(dynamic_instances)
        self._dynamic_launch: Repeated | None = None

    # ---- layouts ----------------------------------------------------------------------------------------------------

    def _make_layouts(self) -> None:
        """Fresh arrays in which every layout has its room, and in them every layout."""
        capacity = [max(len(p), 1) for p in self._placements]
        self._layout_rows = np.zeros(self.layout_count, LAYOUT)
        first = np.concatenate([[0], np.cumsum(capacity)]).astype(np.int32)
        # A tree of n leaves has less than 2 n nodes, three under two more nodes less than 2 n + 4: node spans follow from
        # instance spans, and from whether things are sorted by their shadows.
        self._sorted = np.array([_has_shadows(p) for p in self._placements])
        more = np.concatenate([[0], np.cumsum(4 * self._sorted)])
        self._layout_rows["first"], self._layout_rows["root"] = first[:-1], 2 * first[:-1] + more[:-1] + 1
        self._layout_rows["capacity"] = capacity
        self._layout_instances = np.zeros(first[-1], INSTANCE)
        self._layout_nodes = on_cache_line(np.zeros(2 * first[-1] + more[-1], NODE))
        self._stale_layouts = set(range(self.layout_count))
        self.dynamic_start = int(max(capacity))
        """Instance number of an environment's first dynamic instance: as many instances as the largest layout has room for."""

    def _build_layouts(self, indices: Sequence[int]) -> None:
        """Fill the rows of layouts and build their top levels, all in one launch."""
        room = len(self._layout_instances)
        # As long as the instances: a task counts its rows in all arrays alike. Pages that no task touches cost nothing.
        poses, boxes, order = np.empty((room, 11), np.float32), np.empty((room, 6), np.float32), np.empty(room, np.int32)
        tasks = np.zeros((len(indices), 4), np.int32)
        for task, index in zip(tasks, indices, strict=True):
            row, placement = self._layout_rows[index], self._placements[index]
            row["count"] = len(placement)
            first, count = int(row["first"]), len(placement)
            rows = self._layout_instances[first : first + int(row["capacity"])]
            rows[:] = np.zeros(1, INSTANCE)
            fill_instances(rows[:count], placement, self._active[index])
            poses[first : first + count] = pose_fields(placement.position, placement.attitude, placement.scale)
            task[:3] = first, count, row["root"]
        arrays = [self._shape_arrays.shapes, self._layout_instances, poses, tasks, self._layout_nodes, boxes, order]
        run_build([*(as_warp(x) for x in arrays), 1, 1], len(tasks), "cpu")

    def set_layout(self, index: int, placement: Placement) -> None:
        """Replace the content of a layout; every environment that uses it sees the change from the next query on.

        Raises:
            AirworthyError: If there is no such layout or the placement names no shape of this batch.
        """
        self._check_layout(index)
        self._placements[index] = self._checked(placement)
        self._active[index] = np.ones(len(placement), bool)
        # Only growth moves the other layouts; what fits is written over what was there.
        if len(placement) > self._layout_rows["capacity"][index] or _has_shadows(placement) > self._sorted[index]:
            self._make_layouts()
            self._stale |= {"batch_numbers"}
            self.version += 1
        self._stale_layouts.add(index)
        self.revision += 1

    def set_layout_active(self, index: int, active: ArrayLike) -> None:
        """Let only some instances of a layout exist.

        Args:
            index: Layout.
            active: (n,) bool, one per instance.
        """
        self._check_layout(index)
        flags = np.asarray(active)
        if flags.shape != self._active[index].shape or flags.dtype != bool:
            raise AirworthyError(
                f"`active` is an array of {flags.dtype}, shape {flags.shape}; expected bool, one per instance of layout "
                f"{index}, shape {self._active[index].shape}."
            )
        if (flags != self._active[index]).any():
            self._active[index] = flags.copy()
            self._stale_layouts.add(index)
            self.revision += 1

    def assign(self, env_ids: ArrayLike, layout_index: ArrayLike) -> None:
        """Assign environments other layouts from now on.

        Args:
            env_ids: (k,) environments.
            layout_index: (k,) or one layout.
        """
        envs = self.check_environments(env_ids)
        self._env_layout[envs] = self._checked_layouts(np.broadcast_to(np.asarray(layout_index), envs.shape))
        self._stale.add("env_layout")
        self.revision += 1

    @property
    def env_layout(self) -> NDArray[np.int32]:
        """(env,) layout of each environment; a copy."""
        return self._env_layout.copy()

    def layout(self, index: int) -> Placement:
        """Return the content of a layout."""
        self._check_layout(index)
        return self._placements[index]

    # ---- dynamic instances -----------------------------------------------------------------------------------------

    def _make_dynamic(self, dynamic_instances: Sequence[Placement] | None) -> None:
        self.dynamic_count = 0 if not dynamic_instances else len(dynamic_instances[0])
        """Dynamic instances of every environment."""
        if dynamic_instances and len(dynamic_instances) != self.env_count:
            raise AirworthyError(
                f"{len(dynamic_instances)} placements of dynamic instances arrived for {self.env_count} environments; give one"
                " each."
            )
        room = max(self.env_count * self.dynamic_count, 1)
        self._dynamic_instances = np.zeros(room, INSTANCE)
        self._dynamic_poses = np.zeros((room, 11), np.float32)
        # A quaternion of no turn, and scale 1: rows that nothing fills yet must not hold what kernels divide by.
        self._dynamic_poses[:, 9:] = 1.0
        self._dynamic_flags = np.zeros(room, np.int32)
        self._stale_dynamic = np.zeros(self.env_count, bool)
        if dynamic_instances and self.dynamic_count:
            self.replace_dynamic_instances(np.arange(self.env_count), dynamic_instances)

    def replace_dynamic_instances(self, env_ids: ArrayLike, dynamic_instances: Sequence[Placement]) -> None:
        """Replace the dynamic instances of environments: shapes, numbers, flags and poses.

        Args:
            env_ids: (k,) environments.
            dynamic_instances: k placements of `dynamic_count` instances.
        """
        envs = self.check_environments(env_ids)
        if len(dynamic_instances) != len(envs):
            raise AirworthyError(
                f"{len(dynamic_instances)} placements of dynamic instances arrived for {len(envs)} environments; give one each."
            )
        for env, placement in zip(envs, dynamic_instances, strict=True):
            if len(placement) != self.dynamic_count:
                raise AirworthyError(
                    f"Environment {env} got {len(placement)} dynamic instances and another {self.dynamic_count}; give all the"
                    " same number, and switch the rest off with `set_dynamic_instances(active=...)`."
                )
            self._checked(placement)
            rows = slice(env * self.dynamic_count, (env + 1) * self.dynamic_count)
            fill_instances(self._dynamic_instances[rows], placement, np.ones(len(placement), bool))
            # Kept beside the flags in force, for a dynamic instance that is switched on again.
            self._dynamic_flags[rows] = self._dynamic_instances["flags"][rows]
            self._dynamic_poses[rows] = pose_fields(placement.position, placement.attitude, placement.scale)
        self._stale_dynamic[envs] = True
        self._stale.add("dynamic_instances")
        self.revision += 1

    def set_dynamic_instances(
        self, position: ArrayLike, attitude: ArrayLike, env_ids: ArrayLike | None = None, active: ArrayLike | None = None
    ) -> None:
        """Pose the dynamic instances of environments; their top levels are built anew at the next query.

        Args:
            position: (k, dynamic_count, 3) world [m].
            attitude: (k, dynamic_count, 4) x, y, z, w, local to world.
            env_ids: (k,) environments, each once; None: all.
            active: (k, dynamic_count) bool; None: as they were.

        Raises:
            AirworthyError: If a shape does not fit, a value is not finite or a quaternion is zero.
        """
        envs = np.arange(self.env_count) if env_ids is None else self.check_environments(env_ids)
        shape = (len(envs), self.dynamic_count)
        where, turned = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        if where.shape != (*shape, 3) or turned.shape != (*shape, 4):
            raise AirworthyError(
                f"Dynamic instances got positions {where.shape} and attitudes {turned.shape}; expected {(*shape, 3)} and"
                f" {(*shape, 4)}."
            )
        if not (np.abs(where) <= POSITION_LIMIT).all():
            raise AirworthyError(f"Dynamic instances got a position that is not finite or beyond {POSITION_LIMIT:g} m.")
        poses = self._dynamic_poses.reshape(self.env_count, -1, 11) if self.dynamic_count else None
        if poses is None:
            return
        # Two floats hold a coordinate to 48 bits: a kilometre away single precision alone is a tenth of a millimetre off.
        high = where.astype(np.float32)
        poses[envs, :, 0:3], poses[envs, :, 3:6] = high, where - high
        poses[envs, :, 6:10] = unit_quaternions(turned, "The dynamic instances' attitude")
        if active is not None:
            flags = np.asarray(active)
            if flags.shape != shape or flags.dtype != bool:
                raise AirworthyError(
                    f"`active` is an array of {flags.dtype}, shape {flags.shape}; expected bool, shape {shape}."
                )
            self._switch(envs, flags)
        self._stale_dynamic[envs] = True
        self.revision += 1

    def dynamic_poses(self) -> tuple[Array, Array]:
        """Return copies of the dynamic instances' positions, world [m], (env, dynamic_count, 3), and attitudes, local to world,
        (env, dynamic_count, 4).
        """
        rows = self.env_count * self.dynamic_count
        poses = self._dynamic_poses[:rows].astype(np.float64).reshape(self.env_count, self.dynamic_count, 11)
        return poses[..., 0:3] + poses[..., 3:6], poses[..., 6:10]

    def _switch(self, envs: ArrayIndex, active: ArrayBool) -> None:
        rows = (envs[:, None] * self.dynamic_count + np.arange(self.dynamic_count)).reshape(-1)
        flags = np.where(active.reshape(-1), self._dynamic_flags[rows], 0)
        if (self._dynamic_instances["flags"][rows] != flags).any():
            self._dynamic_instances["flags"][rows] = flags
            self._stale.add("dynamic_instances")

    # ---- what queries read ------------------------------------------------------------------------------------------

    def arguments(self) -> list[Any]:
        """Return Warp arrays in the order of `BATCH_ARGUMENTS`, brought up to date."""
        if self._stale_layouts:
            self._build_layouts(sorted(self._stale_layouts))
            self._stale |= {"layout_rows", "layout_nodes", "layout_instances"}
            self._stale_layouts.clear()
        if self._stale:
            self._send()
        if self.dynamic_count and self._stale_dynamic.any():
            self._build_dynamic()
        return [self._device_arrays[name] for name in BATCH_ARGUMENTS]

    def _send(self) -> None:
        wp = quiet_warp()
        parts = self._shape_arrays
        numbers = np.array([self.dynamic_start, self.dynamic_count, self.env_count, self.layout_count], np.int32)
        host: dict[str, Any] = {
            "shape_rows": parts.shapes, "mesh_nodes": parts.nodes, "mesh_triangles": parts.triangles,
            "mesh_vertices": parts.vertices, "mesh_faces": parts.faces, "layout_rows": self._layout_rows.view(np.int32),
            "layout_nodes": self._layout_nodes, "layout_instances": self._layout_instances, "env_layout": self._env_layout,
            "dynamic_instances": self._dynamic_instances, "batch_numbers": numbers,
        }  # fmt: skip
        for name in self._stale & set(host):
            sent = as_warp(host[name])
            old = self._device_arrays.get(name)
            if self.device == "cpu":
                # The same memory: recorded launches that name it stay valid.
                same = old is not None and old.ptr == sent.ptr
                self._device_arrays[name] = old if same else sent
            elif old is not None and old.shape == sent.shape:
                wp.copy(old, sent)
            else:
                self._device_arrays[name] = sent.to(self.device)
        if "dynamic_nodes" not in self._device_arrays:
            room = max(2 * self.dynamic_count * self.env_count, 1)
            self._device_arrays["dynamic_nodes"] = wp.zeros(8 * room, dtype=wp.float32, device=self.device)
        if "batch_numbers" in self._stale:
            self.version += 1
        self._stale.clear()

    def _build_dynamic(self) -> None:
        wp = quiet_warp()
        envs = np.flatnonzero(self._stale_dynamic).astype(np.int32)
        count, arrays = self.dynamic_count, self._device_arrays
        if not self._scratch:
            room = self.env_count * count
            self._scratch["boxes"] = wp.zeros(6 * room, dtype=wp.float32, device=self.device)
            self._scratch["order"] = wp.zeros(room, dtype=wp.int32, device=self.device)
            self._scratch["tasks"] = np.zeros((self.env_count, 4), np.int32)
        tasks = self._scratch["tasks"][: len(envs)]
        tasks[:, 0], tasks[:, 1], tasks[:, 2] = envs * count, count, 2 * count * envs
        inputs = [
            arrays["shape_rows"], arrays["dynamic_instances"], as_warp(self._dynamic_poses), as_warp(tasks),
            arrays["dynamic_nodes"], self._scratch["boxes"], self._scratch["order"], 1, 2,
        ]  # fmt: skip
        if self.device != "cpu":
            inputs[2:4] = [inputs[2].to(self.device), inputs[3].to(self.device)]
            run_build(inputs, len(envs), self.device)
        # The usual case of a simulation, all environments at once, is recorded; others are rare and differ in length.
        elif len(envs) == self.env_count:
            if self._dynamic_launch is None:
                self._dynamic_launch = Repeated(build_kernel(), len(envs), inputs, "cpu", self.threads)
            for index, argument in enumerate(inputs[:7]):
                self._dynamic_launch.exchange(index, argument)
            self._dynamic_launch.launch()
        else:
            run_build(inputs, len(envs), "cpu")
        self._stale_dynamic[:] = False

    def instance_shapes(self, env: int) -> NDArray[np.int32]:
        """Return (dynamic_start + dynamic_count,) shape of every instance number of an environment; -1 where there is none."""
        shapes = np.full(self.dynamic_start + self.dynamic_count, -1, np.int32)
        placement = self._placements[self._env_layout[env]]
        shapes[: len(placement)] = placement.shape
        rows = slice(env * self.dynamic_count, (env + 1) * self.dynamic_count)
        shapes[self.dynamic_start :] = self._dynamic_instances["shape"][rows]
        return shapes

    def memory(self) -> dict[str, int]:
        """Return bytes by part: what all environments share, and what grows with their number."""
        parts = self._shape_arrays
        nodes = 2 * self.dynamic_count * self.env_count * NODE.itemsize
        dynamic = nodes + self._dynamic_poses.nbytes + self._dynamic_instances.nbytes
        return {
            "mesh_triangles": parts.triangles.nbytes,
            "mesh_trees": parts.nodes.nbytes,
            "mesh_vertices_and_faces": parts.vertices.nbytes + parts.faces.nbytes,
            "layouts": self._layout_instances.nbytes
            + self._layout_nodes.nbytes
            + self._layout_rows.nbytes
            + parts.shapes.nbytes,
            "movers": dynamic if self.dynamic_count else 0,
            "environments": self._env_layout.nbytes,
        }

    # ---- checks -----------------------------------------------------------------------------------------------------

    def check_environments(self, env_ids: ArrayLike) -> ArrayIndex:
        """Return environment numbers (k,), each valid.

        Raises:
            AirworthyError: If one is out of range or they are not whole numbers.
        """
        envs = np.atleast_1d(np.asarray(env_ids))
        if envs.size == 0:
            return np.zeros(0, np.intp)
        if envs.ndim != 1 or not np.issubdtype(envs.dtype, np.integer):
            raise AirworthyError(
                f"Environments are an array of {envs.dtype}, shape {envs.shape}; expected whole numbers, (k,)."
            )
        if envs.min() < 0 or envs.max() >= self.env_count:
            raise AirworthyError(f"Environments {envs.min()} to {envs.max()} were named; expected 0 to {self.env_count - 1}.")
        return envs.astype(np.intp)

    def _check_layout(self, index: int) -> None:
        if not 0 <= index < self.layout_count:
            raise AirworthyError(f"There is no layout {index}; expected 0 to {self.layout_count - 1}.")

    def _checked_layouts(self, chosen: ArrayAny) -> NDArray[np.int32]:
        if chosen.ndim != 1 or (chosen.size and not np.issubdtype(chosen.dtype, np.integer)):
            raise AirworthyError(
                f"Layouts of environments are an array of {chosen.dtype}, shape {chosen.shape}; expected ints, (env,)."
            )
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.layout_count):
            raise AirworthyError(f"Layouts {chosen.min()} to {chosen.max()} were named; expected 0 to {self.layout_count - 1}.")
        return chosen.astype(np.int32)

    def _checked(self, placement: Placement) -> Placement:
        if len(placement) and int(placement.shape.max()) >= len(self.shapes):
            raise AirworthyError(
                f"A placement names shape {placement.shape.max()}, but the batch has {len(self.shapes)} shapes, counted from 0."
            )
        return placement
