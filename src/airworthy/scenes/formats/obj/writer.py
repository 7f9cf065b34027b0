"""Writing Wavefront OBJ with its MTL and images beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayU8, NDArray
from airworthy.core.files import write_bytes, write_text
from airworthy.scenes.formats._images import linear_to_srgb
from airworthy.scenes.formats._parts import MeshPart, Writable, as_model, material_of, parts
from airworthy.scenes.formats._source import unique_name
from airworthy.scenes.formats.model import Model
from airworthy.scenes.formats.obj.materials import BUMP_HEIGHT, MASK_CUTOFF
from airworthy.scenes.formats.write_plain import png
from airworthy.scenes.record import Material


def write_obj(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as .obj in world coordinates, one object per instance.

    Materials go to an .mtl of the same name beside it, images to PNG files whose names begin with it. Panes and cut-outs are
    written as the reader takes them; detail maps and what bounds a volume are left out (`export_losses` says so).

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


def _rows(keyword: str, values: NDArray) -> list[str]:
    """Lines of numbers: nine digits keep every float32."""
    pattern = keyword + " %.9g" * values.shape[1]
    return [pattern % tuple(row) for row in values.tolist()]


def _part(part: MeshPart, material: str, counts: dict[str, int]) -> list[str]:
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

    def has_alpha(self, texture: str) -> bool:
        """Tell whether the model has this texture, with an alpha channel."""
        found = self._model.textures.get(texture)
        return found is not None and found.pixels.shape[2] == 4

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
    color = _text(material.base_color[:3])
    lines = [f"newmtl {name}", f"Kd {color}", "Ks 0 0 0"]
    if material.transmission > 0.0:
        # Refraction with Fresnel's equations; what passes is dimmed by its filter.
        lines += [f"d {1.0 - material.transmission:.6g}", f"Tf {color}", f"Ni {material.ior:.6g}", "illum 7"]
    else:
        lines += [f"d {_opacity(material, images):.6g}", "illum 2"]
    lines += [f"Pr {material.roughness:.6g}", f"Pm {material.metallic:.6g}"]
    # Shininess for readers that do not know Pr: the inverse of how our reader turns it into roughness.
    lines.append(f"Ns {max(2.0 / max(material.roughness, 0.01) ** 4 - 2.0, 0.0):.6g}")
    if any(material.emissive):
        lines.append(f"Ke {_text(material.emissive)}")
    packed = material.metallic_roughness_map
    for keyword, file in (
        ("map_Kd", images.write(material.base_color_map)),
        ("map_d", _mask(material, images)),
        ("map_Ke", images.write(material.emissive_map)),
        (f"norm -bm {material.normal_scale:.6g}", images.write(material.normal_map)),
        ("map_Ka", images.write(material.occlusion_map)),
        (f"disp -bm {material.height_scale / BUMP_HEIGHT:.6g}", images.write(material.height_map)),
        ("map_Pr", images.write(packed, "_roughness", lambda p: p[..., min(1, p.shape[2] - 1)][..., None])),
        ("map_Pm", images.write(packed, "_metallic", lambda p: p[..., min(2, p.shape[2] - 1)][..., None])),
    ):
        if file:
            lines.append(f"{keyword} {file}")
    return "\n".join(lines) + "\n"


def _text(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.6g}" for value in values)


def _opacity(material: Material, images: _Images) -> float:
    """Return what `d` says: alpha counts where there is a cutoff and no mask has it; elsewhere it is of no matter."""
    if material.alpha_cutoff <= 0.0 or images.has_alpha(material.base_color_map):
        return 1.0
    return 1.0 if material.base_color[3] >= material.alpha_cutoff else 0.0


def _mask(material: Material, images: _Images) -> str:
    """File of the alpha of a cut-out, such that its holes are where the format's readers cut: at half."""
    if material.alpha_cutoff <= 0.0 or not images.has_alpha(material.base_color_map):
        return ""
    edge = material.alpha_cutoff / max(material.base_color[3], 1e-6)
    if edge == MASK_CUTOFF:
        return images.write(material.base_color_map, "_alpha", lambda p: p[..., 3:])
    return images.write(material.base_color_map, f"_alpha_{edge:.3g}", lambda p: _recut(p[..., 3:], edge))


def _recut(alpha: ArrayU8, edge: float) -> ArrayU8:
    """Alpha bent so that what was the edge comes to lie at half; 0 stays 0, and 1 stays 1 where it was no hole."""
    knots = (0.0, edge, 1.0) if edge < 1.0 else (0.0, edge)
    bent = np.interp(alpha / 255.0, knots, (0.0, MASK_CUTOFF, 1.0)[: len(knots)])
    # Rounded away from the edge: no pixel changes its side.
    return np.where(alpha / 255.0 < edge, np.floor(bent * 255.0), np.ceil(bent * 255.0)).astype(np.uint8)
