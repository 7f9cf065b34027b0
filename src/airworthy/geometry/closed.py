"""Which meshes enclose a volume."""

from __future__ import annotations

import numpy as np

from airworthy.geometry.shapes import Mesh


def is_closed(mesh: Mesh) -> bool:
    """Whether a mesh's triangles are the boundary of a volume, so that inside and outside have a meaning.

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
