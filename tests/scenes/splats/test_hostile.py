"""Damaged and hostile splat files load or are refused in one sentence; liars are found out before anything is allocated."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import splat_building as build
import splat_fuzzing as fuzzing
from PIL import Image
from tests.fixtures.damage import patched

from airworthy.core import files
from airworthy.core.errors import AssetError
from airworthy.scenes.formats.model import FileLimits
from airworthy.scenes.splats import SPLAT_LIMITS, Splats, read_splats

BIG = 2**60
FEW = fuzzing.FEW


@pytest.mark.parametrize("container", fuzzing.CONTAINERS)
def test_the_seeds_load(container: str, tmp_path: Path) -> None:
    for number, seed in enumerate(fuzzing.seeds()[container]):
        (tmp_path / str(number)).mkdir()
        assert fuzzing.Driver(tmp_path / str(number)).read(seed) == "loaded"


@pytest.mark.parametrize("container", fuzzing.CONTAINERS)
def test_hundreds_of_damaged_files(container: str, tmp_path: Path) -> None:
    driver = fuzzing.run(container, 200 if container == "nerfstudio" else 400, 0, tmp_path)  # that is a PLY once more
    # Both happen often enough that the inputs reach beyond the header.
    assert driver.outcomes["refused"] >= 30
    assert driver.outcomes["loaded"] >= 30


@pytest.mark.slow
@pytest.mark.parametrize("container", fuzzing.CONTAINERS)
def test_a_hundred_thousand_damaged_files(container: str, tmp_path: Path) -> None:
    fuzzing.run(container, 100_000, 1, tmp_path)


def _meta(change: Callable[[dict], object]) -> bytes:
    members = build.sog_files(FEW)
    meta = json.loads(members["meta.json"])
    change(meta)
    return build.bundle(members | {"meta.json": json.dumps(meta).encode()})


def _accessor(count: int) -> bytes:
    tree, binary = build.gltf_tree(FEW)
    tree["accessors"][0]["count"] = count
    return build.glb(tree, binary)


def _zip_liar() -> bytes:
    """A member whose directory entry says that it is 4 GB long."""
    data = build.bundle(build.sog_files(FEW))
    at = data.index(b"PK\x01\x02")
    return patched(data, at + 24, "<I", 2**32 - 2)


def _liars() -> dict[str, Callable[[], bytes]]:
    """Files that promise 2^60 of something, or as much as their field can hold; built when asked for."""
    ply, packed, spz, spz4 = build.ply(FEW), build.packed_ply(FEW), build.spz(FEW, packed=False), build.spz(FEW, 4)
    ksplat = build.ksplat(FEW)
    tree = {"lodLevels": 1, "filenames": [], "tree": {"lods": {"0": {"file": BIG, "count": BIG}}}}
    return {
        "vertex.ply": lambda: ply.replace(b"vertex 5", b"vertex %d" % BIG),
        "fits.ply": lambda: ply.replace(b"vertex 5", b"vertex %d" % (len(ply) - 1)),
        "chunk.ply": lambda: packed.replace(b"chunk 1", b"chunk %d" % BIG),
        "packed.ply": lambda: packed.replace(b"vertex 5", b"vertex %d" % BIG),
        "sh.ply": lambda: packed.replace(b"sh 5", b"sh %d" % BIG),
        "text.ply": lambda: build.ply(FEW, "").replace(b"vertex 5", b"vertex %d" % BIG),
        "bare.spz": lambda: patched(spz, 8, "<I", 2**32 - 1),
        "many.spz": lambda: gzip.compress(patched(spz, 8, "<I", 2**32 - 1)),
        "some.spz": lambda: gzip.compress(patched(spz, 8, "<I", 300_000)),
        "four.spz": lambda: patched(spz4, 8, "<I", 2**32 - 1),
        "stream.spz": lambda: patched(spz4, 32, "<QQ", BIG, BIG),
        "raw.spz": lambda: patched(spz4, 40, "<Q", BIG),
        "table.spz": lambda: patched(spz4, 16, "<I", 2**32 - 1),
        "count.sog": lambda: _meta(lambda meta: meta.update(count=BIG)),
        "palette.sog": lambda: _meta(lambda meta: meta["shN"].update(count=BIG)),
        "bands.sog": lambda: _meta(lambda meta: meta["shN"].update(bands=BIG)),
        "member.sog": _zip_liar,
        "splats.ksplat": lambda: patched(ksplat, 4096, "<II", 2**32 - 1, 2**32 - 1),
        "sections.ksplat": lambda: patched(ksplat, 4, "<I", 2**32 - 1),
        "buckets.ksplat": lambda: patched(ksplat, 4096 + 12, "<I", 2**32 - 1),
        "partial.ksplat": lambda: patched(ksplat, 4096 + 36, "<I", 2**32 - 1),
        "full.ksplat": lambda: patched(ksplat, 4096 + 32, "<I", 2**32 - 1),
        "accessor.glb": lambda: _accessor(BIG),
        "lod-meta.json": lambda: json.dumps(tree).encode(),
    }


@pytest.mark.parametrize("name", sorted(_liars()))
def test_liars_cost_nothing(name: str, tmp_path: Path, calls_of: Callable[[Callable[[], object]], int]) -> None:
    """A header that promises 2^60 gaussians fails in under 20,000 function calls (milliseconds) and under 1 MB."""
    path = tmp_path / name
    path.write_bytes(_liars()[name]())
    with pytest.raises(AssetError):
        read_splats(path)  # imports

    def refused() -> None:
        with pytest.raises(AssetError):
            read_splats(path)

    assert calls_of(refused) < 20_000
    assert _peak(read_splats, path) - _peak(files.read_bytes, path) < 1_000_000


def _peak(read: Callable[[Path], object], path: Path) -> int:
    """Most memory in use while a file is read or refused [byte], of Python and NumPy."""
    tracemalloc.start()
    with contextlib.suppress(AssetError):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _image_bomb(side: int) -> bytes:
    """A SOG whose images are large and hold nothing."""
    file = io.BytesIO()
    Image.new("RGBA", (side, side)).save(file, "WEBP", lossless=True)
    members = build.sog_files(build.random_splats(4, 0))
    return build.bundle({name: data if name == "meta.json" else file.getvalue() for name, data in members.items()})


def _hungry() -> dict[str, Callable[[], bytes]]:
    """Valid files that take as much memory per byte as a file of their container can; built when asked for."""
    zeros = bytes(64 * 10**6)
    header = b"NGSP" + struct.pack("<IIBBBB", 3, len(zeros) // 65, 3, 12, 0, 0)
    small = build.spz(FEW, 4)
    return {
        "zeros.spz": lambda: gzip.compress(header + zeros, 9),
        "stream.spz": lambda: patched(patched(small, 8, "<I", 1_200_000), 40, "<Q", 9 * 1_200_000),
        "deflated.sog": lambda: build.bundle(build.sog_files(FEW) | {"means_l.webp": zeros}, zipfile.ZIP_DEFLATED),
        "images.sog": lambda: _image_bomb(4096),
        "members.sog": lambda: build.bundle({f"{number}/meta.json": b"{}" for number in range(20_000)}),
        "lists.json": lambda: b'{"version":2,"means":' + b"[" * 60 + b"]" * 60 + b',"x":[' + b"[]," * 340_000 + b"[]]}",
        "tree.json": lambda: b'{"lodLevels":1,"tree":{"children":[' + b'{"lods":{}},' * 25_000 + b"{}]}}",
        "text.ply": lambda: build.ply(FEW, "").replace(b"vertex 5", b"vertex 105263") + b"0 " * 2_000_000,
        "wide.ply": lambda: build.ply(FEW, "") + b"0 " * 1_000_000,
    }


@pytest.mark.parametrize("name", sorted(_hungry()))
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    """At most the limits' memory and one part in four for what lies between two counts. Python's and NumPy's is traced."""
    path = tmp_path / name
    path.write_bytes(_hungry()[name]())
    room = SPLAT_LIMITS.memory_bytes + SPLAT_LIMITS.memory_ratio * path.stat().st_size
    assert _peak(read_splats, path) <= 1.25 * room + 2**20


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (FileLimits(file_bytes=100), "bytes"),
        (FileLimits(vertices=4), "gaussians"),
        (FileLimits(memory_bytes=10, memory_ratio=0.0), "memory_bytes"),
    ],
)
@pytest.mark.parametrize("container", ["ply", "packed", "spz", "sog", "folder", "splat", "ksplat"])
def test_limits_hold(container: str, limits: FileLimits, reason: str, tmp_path: Path) -> None:
    seed = fuzzing.seeds()[container][0]
    build.write_files(tmp_path, seed)
    with pytest.raises(AssetError, match=reason):
        read_splats(tmp_path / next(iter(seed)), limits)


