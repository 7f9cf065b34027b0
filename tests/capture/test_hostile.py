"""Damaged and hostile captures load or are refused in one sentence; nothing outside of their folder is read."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import capture_building as build
import capture_fuzzing as fuzzing
import pytest
from PIL import Image
from tests.fixtures.damage import patched

from airworthy.capture import CAPTURE_LIMITS, read_capture
from airworthy.core.errors import AssetError

BIG = 2**60


@pytest.mark.parametrize("layout", fuzzing.LAYOUTS)
def test_the_seeds_load(layout: str, tmp_path: Path) -> None:
    for number, files in enumerate(fuzzing.seeds()[layout]):
        assert fuzzing.Driver(tmp_path / str(number)).read(files) == "loaded"


@pytest.mark.parametrize("layout", fuzzing.LAYOUTS)
def test_hundreds_of_damaged_captures(layout: str, tmp_path: Path) -> None:
    driver = fuzzing.run(layout, 300, 0, tmp_path)
    # Both happen often enough, in 5 % at least, that the inputs reach beyond the first bytes.
    assert driver.outcomes["refused"] >= 15
    assert driver.outcomes["loaded"] >= 15


@pytest.mark.slow
@pytest.mark.parametrize("layout", fuzzing.LAYOUTS)
def test_a_hundred_thousand_damaged_captures(layout: str, tmp_path: Path) -> None:
    fuzzing.run(layout, 100_000, 1, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "../outside.png",
        "/etc/hostname",
        "https://a.org/b.png",
        "FILE:///etc/hostname",
        "C:\\a.png",
        "..\\outside.png",
        "a/../../outside.png",
    ],
)
@pytest.mark.parametrize("which", ["file_path", "mask_path", "ply_file_path"])
def test_names_lead_nowhere_else(name: str, which: str, tmp_path: Path) -> None:
    (tmp_path / "outside.png").write_bytes(build.picture())
    files = build.transforms(2)
    table = json.loads(files["transforms.json"])
    if which == "ply_file_path":
        table[which] = name
    else:
        table["frames"][0][which] = name
    build.write(tmp_path / "set", files | {"transforms.json": json.dumps(table).encode()})
    with pytest.raises(AssetError, match=r"outside its own folder|only files in its own folder are read"):
        read_capture(tmp_path / "set")


@pytest.mark.parametrize("binary", [True, False])
def test_names_of_models_lead_nowhere_else(binary: bool, tmp_path: Path) -> None:
    (tmp_path / "x.jpg").write_bytes(build.picture(kind="JPEG"))
    files = build.colmap(2, binary)
    name = f"sparse/0/images.{'bin' if binary else 'txt'}"
    build.write(tmp_path / "set", files | {name: files[name].replace(b"0.jpg", b"../../x.jpg")})
    with pytest.raises(AssetError, match="outside its own folder"):
        read_capture(tmp_path / "set")


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    build.write(tmp_path / "set", build.transforms(2))
    (tmp_path / "secret.png").write_bytes(build.picture())
    (tmp_path / "set" / "images" / "0.png").unlink()
    (tmp_path / "set" / "images" / "0.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(AssetError, match="outside its own folder"):
        read_capture(tmp_path / "set")
    build.write(tmp_path / "model", build.colmap(2))
    (tmp_path / "model" / "sparse").rename(tmp_path / "elsewhere")
    (tmp_path / "model" / "sparse").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AssetError, match="outside its own folder"):
        read_capture(tmp_path / "model")


@pytest.mark.parametrize("name", ["a\0.png", "\ud800.png", "x" * 1025])
def test_names_that_are_none_are_refused(name: str, tmp_path: Path) -> None:
    table = json.loads(build.transforms(2)["transforms.json"])
    table["frames"][0]["file_path"] = name
    build.write(tmp_path, build.transforms(2) | {"transforms.json": json.dumps(table).encode()})
    with pytest.raises(AssetError, match="it refers to a file by "):
        read_capture(tmp_path)


@pytest.mark.parametrize("name", ["pipe.png", "folder.png", "loop.png", "x" * 300 + ".png", "images/%30.png"])
def test_what_is_no_file_is_left_out(name: str, tmp_path: Path) -> None:
    """A pipe is not waited for; %30 is not decoded into the name of an image that is there."""
    files = build.transforms(2)
    table = json.loads(files["transforms.json"])
    table["frames"][0]["file_path"] = name
    build.write(tmp_path, files | {"transforms.json": json.dumps(table).encode()})
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "loop.png").symlink_to("loop.png")
    found = read_capture(tmp_path)
    assert len(found) == 1
    assert len(found.skipped) == 1


def liars() -> dict[str, build.Files]:
    """Models that promise 2^60 of something."""
    files = build.colmap(2)
    cameras, images, points = (f"sparse/0/{name}.bin" for name in ("cameras", "images", "points3D"))
    observations_at = files[images].index(b"1.jpg\0") + 6
    return {
        "cameras": files | {cameras: patched(files[cameras], 0, "<Q", BIG)},
        "images": files | {images: patched(files[images], 0, "<Q", BIG)},
        "points": files | {points: patched(files[points], 0, "<Q", BIG)},
        "observations": files | {images: patched(files[images], observations_at, "<Q", BIG)},
        "track": files | {points: patched(files[points], 8 + 8 + 24 + 3 + 8, "<Q", BIG)},
        "size": files | {cameras: patched(files[cameras], 16, "<QQ", BIG, BIG)},
        "name": files | {images: files[images].replace(b"1.jpg\0", b"1.jpgx")},
    }


@pytest.mark.parametrize("name", sorted(liars()))
def test_liars_cost_nothing(name: str, tmp_path: Path, calls_of: Callable[[Callable[[], object]], int]) -> None:
    """A header that promises 2^60 entries fails in under 20,000 function calls (milliseconds) and 1 MB."""
    build.write(tmp_path, liars()[name])
    with pytest.raises(AssetError):
        read_capture(tmp_path)  # imports

    def refused() -> None:
        with pytest.raises(AssetError):
            read_capture(tmp_path)

    assert calls_of(refused) < 20_000
    tracemalloc.start()
    try:
        with pytest.raises(AssetError):
            read_capture(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_image_that_unpacks_to_too_much_is_left_out(tmp_path: Path) -> None:
    """8,000 x 8,000 black pixels in 24 kB: it is not decoded."""
    held = io.BytesIO()
    Image.new("1", (8000, 8000)).save(held, "PNG", optimize=False)
    files = build.transforms(2)
    files["images/0.png"] = held.getvalue()
    tracemalloc.start()
    try:
        found = read_capture(build.write(tmp_path, files))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert len(found) == 1
    assert "has 8,000 x 8,000 pixels" in found.skipped[0]


def test_limits(tmp_path: Path) -> None:
    build.write(tmp_path / "t", build.transforms(4))
    build.write(tmp_path / "c", build.colmap(4, binary=False))
    for change, message in (
        ({"total_pixels": 300}, r"over 300 pixels at this size; ask for a smaller width"),
        ({"frames": 3}, r"it has 4 frames in transforms.json, and at most 3 are accepted"),
        ({"json_bytes": 100}, r"at most 100 are accepted here"),
        ({"image_pixels": 95}, r"its file has 12 x 8 pixels, too many"),
        ({"image_bytes": 50}, r"its file is damaged"),
        ({"model_bytes": 50}, r"at most 50 are accepted here"),
        ({"points": 2}, r"at most 2 are accepted"),
    ):
        with pytest.raises(AssetError, match=message):
            read_capture(tmp_path / "t", limits=replace(CAPTURE_LIMITS, **change))
    with pytest.raises(AssetError, match=r"lines in cameras\.txt"):
        read_capture(tmp_path / "c", limits=replace(CAPTURE_LIMITS, cameras=-99))


def test_poses_and_points_that_are_not_finite_are_dropped(tmp_path: Path) -> None:
    files = build.colmap(3)
    images, points = "sparse/0/images.bin", "sparse/0/points3D.bin"
    files[images] = patched(files[images], 8 + 4, "<d", float("nan"))
    files[points] = patched(files[points], 8 + 8, "<d", float("inf"))
    found = read_capture(build.write(tmp_path, files))
    assert found.skipped == ("1 listed image left out (0.jpg): its pose is not finite, or its rotation zero",)
    assert found.notes[0] == "1 points left out that are not finite or far away"
    assert found.points is not None
    assert len(found.points) == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "it holds neither transforms.json nor transforms_train.json nor a sparse model of COLMAP"),
        ({"transforms.json": b"[]"}, "its transforms.json is no JSON object"),
        ({"transforms.json": b'{"frames": []}'}, "its transforms.json has no list of frames"),
        ({"transforms.json": b'{"frames": [{}]}'}, "frame 0 of its transforms.json is no object with a file_path"),
        ({"transforms.json": b"{"}, "is not valid JSON"),
        ({"sparse/0/images.bin": b""}, "its model has no file sparse/0/cameras.bin"),
        ({"sparse/0/images.txt": b"", "sparse/0/cameras.txt": b"1 PINHOLE\n"}, "its cameras.txt has the line '1 PINHOLE'"),
    ],
)
def test_what_is_no_capture(files: build.Files, message: str, tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=message):
        read_capture(build.write(tmp_path, files))


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=r"it is no folder, and no transforms.json"):
        read_capture(tmp_path / "gone")
    with pytest.raises(AssetError, match=r"it has no file transforms.json"):
        read_capture(tmp_path / "transforms.json")


@pytest.mark.parametrize("name", [b"\x1b[31m", "\u00ad\u200b\u202ex".encode()])
def test_names_that_disturb_terminals_are_shown_harmlessly(name: bytes, tmp_path: Path) -> None:
    files = build.colmap(2)
    images = "sparse/0/images.bin"
    at = files[images].index(b"1.jpg\0")
    broken = patched(files[images], at - 4 - 8, "<d", float("nan")).replace(b"1.jpg\0", name + b"\0")
    found = read_capture(build.write(tmp_path / "pose", files | {images: broken}))
    assert "its pose is not finite" in found.skipped[0]
    assert found.skipped[0].isprintable()
    outside = files[images].replace(b"1.jpg\0", b"../../" + name + b"\0")
    with pytest.raises(AssetError) as refused:
        read_capture(build.write(tmp_path / "name", files | {images: outside}))
    assert str(refused.value).isprintable()
