"""Writing OBJ with its MTL and images beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import write_bytes, write_text
from airworthy.scenes.formats._images import linear_to_srgb
from airworthy.scenes.formats._parts import Part, Writable, as_model, material_of, parts
from airworthy.scenes.formats._png import png
from airworthy.scenes.formats._source import unique_name
from airworthy.scenes.formats.model import Model
from airworthy.scenes.record import Material

_HEIGHT_UNIT = 0.01  # [m], what the reader takes a height map of unit strength for


def write_obj(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as .obj in world coordinates, one object per instance.

    Materials go to an .mtl of the same name beside it, images to PNG files whose names begin with it. Detail maps are left out.

    Raises:
        AirworthyError: An instance names a missing shape, or a file cannot be written.
    """
    path = Path(path)
    model = as_model(thing)
    pieces = list(parts(model))
    used = list(dict.fromkeys(part.material for part in pieces if part.material))
    names: dict[str, str] = {}
    for name in used:
        names[name] = unique_name(set(names.values()), re.sub(r"\s+", "_", name))
    library = path.with_suffix(".mtl")
    if used:
        images = _Images(model, path)
        entries = [_entry(names[name], material_of(model, name), images) for name in used]
        write_text(library, "# written by airworthy\n" + "\n".join(entries))
    lines = ["# written by airworthy, metres, z up"] + ([f"mtllib {library.name}"] if used else [])
    counts = {"v": 1, "vt": 1, "vn": 1}
    before = ""
    for part in pieces:
        if part.name != before:
            lines.append("o " + re.sub(r"\s+", "_", part.name))
            before = part.name
        lines += _part(part, names.get(part.material, ""), counts)
    return write_text(path, "\n".join(lines) + "\n")


def _rows(word: str, values: NDArray) -> list[str]:
    """Lines of numbers: nine digits keep every float32."""
    pattern = word + " %.9g" * values.shape[1]
    return [pattern % tuple(row) for row in values.tolist()]


def _part(part: Part, material: str, counts: dict[str, int]) -> list[str]:
    vertices = part.vertices.astype(np.float64)
    if part.colors is not None:
        vertices = np.concatenate([vertices, linear_to_srgb(part.colors[:, :3])], 1)
    lines = _rows("v", vertices)
    columns = [part.faces + counts["v"]]
    if part.uv is not None:
        lines += _rows("vt", np.stack([part.uv[:, 0].astype(float), 1.0 - part.uv[:, 1].astype(float)], 1))
        columns.append(part.faces + counts["vt"])
        counts["vt"] += len(part.uv)
    if part.normals is not None:
        lines += _rows("vn", part.normals)
        columns.append(part.faces + counts["vn"])
        counts["vn"] += len(part.normals)
    counts["v"] += len(vertices)
    if material:
        lines.append(f"usemtl {material}")
    corner = "%d//%d" if part.uv is None and part.normals is not None else "/".join(["%d"] * len(columns))
    pattern = f"f {corner} {corner} {corner}"
    table = np.stack(columns, 2).reshape(len(part.faces), -1)
    return lines + [pattern % tuple(row) for row in table.tolist()]


class _Images:
    """PNG files beside the OBJ, each written once."""

    def __init__(self, model: Model, path: Path) -> None:
        self._model = model
        self._path = path
        self._names: dict[str, str] = {}

    def write(self, texture: str, what: str = "", pick: Callable[[NDArray], NDArray] | None = None) -> str:
        """File name of a texture, or of some of its channels; "" where the model lacks it."""
        if texture not in self._model.textures:
            return ""
        key = texture + what
        if key not in self._names:
            pixels = self._model.textures[texture].pixels
            stem = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{self._path.stem}_{Path(texture).stem[:80]}{what}")
            name = unique_name(set(self._names.values()), stem)
            write_bytes(
                self._path.with_name(name + ".png"), png(pixels if pick is None else np.ascontiguousarray(pick(pixels)))
            )
            self._names[key] = name
        return self._names[key] + ".png"


def _entry(name: str, material: Material, images: _Images) -> str:
    red, green, blue, alpha = material.base_color
    lines = [f"newmtl {name}", f"Kd {red:.6g} {green:.6g} {blue:.6g}", "Ks 0 0 0", f"d {alpha:.6g}", "illum 2"]
    lines += [f"Pr {material.roughness:.6g}", f"Pm {material.metallic:.6g}"]
    # Shininess for readers that do not know Pr: the inverse of how our reader turns it into roughness.
    lines.append(f"Ns {max(2.0 / max(material.roughness, 0.01) ** 4 - 2.0, 0.0):.6g}")
    if any(material.emissive):
        lines.append("Ke " + " ".join(f"{value:.6g}" for value in material.emissive))
    packed = material.metallic_roughness_map
    for word, file in (
        ("map_Kd", images.write(material.base_color_map)),
        ("map_Ke", images.write(material.emissive_map)),
        (f"norm -bm {material.normal_scale:.6g}", images.write(material.normal_map)),
        ("map_Ka", images.write(material.occlusion_map)),
        (f"disp -bm {material.height_scale / _HEIGHT_UNIT:.6g}", images.write(material.height_map)),
        ("map_Pr", images.write(packed, "_roughness", lambda p: p[..., min(1, p.shape[2] - 1)][..., None])),
        ("map_Pm", images.write(packed, "_metallic", lambda p: p[..., min(2, p.shape[2] - 1)][..., None])),
    ):
        if file:
            lines.append(f"{word} {file}")
    return "\n".join(lines) + "\n"
