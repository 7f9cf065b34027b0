"""Runs a kernel of queries on a batch; buffers and recorded launches are kept, so that asking again costs microseconds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.native_kernel import quiet_launch, quiet_warp
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.query_arguments import Repeated
from airworthy.geometry.shapes import Mesh

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

_KEPT = 8
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
    if len(kept) > _KEPT:
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
    """Warp array of one int per shape: 1 for a mesh that encloses a volume; found once per batch."""
    if batch not in _closed:
        flags = [int(isinstance(shape, Mesh) and is_closed(shape)) for shape in batch.shapes] or [0]
        _closed[batch] = quiet_warp().array(np.array(flags, np.int32), device=batch.device)
    return _closed[batch]
