"""Hostile model files: small valid seeds of every format, and how they are damaged.

    python tests/scenes/formats/fuzzing.py [inputs per format, default 1000] [seed] [formats...]

reads that many damaged inputs per format and prints what came of them. Every input must load, or be refused with an AssetError
of one sentence, within two seconds.
"""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image

from airworthy.core.errors import AssetError
from airworthy.scenes.formats import read_model, read_points

FORMATS = ("glb", "gltf", "obj", "mtl", "stl", "ply", "pcd")
CORPUS = Path(__file__).parent / "corpus"
NUMBERS = (0, 1, 2, 3, 127, 128, 255, 256, 32767, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**60, 2**63)
WORDS = (
    *(str(number).encode() for number in NUMBERS),
    *(
        b"-1",
        b"-2147483648",
        b"1e308",
        b"-1e39",
        b"1e999",
        b"nan",
        b"inf",
        b"-inf",
        b"1e-45",
        b"0x10",
        b"1.5.2",
        b"--1",
        b"",
        b"/",
    ),
    *(b"null", b"true", b"[]", b"{}", b'""', b"[" * 40, b"../../etc/passwd", b"http://a/b.png", b"file:///etc/passwd", b"\0"),
    *(b"data:image/png;base64,AAAA", b"1//1", b"-1/-1/-1", b"C:\\a.png", b"%2e%2e/x", b"\xff\xfe", "ü\u202e".encode()),
)
TRIANGLE = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "<f4")
FACES = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])


def image(kind: str = "PNG", size: int = 4) -> bytes:
    file = io.BytesIO()
    pixels = (np.arange(size * size * 3) * 7 % 256).astype(np.uint8).reshape(size, size, 3)
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def glb(root: dict | bytes, binary: bytes) -> bytes:
    text = root if isinstance(root, bytes) else json.dumps(root).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    head = struct.pack("<4s5I", b"glTF", 2, 28 + len(text) + len(binary), len(text), 0x4E4F534A, 0)[:20]
    return head + text + struct.pack("<II", len(binary), 0x004E4942) + binary


