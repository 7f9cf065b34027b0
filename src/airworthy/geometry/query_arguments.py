"""Checks of what queries are asked: points, numbers per query, environments; launches that are recorded and kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import Launcher, quiet_launch, quiet_warp, thread_limit
from airworthy.geometry.placement import Mesh

if TYPE_CHECKING:
    from airworthy.geometry.batch import GeometryBatch

# ---- Which meshes enclose a volume ------------------------------------------------------------------------------------------


def is_closed(mesh: Mesh) -> bool:
    """Tell whether a mesh's triangles are the boundary of a volume, so that inside and outside have a meaning.

    Every edge must be passed as often in one direction as in the other (usually once each). Vertices at equal positions count
    as one, however often a file repeats them for the sake of texture coordinates; triangles without area do not count.
    """
    if not len(mesh.faces):
        return False
    corner = np.unique(mesh.vertices + np.float32(0.0), axis=0, return_inverse=True)[1].reshape(-1)[mesh.faces]
    a, b, c = corner.T
    corner = corner[(a != b) & (b != c) & (c != a)].astype(np.int64)
    if not len(corner):
        return False
    begin, end = corner.reshape(-1), corner[:, [1, 2, 0]].reshape(-1)
    low, high = np.minimum(begin, end), np.maximum(begin, end)
    edge = np.unique(low * len(mesh.vertices) + high, return_inverse=True)[1].reshape(-1)
    return not np.bincount(edge, weights=np.where(begin < end, 1.0, -1.0)).any()


# -----------------------------------------------------------------------------------------------------------------------------

_RECORDED = 8
"""Recorded launches kept per batch: kernels times numbers of queries."""

_recorded: WeakKeyDictionary[GeometryBatch, OrderedDict[Any, _Recorded]] = WeakKeyDictionary()
_closed: WeakKeyDictionary[GeometryBatch, Any] = WeakKeyDictionary()

Output = tuple[Any, int]
"""Type of the numbers and numbers per query of one output."""


class _Recorded:
    """One kernel for one number of queries, with the arrays that it reads and writes."""

    def __init__(self, batch: GeometryBatch, kernel: Any, inputs: Sequence[ArrayAny], outputs: Sequence[Output], count: int):
        wp = quiet_warp()
        self.inputs = [np.zeros_like(a) for a in inputs]
        self.outputs = [np.zeros((count, width), kind) for kind, width in outputs]
        views = [wp.array(a.reshape(-1), device="cpu", copy=False) for a in (*self.inputs, *self.outputs)]
        arguments = [*batch.arguments(), closed_flags(batch), *views]
        self.launcher = Repeated(kernel, count, arguments, "cpu", batch.threads)

    def run(self, batch: GeometryBatch, inputs: Sequence[ArrayAny]) -> list[ArrayAny]:
        # Into arrays of its own: a recorded launch names its memory.
        for mine, given in zip(self.inputs, inputs, strict=True):
            mine[...] = given
        for index, argument in enumerate(batch.arguments()):
            self.launcher.exchange(index, argument)
        self.launcher.launch()
        # Copies, since the next launch writes over them.
        return [a.copy() for a in self.outputs]


def run_queries(
    batch: GeometryBatch, kernel: Any, inputs: Sequence[ArrayAny], outputs: Sequence[Output], count: int
) -> list[ArrayAny]:
    """Ask `count` questions of a batch.

    Args:
        batch: Asked.
        kernel: Its arguments are the batch's, the closed flags, the inputs, the outputs, and the first query.
        inputs: One row per query, contiguous.
        outputs: Type and numbers per query of each output.
        count: Questions.

    Returns:
        Outputs, each (count, width).
    """
    if count == 0:
        return [np.zeros((0, width), kind) for kind, width in outputs]
    if batch.device != "cpu":
        return _run_on_device(batch, kernel, inputs, outputs, count)
    kept = _recorded.setdefault(batch, OrderedDict())
    # Counts repeat from tick to tick, so few launches serve a run.
    key = (kernel.key, count)
    recorded = kept.pop(key, None) or _Recorded(batch, kernel, inputs, outputs, count)
    kept[key] = recorded
    if len(kept) > _RECORDED:
        kept.popitem(last=False)
    return recorded.run(batch, inputs)


def _run_on_device(
    batch: GeometryBatch, kernel: Any, inputs: Sequence[ArrayAny], outputs: Sequence[Output], count: int
) -> list[ArrayAny]:
    wp = quiet_warp()
    sent = [wp.array(a.reshape(-1), device=batch.device) for a in inputs]
    made = [wp.zeros(count * width, dtype=wp.dtype_from_numpy(kind), device=batch.device) for kind, width in outputs]
    quiet_launch(kernel, count, [*batch.arguments(), closed_flags(batch), *sent, *made, 0], batch.device)
    return [a.numpy().reshape(count, width) for a, (_, width) in zip(made, outputs, strict=True)]


def closed_flags(batch: GeometryBatch) -> Any:
    """Return Warp array of one int per shape: 1 for a mesh that encloses a volume; found once per batch."""
    if batch not in _closed:
        # Once: whether a surface is closed takes a look at every edge.
        flags = [int(isinstance(shape, Mesh) and is_closed(shape)) for shape in batch.shapes] or [0]
        _closed[batch] = quiet_warp().array(np.array(flags, np.int32), device=batch.device)
    return _closed[batch]


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Launches that are recorded once and then repeated with other arrays ----------------------------------------------------

_KEPT = 16
"""Recorded launches kept per batch."""
_launches: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


class Repeated(Launcher):
    """A `Launcher` whose arguments can be exchanged between launches."""

    def __init__(self, kernel: Any, block_count: int, arguments: list[Any], device: str, threads: int | None = None):
        super().__init__(kernel, block_count, arguments, device, threads)
        self._held = list(arguments)  # recorded launches hold addresses only

    def exchange(self, index: int, argument: Any) -> None:
        """Take another array for argument `index` from now on."""
        if argument is self._held[index] or (isinstance(argument, int | float) and argument == self._held[index]):
            return
        self._held[index] = argument
        for record in chain([self._whole], self._parts):
            record.set_param_at_index(index, argument)

    def argument(self, index: int) -> Any:
        """Return argument `index` that is held now."""
        return self._held[index]


def striped(count: int, threads: int | None) -> NDArray[np.int32]:
    """Return an order of `count` tasks in which each thread's share is spread evenly over all: skies are cheap, and come
    together.
    """
    parts = threads or thread_limit()
    return np.concatenate([np.arange(k, count, parts, dtype=np.int32) for k in range(parts)])


def recorded(batch: Any, key: Any, make: Callable[[], Repeated]) -> Repeated:
    """Return the launch that was recorded for a batch under a key, made now if there is none; the oldest are forgotten.

    Args:
        batch: What the launches belong to; they go when it goes.
        key: What a launch depends on.
        make: Records a launch.
    """
    # By batch, weakly: launches hold its arrays, and must not keep them alive.
    kept = _launches.setdefault(batch, {})
    if key not in kept:
        # Dictionaries keep the order of insertion: the first is the oldest.
        while len(kept) >= _KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = make()
    launch: Repeated = kept[key]
    return launch


_NOTHING: dict[tuple[bool, str], Any] = {}


def element_kind(whole: bool) -> Any:
    """Return Warp's type of a 32-bit word: whole number or not."""
    wp = quiet_warp()
    return wp.int32 if whole else wp.float32


