"""Reading glTF with KHR_gaussian_splatting, plain or with KHR_gaussian_splatting_compression_spz_2.

Gaussians are attributes of points: positions, rotations x, y, z, w, scales (linear and not negative in the ratified extension;
logarithms in its drafts, told by negative values), opacities, and harmonics in the basis of 3DGS. y is up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._gltf_file import GltfFile
from airworthy.scenes.formats._gltf_nodes import Node, decompose, read_nodes
from airworthy.scenes.formats._images import linear_to_srgb
from airworthy.scenes.formats._source import Source
from airworthy.scenes.splats._raw import Decoded, Raw, exponential, first_harmonic, joined, reserve
from airworthy.scenes.splats._spz import decode_spz
from airworthy.scenes.splats.harmonics import C0, turned
from airworthy.scenes.splats.record import COEFFICIENTS
from airworthy.scenes.splats.transforming import UP_TURNS

Floats = NDArray[np.float32]
_BASE = "KHR_gaussian_splatting"
_SPZ = ("KHR_gaussian_splatting_compression_spz_2", "KHR_gaussian_splatting_compression_spz")
_KNOWN = (_BASE, *_SPZ)
_POINTS = 0
_UNEVEN = 1e-3
_HALF_TURN_ABOUT_UP = (0.0, 1.0, 0.0, 0.0)
"""SPZ is right, up, back; glTF left, up, front."""


class _SplatFile(GltfFile):
    """A glTF file that may require the extensions for splats."""

    def _check(self) -> None:
        required = self.root.items("extensionsRequired")
        self.root.value["extensionsRequired"] = [name for name in required if name not in _KNOWN]
        super()._check()


def decode_gltf(source: Source) -> Decoded:
    """Gaussians of all nodes that the file shows, placed by their nodes."""
    file = _SplatFile(source)
    parts = []
    count = 0
    for node in read_nodes(file).values():
        if "mesh" not in node.fields:
            continue
        mesh = file.entry("meshes", node.fields.integer("mesh"))
        for number, value in enumerate(mesh.items("primitives")):
            count += 1
            source.at_most(count, source.limits.primitives, "primitives")
            primitive = Fields(source, value, f"primitive {number} of {mesh.where}")
            if (extension := primitive.extension(_BASE)) is None:
                source.warn("primitives that are no splats passed over")
            else:
                parts.append(_placed(source, node, _primitive(file, primitive, extension)))
    if not parts:
        source.refuse(f"it shows no splats: no primitive has the extension {_BASE}")
    return Decoded(joined(parts), f"glTF {_BASE}", "z", "left, up, front: y is up, and is turned as in every glTF file")


def _primitive(file: GltfFile, primitive: Fields, extension: Fields) -> Raw:
    source = file.source
    for name in _SPZ:
        if (packed := extension.extension(name)) is not None:
            raw = decode_spz(source, file.view(packed.integer("bufferView"))).raw
            return _turned(raw, np.array(_HALF_TURN_ABOUT_UP))
    if primitive.integer("mode", 4) != _POINTS:
        source.refuse(f"{primitive.where} has splats that are not points")
    attributes = primitive.object("attributes")
    degree = 0
    while degree < 3 and f"{_BASE}:SH_DEGREE_{degree + 1}_COEF_0" in attributes:
        degree += 1
    position = file.accessor(attributes.integer("POSITION"), (3,))
    reserve(source, len(position), degree)

    def attribute(name: str, width: int) -> Floats:
        values = file.accessor(attributes.integer(name), (width,))
        if len(values) != len(position):
            source.refuse(f"{primitive.where} has {len(position):,} positions and {len(values):,} of {name}")
        return values

    harmonics = np.empty((len(position), COEFFICIENTS[degree], 3), np.float32)
    for band in range(degree + 1):
        for index in range(2 * band + 1):
            harmonics[:, band * band + index] = attribute(f"{_BASE}:SH_DEGREE_{band}_COEF_{index}", 3)
    scale = attribute(f"{_BASE}:SCALE", 3)
    if (scale < 0).any():
        source.warn("scales taken for logarithms, as in drafts of the extension, since some are negative")
        scale = exponential(scale)
    if extension.text("colorSpace", "").startswith("lin"):
        harmonics = _encoded(source, harmonics)
    rotation = attribute(f"{_BASE}:ROTATION", 4)
    return Raw(position, rotation, scale, attribute(f"{_BASE}:OPACITY", 1)[:, 0], harmonics)


def _encoded(source: Source, harmonics: Floats) -> Floats:
    """sRGB-encoded colours of linear ones: exact in the mean, to first order in what depends on the direction."""
    source.warn("linear colours encoded; what depends on the direction is exact to first order only")
    mean = 0.5 + C0 * harmonics[:, 0]
    slope_at = np.clip(mean, 0.01, 1.0).astype(np.float64)
    slope = (linear_to_srgb(slope_at + 1e-3) - linear_to_srgb(slope_at - 1e-3)) / 2e-3
    return np.concatenate([first_harmonic(linear_to_srgb(mean)), harmonics[:, 1:] * slope[:, None]], 1).astype(np.float32)


def _placed(source: Source, node: Node, raw: Raw) -> Raw:
    """Gaussians in our frame: turned to z up, then moved by the node, whose place is already in our frame."""
    position, attitude, scale = decompose(node.matrix)
    size = float(np.abs(scale).mean())
    linear = frames.to_matrix(attitude) * size
    if size <= 0 or not np.allclose(node.matrix[:3, :3], linear, rtol=0, atol=_UNEVEN * size):
        source.refuse(f"node {node.index} stretches or mirrors its splats; only uniform scales can be applied to them")
    raw = _turned(raw, frames.multiply(attitude, np.array(UP_TURNS["y"])))
    moved = (raw.position.astype(np.float64) * size + position).astype(np.float32)
    return replace(raw, position=moved, scale=raw.scale * np.float32(size))


def _turned(raw: Raw, rotation: NDArray[np.float64]) -> Raw:
    matrix, product = frames.to_matrix(rotation), frames.multiply(rotation, np.eye(4))
    position = (raw.position @ matrix.T).astype(np.float32)
    attitude = (raw.rotation @ product).astype(np.float32)
    return replace(raw, position=position, rotation=attitude, harmonics=turned(raw.harmonics, rotation))