def gltf_tree() -> tuple[dict, bytes]:
    """A file with all that the reader knows: materials, lights, a skin, an animation, sparse accessors, strips."""
    pieces = {
        "position": TRIANGLE.tobytes(),
        "index": FACES.astype("<u2").tobytes(),
        "uv": (np.arange(8, dtype="<u2").reshape(4, 2) * 8000).tobytes(),
        "color": np.full((4, 4), 200, "u1").tobytes(),
        "joint": np.array([[0, 1, 0, 0]] * 4, "u1").tobytes(),
        "weight": np.array([[0.5, 0.5, 0, 0]] * 4, "<f4").tobytes(),
        "inverse": np.tile(np.eye(4, dtype="<f4"), (2, 1, 1)).tobytes(),
        "time": np.array([0.0, 1.0], "<f4").tobytes(),
        "turn": np.array([[0, 0, 0, 1], [0, 0, 0.7, 0.7]], "<f4").tobytes(),
        "spline": np.zeros((6, 3), "<f4").tobytes(),
        "sparse": np.array([1], "<u4").tobytes() + np.array([[2, 0, 0]], "<f4").tobytes(),
        "png": image("PNG"),
        "jpeg": image("JPEG", 8),
    }
    views, start = [], 0
    for data in pieces.values():
        views.append({"buffer": 0, "byteOffset": start, "byteLength": len(data)})
        start += len(data) + -len(data) % 4
    binary = b"".join(data + b"\0" * (-len(data) % 4) for data in pieces.values())
    number = {name: index for index, name in enumerate(pieces)}

    def accessor(view: str, component: int, count: int, kind: str, **more: object) -> dict:
        return {"bufferView": number[view], "componentType": component, "count": count, "type": kind, **more}

    patch = {
        "count": 1,
        "indices": {"bufferView": number["sparse"], "componentType": 5125},
        "values": {"bufferView": number["sparse"], "byteOffset": 4},
    }
    root = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0, 3, 4]}],
        "nodes": [
            {"name": "body", "mesh": 0, "skin": 0, "children": [1]},
            {"name": "hip", "translation": [0, 1, 0], "children": [2], "scale": [1, 2, 1]},
            {"name": "knee", "rotation": [0, 0, 0, 1], "mesh": 1},
            {"matrix": [1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1], "mesh": 1},
            {"extensions": {"KHR_lights_punctual": {"light": 0}}},
        ],
        "meshes": [
            {
                "name": "skinned",
                "primitives": [
                    {
                        "attributes": {
                            "POSITION": 0,
                            "TEXCOORD_0": 2,
                            "COLOR_0": 3,
                            "JOINTS_0": 4,
                            "WEIGHTS_0": 5,
                            "NORMAL": 0,
                        },
                        "indices": 1,
                        "material": 0,
                    }
                ],
            },
            {
                "primitives": [
                    {"attributes": {"POSITION": 10}, "mode": 5},
                    {"attributes": {"POSITION": 0}, "mode": 6, "material": 0},
                ]
            },
        ],
        "materials": [
            {
                "name": "skin",
                "pbrMetallicRoughness": {
                    "baseColorFactor": [1, 0.5, 0.2, 1],
                    "baseColorTexture": {
                        "index": 0,
                        "extensions": {"KHR_texture_transform": {"scale": [2, 2], "rotation": 0.1}},
                    },
                    "metallicRoughnessTexture": {"index": 1},
                },
                "normalTexture": {"index": 1, "scale": 0.5},
                "emissiveFactor": [1, 1, 1],
                "extensions": {"KHR_materials_emissive_strength": {"emissiveStrength": 3}},
                "alphaMode": "MASK",
                "extras": {"airworthy": {"heightTexture": {"index": 0}, "heightScale": 0.1}},
            }
        ],
        "textures": [{"source": 0, "sampler": 0}, {"source": 1}],
        "samplers": [{"wrapS": 33071, "wrapT": 33071}],
        "images": [{"bufferView": number["png"], "mimeType": "image/png"}, {"bufferView": number["jpeg"]}],
        "skins": [{"joints": [1, 2], "inverseBindMatrices": 6}],
        "animations": [
            {
                "name": "walk",
                "channels": [
                    {"sampler": 0, "target": {"node": 1, "path": "rotation"}},
                    {"sampler": 1, "target": {"node": 2, "path": "translation"}},
                ],
                "samplers": [{"input": 7, "output": 8}, {"input": 7, "output": 9, "interpolation": "CUBICSPLINE"}],
            }
        ],
        "extensions": {"KHR_lights_punctual": {"lights": [{"type": "spot", "intensity": 10, "spot": {"outerConeAngle": 0.5}}]}},
        "extensionsUsed": ["KHR_lights_punctual", "KHR_texture_transform"],
        "extensionsRequired": ["KHR_texture_transform"],
        "accessors": [
            accessor("position", 5126, 4, "VEC3"),
            accessor("index", 5123, 12, "SCALAR"),
            accessor("uv", 5123, 4, "VEC2", normalized=True),
            accessor("color", 5121, 4, "VEC4", normalized=True),
            accessor("joint", 5121, 4, "VEC4"),
            accessor("weight", 5126, 4, "VEC4"),
            accessor("inverse", 5126, 2, "MAT4"),
            accessor("time", 5126, 2, "SCALAR"),
            accessor("turn", 5126, 2, "VEC4"),
            accessor("spline", 5126, 6, "VEC3"),
            accessor("position", 5126, 4, "VEC3", sparse=patch),
        ],
        "bufferViews": views,
        "buffers": [{"byteLength": len(binary)}],
    }
    return root, binary


