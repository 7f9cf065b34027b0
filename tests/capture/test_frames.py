"""Frames from a capture's own to the place's: told in every file, read back, and the same image from both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from alignment_building import walk
from capture_building import colmap, write

from airworthy.capture import CaptureImages, TrainOptions, export_frames, read_capture, read_poses, train_splats, write_capture
from airworthy.capture.alignment.frame_export import FIGS_WORLD, figs_pose
from airworthy.capture.record import AS_READ
from airworthy.cli.main import main
from airworthy.core import frames
from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import SourceFrame, Splats, read_splats, transformed, write_splats
from airworthy.scenes.splats.capture_frame import inverse_of, read_capture_comments
from airworthy.splats import SplatRenderer

TURN = tuple(map(float, frames.from_euler(0.4, -0.2, 1.1)))
SOURCE = SourceFrame("z", "", TURN, (0.3, -1.7, 0.45), 2.625)
"""From a capture to a place."""


def cloud(degree: int = 1, count: int = 60, seed: int = 0) -> Splats:
    """Gaussians about the origin of the place."""
    rng = np.random.default_rng(seed)
    return Splats(
        rng.uniform(-1.0, 1.0, (count, 3)), frames.normalize(rng.normal(size=(count, 4))), rng.uniform(0.05, 0.3, (count, 3)),
        rng.uniform(0.3, 0.95, count), rng.normal(0.0, 0.4, (count, (degree + 1) ** 2, 3)),
    )  # fmt: skip


def place(count: int = 3, seed: int = 1) -> CaptureImages:
    """A metric capture of 48 x 36 px whose source is `SOURCE`."""
    made = walk(count, seed)
    rng = np.random.default_rng(seed)
    lens = np.tile((40.0, 41.0, 24.5, 17.5), (count, 1))
    rgb = tuple(rng.integers(0, 256, (36, 48, 3)).astype(np.uint8) for _ in range(count))
    return CaptureImages(rgb, lens, made.position, made.attitude, points=rng.normal(size=(5, 3)), metric=True, source=SOURCE)


def image(splats: Splats, position: ArrayAny, attitude: ArrayAny) -> ArrayAny:
    """What a camera of `place` sees."""
    lens = np.array([[40.0, 41.0, 24.5, 17.5]])
    return SplatRenderer(splats).render(48, 36, lens, np.array([position]), np.array([attitude]), channels=("rgb",))["rgb"][0]


def opengl_pose(matrix: ArrayAny) -> tuple[ArrayAny, ArrayAny]:
    """Position and optical attitude of a camera to world with x right, y up, z backward: two columns negated, written out."""
    found = np.array(matrix)
    return found[:3, 3], frames.from_matrix(found[:3, :3] * (1.0, -1.0, -1.0))


def test_a_capture_tells_where_it_came_from(tmp_path: Path) -> None:
    """To the last bit, and through a second move."""
    write_capture(place(), tmp_path)
    again = read_capture(tmp_path)
    assert (again.source.rotation, again.source.translation, again.source.scale) == (TURN, SOURCE.translation, SOURCE.scale)
    there = again.moved(*inverse_of(again.source))
    assert there.source.rotation == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=1e-12)
    assert there.source.scale == pytest.approx(1.0, rel=1e-12)
    table = json.loads((tmp_path / "transforms.json").read_text())
    # Nerfstudio's exports would be led back to the frame of the capture by these.
    assert "applied_transform" not in table
    assert "applied_scale" not in table


@pytest.mark.parametrize(
    "wrong", [{"scale": 0.0}, {"rotation_xyzw": [0, 0, 0, 2]}, {"translation": [1, "a", 0]}, {"scale": None}]
)
def test_a_source_that_is_none_is_passed_over_and_said(wrong: dict, tmp_path: Path) -> None:
    path = write_capture(place(), tmp_path)
    table = json.loads(path.read_text())
    table["capture_to_place"] |= wrong
    path.write_text(json.dumps(table))
    again = read_capture(tmp_path)
    assert again.source == AS_READ
    assert any("capture_to_place is no scale, rotation and translation" in note for note in again.notes)


def aligned_set(folder: Path, metric: bool = True) -> Path:
    """A model of COLMAP with what `airworthy capture video` leaves beside it."""
    write(folder, colmap(6))
    way = {"scale": SOURCE.scale, "rotation_xyzw": list(TURN), "translation_m": list(SOURCE.translation)}
    (folder / "alignment.json").write_text(json.dumps({"metric": metric, "capture_to_place": way}))
    return folder


def test_a_model_with_its_alignment_is_read_in_the_place(tmp_path: Path) -> None:
    """Images, points and poses; with an axis that is asked for, and for a new alignment, in its own frame as ever."""
    folder = aligned_set(tmp_path / "room")
    own, found = read_capture(folder, up="none"), read_capture(folder)
    assert (own.metric, found.metric) == (False, True)
    assert found.position == pytest.approx(SOURCE.scale * frames.rotate(TURN, own.position) + SOURCE.translation)
    assert found.points == pytest.approx(SOURCE.scale * frames.rotate(TURN, own.points) + SOURCE.translation)
    assert found.source.rotation == pytest.approx(TURN)
    assert read_poses(folder).position == pytest.approx(found.position)
    assert read_poses(folder).metric
    assert any("that of the place, in metres, as alignment.json beside the set says" in note for note in found.notes)
    assert not read_capture(folder, aligned=False).metric
    assert not read_capture(aligned_set(tmp_path / "other", metric=False)).metric


def test_an_alignment_that_is_none_is_said(tmp_path: Path) -> None:
    folder = aligned_set(tmp_path / "room")
    (folder / "alignment.json").write_text(json.dumps({"metric": True, "capture_to_place": {"scale": -1.0}}))
    again = read_capture(folder)
    assert not again.metric
    assert any("its capture_to_place in alignment.json is no scale" in note for note in again.notes)
    (folder / "alignment.json").write_text("[]")
    with pytest.raises(AirworthyError, match=r"its alignment\.json is no JSON object"):
        read_capture(folder)


@pytest.mark.parametrize("up", [None, "z", "y"])
def test_a_ply_tells_the_frame_of_its_capture(up: str | None, tmp_path: Path) -> None:
    splats = cloud()
    loaded = read_splats(write_splats(splats, tmp_path / "a.ply", up=up, source=SOURCE))
    assert loaded.capture == SOURCE
    assert loaded.splats.position == pytest.approx(splats.position, abs=1e-6)
    assert read_splats(write_splats(splats, tmp_path / "b.ply")).capture is None


def test_a_ply_in_the_frame_of_its_capture_comes_back_to_the_place(tmp_path: Path) -> None:
    """Coordinates in the file are the capture's own; `read_splats` leads them to the place, and tells how."""
    splats = cloud()
    path = write_splats(splats, tmp_path / "a.ply", source=SOURCE, frame="capture")
    held = read_splats(path, up="z").splats
    assert SOURCE.scale * frames.rotate(TURN, held.position) + SOURCE.translation == pytest.approx(splats.position, abs=1e-5)
    loaded = read_splats(path)
    assert loaded.splats.position == pytest.approx(splats.position, abs=1e-5)
    assert (loaded.source.rotation, loaded.source.scale) == (TURN, SOURCE.scale)
    with pytest.raises(AirworthyError, match="need its `source`"):
        write_splats(splats, path, frame="capture")
    with pytest.raises(AirworthyError, match="SPZ files have no room for the frame"):
        write_splats(splats, tmp_path / "a.spz", source=SOURCE)


