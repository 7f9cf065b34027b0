"""Damaged model files: written whole by our own writers, damaged at random, and read."""

from __future__ import annotations

import json
import re
import struct
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from airworthy.core.errors import AssetError
from airworthy.geometry import Mesh
from airworthy.scenes import Instance, Material, Texture
from airworthy.scenes.formats import (
    Model,
    Points,
    read_model,
    read_points,
    write_glb,
    write_obj,
    write_pcd,
    write_ply,
    write_points_ply,
    write_stl,
)

FORMATS = ("glb", "obj", "mtl", "stl", "ply", "pcd", "cloud.ply")
SECONDS_MAX = 2.0
_SENTENCE = 700
_NUMBERS = (0, 1, 2, 255, 256, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**60, 2**63)
_TOKENS = (
    *(str(number).encode() for number in _NUMBERS),
    *(b"-1", b"1e308", b"1e999", b"nan", b"-inf", b"1.5", b"", b"null", b"[]", b"{}", b"[" * 40, b"../../x", b"file:/x", b"\0"),
)  # fmt: skip


def broken_promises(name: str, count: int, seed: int = 0) -> tuple[int, float, int]:
    """Read damaged files of a format.

    Args:
        name: One of `FORMATS`.
        count: How many.
        seed: Of the damage.

    Returns:
        Files that were neither loaded nor refused in one sentence within `SECONDS_MAX`; the slowest [s]; files that loaded.
    """
    rng = np.random.default_rng([seed, FORMATS.index(name)])
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("seed.obj" if name == "mtl" else f"seed.{name}")
        _write(path, name)
        changed = path.with_suffix(".mtl") if name == "mtl" else path
        reader = read_points if name in ("pcd", "cloud.ply") else read_model
        return damage_outcome(path, reader, _sound, count, rng, changed)


def damage_outcome(
    path: Path,
    reader: Callable[[Path], Any],
    sound: Callable[[Any], bool],
    count: int,
    rng: np.random.Generator,
    changed: Path | None = None,
) -> tuple[int, float, int]:
    """Damage a whole file again and again, and read it.

    Args:
        path: What is read.
        reader: How.
        sound: Whether what was loaded keeps its promises.
        count: How many times.
        rng: Of the damage.
        changed: The file that is damaged; None: `path`.

    Returns:
        As `broken_promises`.
    """
    changed = changed or path
    whole = changed.read_bytes()
    wrong, slowest, loaded = 0, 0.0, 0
    for _ in range(count):
        changed.unlink()  # made anew: the disk is not waited for
        changed.write_bytes(damaged(whole, rng))
        start = time.perf_counter()
        outcome = read_outcome(reader, path, sound)
        seconds = time.perf_counter() - start
        slowest = max(slowest, seconds)
        loaded += outcome == "loaded"
        wrong += outcome == "broken" or seconds > SECONDS_MAX
    return wrong, slowest, loaded


def read_outcome(reader: Callable[[Path], Any], path: Path, sound: Callable[[Any], bool] | None = None) -> str:
    """Return  "loaded", "refused" with one sentence, or "broken".

    Args:
        reader: Called with the path.
        path: Of the file.
        sound: Tells whether what was read makes sense; None: its numbers are finite, its indices in range.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return "loaded" if (sound or _sound)(reader(path)) else "broken"
    except AssetError as error:
        text = str(error)
        return "refused" if text.endswith(".") and "\n" not in text and len(text) < _SENTENCE else "broken"
    except Exception:  # Anything else is what must not happen.
        return "broken"


def _sound(result: Model | Points) -> bool:
    """Tell whether what was loaded is finite and its indices are in range (`Mesh` checks those of faces)."""
    if isinstance(result, Points):
        return bool(np.isfinite(result.positions).all())
    meshes = [shape for shape in result.shapes.values() if isinstance(shape, Mesh)]
    finite = all(np.isfinite(x).all() for m in meshes for x in (m.vertices, m.normals, m.uv, m.colors) if x is not None)
    placed = all(item.shape in result.shapes and set(item.materials) <= set(result.materials) for item in result.instances)
    return finite and placed


def _write(path: Path, name: str) -> None:
    """Write a small whole file of a format."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    colors = np.tile(np.array([1.0, 0.5, 0.2, 1.0], np.float32), (4, 1))
    mesh = Mesh(points, faces, uv=points[:, :2], colors=colors, normals=np.tile(np.array([0, 0, 1], np.float32), (4, 1)))
    texture = Texture((np.arange(48) * 5 % 256).astype(np.uint8).reshape(4, 4, 3))
    material = Material(base_color_map="paint", roughness=0.4)
    model = Model({"part": mesh}, {"skin": material}, {"paint": texture}, (Instance("part", materials=("skin",)),))
    cloud = Points(np.repeat(points, 4, axis=0), np.full((16, 3), 90, np.uint8))
    write: dict[str, Callable[[], Path]] = {
        "glb": lambda: write_glb(path, model),
        "obj": lambda: write_obj(path, model),
        "mtl": lambda: write_obj(path, model),
        "stl": lambda: write_stl(path, model),
        "ply": lambda: write_ply(path, model),
        "pcd": lambda: write_pcd(path, cloud),
        "cloud.ply": lambda: write_points_ply(path, cloud),
    }
    write[name]()


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with a few bytes, words or stretches changed, at times behind a header or in a container that stays
    whole.
    """
    if data[:4] == b"glTF" and rng.integers(2):
        return _tree_changed(data, rng)
    header = re.search(rb"end_header\n|DATA \w+\n", data)
    kept = header.end() if header and rng.integers(2) else 0
    result = data[kept:]
    for _ in range(min(int(rng.geometric(0.6)), 8)):
        result = _once(result, rng) if result else result
    return data[:kept] + result


def _once(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 32))
    match int(rng.integers(8)):
        case 0:
            return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + data[at + size :]
        case 3:
            return data[: at + size] + data[at:]
        case 4:
            number, width = _NUMBERS[int(rng.integers(len(_NUMBERS)))], (1, 2, 4, 8)[int(rng.integers(4))]
            return data[:at] + (number % 256**width).to_bytes(width, "little") + data[at + width :]
        case 5:
            return data[:at] + _TOKENS[int(rng.integers(len(_TOKENS)))] + data[at:]
        case _:
            tokens = list(re.finditer(rb'-?\d[\d.eE+-]*|"[^"]*"', data[:20000]))
            if not tokens:
                return data
            token = tokens[int(rng.integers(len(tokens)))]
            return data[: token.start()] + _TOKENS[int(rng.integers(len(_TOKENS)))] + data[token.end() :]


def _tree_changed(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a binary glTF file with one value of its JSON replaced or removed, in a container that fits."""
    (length,) = struct.unpack_from("<I", data, 12)
    tree: Any = json.loads(data[20 : 20 + length])
    slots: list[tuple[Any, Any]] = []
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        slots += [(node, key) for key in keys]
        waiting += [node[key] for key in keys if isinstance(node[key], dict | list)]
    node, key = slots[int(rng.integers(len(slots)))]
    new: list[Any] = [*_NUMBERS, -1, 1.5, 1e300, 10**400, True, None, "", "x", [], {}, [0, 0, 0], [1e300] * 16]
    chosen = int(rng.integers(len(new) + 4))
    if chosen < len(new):
        node[key] = new[chosen]
    else:
        del node[key]
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    head = struct.pack("<4s4I", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A)
    return head + text + rest