@pytest.mark.parametrize("name", ["../a.webp", "/etc/passwd", "http://host/a.webp", "sub/../../a.webp", "link.webp", ""])
def test_images_stay_in_the_folder(name: str, tmp_path: Path) -> None:
    members = build.sog_files(FEW)
    (tmp_path / "a.webp").write_bytes(members["means_l.webp"])
    folder = build.write_files(tmp_path / "set", members)
    os.symlink(tmp_path / "a.webp", folder / "link.webp")
    meta = json.loads(members["meta.json"])
    meta["means"]["files"][0] = name
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(AssetError, match="cannot be used: it refers to"):
        read_splats(folder)
    (tmp_path / "a.sog").write_bytes(build.bundle(members | {"meta.json": json.dumps(meta).encode()}))
    with pytest.raises(AssetError, match="not in the archive"):
        read_splats(tmp_path / "a.sog")


def test_a_streamed_set_stays_in_its_folder(tmp_path: Path) -> None:
    build.write_files(tmp_path / "out", build.sog_files(FEW))
    folder = build.write_files(tmp_path / "set", build.streamed_files(FEW, FEW))
    meta = json.loads((folder / "lod-meta.json").read_text())
    meta["filenames"][0] = "../out/meta.json"
    (folder / "lod-meta.json").write_text(json.dumps(meta))
    with pytest.raises(AssetError, match="outside"):
        read_splats(folder)