@pytest.mark.parametrize(
    "lines",
    [
        ("Scale: 0", "Rotation: 0 0 0 1", "Translation: 0 0 0"),
        ("Scale: 1", "Rotation: 0 0 0 9", "Translation: 0 0 0"),
        ("Scale: nan", "Rotation: a", "Translation: 0 0 0"),
        ("Scale: 1",),
    ],
)
def test_comments_that_are_no_frame(lines: tuple[str, ...]) -> None:
    head = "".join(f"comment Capture To Place {line}\n" for line in lines).encode()
    assert read_capture_comments(head) == (None, False, "its comments on the frame of its capture are not understood")
    alone = read_capture_comments(b"comment Frame: capture\n")
    assert alone == (None, True, "it is in the frame of a capture, and does not say how that lies")


def test_the_same_camera_sees_the_same_from_both_frames() -> None:
    """Position, turn, scale and harmonics of splats, and poses of cameras, all go the same way."""
    splats, images = cloud(2), place()
    back = inverse_of(SOURCE)
    there, moved = transformed(splats, *back), images.moved(*back)
    for k in range(len(images)):
        here = image(splats, images.position[k], images.attitude[k])
        assert here.std() > 0.05
        # Scales and places are of float32, on which colours depend by at most tens per metre.
        assert image(there, moved.position[k], moved.attitude[k]) == pytest.approx(here, abs=2e-4)


