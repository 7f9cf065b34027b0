"""The process that reads a USD file: its library is native code, which a hostile file may bring down, but not us with it.

Asked by `scenes.formats.usd` on standard input; answers with arrays and a table in a folder. What layers name is looked at
before the library composes them: a stage opens whatever its layers refer to.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.files import UNPRINTABLE, shown
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats.meshes.polygons import cut_concave, fans
from airworthy.scenes.formats.model import FileLimits

ANSWER, ARRAYS = "answer.json", "arrays.npz"
_LAYERS = (".usd", ".usda", ".usdc", ".usdz")
_LAYERS_MAX = 256
_VALUES = {"metallic": 0.0, "roughness": 0.5, "opacity": 1.0}
"""Of UsdPreviewSurface, where a file does not say."""
_GREY = 0.18


def main() -> None:
    """Read the request, answer it into its folder."""
    request = json.load(sys.stdin)
    out = Path(request["out"])
    _bounded(request["memory"], request["seconds"])
    try:
        reader = _Stage(ModelSource(request["path"], FileLimits(**request["limits"])))
        table = reader.table()
        with zipfile.ZipFile(out / ARRAYS, "w") as kept:  # an .npz
            for name, array in reader.arrays.items():
                with kept.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
    except AirworthyError as error:
        table = {"refused": str(error)}
    except MemoryError:
        table = {"damaged": "it needs more memory than it may take"}
    except Exception as error:  # the library turns its own errors into several kinds, Tf.ErrorException among them
        table = {"damaged": _reason(error)}
    (out / ANSWER).write_text(json.dumps(table), encoding="utf-8")


def _bounded(memory: int, seconds: int) -> None:
    import resource

    for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds)):
        with contextlib.suppress(ValueError, OSError):  # some systems keep no such limit
            resource.setrlimit(kind, (most, most))


class _Stage:
    def __init__(self, source: ModelSource) -> None:
        from pxr import Usd, UsdGeom

        self.source = source
        self.layers: set[str] = set()
        self.check(source.path.resolve(), "")
        self.stage = Usd.Stage.Open(str(source.path.resolve()))
        self.time = Usd.TimeCode.EarliestTime()
        self.poses = UsdGeom.XformCache(self.time)
        self.arrays: dict[str, ArrayAny] = {}
        self.shapes: dict[str, int] = {}
        self.rows: list[dict[str, Any]] = []
        self.placed: list[dict[str, Any]] = []
        self.materials: dict[str, dict[str, Any]] = {}

    def check(self, path: Path, folder: str) -> None:
        """Refuse a layer that names others outside the file's own folder, of another kind, too many or too large ones."""
        from pxr import Sdf

        if str(path) in self.layers:
            return
        self.layers.add(str(path))
        self.source.at_most(len(self.layers), _LAYERS_MAX, "layers")
        layer = Sdf.Layer.OpenAsAnonymous(str(path))
        clips: list[str] = []
        layer.Traverse("/", lambda at: clips.extend([str(at)] if _has_clips(layer, at) else []))
        if clips:
            self.source.refuse("it has value clips, which are not read")
        for name in layer.GetCompositionAssetDependencies():
            if not name:
                continue
            self.source.inside(name)  # no scheme, no root
            sibling = os.path.normpath(os.path.join(folder, name))
            other = self.source.inside(sibling)
            if other.suffix.lower() not in _LAYERS:
                self.source.refuse(f"it refers to {shown(name)}; layers end in {', '.join(_LAYERS)}")
            if path.suffix.lower() == ".usdz":
                continue  # within its own package, where nothing leads out
            self.source.reference(sibling, escaped=False)
            self.check(other, os.path.dirname(sibling))

    def table(self) -> dict[str, Any]:
        from pxr import Usd, UsdGeom

        walk = iter(Usd.PrimRange(self.stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()))
        for count, prim in enumerate(walk, 1):
            self.source.at_most(count, self.source.limits.nodes, "nodes")
            if prim.IsA(UsdGeom.PointInstancer):
                walk.PruneChildren()
                self.instancer(UsdGeom.PointInstancer(prim))
            elif self.is_rendered(prim):
                self.add_instance(prim, _matrix(self.poses.GetLocalToWorldTransform(prim)))
        return {
            "up": str(UsdGeom.GetStageUpAxis(self.stage)),
            "unit": float(UsdGeom.GetStageMetersPerUnit(self.stage)),
            "shapes": self.rows,
            "placed": self.placed,
            "materials": self.materials,
            "warnings": list(self.source.warnings),
        }

    def is_rendered(self, prim: Any) -> bool:
        from pxr import UsdGeom

        if not prim.IsA(UsdGeom.Gprim):
            return False
        imageable = UsdGeom.Imageable(prim)
        return imageable.ComputeVisibility(self.time) != "invisible" and imageable.ComputePurpose() in ("default", "render")

    def add_instance(self, prim: Any, matrix: Array) -> None:
        """Add one placement of a prim; instances of one prototype share their shape."""
        if not (np.abs(matrix) <= 1e12).all():  # False also for NaN
            self.source.refuse("a transformation holds numbers above 1e12 or none at all")
        self.source.at_most(len(self.placed) + 1, self.source.limits.nodes, "placed shapes")
        own = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = str(own.GetPath())
        if key not in self.shapes:
            self.shapes[key] = len(self.rows)
            self.rows.append(self.shape(prim, len(self.rows)))
        if self.rows[self.shapes[key]]["kind"]:
            name = clean_name(prim.GetName(), "mesh")
            self.placed.append({"shape": self.shapes[key], "matrix": matrix.tolist(), "name": name})

    def instancer(self, item: Any) -> None:
        """Everything a point instancer scatters."""
        from pxr import Usd, UsdGeom

        prim = item.GetPrim()
        if UsdGeom.Imageable(prim).ComputeVisibility(self.time) == "invisible":
            return
        kinds = np.array(item.GetProtoIndicesAttr().Get(self.time) or [], np.int64)
        moves = item.ComputeInstanceTransformsAtTime(self.time, self.time)
        targets = item.GetPrototypesRel().GetForwardedTargets()
        self.source.at_most(len(kinds), self.source.limits.nodes, "instances")
        if len(moves) != len(kinds) or (len(kinds) and not 0 <= kinds.min() <= kinds.max() < len(targets)):
            self.source.refuse("a point instancer names prototypes that it does not have")
        above = _matrix(self.poses.GetLocalToWorldTransform(prim))
        for number, target in enumerate(targets):
            root = self.stage.GetPrimAtPath(target)
            if not root:
                continue
            parts = [part for part in Usd.PrimRange(root, Usd.TraverseInstanceProxies()) if self.is_rendered(part)]
            if any(part.IsA(UsdGeom.PointInstancer) for part in Usd.PrimRange(root, Usd.TraverseInstanceProxies())):
                self.source.warn("point instancers within others left out")
            base = np.linalg.inv(_matrix(self.poses.GetLocalToWorldTransform(root))) if parts else np.eye(4)
            inner = [base @ _matrix(self.poses.GetLocalToWorldTransform(part)) for part in parts]
            for at in np.flatnonzero(kinds == number):
                for part, local in zip(parts, inner, strict=True):
                    self.add_instance(part, above @ _matrix(moves[int(at)]) @ local)

    # ---- shapes

    def shape(self, prim: Any, number: int) -> dict[str, Any]:
        from pxr import UsdGeom

        row: dict[str, Any] = {"kind": "", "name": clean_name(prim.GetName(), "mesh"), "materials": [self.material_key(prim)]}
        kind = str(prim.GetTypeName())
        if prim.IsA(UsdGeom.Mesh):
            return row | self.mesh(UsdGeom.Mesh(prim), prim, number)
        names = {"Cube": ("size",), "Sphere": ("radius",), "Cylinder": ("radius", "height"), "Capsule": ("radius", "height")}
        if kind not in names:
            self.source.warn(f"geometry of the kind {shown(kind)} left out")
            return row
        sizes = [float(prim.GetAttribute(name).Get(self.time)) for name in names[kind]]
        axis = str(prim.GetAttribute("axis").Get(self.time)) if len(sizes) == 2 else "Z"
        if not all(0.0 < size < 1e9 for size in sizes):
            self.source.warn(f"a {kind} without a size left out")
            return row
        color = self.constant_color(prim)
        return row | {"kind": kind, "sizes": sizes, "axis": axis, "color": color}

    def mesh(self, mesh: Any, prim: Any, number: int) -> dict[str, Any]:
        """Triangles of polygons; colours per face or corner cost a vertex per corner."""
        points, counts, corners = (
            mesh.GetPointsAttr().Get(self.time) or [],
            mesh.GetFaceVertexCountsAttr().Get(self.time) or [],
            mesh.GetFaceVertexIndicesAttr().Get(self.time) or [],
        )
        self.source.at_most(len(points), self.source.limits.vertices, "vertices")
        self.source.at_most(len(corners), 3 * self.source.limits.faces, "corners")
        self.source.take(12 * len(points) + 24 * (len(counts) + len(corners)), "a mesh")
        vertices = np.array(points, np.float32).reshape(-1, 3)
        count, corner = np.array(counts, np.int64), np.array(corners, np.int64)
        if not len(vertices) or not len(count):
            return {}
        sound = not len(corner) or 0 <= corner.min() <= corner.max() < len(vertices)
        if not sound or count.min() < 0 or count.sum() != len(corner):
            self.source.refuse("a mesh uses points or corners that it does not have")
        color, where = self.colors(prim)
        tint = None
        size = {"uniform": len(count), "faceVarying": len(corner), "vertex": len(vertices), "varying": len(vertices)}.get(where)
        if color is not None and len(color) != size:
            color = None
        if color is not None and where in ("uniform", "faceVarying"):
            self.source.take(28 * len(corner), "colours of corners")
            tint = np.repeat(color, count, axis=0) if where == "uniform" else color
            vertices, corner = vertices[corner], np.arange(len(corner))
        elif color is not None:
            tint = color
        step = np.maximum(count - 2, 0)
        face, cut = np.repeat(np.arange(len(count)), step), fans(count)
        cut_concave(self.source, cut, count, vertices, corner.astype(np.int32))
        faces = corner[cut]
        if str(mesh.GetOrientationAttr().Get() or "") == "leftHanded":
            faces = faces[:, ::-1]
        self.arrays[f"points_{number}"] = vertices
        self.arrays[f"faces_{number}"] = faces.astype(np.int32)
        if tint is not None:
            self.arrays[f"colors_{number}"] = np.concatenate([tint, np.ones((len(tint), 1), np.float32)], 1)
        names, of_face = self.subsets(prim, len(count))
        if names:
            self.arrays[f"material_{number}"] = of_face[face].astype(np.int32)
        scheme = str(mesh.GetSubdivisionSchemeAttr().Get() or "")
        if scheme not in ("none", "") and mesh.GetSubdivisionSchemeAttr().HasAuthoredValue():
            self.source.warn("surfaces to be subdivided are read as their cages")
        made = {"kind": "Mesh", "color": self.constant_color(prim)}
        return made | ({"materials": [self.material_key(prim), *names]} if names else {})

    def subsets(self, prim: Any, count: int) -> tuple[list[str], ArrayInt]:
        """Materials of groups of faces, and for each face its number, 0 being the mesh's own."""
        from pxr import UsdShade

        names: list[str] = []
        number = np.zeros(count, np.int64)
        for subset in UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets():
            at = np.array(subset.GetIndicesAttr().Get(self.time) or [], np.int64)
            at = at[(at >= 0) & (at < count)]
            names.append(self.material_key(subset.GetPrim()))
            number[at] = len(names)
        return names, number

    # ---- looks

    def colors(self, prim: Any) -> tuple[ArrayF32 | None, str]:
        from pxr import UsdGeom

        found = UsdGeom.Gprim(prim).GetDisplayColorPrimvar()
        if not found or not found.HasValue():
            return None, ""
        values = np.array(found.ComputeFlattened(self.time) or [], np.float32).reshape(-1, 3)
        return np.nan_to_num(values, nan=1.0).clip(0.0, 1.0), str(found.GetInterpolation())

    def constant_color(self, prim: Any) -> list[float] | None:
        values, _ = self.colors(prim)
        return None if values is None or len(values) != 1 else [float(v) for v in values[0]]

    def material_key(self, prim: Any) -> str:
        """Key of a prim's material; empty where it has none that is read."""
        from pxr import UsdShade

        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
        if not material:
            return ""
        own = material.GetPrim()
        key = str((own.GetPrimInPrototype() if own.IsInstanceProxy() else own).GetPath())
        if key not in self.materials:
            self.source.at_most(len(self.materials) + 1, self.source.limits.materials, "materials")
            surface = material.ComputeSurfaceSource()[0]
            if not surface or surface.GetShaderId() != "UsdPreviewSurface":
                self.source.warn("materials that are no UsdPreviewSurface read as plain grey")
                surface = None
            self.materials[key] = {
                "name": clean_name(own.GetName(), "material"),
                "diffuse": self.number(surface, "diffuseColor", [_GREY] * 3),
                "emissive": self.number(surface, "emissiveColor", [0.0] * 3),
                **{name: self.number(surface, name, [value])[0] for name, value in _VALUES.items()},
            }
        return key

    def number(self, surface: Any, name: str, default: list[float]) -> list[float]:
        """Return a constant input of a shader, in [0, 1]."""
        entry = surface.GetInput(name) if surface else None
        if not entry:
            return default
        if entry.HasConnectedSource():
            sources = entry.GetValueProducingAttributes()
            if not sources or str(sources[0].GetName()).startswith("outputs:"):
                self.source.warn("textures left out; a plain colour takes their place")
                return default
            value = sources[0].Get(self.time)
        else:
            value = entry.Get(self.time)
        values = np.atleast_1d(np.array(default if value is None else value, np.float64)).ravel()
        return [float(v) for v in np.nan_to_num(values, nan=0.0).clip(0.0, 1.0)] if len(values) == len(default) else default


def _has_clips(layer: Any, at: Any) -> bool:
    spec = layer.GetPrimAtPath(at) if at.IsPrimPath() or at.IsPrimVariantSelectionPath() else None
    return spec is not None and (spec.HasInfo("clips") or spec.HasInfo("clipSets"))


def _reason(error: Exception) -> str:
    """Return what the library says, without where in its own text it says so."""
    lines = [line.strip() for line in str(error).splitlines()]
    reason = next((line for line in reversed(lines) if sum(letter.isalpha() for letter in line) > 3), "")
    return UNPRINTABLE.sub("?", reason.rpartition(" : ")[2].strip("' ."))[:200]


def _matrix(found: Any) -> Array:
    """(4, 4) for columns of a matrix for rows."""
    return np.array(found, np.float64).reshape(4, 4).T


if __name__ == "__main__":
    main()
