"""Reading USD (.usd, .usda, .usdc, .usdz) by the package usd-core: meshes, their transforms and base colours."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AssetError
from airworthy.geometry import Box, Capsule, Cylinder, Shape, Sphere
from airworthy.scenes.formats._parts import RawMesh, clean, finish
from airworthy.scenes.formats._source import ModelSource, unique_name
from airworthy.scenes.formats._usd_child import ANSWER, ARRAYS
from airworthy.scenes.formats.gltf.reader import transformed
from airworthy.scenes.formats.meshes.solids import tessellate
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model
from airworthy.scenes.record import Instance, Material

_MEMORY = 4 << 30
"""Address space of the process that reads, with its libraries [bytes]; and a multiple of the file."""
_MEMORY_RATIO = 32
_SECONDS = 60
"""Processor time of that process; a library of a hundred references, each of a hundred, would take for ever."""
_UP = {"Y": ((1, 0, 0), (0, 0, -1), (0, 1, 0)), "X": ((0, -1, 0), (0, 0, -1), (1, 0, 0))}
_AXES = {"X": ((0, 0, 1), (0, 1, 0), (-1, 0, 0)), "Y": ((1, 0, 0), (0, 0, 1), (0, -1, 0))}
"""From z to the axis of a cylinder."""


def read_usd(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of a USD stage at its earliest time, z up and in metres as its metadata say.

    Faces are cut into triangles; what is invisible, guide or proxy is left out. Colours are those of UsdPreviewSurface, else
    `displayColor`; textures are left out. Prototypes and point instancers are read, and what is moved, turned and scaled evenly
    shares its shape. A process of its own reads the file, since a hostile one may bring the library down.

    Raises:
        AssetError: The package usd-core is not installed; or the file is damaged, hostile, too large, names a layer outside
            its folder, or shows no triangle.
    """
    source = ModelSource(path, limits)
    if importlib.util.find_spec("pxr") is None:
        raise AssetError(f"{str(path)!r} is USD, which needs the package 'usd-core': pip install 'airworthy[usd]'.")
    with tempfile.TemporaryDirectory() as folder:
        report = _asked(source, folder)
        if "placed" in report:
            # Arrays only: the process that wrote them has read a hostile file.
            with np.load(Path(folder) / ARRAYS, allow_pickle=False) as file:
                return _model(source, report, {name: file[name] for name in file.files})
    if "damaged" in report:
        source.refuse(f"it is no sound USD file: {report['damaged'].strip(' .') or 'the library gives no reason'}")
    raise AssetError(report["refused"])


def _asked(source: ModelSource, folder: str) -> dict[str, Any]:
    """Return what the reading process found."""
    request = {
        "path": str(source.path),
        "out": folder,
        "limits": asdict(source.limits),
        "memory": _MEMORY + _MEMORY_RATIO * len(source.data),
        "seconds": _SECONDS,
    }
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "TF_FATAL_THROW": "0"}
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "airworthy.scenes.formats._usd_child"],
            input=json.dumps(request).encode(),
            capture_output=True,
            env=environment,
            # The child limits its own time on the processor; this is for one that waits for something.
            timeout=4 * _SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        source.refuse(f"reading it took more than {4 * _SECONDS} s")
    answer = Path(folder) / ANSWER
    # Its memory and time are limited: the child may be gone without a word.
    if not answer.is_file():
        source.refuse(f"the USD library broke down over it (exit status {ended.returncode})")
    return dict(json.loads(answer.read_text(encoding="utf-8")))


def _model(source: ModelSource, report: dict[str, Any], arrays: dict[str, ArrayAny]) -> Model:
    for remark in report["warnings"]:
        source.warn(remark)
    if not 1e-9 < report["unit"] < 1e9:
        source.refuse(f"its unit has {report['unit']:g} metres")
    world = np.eye(4)
    # Unit and axes of the stage in one matrix in front of all others.
    world[:3, :3] = report["unit"] * np.array(_UP.get(report["up"], np.eye(3)), float)
    made = _Made(source, report, arrays)
    for item in report["placed"]:
        made.add_instance(item, world @ np.array(item["matrix"], float))
    if not made.instances:
        source.refuse("it shows no triangle")
    used = {key for item in made.instances for key in item.materials}
    shapes: dict[str, Shape] = {name: finish(source, raw) for name, raw in made.raw.items()}
    materials = {key: item for key, item in made.materials.items() if key in used}
    return Model(shapes, materials, {}, tuple(made.instances), warnings=source.warnings)