def seeds() -> dict[str, list[bytes]]:
    """Valid files of every format."""
    root, binary = gltf_tree()
    embedded = json.loads(json.dumps(root))
    embedded["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    beside = json.loads(json.dumps(embedded))
    beside["images"][0] = {"uri": "image.png"}
    obj = b"mtllib seed.mtl\no cube\nv 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 0 1 0 0 0 1\nv 0 0 1 1 1 1\nvt 0 0\nvt 1 0\n"
    obj += b"vt 0 1\nvn 0 0 1\n"
    obj += b"usemtl a\ns 1\nf 1/1/1 2/2/1 3/3/1\nf 1//1 3//1 4//1\nusemtl b\nf -4/-3 -2/-2 -1/-1\nf 1 2 \\\n 3 4\n# end\n"
    mtl = b"newmtl a\nKd 0.5 0.5 0.5\nNs 10\nd 1\nmap_Kd -s 1 1 1 image.png\nmap_Bump -bm 0.5 image.png\nPr 0.5\n"
    mtl += b"map_Pr image.png\nmap_Pm image.png\nnewmtl b\nKe 1 1 1\nnorm image.png\nmap_Ka image.jpg\ndisp image.png\nKd 1\n"
    facet = struct.pack("<12fH", 0, 0, 1, *TRIANGLE[FACES[0]].reshape(-1).tolist(), 0)
    solid = (
        b"solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid x\n"
    )
    return {
        "glb": [glb(root, binary)],
        "gltf": [json.dumps(embedded).encode(), json.dumps(beside).encode()],
        "obj": [obj],
        "mtl": [mtl],
        "stl": [b"\0" * 80 + struct.pack("<I", 3) + facet * 3, solid, b"solid".ljust(80) + struct.pack("<I", 1) + facet],
        "ply": ply_seeds(),
        "pcd": pcd_seeds(),
    }


def ply_seeds() -> list[bytes]:
    head = "ply\nformat {} 1.0\ncomment c\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
    head += "property uchar red\nproperty uchar green\nproperty uchar blue\n{}end_header\n"
    faces = "element extra 1\nproperty list uchar float w\nelement face 4\nproperty list uchar int vertex_indices\n"
    text = "".join(f"{x} {y} {z} 1 2 3\n" for x, y, z in TRIANGLE.tolist()) + "2 1.5 2.5\n"
    mixed = "3 0 1 2\n4 0 2 3 1\n3 0 3 1\n3 1 3 2\n"
    result = [head.format("ascii", faces).encode() + (text + mixed).encode(), head.format("ascii", "").encode() + text.encode()]
    for name, order in (("binary_little_endian", "<"), ("binary_big_endian", ">")):
        body = b"".join(struct.pack(order + "3f3B", *row, 1, 2, 3) for row in TRIANGLE.tolist())
        extra = struct.pack(order + "B2f", 2, 1.5, 2.5)
        triangles = b"".join(struct.pack(order + "B3i", 3, *row) for row in FACES.tolist())
        polygons = struct.pack(order + "B4iB3iB3iB3i", 4, 0, 1, 2, 3, 3, 0, 1, 2, 3, 1, 2, 3, 3, 0, 3, 1)
        header = head.format(name, faces).encode()
        result += [header + body + extra + triangles, header + body + extra + polygons]
    return result


def lzf(data: bytes) -> bytes:
    """Valid LZF without any compression but one reference back."""
    plain = data[:-4]
    out = b"".join(bytes([len(plain[i : i + 32]) - 1]) + plain[i : i + 32] for i in range(0, len(plain), 32))
    return out + bytes([2 << 5, 3])  # the last four bytes are those four before


def pcd_seeds() -> list[bytes]:
    head = "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z rgb intensity\nSIZE 4 4 4 4 4\nTYPE F F F U F\nCOUNT 1 1 1 1 1\n"
    head += "WIDTH 4\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 4\nDATA {}\n"
    rows = b"".join(struct.pack("<3fIf", *row, 0x102030, 0.5) for row in TRIANGLE.tolist())
    columns = b"".join(rows[i + 20 * k : i + 20 * k + 4] for i in range(0, 20, 4) for k in range(4))
    packed = lzf(columns)
    text = "".join(f"{x} {y} {z} 1056816 0.5\n" for x, y, z in TRIANGLE.tolist())
    return [
        head.format("ascii").encode() + text.encode(),
        head.format("binary").encode() + rows,
        head.format("binary_compressed").encode() + struct.pack("<II", len(packed), 80) + packed,
    ]


def mutated(data: bytes, rng: np.random.Generator, others: list[bytes]) -> bytes:
    """A file with a few bytes, words or stretches damaged."""
    result = bytearray(data)
    for _ in range(min(int(rng.geometric(0.6)), 8)):
        if not result:
            break
        at = int(rng.integers(len(result)))
        match int(rng.integers(10)):
            case 0:
                result[at] ^= 1 << int(rng.integers(8))
            case 1:
                result[at] = int(rng.integers(256))
            case 2:
                del result[at:]
            case 3:
                del result[at : at + int(rng.integers(1, 32))]
            case 4:
                result[at:at] = result[at : at + int(rng.integers(1, 64))] * int(rng.integers(1, 4))
            case 5:
                number = NUMBERS[int(rng.integers(len(NUMBERS)))]
                size = (1, 2, 4, 8)[int(rng.integers(4))]
                result[at : at + size] = (number % 256**size).to_bytes(size, "little" if rng.integers(2) else "big")
            case 6:
                other = others[int(rng.integers(len(others)))]
                start = int(rng.integers(len(other)))
                result[at : at + 16] = other[start : start + int(rng.integers(1, 64))]
            case 7:
                result[at:at] = WORDS[int(rng.integers(len(WORDS)))]
            case _:
                result = bytearray(_word_changed(bytes(result), rng))
    return bytes(result)


def _word_changed(data: bytes, rng: np.random.Generator) -> bytes:
    """One number or quoted word of the text replaced, so that the structure stays whole."""
    tokens = list(re.finditer(rb'-?\d[\d.eE+-]*|"[^"]*"', data[:20000]))
    if not tokens:
        return data
    token = tokens[int(rng.integers(len(tokens)))]
    new = WORDS[int(rng.integers(len(WORDS)))]
    if token.group().startswith(b'"') and rng.integers(2):
        new = b'"' + new + b'"'
    return data[: token.start()] + new + data[token.end() :]


def changed_tree(root: dict, rng: np.random.Generator) -> dict:
    """A JSON tree with some of its values replaced, removed or swapped."""
    tree = json.loads(json.dumps(root))
    for _ in range(int(rng.integers(1, 4))):
        places: list[tuple[dict | list, object]] = []
        waiting: list[dict | list] = [tree]
        while waiting:
            node = waiting.pop()
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                places.append((node, key))
                value = node[key]  # type: ignore[index]
                if isinstance(value, dict | list):
                    waiting.append(value)
        if not places:
            break
        node, key = places[int(rng.integers(len(places)))]
        choices = [*NUMBERS, -1, 1.5, -1e300, 1e300, 10**400, True, None, "", "x", [], {}, [0, 0, 0], [1e300] * 16, {"a": []}]
        choice = int(rng.integers(len(choices) + 6))
        if choice < len(choices):
            node[key] = choices[choice]  # type: ignore[index]
        elif choice < len(choices) + 2:
            del node[key]  # type: ignore[arg-type]
        else:
            other, place = places[int(rng.integers(len(places)))]
            node[key] = json.loads(json.dumps(other[place]))  # type: ignore[index]
    return tree


def inputs(name: str, seed: int) -> Callable[[], bytes]:
    """Endless damaged files of a format."""
    rng = np.random.default_rng([seed, FORMATS.index(name)])
    valid = seeds()[name]
    kept = [path.read_bytes() for path in sorted(CORPUS.glob(f"*.{name}"))]
    root, binary = gltf_tree()

    def draw() -> bytes:
        if name in ("glb", "gltf") and rng.integers(2):
            tree = changed_tree(root, rng)
            if name == "glb":
                return glb(tree, binary)
            if isinstance(tree.get("buffers"), list) and tree["buffers"] and isinstance(tree["buffers"][0], dict):
                tree["buffers"][0].setdefault("uri", "seed.bin")
            return json.dumps(tree).encode()
        if name == "glb" and rng.integers(4):  # damage inside a container that is whole
            text = json.dumps(root).encode()
            if rng.integers(2):
                return glb(mutated(text, rng, [text]), binary)
            return glb(root, mutated(binary, rng, [binary]))
        pool = kept if kept and rng.integers(8) == 0 else valid
        chosen = pool[int(rng.integers(len(pool)))]
        body = re.search(rb"end_header\n|DATA \w+\n", chosen)
        if body and rng.integers(2):  # damage behind a header that is whole
            return chosen[: body.end()] + mutated(chosen[body.end() :], rng, valid)
        return mutated(chosen, rng, valid)

    return draw


class PromisedReads:
    """Reads inputs in a folder of its own and keeps count; drivers of other files than models rest on it, too."""

    message_limit = 700
    """Characters of a refusal, at most."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outcomes: Counter[str] = Counter()
        self.slowest = 0.0

    def promised(self, read: Callable[[], None]) -> str:
        """Read and check one input: "loaded", or why it was refused. Raises AssertionError where the promise is broken."""
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                read()
            outcome = "loaded"
        except AssetError as error:
            outcome = str(error)
            assert outcome.endswith("."), outcome
            assert "\n" not in outcome, outcome
            assert len(outcome) < self.message_limit, outcome
        self.slowest = max(self.slowest, time.perf_counter() - start)  # printed by `program`, asserted nowhere
        self.outcomes["loaded" if outcome == "loaded" else "refused"] += 1
        return outcome


class Fuzzed(Protocol):
    """Reads one input, and keeps one that breaks the promise."""

    folder: Path

    def read(self, given: Any) -> str: ...

    def keep(self, given: Any) -> None: ...


def fuzz(kind: str, driver: Fuzzed, draw: Callable[[], Any], count: int, seed: int) -> None:
    """Read so many inputs; one that breaks the promise is left in the driver's folder, under `failed`."""
    for number in range(count):
        given = draw()
        try:
            driver.read(given)
        except BaseException:
            driver.keep(given)
            print(f"{kind} input {number} of seed {seed} breaks the promise; kept in {driver.folder}", file=sys.stderr)
            raise


def program(kinds: Sequence[str], run: Callable[[str, int, int, Path], PromisedReads]) -> None:
    """Fuzz kinds from the command line, [inputs of each] [seed] [kinds...], and print what came of them."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for kind in sys.argv[3:] or kinds:
        start = time.perf_counter()
        driver = run(kind, count, seed, Path(tempfile.mkdtemp(prefix=f"fuzz_{kind}_")))
        seconds, slowest = time.perf_counter() - start, f"slowest {driver.slowest * 1e3:.0f} ms"
        print(f"{kind:14} {count:,} inputs in {seconds:.1f} s, {slowest}: {dict(driver.outcomes)}", flush=True)


class Driver(PromisedReads):
    """Reads model files, each beside the images, buffers and materials that a seed may name."""

    def __init__(self, folder: Path, kind: str) -> None:
        super().__init__(folder)
        self.kind = kind
        _, binary = gltf_tree()
        (folder / "image.png").write_bytes(image("PNG"))
        (folder / "image.jpg").write_bytes(image("JPEG"))
        (folder / "seed.bin").write_bytes(binary)
        (folder / "seed.obj").write_bytes(seeds()["obj"][0])

    def read(self, data: bytes) -> str:
        """Read one input of the format."""
        name = self.kind
        (self.folder / f"seed.{name}").unlink(missing_ok=True)  # made anew: the disk is not waited for
        (self.folder / f"seed.{name}").write_bytes(data)
        path = self.folder / ("seed.obj" if name == "mtl" else f"seed.{name}")
        reader = read_points if name == "pcd" or (name == "ply" and b"element face" not in data) else read_model
        return self.promised(lambda: check(reader(path)))

    def keep(self, data: bytes) -> None:
        """Leave an input in the folder."""
        (self.folder / f"failed.{self.kind}").write_bytes(data)


def check(result: object) -> None:
    """What was loaded must be sound: finite, in range, consistent."""
    if hasattr(result, "positions"):
        assert np.isfinite(result.positions).all()
        return
    for mesh in result.shapes.values():  # type: ignore[attr-defined]
        assert len(mesh.faces)
        for values in (mesh.vertices, mesh.normals, mesh.uv, mesh.colors):
            assert values is None or np.isfinite(values).all()
    for instance in result.instances:  # type: ignore[attr-defined]
        mesh = result.shapes[instance.shape]  # type: ignore[attr-defined]
        assert np.isfinite([*instance.position, *instance.attitude, instance.scale]).all()
        assert instance.scale > 0
        assert abs(np.linalg.norm(instance.attitude) - 1) < 1e-6
        assert all(name in result.materials for name in instance.materials)  # type: ignore[attr-defined]
        if mesh.face_material is not None:
            assert mesh.face_material.max() < len(instance.materials)
    for material in result.materials.values():  # type: ignore[attr-defined]
        for name in (material.base_color_map, material.metallic_roughness_map, material.normal_map, material.height_map):
            assert not name or name in result.textures  # type: ignore[attr-defined]
    for skeleton in result.skeletons.values():  # type: ignore[attr-defined]
        assert np.isfinite(skeleton.inverse_bind).all()
        assert (skeleton.parents < np.arange(len(skeleton.names))).all()
        for shape, joints in skeleton.joints.items():
            assert joints.shape == skeleton.weights[shape].shape == (len(result.shapes[shape].vertices), 4)  # type: ignore[attr-defined]
            assert np.allclose(skeleton.weights[shape].sum(1), 1.0, atol=1e-5)


def run(name: str, count: int, seed: int, folder: Path) -> Driver:
    """Read so many damaged inputs of a format."""
    driver = Driver(folder, name)
    fuzz(name, driver, inputs(name, seed), count, seed)
    return driver


if __name__ == "__main__":
    program(FORMATS, run)
