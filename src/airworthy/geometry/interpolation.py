"""Vertex channels at the points that rays met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.cast import sensor_environments
from airworthy.geometry.shapes import Mesh


def interpolate(batch: GeometryBatch, hits: dict[str, NDArray[Any]], channel: str | NDArray[Any]) -> NDArray[np.float32]:
    """A user's vertex channel at the points that rays met.

    Args:
        batch: The batch that was cast into.
        hits: What `cast` gave, with `instance`, `face` and `barycentric`; add `env` (c,) where sensor k is not in
            environment k.
        channel: Name of a channel of the meshes, or an array (V,) or (V, k) that belongs to every mesh met.

    Returns:
        (c, H, W) or (c, H, W, k); NaN where nothing, a solid, or a mesh without that channel was met.

    Raises:
        AirworthyError: If a channel of the hits is missing or the meshes' channels differ in width.
    """
    for name in ("instance", "face", "barycentric"):
        if name not in hits:
            raise AirworthyError(f"`hits` has no {name!r}; cast with the channels instance, face and barycentric.")
    instance, face, weights = hits["instance"], hits["face"], hits["barycentric"]
    envs = sensor_environments(hits.get("env"), len(instance), batch.env_count)
    shape_of = _shapes_met(batch, instance, envs)
    result: NDArray[np.float32] | None = None
    for index in np.unique(shape_of[shape_of >= 0]):
        mesh = batch.shapes[index]
        values = mesh.channels.get(channel) if isinstance(mesh, Mesh) and isinstance(channel, str) else channel
        if not isinstance(mesh, Mesh) or values is None or isinstance(values, str):
            continue
        values = np.asarray(values, np.float32)
        if len(values) != len(mesh.vertices):
            raise AirworthyError(f"A vertex channel has {len(values)} rows; expected {len(mesh.vertices)}, one per vertex.")
        if result is None:
            result = np.full((*instance.shape, *values.shape[1:]), np.nan, np.float32)
        if result.shape[instance.ndim :] != values.shape[1:]:
            raise AirworthyError(f"Vertex channels differ in width: {values.shape[1:]} and {result.shape[instance.ndim :]}.")
        met = shape_of == index
        corners = values[mesh.faces[face[met]]]
        v, w = weights[met][:, 0], weights[met][:, 1]
        share = np.stack([1.0 - v - w, v, w], 1).reshape(-1, 3, *[1] * (values.ndim - 1))
        result[met] = (corners * share).sum(1)
    return np.full(instance.shape, np.nan, np.float32) if result is None else result


def _shapes_met(batch: GeometryBatch, instance: NDArray[np.int32], env: NDArray[np.int32]) -> NDArray[np.int32]:
    """Index of the shape that each ray met; -1: none."""
    result = np.full(instance.shape, -1, np.int32)
    for k, number in enumerate(instance):
        shapes = batch.instance_shapes(int(env[k]))
        result[k] = np.where(number >= 0, shapes[np.maximum(number, 0)], -1)
    return result