class _Made:
    """Shapes, materials and instances of what the process found."""

    def __init__(self, source: ModelSource, report: dict[str, Any], arrays: dict[str, ArrayAny]) -> None:
        self.source, self.rows, self.surfaces, self.arrays = source, report["shapes"], report["materials"], arrays
        self.raw: dict[str, RawMesh] = {}
        self.shared: dict[int, tuple[str, ...]] = {}
        self.read: dict[int, RawMesh] = {}
        self.materials: dict[str, Material] = {}
        self.names: dict[Any, str] = {}
        self.instances: list[Instance] = []

    def add_instance(self, item: dict[str, Any], matrix: Array) -> None:
        number = item["shape"]
        size = float(np.cbrt(np.linalg.det(matrix[:3, :3])))
        if number not in self.read:
            self.read[number] = clean(self.source, self._raw(number))
        raw = self.read[number]
        if not len(raw.faces):
            return
        even = size > 0.0 and bool(np.abs(matrix[:3, :3].T @ matrix[:3, :3] - size**2 * np.eye(3)).max() <= 1e-5 * size**2)
        names = self._materials(number)
        name = item["name"]
        if not even:
            self.source.take(4 * (6 * len(raw.vertices) + 3 * len(raw.faces)), "a stretched mesh")
            moved = clean(self.source, transformed(raw, matrix))
            if len(moved.faces):
                self.instances.append(Instance(self._shape(number, moved), materials=names, name=name))
            return
        if number not in self.shared:
            self.shared[number] = (self._shape(number, raw),)
        x, y, z = (float(v) for v in matrix[:3, 3])
        qx, qy, qz, qw = (float(v) for v in frames.from_matrix(matrix[:3, :3] / size))
        self.instances.append(Instance(self.shared[number][0], (x, y, z), (qx, qy, qz, qw), size, names, name=name))

    def _shape(self, number: int, raw: RawMesh) -> str:
        name = unique_name(self.raw, self.rows[number]["name"])
        self.raw[name] = raw
        return name

    def _raw(self, number: int) -> RawMesh:
        row = self.rows[number]
        if row["kind"] != "Mesh":
            return _solid(row["kind"], row["sizes"], row["axis"])
        found = [self.arrays.get(f"{part}_{number}") for part in ("points", "faces", "colors", "material")]
        points, faces, colors, material = found
        assert points is not None
        assert faces is not None
        return RawMesh(points, faces, colors=colors, face_material=material)

    def _materials(self, number: int) -> tuple[str, ...]:
        """Names of a shape's materials; its `displayColor` where it has none."""
        row = self.rows[number]
        keys = [key or tuple(row.get("color") or ()) for key in row["materials"]]
        if not any(keys):
            return ()
        return tuple(self._material(key) for key in keys)

    def _material(self, key: Any) -> str:
        if key not in self.names:
            material: dict[str, Any] = (
                self.surfaces[key] if isinstance(key, str) else {"name": "color", "diffuse": key or (1.0, 1.0, 1.0)}
            )
            red, green, blue = material["diffuse"]
            glow = material.get("emissive", (0.0, 0.0, 0.0))
            self.names[key] = unique_name(self.materials, material["name"])
            self.materials[self.names[key]] = Material(
                (red, green, blue, material.get("opacity", 1.0)),
                metallic=material.get("metallic", 0.0),
                roughness=material.get("roughness", Material.roughness),
                emissive=(glow[0], glow[1], glow[2]),
            )
        return self.names[key]


def _solid(kind: str, sizes: list[float], axis: str) -> RawMesh:
    """Return a solid of USD as triangles, in its own frame."""
    shape: Shape
    if kind == "Cube":
        shape = Box((0.5 * sizes[0], 0.5 * sizes[0], 0.5 * sizes[0]))
    elif kind == "Sphere":
        shape = Sphere(sizes[0])
    else:
        shape = (Cylinder if kind == "Cylinder" else Capsule)(sizes[0], 0.5 * sizes[1])
    mesh = tessellate(shape)
    turn = np.array(_AXES.get(axis, np.eye(3)), np.float32)
    normals = None if mesh.normals is None else (mesh.normals @ turn.T).astype(np.float32)
    return RawMesh((mesh.vertices @ turn.T).astype(np.float32), mesh.faces.astype(np.int32), normals)
