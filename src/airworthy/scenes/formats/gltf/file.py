"""The glTF container: JSON, buffers, accessors. Everything that the JSON claims is held against the bytes that are there."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayF32, NDArray
from airworthy.core.files import image_kind, parse_json, shown
from airworthy.scenes.formats._source import JsonFields, ModelSource
from airworthy.scenes.formats.gltf.glass import GLASS_EXTENSIONS

EXTENSIONS = GLASS_EXTENSIONS | {
    "EXT_mesh_gpu_instancing",
    "EXT_texture_webp",
    "KHR_lights_punctual",
    "KHR_materials_emissive_strength",
    "KHR_materials_pbrSpecularGlossiness",
    "KHR_materials_unlit",
    "KHR_mesh_quantization",
    "KHR_texture_transform",
}
"""Those that are read; a file may require no others."""
_NAMED = {
    "KHR_draco_mesh_compression": "Draco-compressed",
    "EXT_meshopt_compression": "meshopt-compressed",
    "KHR_meshopt_compression": "meshopt-compressed",
    "KHR_texture_basisu": "Basis-compressed",
}
_KINDS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_JSON_EXPANSION = 24  # bytes of Python objects per byte of JSON, at worst
_JSON_USUAL = 10
_HEAD = 1024
"""Bytes by which it is told whether a file may be glTF at all."""
_FREE_ZEROS = 4096  # an accessor without bytes of its own may have as many elements as the file has bytes, or this many


def _begins_json(data: bytes) -> bool:
    """Tell whether a file begins as an object of JSON, behind blanks and a mark of its encoding."""
    return re.match(rb"(\xef\xbb\xbf)?\s*\{", data) is not None


def _kind(data: bytes) -> str:
    """Return what a file is that is no glTF, for a sentence."""
    head = data[:_HEAD]
    if not head.strip():
        return "blank" if data else "empty"
    if (image := image_kind(data)) or data[:2] == b"PK":
        return f"an image ({image})" if image else "an archive (ZIP)"
    if b"\0" in head or sum(byte < 9 or byte > 126 for byte in head) * 4 > len(head):
        return "binary, and does not begin as glTF"
    return f"text that begins with {shown(head.split(maxsplit=1)[0].decode('utf-8', 'replace'))}"


class GltfFile:
    """JSON and bytes of a .glb or .gltf file.

    Raises:
        AssetError: The container or its JSON is damaged, too large, or requires what is not supported.
    """

    def __init__(self, source: ModelSource) -> None:
        self.source = source
        self._uris: list[memoryview] = []
        self._binary: bytes | memoryview = b""
        # By content: endings of files are often wrong.
        if source.data[:4] != b"glTF" and not _begins_json(source.data):
            source.refuse(f"it is {_kind(source.data)}; expected glTF 2.0, binary or as JSON text")
        text = self._chunks() if source.data[:4] == b"glTF" else self._without_data_uris(source.data)
        self.root = JsonFields(source, self._parsed(text), "the file")
        self._check()
        self._buffers: dict[int, bytes | memoryview] = {}
        self._lists: dict[str, list[Any]] = {}

    def _chunks(self) -> bytes:
        """JSON of a GLB; its binary chunk is kept aside."""
        data, source = self.source.data, self.source
        if len(data) < 20:
            source.refuse("it ends within its header")
        version, length, json_length, json_kind = struct.unpack_from("<4I", data, 4)
        if version != 2:
            source.refuse(f"it is glTF {version}; 2 is read")
        if length > len(data) or json_length > length - 20 or json_kind != 0x4E4F534A:
            source.refuse(
                f"it promises {max(length, json_length):,} bytes and has {len(data):,}, or does not begin with its JSON"
            )
        start = 20 + json_length
        while start + 8 <= length:
            size, kind = struct.unpack_from("<2I", data, start)
            if size > length - start - 8:
                source.refuse(f"one of its chunks promises {size:,} bytes and has {length - start - 8:,}")
            # "BIN" and a zero, as chunk types are read from little-endian bytes.
            if kind == 0x004E4942:
                self._binary = memoryview(data)[start + 8 : start + 8 + size]
                break
            start += 8 + size
        return data[20 : 20 + json_length]

    def _without_data_uris(self, text: bytes) -> bytes:
        """Return the JSON with its data URIs taken out and numbered: they are long, but do not grow when they are parsed."""
        parts = []
        start = 0
        while (begin := text.find(b'"data:', start)) >= 0:
            end = text.find(b'"', begin + 1)
            if end < 0 or len(self._uris) >= self.source.limits.nodes:
                break
            if text.find(b"\\", begin, end) >= 0:  # escaped characters: left to the parser
                parts.append(text[start : end + 1])
            else:
                parts.append(text[start:begin] + b'"data:#%d"' % len(self._uris))
                self._uris.append(memoryview(text)[begin + 1 : end])
            start = end + 1
        parts.append(text[start:])
        return b"".join(parts)

    def _parsed(self, text: bytes) -> Any:
        source, limits = self.source, self.source.limits
        # Without data URIs, which were taken out before: it is the parsed objects that need the memory.
        if len(text) > limits.json_bytes:
            source.refuse(f"its JSON has {len(text):,} bytes, and at most {limits.json_bytes:,} are accepted")
        # Counted before it is parsed, at worst; what was not needed is given back after.
        source.take(_JSON_EXPANSION * len(text), "its JSON")
        try:
            decoded = text.decode("utf-8-sig")
        except UnicodeDecodeError:
            source.refuse("its JSON is not UTF-8 text")
        value = parse_json(decoded, str(source.path))
        _check_depth(source, value)
        source.give_back((_JSON_EXPANSION - _JSON_USUAL) * len(text))
        return value

    def _check(self) -> None:
        asset = self.root.object("asset")
        if not asset.text("version", "").startswith("2."):
            self.source.refuse(f"it is glTF {shown(asset.text('version', ''))}; 2.0 is read")
        for name in self.root.items("extensionsRequired"):
            if not isinstance(name, str) or name not in EXTENSIONS:
                what = _NAMED.get(str(name))
                advice = f": it is {what}, export it without" if what else ""
                self.source.refuse(f"it requires the extension {shown(str(name))}, which is not supported{advice}")

    def tell_what_is_not_read(self) -> None:
        """Give a warning for every extension that a reader of meshes leaves out."""
        for name in sorted(_extensions_in(self.root.value) - EXTENSIONS):
            self.source.warn(f"the extension {shown(name)} is not read: what it adds is left out")

    def count(self, key: str) -> int:
        """Return the length of one of the lists of the root."""
        return len(self._list(key))

    def entry(self, key: str, index: int) -> JsonFields:
        """Return an entry of one of the lists of the root ("nodes", 3)."""
        entries = self._list(key)
        if not 0 <= index < len(entries):
            self.source.refuse(f"it refers to {key} {index} of {len(entries)}")
        return JsonFields(self.source, entries[index], f"{key} {index}")

    def _list(self, key: str) -> list[Any]:
        if key not in self._lists:
            self._lists[key] = self.root.items(key)
        return self._lists[key]

    def uri(self, text: str) -> bytes:
        """Return bytes of a URI of the file."""
        if text.startswith("data:#") and text[6:].isascii() and text[6:].isdigit() and len(text) < 16:
            number = int(text[6:])
            if number < len(self._uris):
                return self.source.data_uri(self._uris[number])
        return self.source.reference(text, escaped=True)

    def _buffer(self, index: int) -> bytes | memoryview:
        if index not in self._buffers:
            buffer = self.entry("buffers", index)
            if "uri" in buffer:
                data: bytes | memoryview = self.uri(buffer.text("uri"))
            elif index == 0 and self._binary:
                data = self._binary
            else:
                self.source.refuse(f"buffer {index} has no bytes")
            length = buffer.integer("byteLength")
            if length > len(data):
                self.source.refuse(f"buffer {index} promises {length:,} bytes and has {len(data):,}")
            self._buffers[index] = data
        return self._buffers[index]

    def view(self, index: int) -> memoryview:
        """Return bytes of a buffer view."""
        view = self.entry("bufferViews", index)
        data = self._buffer(view.integer("buffer"))
        start, length = view.integer("byteOffset", 0), view.integer("byteLength")
        if start + length > len(data):
            self.source.refuse(f"bufferView {index} ends at byte {start + length:,} of {len(data):,}")
        return memoryview(data)[start : start + length]

    def accessor(self, index: int, widths: tuple[int, ...], *, integer: bool = False) -> ArrayAny:
        """Return elements of an accessor, as a copy.

        Args:
            index: Its number.
            widths: Numbers per element that are accepted.
            integer: Whether whole numbers are wanted; otherwise float32, normalised where the file says so.

        Returns:
            (count, width) int64 or float32.
        """
        source = self.source
        accessor = self.entry("accessors", index)
        kind = _KINDS.get(accessor.integer("componentType"))
        width = _WIDTHS.get(accessor.text("type"))
        if kind is None or width not in widths or (integer and kind == "<f4"):
            source.refuse(f"accessor {index} has a type that does not fit its use")
        count = accessor.integer("count")
        source.at_most(count, 3 * source.limits.faces, f"elements in accessor {index}")
        if "bufferView" in accessor:
            raw = self._strided(accessor, count, width, np.dtype(kind), index)
        else:
            # A file of a hundred bytes could otherwise ask for gigabytes of zeros.
            if count > max(_FREE_ZEROS, len(source.data)):
                source.refuse(f"accessor {index} promises {count:,} elements without any bytes")
            raw = np.zeros((count, width), kind)
        each = 8 if integer else 4
        source.take(each * count * width, f"accessor {index}")
        if "sparse" in accessor:
            raw = self._sparse(accessor.object("sparse"), raw.copy(), index)
        return raw.astype(np.int64) if integer else _as_float(raw, accessor.flag("normalized"))

    def _strided(self, accessor: JsonFields, count: int, width: int, kind: np.dtype, index: int) -> ArrayAny:
        number = accessor.integer("bufferView")
        data = self.view(number)
        size = kind.itemsize * width
        stride = self.entry("bufferViews", number).integer("byteStride", 0, 0, 256) or size
        start = accessor.integer("byteOffset", 0)
        # The last element needs its own size, not a whole stride.
        if stride < size or (count and start + stride * (count - 1) + size > len(data)):
            self.source.refuse(
                f"accessor {index} needs {start + stride * max(count - 1, 0) + size:,} bytes of bufferView {number}, which has"
                f" {len(data):,}"
            )
        return np.ndarray((count, width), kind, data, start if count else 0, (stride, kind.itemsize))

    def _sparse(self, sparse: JsonFields, values: ArrayAny, index: int) -> ArrayAny:
        """Replace single elements."""
        count = sparse.integer("count", 0, 0, len(values) + 1)
        where, what = sparse.object("indices"), sparse.object("values")
        kind = _KINDS.get(where.integer("componentType"))
        if kind not in ("<u1", "<u2", "<u4"):
            self.source.refuse(f"the sparse indices of accessor {index} are not unsigned whole numbers")
        at = self._packed(where, count, 1, np.dtype(kind))[:, 0].astype(np.int64)
        if len(at) and at.max() >= len(values):
            self.source.refuse(f"accessor {index} replaces element {at.max()} of {len(values)}")
        values[at] = self._packed(what, count, values.shape[1], values.dtype)
        return values

    def _packed(self, fields: JsonFields, count: int, width: int, kind: np.dtype) -> ArrayAny:
        data = self.view(fields.integer("bufferView"))
        start = fields.integer("byteOffset", 0)
        if start + count * width * kind.itemsize > len(data):
            self.source.refuse(f"{fields.where} needs {count * width * kind.itemsize:,} bytes, and there are {len(data):,}")
        return np.frombuffer(data, kind, count * width, start).reshape(count, width)


def _as_float(raw: ArrayAny, normalized: bool) -> ArrayF32:
    values = raw.astype(np.float32)
    if normalized and raw.dtype.kind in "iu":
        values /= np.float32(np.iinfo(raw.dtype).max)
        # The least signed value is one count beyond -1.
        np.maximum(values, -1.0, out=values)
    # A signalling NaN of a file would warn wherever it is widened to float64; its quiet form is refused where numbers must be.
    bits = values.view(np.uint32)
    bits[(bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)] |= np.uint32(0x00400000)
    return values


def _extensions_in(value: Any) -> set[str]:
    """Names of all extensions that stand anywhere in JSON whose depth was checked."""
    found: set[str] = set()
    # A stack, since the depth of JSON is the file's choice.
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict) and isinstance(here.get("extensions"), dict):
            found.update(str(name) for name in here["extensions"])
        inner = here.values() if isinstance(here, dict) else here
        waiting += [item for item in inner if isinstance(item, dict | list)]
    return found


def _check_depth(source: ModelSource, value: Any) -> None:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(source.limits.json_depth):
        if not level:
            return
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
    if level:
        source.refuse(f"its JSON is nested deeper than {source.limits.json_depth} levels")


# ---- The tree of nodes of a glTF file, in our frame -------------------------------------------------------------------------

TURN = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
"""From y up to z up. A transformation T of the file is TURN T TURN^-1 in our frame."""

_NODE_BYTES = 1500
LARGEST = 1e12  # squares and products of two such matrices are still numbers


@dataclass
class Node:
    """A node with its place in our frame."""

    index: int
    fields: JsonFields
    parent: int
    position: Array
    attitude: Array
    scale: Array
    matrix: Array
    """(4, 4) to the world."""
    order: int
    """Number in the order in which nodes are met, parents first."""
    children: list[int] = field(default_factory=list)


def turn_translation(values: NDArray) -> NDArray:
    """Return (..., 3) translations turned to z up."""
    return np.stack([values[..., 0], -values[..., 2], values[..., 1]], -1)


def turn_rotation(values: NDArray) -> NDArray:
    """Return (..., 4) rotations turned to z up: their axis turns like a vector."""
    return np.stack([values[..., 0], -values[..., 2], values[..., 1], values[..., 3]], -1)


def turn_scale(values: NDArray) -> NDArray:
    """Return (..., 3) scales turned to z up."""
    return np.stack([values[..., 0], values[..., 2], values[..., 1]], -1)


def read_nodes(file: GltfFile) -> dict[int, Node]:
    """Return all nodes of the scene that the file shows, parents first; refuses a node with two parents, which includes
    cycles.
    """
    source = file.source
    count = file.count("nodes")
    nodes: dict[int, Node] = {}
    file.source.take(_NODE_BYTES * count, "its nodes")
    # Reversed on a stack: nodes are met in the order of the file.
    waiting = [(root, -1, 0) for root in reversed(_roots(file, count))]
    while waiting:
        index, parent, depth = waiting.pop()
        if index in nodes:
            source.refuse(f"node {index} has more than one parent, or is its own ancestor")
        if depth > source.limits.node_depth:
            source.refuse(f"its nodes are nested deeper than {source.limits.node_depth} levels")
        node = _node(file, index, parent, nodes)
        nodes[index] = node
        node.children = node.fields.indices("children", count)
        waiting += [(child, index, depth + 1) for child in reversed(node.children)]
    return nodes


def _roots(file: GltfFile, count: int) -> list[int]:
    if file.count("scenes"):
        return file.entry("scenes", file.root.integer("scene", 0)).indices("nodes", count)
    children = {child for index in range(count) for child in file.entry("nodes", index).indices("children", count)}
    return [index for index in range(count) if index not in children]


def _node(file: GltfFile, index: int, parent: int, nodes: dict[int, Node]) -> Node:
    fields = file.entry("nodes", index)
    if "matrix" in fields:
        # Columns first in the file.
        local = np.array(fields.numbers("matrix", 16)).reshape(4, 4).T
        _check(file, local, index)
        local = TURN @ local @ TURN.T
        position, attitude, scale = decompose(local)
    else:
        position = turn_translation(np.array(fields.numbers("translation", 3, (0.0, 0.0, 0.0))))
        attitude = turn_rotation(np.array(fields.numbers("rotation", 4, (0.0, 0.0, 0.0, 1.0))))
        scale = turn_scale(np.array(fields.numbers("scale", 3, (1.0, 1.0, 1.0))))
        largest = np.abs(attitude).max()
        if largest > 0:
            # First by the largest part: the square of a tiny quaternion would vanish.
            attitude = attitude / largest
            attitude = attitude / np.linalg.norm(attitude)
        else:
            file.source.warn("rotations of length zero taken for none")
            attitude = np.array([0.0, 0.0, 0.0, 1.0])
        local = compose(position, attitude, scale)
    _check(file, local, index)
    matrix = local if parent < 0 else nodes[parent].matrix @ local
    # Products too: a chain of nodes can grow what each of them keeps small.
    _check(file, matrix, index)
    return Node(index, fields, parent, position, attitude, scale, matrix, len(nodes))


def _check(file: GltfFile, matrix: Array, index: int) -> None:
    if not (np.abs(matrix) <= LARGEST).all():
        file.source.refuse(f"the transformation of node {index} holds numbers above {LARGEST:g}")


def compose(position: Array, attitude: Array, scale: Array) -> Array:
    """Return the (4, 4) matrix of a translation, rotation and scale, that scales first.

    Args:
        position: (3,).
        attitude: Quaternion x, y, z, w, (4,).
        scale: Along each local axis, (3,).
    """
    matrix = np.eye(4)
    matrix[:3, :3] = frames.to_matrix(attitude) * scale
    matrix[:3, 3] = position
    return matrix


def decompose(matrix: Array) -> tuple[Array, Array, Array]:
    """Return translation, rotation (unit x, y, z, w) and scale of a matrix; shear is lost, a mirror becomes a negative x
    scale.
    """
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    if np.linalg.det(linear) < 0:
        scale[0] = -scale[0]
    columns = linear / np.where(scale == 0, 1.0, scale)
    left, _, right = np.linalg.svd(columns)
    rotation = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0]) @ right
    return matrix[:3, 3].copy(), frames.from_matrix(rotation), scale
