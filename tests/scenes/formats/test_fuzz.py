"""Damaged files of every format load or are refused in one sentence; liars are found out before anything is allocated."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import io
import json
import struct
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from airworthy.core import files
from airworthy.core.errors import AssetError
from airworthy.scenes.formats import read_model, read_points

_spec = importlib.util.spec_from_file_location("fuzzing", Path(__file__).with_name("fuzzing.py"))
assert _spec is not None
assert _spec.loader is not None
fuzzing = importlib.util.module_from_spec(_spec)
sys.modules["fuzzing"] = fuzzing
_spec.loader.exec_module(fuzzing)

PLY = "ply\nformat {} 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\n"
FACE = "element face {}\nproperty list uchar int vertex_indices\nend_header\n"
PCD = "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {0}\nHEIGHT 1\nPOINTS {0}\nDATA {1}\n"


@pytest.mark.parametrize("name", fuzzing.FORMATS)
def test_the_seeds_load(name: str, tmp_path: Path) -> None:
    driver = fuzzing.Driver(tmp_path, name)
    for data in fuzzing.seeds()[name]:
        assert driver.read(data) == "loaded"


@pytest.mark.parametrize("name", fuzzing.FORMATS)
def test_a_thousand_damaged_files(name: str, tmp_path: Path) -> None:
    driver = fuzzing.run(name, 1000, 0, tmp_path)
    # Both happen often enough that the inputs reach beyond the header.
    # What is wrong with a material costs the material, with a warning.
    assert driver.outcomes["refused"] >= 50 or name == "mtl"
    assert driver.outcomes["loaded"] >= 50


@pytest.mark.slow
@pytest.mark.parametrize("name", fuzzing.FORMATS)
def test_a_hundred_thousand_damaged_files(name: str, tmp_path: Path) -> None:
    fuzzing.run(name, 100_000, 1, tmp_path)


@pytest.mark.parametrize("path", sorted(fuzzing.CORPUS.iterdir()), ids=lambda path: path.name)
def test_the_corpus(path: Path, tmp_path: Path) -> None:
    fuzzing.Driver(tmp_path, path.suffix[1:]).read(path.read_bytes())


def _liars() -> dict[str, Callable[[], bytes]]:
    """Files that promise 2^60 of something (or as much as their field can hold); built when asked for."""
    big = 2**60
    root, binary = fuzzing.gltf_tree()

    def gltf(change: Callable[[dict], None]) -> bytes:
        tree = fuzzing.json.loads(fuzzing.json.dumps(root))
        change(tree)
        return fuzzing.glb(tree, binary)

    def view_less(tree: dict) -> None:
        tree["accessors"][0] = {"componentType": 5126, "type": "VEC3", "count": 20_000_000}

    return {
        "accessor.glb": lambda: gltf(lambda tree: tree["accessors"][0].update(count=big)),
        "zeros.glb": lambda: gltf(view_less),
        "view.glb": lambda: gltf(lambda tree: tree["bufferViews"][0].update(byteLength=big)),
        "buffer.glb": lambda: gltf(lambda tree: tree["buffers"][0].update(byteLength=big)),
        "sparse.glb": lambda: gltf(lambda tree: tree["accessors"][10]["sparse"].update(count=big)),
        "length.glb": lambda: struct.pack("<4s4I", b"glTF", 2, 2**32 - 1, 2**32 - 1, 0x4E4F534A),
        "binary.stl": lambda: b"\0" * 80 + struct.pack("<I", 2**32 - 1) + b"\0" * 50,
        "ascii.ply": lambda: (PLY.format("ascii", big) + FACE.format(1)).encode() + b"0 0 0\n",
        "binary.ply": lambda: (PLY.format("binary_little_endian", 1) + FACE.format(big)).encode() + b"\0" * 12,
        "list.ply": lambda: (
            (PLY.format("binary_little_endian", 1) + FACE.format(1).replace("uchar", "uint64")).encode()
            + b"\0" * 12
            + struct.pack("<Q", big)
        ),
        "empty.ply": lambda: b"ply\nformat ascii 1.0\nelement vertex %d\nend_header\n" % big,
        "ascii.pcd": lambda: PCD.format(big, "ascii").encode() + b"0 0 0\n",
        "binary.pcd": lambda: PCD.format(big, "binary").encode() + b"\0" * 12,
        "packed.pcd": lambda: PCD.format(300, "binary_compressed").encode() + struct.pack("<II", 4, 2**32 - 1) + b"\0\0\0\0",
        "wide.pcd": lambda: PCD.format(1, "ascii").replace("COUNT 1 1 1", f"COUNT 1 1 {big}").encode() + b"0 0 0\n",
        "index.obj": lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 %d\n" % big,
    }


@pytest.mark.parametrize("name", sorted(_liars()))
def test_liars_cost_nothing(name: str, tmp_path: Path, calls_of: Callable[[Callable[[], object]], int]) -> None:
    """A header that promises 2^60 elements fails in under 20,000 function calls (milliseconds) and under 1 MB."""
    path = tmp_path / name
    path.write_bytes(_liars()[name]())
    read = read_points if path.suffix == ".pcd" else read_model
    with pytest.raises(AssetError):
        read(path)  # imports

    def refused() -> None:
        with pytest.raises(AssetError):
            read(path)

    assert calls_of(refused) < 20_000
    # Reading itself takes blocks of a megabyte, whatever the size of the file: what the claim costs is what comes on top.
    assert _peak(read, path) - _peak(files.read_bytes, path) < 1_000_000


def _peak(read: Callable[[Path], object], path: Path) -> int:
    """Most memory in use while a file is read or refused [byte], of Python and NumPy."""
    tracemalloc.start()
    with contextlib.suppress(AssetError):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _hungry() -> dict[str, Callable[[], bytes]]:
    """Valid files of two megabytes that take as much memory per byte as a file of their format can; built when asked for."""
    size = 2_000_000
    triangle = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 1\nvn 0 0 1\n"
    corners = b"0 0 1\n0 1 0\n1 0 0\n"
    return {
        "vertices.obj": lambda: b"v 0 0 0\n" * (size // 8) + b"f 1 2 3\n",
        "faces.obj": lambda: triangle + b"f 1/2/1 2/1/1 3/2/1\n" * (size // 20),
        "fans.obj": lambda: triangle + (b"f" + b" 1 2 3" * 20_000 + b"\n") * (size // 120_000),
        "uses.obj": lambda: triangle + b"usemtl a\n" * (size // 36) + b"f 1 2 3\n",
        "text.stl": lambda: b"solid\n" + b"vertex 0 0 1\nvertex 0 1 0\nvertex 1 0 0\n" * (size // 39),
        "mixed.ply": lambda: (
            (PLY.format("ascii", 3) + FACE.format(size // 9)).encode() + corners + b"3 0 1 2\n4 0 1 2 0\n" * (size // 18)
        ),
        "hollow.ply": lambda: (PLY.format("binary_little_endian", 1) + FACE.format(size)).encode() + b"\0" * (12 + size),
        "text.pcd": lambda: PCD.format(size // 6, "ascii").encode() + b"0 0 1\n" * (size // 6),
        "packed.pcd": lambda: (
            PCD.format(264 * 100_000 // 12, "binary_compressed").encode()
            + struct.pack("<II", 300_002, 264 * 100_000)
            + b"\0\0"
            + b"\xe0\xff\0" * 100_000
        ),
        "lists.gltf": lambda: b'{"asset":{"version":"2.0"},"x":[' + b"[]," * 340_000 + b"[]]}",
        "nodes.gltf": lambda: b'{"asset":{"version":"2.0"},"nodes":[' + b'{"scale":[1,1,2]},' * 4_000 + b"{}]}",
        "image.glb": lambda: _image_bomb(4096),
        "small_image.glb": lambda: _image_bomb(2048),
        "shared.glb": _shared,
        "shared.gltf": _shared_uri,
        "long.gltf": _long_uri,
    }


def _image_bomb(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG")
    root, binary = fuzzing.gltf_tree()
    start = len(binary)
    root["bufferViews"][11] = {"buffer": 0, "byteOffset": start, "byteLength": len(file.getvalue())}
    root["buffers"][0]["byteLength"] = start + len(file.getvalue())
    return fuzzing.glb(root, binary + file.getvalue())


def _shared() -> bytes:
    """Two hundred primitives over the same 40,000 vertices, and a node for each that stretches them."""
    vertices = fuzzing.np.random.default_rng(0).normal(size=(40_000, 3)).astype("<f4").tobytes()
    primitive = {"attributes": {"POSITION": 0}}
    root = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0, "scale": [1, 2, 3]}] * 200,
        "meshes": [{"primitives": [primitive] * 200}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 40_000, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(vertices)}],
        "buffers": [{"byteLength": len(vertices)}],
    }
    return fuzzing.glb(root, vertices)


def _shared_uri() -> bytes:
    """Forty primitives over the same 60,000 vertices of a data URI: little text, and pieces that are put together."""
    vertices = fuzzing.np.random.default_rng(0).normal(size=(60_000, 3)).astype("<f4").tobytes()
    return _gltf_of(vertices, 60_000, 40)


def _long_uri() -> bytes:
    """A file that is one data URI and little else."""
    vertices = fuzzing.np.random.default_rng(0).normal(size=(1_200_000, 3)).astype("<f4").tobytes()
    return _gltf_of(vertices, 1_200_000, 1)


def _gltf_of(vertices: bytes, count: int, primitives: int) -> bytes:
    root = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}] * primitives}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": count, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(vertices)}],
        "buffers": [{"byteLength": len(vertices), "uri": "data:;base64," + base64.b64encode(vertices).decode()}],
    }
    return json.dumps(root).encode()


@pytest.mark.parametrize("name", sorted(_hungry()))
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    """At most 64 MB and eight times the file. Python's and NumPy's memory is traced; Pillow's is counted by the reader."""
    path = tmp_path / name
    path.write_bytes(_hungry()[name]())
    size = path.stat().st_size
    read = read_points if path.suffix == ".pcd" else read_model
    assert _peak(read, path) <= 64 * 2**20 + 8 * size