def test_images_of_other_kinds_are_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, "JPEG")
    build.write_files(tmp_path, build.sog_files(FEW) | {"sh0.webp": file.getvalue()})
    with pytest.raises(AssetError, match="neither WebP nor PNG"):
        read_splats(tmp_path)


def test_encrypted_and_foreign_archives(tmp_path: Path) -> None:
    data = build.bundle(build.sog_files(FEW))
    at = data.index(b"PK\x01\x02")
    for name, content, reason in (
        ("locked.sog", patched(data, at + 8, "<H", 1), "damaged"),
        ("other.sog", build.bundle({"a.txt": b"a"}), "0 files meta.json"),
        ("two.sog", build.bundle({"a/meta.json": b"{}", "b/meta.json": b"{}"}), "2 files meta.json"),
        ("many.sog", build.bundle({str(number): b"" for number in range(300)}), "more than 256 files"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(AssetError, match=reason):
            read_splats(tmp_path / name)
    (tmp_path / "inner.sog").write_bytes(build.bundle({f"scene/{name}": data for name, data in build.sog_files(FEW).items()}))
    assert len(read_splats(tmp_path / "inner.sog").splats) == 5


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("position", np.nan, "position not finite"),
        ("position", np.inf, "position not finite"),
        ("position", 2e6, "position not finite or beyond"),
        ("rotation", 0.0, "rotation zero"),
        ("rotation", np.nan, "rotation zero or not finite"),
        ("scale", 0.0, "scale zero"),
        ("scale", -1.0, "scale zero"),
        ("scale", np.nan, "scale zero or not finite"),
        ("scale", np.inf, "scale zero or not finite"),
        ("scale", 1e6, "scale above"),
        ("opacity", np.nan, "opacity outside"),
        ("opacity", 1.5, "opacity outside"),
        ("opacity", -0.5, "opacity outside"),
        ("harmonics", np.nan, "colour not finite"),
        ("harmonics", 1e6, "colour not finite or absurd"),
    ],
)
def test_unsound_gaussians_are_dropped_and_counted(field: str, value: float, reason: str, tmp_path: Path) -> None:
    """glTF holds values as they are: two of five gaussians are spoilt."""
    splats = build.random_splats(5, 1)
    getattr(splats, field)[1:3] = value
    (tmp_path / "a.glb").write_bytes(build.glb(*build.gltf_tree(splats)))
    loaded = read_splats(tmp_path / "a.glb")
    if (field, value) == ("scale", -1.0):  # a negative scale is a logarithm, as in drafts: nothing is wrong
        assert loaded.dropped == {}
        return
    assert len(loaded.splats) == 3
    (only,) = loaded.dropped
    assert reason in only
    assert loaded.dropped[only] == 2
    assert loaded.warnings == (f"gaussians dropped: {only} (2)",)
    fuzzing.check(loaded)


