"""Where the corners of a gate's visible opening are, beside those of its mid plane: what the thickness of its tube hides.

A tube of square section has an opening on its near face and one on its far face; looking through, one sees what is within both.
Edges of the two faces are parallel, so that of each side of the opening one of them is the inner one along all its length:
obliquely the near face bounds the opening on one side and the far face on the other. The visible corners are where the inner
edges of neighbouring sides meet in the picture. Filters and planners know the corners of the mid plane between the faces.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex

__all__ = ["TUBE", "around", "visible_corners"]

TUBE = 0.15
"""Thickness of a gate along its normal [m], as the hall of 2019 is built here (`airworthy.scenes.generators.halls`)."""
_NEAREST = 0.2
"""Least depth of the corners whose opening is predicted [m]; ours, below the 0.3 m at which filters leave corners out."""
_PARALLEL = 1e-3
"""Sine of the angle below which two edges do not meet."""


def around(corners: Array) -> ArrayIndex:
    """Return the order that leads round four corners, (4,): gates list theirs row by row, or round.

    Args:
        corners: World or any other frame, (4, 3).
    """
    out = corners - corners.mean(axis=0)
    across = out[0] / np.linalg.norm(out[0])
    # The second axis is square to the first, in the plane.
    other = out[int(np.argmin(np.abs(out @ across)))]
    up = other - (other @ across) * across
    return np.argsort(np.arctan2(out @ up / np.linalg.norm(up), out @ across), kind="stable")


def visible_corners(corners: Array, normal: Array, focal: Array, center: Array) -> Array:
    """Return pixels of the corners of what is seen through a gate, in the corners' order, (4, 2); NaN where nothing is seen.

    Each corner is found by itself, so that those before the camera are known while others are beside or behind it.

    Args:
        corners: Of the mid plane, round the opening, in the camera's frame (x right, y down, z ahead) [m], (4, 3).
        normal: Of the plane, unit length, (3,).
        focal: Focal lengths [px], (2,).
        center: Principal point [px], (2,).
    """
    seen = np.full((4, 2), np.nan)
    for k in range(4):
        edges = np.stack([corners[k - 1] - corners[k], corners[(k + 1) % 4] - corners[k]])
        edges /= np.linalg.norm(edges, axis=1)[:, None]
        faces = corners[k] + 0.5 * TUBE * np.outer([-1.0, 1.0], normal)
        if np.all(faces[:, 2] > _NEAREST):
            seen[k] = _corner(faces, edges, focal, center)
    # Seen from so far aside that the inner edges have passed each other, nothing is left between them.
    whole = np.isfinite(seen).all() and np.all(corners[:, 2] > _NEAREST)
    if whole and not np.all(np.sign(_turns(seen)) == np.sign(_turns(corners[:, :2] / corners[:, 2:]))):
        seen[:] = np.nan
    return seen


def _corner(faces: Array, edges: Array, focal: Array, center: Array) -> Array:
    """Return where the inner ones of a corner's edges meet, (2,) [px]; NaN where edges are seen along each other.

    Args:
        faces: The corner on both faces, camera frame [m], (2, 3).
        edges: Directions of both its edges, away from it, (2, 3).
        focal: Focal lengths [px], (2,).
        center: Principal point [px], (2,).
    """
    at = faces[:, :2] / faces[:, 2:]
    # Slope of the projection along an edge, of each face and edge, (2, 2, 2), up to its length.
    ways = edges[None, :, :2] - at[:, None] * edges[None, :, 2:]
    lines = []
    for edge in (0, 1):
        along, other = ways[:, edge], ways[:, 1 - edge]
        across = np.stack([-along[:, 1], along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
        # Positive towards the opening, which lies where the other edge leads.
        across *= np.sign(np.sum(across * other, axis=1))[:, None]
        offset = np.sum(across * at, axis=1)
        # The inner edge is that behind which the other face's corner lies: it has less of the opening on its side.
        first = across[0] @ at[1] < offset[0]
        lines.append((across[0], offset[0]) if first else (across[1], offset[1]))
    both = np.stack([line[0] for line in lines])
    if abs(float(np.linalg.det(both))) < _PARALLEL:
        return np.full(2, np.nan)
    met: Array = np.linalg.solve(both, np.array([line[1] for line in lines]))
    return center + focal * met


def _turns(ring: Array) -> Array:
    step = np.roll(ring, -1, axis=0) - ring
    after = np.roll(step, -1, axis=0)
    return np.asarray(step[:, 0] * after[:, 1] - step[:, 1] * after[:, 0])