@pytest.mark.parametrize("frame", ["place", "capture"])
def test_nerfstudio_renders_the_same_image(frame: str, tmp_path: Path) -> None:
    """By its own rules: the cloud's coordinates as they are, cameras of transforms.json by dataparser_transforms.json."""
    splats, images = cloud(), place()
    out = export_frames(splats, images, tmp_path / "out", "nerfstudio", frame)
    table, parser = (json.loads((out / name).read_text()) for name in ("transforms.json", "dataparser_transforms.json"))
    held = read_splats(out / "splat.ply", up="z", transforms=False).splats
    for k, entry in enumerate(table["frames"]):
        whole = np.vstack((parser["transform"], (0.0, 0.0, 0.0, 1.0))) @ np.array(entry["transform_matrix"])
        position, attitude = opengl_pose(whole)
        found = image(held, parser["scale"] * position, attitude)
        assert found == pytest.approx(image(splats, images.position[k], images.attitude[k]), abs=2e-4)
    assert (out / "images").is_dir()
    if frame == "capture":
        truth = frames.rotate_inverse(TURN, images.position - SOURCE.translation) / SOURCE.scale
        assert np.array([np.array(e["transform_matrix"])[:3, 3] for e in table["frames"]]) == pytest.approx(truth, abs=1e-9)


def test_figs_renders_the_same_image(tmp_path: Path) -> None:
    """T_GC = T_WG T_WC on the cloud's own coordinates; its world has z down."""
    splats, images = cloud(), place()
    out = export_frames(splats, images, tmp_path / "out", "figs", pictures=False)
    told = json.loads((out / "figs.json").read_text())
    assert told["T_WG"] == np.diag([1.0, -1.0, -1.0, 1.0]).tolist()
    held = read_splats(out / "splat.ply", up="z", transforms=False).splats
    for k, camera in enumerate(told["cameras"]):
        pose = np.array(camera["T_WC"])
        assert pose[2, 3] == pytest.approx(-images.position[k, 2], abs=1e-12)
        position, attitude = opengl_pose(np.array(told["T_WG"]) @ pose)
        assert image(held, position, attitude) == pytest.approx(image(splats, images.position[k], images.attitude[k]), abs=2e-4)
    # A camera above the origin that looks along x: x of the world ahead, at z = -1.
    pose = figs_pose((0.0, 0.0, 1.0), frames.camera_attitude(frames.IDENTITY))
    assert pose[:3, 3] == pytest.approx((0.0, 0.0, -1.0))
    assert -pose[:3, 2] == pytest.approx((1.0, 0.0, 0.0))
    assert pose[:3, 1] == pytest.approx((0.0, 0.0, -1.0))
    assert np.linalg.det(FIGS_WORLD) == pytest.approx(1.0)


@pytest.mark.parametrize(("program", "frame"), [("nerfstudio", "place"), ("nerfstudio", "capture"), ("figs", "place")])
def test_the_command_exports_a_films_folder(program: str, frame: str, tmp_path: Path) -> None:
    """Splats of the place, cameras of COLMAP's own frame with the alignment beside: the same image by the program's rules."""
    room, splats = aligned_set(tmp_path / "room"), cloud(2)
    images = read_capture(room)
    # About where the cameras are, so that they see it.
    seen = transformed(splats, np.array(frames.IDENTITY), images.position.mean(0), 1.0)
    path = write_splats(seen, tmp_path / "splats.ply", source=images.source)
    line = f"capture export {path} --capture {room} --out {tmp_path / 'out'} --program {program} --frame {frame} --no-pictures"
    assert main(line.split()) == 0
    table, parser = (
        json.loads((tmp_path / "out" / name).read_text()) for name in ("transforms.json", "dataparser_transforms.json")
    )
    held = read_splats(tmp_path / "out" / "splat.ply", up="z", transforms=False).splats
    for k in range(len(images)):
        if program == "figs":
            told = json.loads((tmp_path / "out" / "figs.json").read_text())
            position, attitude = opengl_pose(np.array(told["T_WG"]) @ np.array(told["cameras"][k]["T_WC"]))
        else:
            whole = np.vstack((parser["transform"], (0.0, 0.0, 0.0, 1.0))) @ np.array(table["frames"][k]["transform_matrix"])
            position, attitude = opengl_pose(whole)
        here = image(seen, images.position[k], images.attitude[k])
        assert here.std() > 0.02
        assert image(held, position, attitude) == pytest.approx(here, abs=2e-4)


def test_exports_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="FiGS flies in metres with z down"):
        export_frames(cloud(), place(), tmp_path, "figs", "capture")
    with pytest.raises(AirworthyError, match="expected nerfstudio or figs"):
        export_frames(cloud(), place(), tmp_path, "unreal")


def test_trained_splats_tell_the_frame_of_their_capture(tmp_path: Path) -> None:
    options = TrainOptions(steps=2, count=50, start="random", degree=0)
    result = train_splats(place(5), tmp_path, options, quiet=True)
    assert read_splats(result.splats).capture == SOURCE
    report = json.loads(result.report.read_text())
    assert report["capture_to_place"]["scale"] == SOURCE.scale
    assert report["capture_to_place"]["rotation_xyzw"] == list(TURN)
    assert "p<sub>capture</sub>" in result.report.with_suffix(".html").read_text()