def test_each_dropped_gaussian_is_counted_once(tmp_path: Path) -> None:
    splats = build.random_splats(6, 0)
    splats.position[0] = np.nan
    splats.scale[0] = np.nan
    splats.opacity[1] = np.nan
    (tmp_path / "a.glb").write_bytes(build.glb(*build.gltf_tree(splats)))
    loaded = read_splats(tmp_path / "a.glb")
    assert sum(loaded.dropped.values()) == 2
    assert len(loaded.splats) == 4


def _empty() -> dict[str, Callable[[], bytes]]:
    """Files that promise nothing at all, and keep the promise; built when asked for."""
    ply, packed, four, ksplat = build.ply(FEW), build.packed_ply(FEW), build.spz(FEW, 4), build.ksplat(FEW)
    return {
        "plain.ply": lambda: ply.replace(b"vertex 5", b"vertex 0"),
        "packed.ply": lambda: packed.replace(b"vertex 5", b"vertex 0").replace(b"sh 5", b"sh 0"),
        "bare.spz": lambda: patched(build.spz(FEW, packed=False), 8, "<I", 0),
        "gzip.spz": lambda: gzip.compress(patched(build.spz(FEW, packed=False), 8, "<I", 0)),
        "four.spz": lambda: patched(four, 8, "<I", 0),
        "a.sog": lambda: _meta(lambda meta: meta.update(count=0)),
        "a.splat": lambda: b"",
        "a.ksplat": lambda: patched(ksplat, 4096, "<I", 0),
        "sections.ksplat": lambda: patched(ksplat, 4, "<I", 0),
        "a.glb": lambda: _accessor(0),
    }


@pytest.mark.parametrize("name", sorted(_empty()))
def test_empty_files_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(_empty()[name]())
    with pytest.raises(AssetError, match=r"no gaussian|no multiple|was expected|were expected"):
        read_splats(tmp_path / name)


def test_empty_stretches_of_a_streamed_set_are_refused(tmp_path: Path) -> None:
    folder = build.write_files(tmp_path, build.streamed_files(FEW, FEW))
    meta = json.loads((folder / "lod-meta.json").read_text())
    for leaf in meta["tree"]["children"]:
        leaf["lods"]["0"]["count"] = 0
    (folder / "lod-meta.json").write_text(json.dumps(meta))
    with pytest.raises(AssetError, match="no gaussian"):
        read_splats(folder)


def test_nothing_sound_is_refused(tmp_path: Path) -> None:
    splats = build.random_splats(3, 0)
    bad = Splats(splats.position * np.nan, splats.rotation, splats.scale, splats.opacity, splats.harmonics)
    (tmp_path / "a.splat").write_bytes(build.splat(bad))
    with pytest.raises(AssetError, match="no sound gaussian"):
        read_splats(tmp_path / "a.splat")


def test_very_thin_gaussians_are_made_thicker(tmp_path: Path) -> None:
    splats = build.random_splats(3, 0)
    splats.scale[1, 2] = 1e-12
    (tmp_path / "a.splat").write_bytes(build.splat(splats))
    loaded = read_splats(tmp_path / "a.splat")
    assert np.isclose(loaded.splats.scale[1, 2], 1e-9)
    assert "thinner" in loaded.warnings[0]


@pytest.mark.parametrize("name", ["a.fbx", "a", "a.obj", "a.SPLATX"])
def test_other_files_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"hello, this is no splat")
    with pytest.raises(AssetError, match=r"\.spz"):
        read_splats(tmp_path / name)


def test_a_folder_of_nothing_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="is a folder without"):
        read_splats(tmp_path)
    with pytest.raises(AssetError, match="There is no file"):
        read_splats(tmp_path / "a.spz")


def test_a_mesh_is_no_splat(tmp_path: Path) -> None:
    (tmp_path / "a.ply").write_bytes(b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n0\n")
    with pytest.raises(AssetError, match="splats were expected"):
        read_splats(tmp_path / "a.ply")


def test_axes_of_its_own_are_refused(tmp_path: Path) -> None:
    """Adobe's extension of SPZ 4 can state other axes than the format's; passing over it would give a turned scene."""
    data = build.spz(FEW, 4, flags=2)
    for axes, sound in ((4, True), (6, False)):
        record = struct.pack("<III", 0xADBE0003, 4, axes)
        (tmp_path / "a.spz").write_bytes(patched(data[:32], 16, "<I", 44) + record + data[32:])
        if sound:
            assert len(read_splats(tmp_path / "a.spz").splats) == 5
        else:
            with pytest.raises(AssetError, match="axes of its own"):
                read_splats(tmp_path / "a.spz")