def nothing(whole: bool, device: str) -> Any:
    """Return an array for an argument that a launch does not use."""
    if (whole, device) not in _NOTHING:
        _NOTHING[whole, device] = quiet_warp().zeros(1, dtype=element_kind(whole), device=device)
    return _NOTHING[whole, device]


# -----------------------------------------------------------------------------------------------------------------------------


def vectors(name: str, value: ArrayLike, count: int | None = None) -> Array:
    """Return world vectors (n, 3) [m], contiguous; with `count`, (3,) serves all of them.

    Args:
        name: Of the argument, for the error's sentence.
        value: World vectors [m], (n, 3).
        count: Number that is expected; None: any.

    Raises:
        AirworthyError: If the shape does not fit.
    """
    array = np.asarray(value, np.float64)
    # A view: one vector for a thousand queries takes no memory of its own before it is made contiguous.
    if count is not None and array.shape == (3,):
        array = np.broadcast_to(array, (count, 3))
    if array.ndim != 2 or array.shape[1] != 3 or (count is not None and len(array) != count):
        wanted = "(n, 3)" if count is None else f"({count}, 3)"
        raise AirworthyError(f"`{name}` has shape {np.shape(value)}; expected {wanted}, world coordinates in metres.")
    return np.ascontiguousarray(array)


def lengths(name: str, value: ArrayLike, count: int) -> Array:
    """Return lengths (n,) [m], one number serving all queries; never negative, never NaN.

    Args:
        name: Of the argument, for the error's sentence.
        value: One length or (count,) [m].
        count: Queries.

    Raises:
        AirworthyError: If the shape does not fit or a value is negative or NaN.
    """
    array = np.asarray(value, np.float64)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,):
        raise AirworthyError(f"`{name}` has shape {array.shape}; expected one number or ({count},), in metres.")
    if not (array >= 0.0).all():
        raise AirworthyError(f"`{name}` holds a negative number or NaN; expected metres, 0 or more.")
    return np.ascontiguousarray(array)


def environments(env: ArrayLike | None, count: int, env_count: int) -> NDArray[np.int32]:
    """Return the environment of each query (n,): by default query k asks environment k, or all ask the only one there is.

    Args:
        env: Environment of each, (count,), or one for all; None: the default above.
        count: Queries.
        env_count: Environments that there are.

    Raises:
        AirworthyError: If there is not one valid number per query.
    """
    if env is None:
        if env_count != 1 and count != env_count:
            raise AirworthyError(
                f"{count} queries arrived for {env_count} environments; give `env`, the environment of each query."
            )
        return np.arange(count, dtype=np.int32) if env_count > 1 else np.zeros(count, np.int32)
    array = np.asarray(env)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer):
        raise AirworthyError(f"`env` is an array of {array.dtype}, shape {array.shape}; expected whole numbers, ({count},).")
    if count and (array.min() < 0 or array.max() >= env_count):
        raise AirworthyError(f"`env` names environments {array.min()} to {array.max()}; expected 0 to {env_count - 1}.")
    return np.ascontiguousarray(array, np.int32)


def instance_numbers(ignore: ArrayLike | None, count: int) -> NDArray[np.int32]:
    """Return the instance number per query (n,): -1 where none is meant.

    Raises:
        AirworthyError: If there is not one whole number per query.
    """
    array = np.asarray(-1 if ignore is None else ignore)
    if array.ndim == 0:
        array = np.broadcast_to(array, (count,))
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer):
        raise AirworthyError(f"`ignore` is an array of {array.dtype}, shape {array.shape}; expected whole numbers, ({count},).")
    return np.ascontiguousarray(array, np.int32)
