"""Tiny valid files of every container of splats, written by encoders that share nothing with the readers."""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image

from airworthy.scenes.splats import Splats

C0 = math.sqrt(1 / (4 * math.pi))
HALF = math.sqrt(0.5)
MASK = 2**32 - 1


def random_splats(count: int = 4, degree: int = 1, seed: int = 0, extent: float = 2.0) -> Splats:
    """Gaussians whose values every container can hold."""
    rng = np.random.default_rng(seed)
    rotation = rng.normal(size=(count, 4))
    return Splats(
        rng.uniform(-extent, extent, (count, 3)),
        rotation / np.linalg.norm(rotation, axis=1, keepdims=True),
        np.exp(rng.uniform(-5, -1, (count, 3))),
        rng.uniform(0.05, 0.95, count),
        rng.uniform(-0.5, 0.5, (count, (degree + 1) ** 2, 3)),  # stay below 1 however they are turned
    )


def logit(value: float) -> float:
    return math.log(value / (1 - value))


def ply(splats: Splats, order: str = "<", comment: str = "") -> bytes:
    """3DGS PLY; order "" writes text."""
    n, k, _ = splats.harmonics.shape
    names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", *(f"f_rest_{i}" for i in range(3 * (k - 1))), "opacity"]
    names += ["scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    form = {"<": "binary_little_endian", ">": "binary_big_endian", "": "ascii"}[order]
    head = f"ply\nformat {form} 1.0\n{comment}element vertex {n}\n" + "".join(f"property float {name}\n" for name in names)
    rows = []
    for i in range(n):
        row = [*splats.position[i], *splats.harmonics[i, 0]]
        row += [splats.harmonics[i, j, channel] for channel in range(3) for j in range(1, k)]
        row += [logit(float(splats.opacity[i])), *np.log(splats.scale[i].astype(float))]
        x, y, z, w = 3.0 * splats.rotation[i]  # of any length
        rows.append([float(value) for value in (*row, w, x, y, z)])
    if order:
        body = b"".join(struct.pack(f"{order}{len(names)}f", *row) for row in rows)
    else:
        body = "".join(" ".join(f"{value:.9g}" for value in row) + "\n" for row in rows).encode()
    return head.encode() + b"end_header\n" + body


def _steps(value: float, bits: int) -> int:
    return round(min(max(value, 0.0), 1.0) * (2**bits - 1))


def _largest(rotation: np.ndarray) -> tuple[int, list[float]]:
    place = int(np.abs(rotation).argmax())
    sign = -1.0 if rotation[place] < 0 else 1.0
    return place, [sign * float(value) for index, value in enumerate(rotation) if index != place]


def packed_ply(splats: Splats, sh: bool = True) -> bytes:
    """PlayCanvas's compressed PLY, up to 256 gaussians, with bounds of colours and bytes of harmonics."""
    n, k, _ = splats.harmonics.shape
    logs, color = np.log(splats.scale.astype(float)), 0.5 + C0 * splats.harmonics[:, 0].astype(float)
    ranges = [(values.min(0), np.maximum(values.max(0), values.min(0) + 1e-6)) for values in (splats.position, logs, color)]
    names = [f"{end}_{a}" for end in ("min", "max") for a in "xyz"]
    names += [f"{end}_scale_{a}" for end in ("min", "max") for a in "xyz"] + [
        f"{end}_{a}" for end in ("min", "max") for a in "rgb"
    ]
    head = "ply\nformat binary_little_endian 1.0\nelement chunk 1\n" + "".join(f"property float {name}\n" for name in names)
    head += f"element vertex {n}\n" + "".join(f"property uint packed_{a}\n" for a in ("position", "rotation", "scale", "color"))
    if sh and k > 1:
        head += f"element sh {n}\n" + "".join(f"property uchar f_rest_{i}\n" for i in range(3 * (k - 1)))
    body = struct.pack("<18f", *(value for low, high in ranges for value in (*low, *high)))
    for i in range(n):
        parts = [
            (values[i] - low) / (high - low) for values, (low, high) in zip((splats.position, logs, color), ranges, strict=True)
        ]
        x, y, z, w = splats.rotation[i]
        place, three = _largest(np.array([w, x, y, z]))
        turn = place << 30
        for shift, value in zip((20, 10, 0), three, strict=True):
            turn |= _steps(value * HALF + 0.5, 10) << shift
        steps = [_steps(p[0], 11) << 21 | _steps(p[1], 10) << 11 | _steps(p[2], 11) for p in parts[:2]]
        red, green, blue = (_steps(value, 8) for value in parts[2])
        body += struct.pack("<4I", steps[0], turn, steps[1], red << 24 | green << 16 | blue << 8 | _steps(splats.opacity[i], 8))
    if sh and k > 1:
        rest = splats.harmonics[:, 1:].transpose(0, 2, 1).reshape(n, -1)
        body += np.floor((rest / 8 + 0.5) * 256).clip(0, 255).astype("u1").tobytes()
    return (head + "end_header\n").encode() + body


def spz(splats: Splats, version: int = 3, packed: bool = True, flags: int = 1) -> bytes:
    """SPZ; version 4 with Zstandard streams; `packed` False: the bare content."""
    n, k, _ = splats.harmonics.shape
    position = b"".join(round(float(v) * 4096).to_bytes(3, "little", signed=True) for v in splats.position.ravel())
    byte = lambda values: np.round(values).clip(0, 255).astype("u1").tobytes()  # noqa: E731
    rotation = b""
    for q in splats.rotation.astype(float):
        if version == 2:
            rotation += byte((q[:3] * (-1 if q[3] < 0 else 1) + 1) * 127.5)
        else:
            place, three = _largest(q)
            word = place
            for value in three:
                word = word << 10 | (512 if value < 0 else 0) | round(abs(value) / HALF * 511)
            rotation += struct.pack("<I", word)
    parts = [
        position,
        byte(splats.opacity * 255),
        byte((0.5 + 0.15 * splats.harmonics[:, 0]) * 255),
        byte((np.log(splats.scale) + 10) * 16),
        rotation,
        byte(splats.harmonics[:, 1:] * 128 + 128),
    ]
    degree = math.isqrt(k) - 1
    head = b"NGSP" + struct.pack("<IIBBB", version, n, degree, 12, flags)
    if version < 4:
        data = head + b"\0" + b"".join(parts)
        return gzip.compress(data, mtime=0) if packed else data
    parts = [part for part in parts if part]
    codec = pa.Codec("zstd")
    streams = [bytes(codec.compress(part)) for part in parts]
    table = b"".join(struct.pack("<QQ", len(s), len(p)) for s, p in zip(streams, parts, strict=True))
    return head + bytes([len(parts)]) + struct.pack("<I12x", 32) + table + b"".join(streams)


def splat(splats: Splats) -> bytes:
    result = b""
    for i in range(len(splats)):
        x, y, z, w = splats.rotation[i]
        color = [*(0.5 + C0 * splats.harmonics[i, 0]), splats.opacity[i]]
        result += struct.pack("<6f", *splats.position[i], *splats.scale[i])
        result += bytes(round(min(max(float(v), 0.0), 1.0) * 255) for v in color)
        result += bytes(min(max(round(float(v) * 128 + 128), 0), 255) for v in (w, x, y, z))
    return result


def ksplat(splats: Splats, level: int = 1, capacity: int = 2) -> bytes:
    """One section; full buckets of `capacity`, and one that is partly filled where gaussians are left."""
    n, k, _ = splats.harmonics.shape
    degree, block, reach = math.isqrt(k) - 1, 10.0, 32767
    full, left = divmod(n, capacity)
    partial = [left] if left else []
    buckets = full + len(partial)
    centres = [splats.position[b * capacity : (b + 1) * capacity].mean(0) for b in range(buckets)]
    head = bytearray(4096)
    head[1] = 1
    struct.pack_into("<4I", head, 4, 1, 1, n, n)
    struct.pack_into("<H", head, 20, level)
    struct.pack_into("<2f", head, 36, -1.5, 1.5)
    section = bytearray(1024)
    struct.pack_into("<4If", section, 0, n, n, capacity, buckets, block)
    struct.pack_into("<H", section, 20, 12)
    struct.pack_into("<4IH", section, 24, reach if level else 1, 0, full, len(partial), degree)
    body = struct.pack(f"<{len(partial)}I", *partial) + b"".join(struct.pack("<3f", *c) for c in centres)
    small = "f" if level == 0 else "e"
    for i in range(n):
        x, y, z, w = splats.rotation[i]
        if level == 0:
            body += struct.pack("<3f", *splats.position[i])
        else:
            away = (splats.position[i] - centres[i // capacity]) / (block / 2 / reach)
            body += struct.pack("<3H", *(round(float(v)) + reach for v in away))
        body += struct.pack(f"<7{small}", *splats.scale[i], w, x, y, z)
        color = [*(0.5 + C0 * splats.harmonics[i, 0]), splats.opacity[i]]
        body += bytes(round(min(max(float(v), 0.0), 1.0) * 255) for v in color)
        for band in range(1, degree + 1):
            for channel in range(3):
                for value in splats.harmonics[i, band * band : (band + 1) ** 2, channel]:
                    body += bytes([round((float(value) + 1.5) / 3 * 255)]) if level == 2 else struct.pack(f"<{small}", value)
    return bytes(head) + bytes(section) + body


def webp(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels.astype("u1")).save(file, "WEBP", lossless=True, exact=True)
    return file.getvalue()


def sog_files(splats: Splats, width: int = 3, entries: int = 256) -> dict[str, bytes]:
    """meta.json and images of a SOG with tables of so many values; each gaussian has an entry of the palette of its own."""
    n, k, _ = splats.harmonics.shape
    height = -(-n // width)

    def image(values: np.ndarray) -> bytes:
        full = np.full((width * height, 4), 255)
        full[:n, : values.shape[1]] = values
        return webp(full.reshape(height, width, 4))

    def book(values: np.ndarray) -> tuple[list[float], np.ndarray]:
        levels = np.linspace(values.min(), values.max(), entries)
        return levels.tolist(), np.abs(values[..., None] - levels).argmin(-1)

    logs = np.sign(splats.position) * np.log1p(np.abs(splats.position.astype(float)))
    low, high = logs.min(0), logs.max(0)
    fixed = np.round((logs - low) / (high - low) * 65535).astype(int)
    turns = []
    for x, y, z, w in splats.rotation:
        place, three = _largest(np.array([w, x, y, z]))
        turns.append([*(round((v / HALF + 1) * 127.5) for v in three), 252 + place])
    scale_book, scales = book(np.log(splats.scale.astype(float)))
    color_book, colors = book(splats.harmonics[:, 0].astype(float))
    files = {
        "means_l.webp": image(fixed & 255),
        "means_u.webp": image(fixed >> 8),
        "quats.webp": image(np.array(turns)),
        "scales.webp": image(scales),
        "sh0.webp": image(np.column_stack([colors, np.round(splats.opacity * 255)])),
    }
    meta = {
        "version": 2,
        "count": n,
        "means": {"mins": low.tolist(), "maxs": high.tolist(), "files": ["means_l.webp", "means_u.webp"]},
        "scales": {"codebook": scale_book, "files": ["scales.webp"]},
        "quats": {"files": ["quats.webp"]},
        "sh0": {"codebook": color_book, "files": ["sh0.webp"]},
    }
    if k > 1:
        rest_book, rest = book(splats.harmonics[:, 1:].astype(float))
        palette = np.zeros((-(-n // 64), 64, k - 1, 4))
        palette[..., 3] = 255
        palette.reshape(-1, k - 1, 4)[:n, :, :3] = rest
        files["shN_centroids.webp"] = webp(palette.reshape(len(palette), -1, 4))
        labels = np.arange(n)
        files["shN_labels.webp"] = image(np.column_stack([labels & 255, labels >> 8]))
        names = ["shN_centroids.webp", "shN_labels.webp"]
        meta["shN"] = {"count": n, "bands": math.isqrt(k) - 1, "codebook": rest_book, "files": names}
    return {"meta.json": json.dumps(meta).encode(), **files}


def bundle(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


def streamed_files(fine: Splats, coarse: Splats, entries: int = 256) -> dict[str, bytes]:
    """Two levels in two leaves each, both leaves of a level in one file."""
    leaves = []
    for part in range(2):
        lods = {}
        for level, splats in enumerate((fine, coarse)):
            middle = len(splats) // 2
            lods[str(level)] = {"file": level, "offset": part * middle, "count": len(splats) - middle if part else middle}
        leaves.append({"lods": lods})
    meta = {"lodLevels": 2, "filenames": ["0_0/meta.json", "1_0/meta.json"], "tree": {"children": leaves}}
    files = {"lod-meta.json": json.dumps(meta).encode()}
    for level, splats in enumerate((fine, coarse)):
        files |= {f"{level}_0/{name}": data for name, data in sog_files(splats, entries=entries).items()}
    return files


def gltf_tree(splats: Splats, spz_data: bytes | None = None) -> tuple[dict, bytes]:
    """JSON and buffer of a glTF file with one node, moved by (1, 2, 3)."""
    n, k, _ = splats.harmonics.shape
    base = "KHR_gaussian_splatting"
    arrays = {"POSITION": splats.position, f"{base}:ROTATION": splats.rotation, f"{base}:SCALE": splats.scale}
    arrays[f"{base}:OPACITY"] = splats.opacity[:, None]
    for band in range(math.isqrt(k)):
        for index in range(2 * band + 1):
            arrays[f"{base}:SH_DEGREE_{band}_COEF_{index}"] = splats.harmonics[:, band * band + index]
    binary, views, accessors = b"", [], []
    for values in arrays.values():
        data = np.ascontiguousarray(values, "<f4").tobytes()
        kind = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}[values.shape[1]]
        accessors.append({"bufferView": len(views), "componentType": 5126, "count": n, "type": kind})
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(data)})
        binary += data
    extension: dict = {"kernel": "ellipse", "colorSpace": "srgb_rec709_display"}
    required = [base]
    if spz_data is not None:
        required.append(f"{base}_compression_spz_2")
        views, accessors, binary = [{"buffer": 0, "byteLength": len(spz_data)}], [], spz_data
        extension["extensions"] = {required[1]: {"bufferView": 0}}
    attributes = {} if spz_data is not None else {name: index for index, name in enumerate(arrays)}
    primitive = {"attributes": attributes, "mode": 0, "extensions": {base: extension}}
    root = {
        "asset": {"version": "2.0"},
        "extensionsUsed": required,
        "extensionsRequired": required,
        "nodes": [{"mesh": 0, "translation": [1, 2, 3]}],
        "meshes": [{"primitives": [primitive]}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(binary)}],
    }
    return root, binary


def glb(root: dict | bytes, binary: bytes) -> bytes:
    text = root if isinstance(root, bytes) else json.dumps(root).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    head = struct.pack("<4s2I", b"glTF", 2, 28 + len(text) + len(binary)) + struct.pack("<II", len(text), 0x4E4F534A)
    return head + text + struct.pack("<II", len(binary), 0x004E4942) + binary


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        # A file that is made anew is not waited for, as one that is cut and written again is.
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)
    return folder
