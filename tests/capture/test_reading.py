"""Every layout of a capture becomes the same images and poses."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import capture_building as build
import numpy as np
import pytest
from PIL import Image

from airworthy.capture import CaptureImages, read_capture, write_capture
from airworthy.capture.images import mean_up
from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError


def same_rotation(a: np.ndarray, b: np.ndarray) -> float:
    return float(frames.angle_between(a, b).max())


def changed(files: build.Files, change: Any, name: str = "transforms.json") -> build.Files:
    """The files with a change made to the JSON."""
    table = json.loads(files[name])
    change(table)
    return files | {name: json.dumps(table).encode()}


def test_transforms_json(tmp_path: Path) -> None:
    found = read_capture(build.write(tmp_path, build.transforms()), up="none")
    position, attitude = build.poses(4)
    assert found.names == tuple(f"images/{k}.png" for k in range(4))
    assert found.position == pytest.approx(position, abs=1e-12)
    assert same_rotation(found.attitude, attitude) < 1e-7
    assert (found.intrinsics == (10.0, 11.0, 6.25, 3.75)).all()
    assert found.sizes.tolist() == [[12, 8]] * 4
    assert found.points == pytest.approx(np.eye(3))
    assert found.colors is not None
    assert found.colors.tolist() == [[10, 20, 30]] * 3
    assert found.held_out is not None
    assert found.held_out.tolist() == [True, False, False, False]
    assert not found.metric
    assert found.skipped == ()
    assert found.notes == ("up: left as it is",)
    assert found.masks[0] is not None
    assert 0.3 < found.masks[0].mean() < 0.7  # random bytes, white from 128 on
    assert found.masks[1:] == (None, None, None)


@pytest.mark.parametrize("binary", [True, False])
def test_colmap(binary: bool, tmp_path: Path) -> None:
    found = read_capture(build.write(tmp_path, build.colmap(binary=binary)), up="none")
    position, attitude = build.poses(4)
    assert found.names == tuple(f"images/{k}.jpg" for k in range(4))
    assert found.position == pytest.approx(position, abs=1e-12)
    assert same_rotation(found.attitude, attitude) < 1e-7
    assert (found.intrinsics == (10.0, 11.0, 6.25, 3.75)).all()
    assert found.points is not None
    assert found.points.tolist() == [[0.5, -1.0, 2.0], [1.0, 0.0, 0.25]]
    assert found.colors is not None
    assert found.colors.tolist() == [[200, 100, 50], [1, 2, 3]]


def test_the_layouts_of_one_place_agree(tmp_path: Path) -> None:
    """The same lens and poses: transforms.json with PNG, both forms of COLMAP with JPEG of the same pixels."""
    sets = [read_capture(build.write(tmp_path / "t", build.transforms()))]
    sets += [read_capture(build.write(tmp_path / str(b), build.colmap(binary=b))) for b in (True, False)]
    for other in sets[1:]:
        assert other.position == pytest.approx(sets[0].position, abs=1e-12)
        assert same_rotation(other.attitude, sets[0].attitude) < 1e-7
        assert (other.intrinsics == sets[0].intrinsics).all()
        assert other.notes == sets[0].notes
    assert all((a == b).all() for a, b in zip(sets[1].rgb, sets[2].rgb, strict=True))


@pytest.mark.parametrize("place", ["sparse", "colmap/sparse/0", "."])
def test_places_of_a_model(place: str, tmp_path: Path) -> None:
    files = {name.replace("sparse/0", place): data for name, data in build.colmap().items()}
    assert len(read_capture(build.write(tmp_path, files))) == 4


def test_reduced_images_of_a_model(tmp_path: Path) -> None:
    """images_2 in the place of images, rounded down: the field of view stays."""
    files = {
        name.replace("images/", "images_2/"): data
        for name, data in build.colmap(model="PINHOLE", parameters=(10, 11, 6.25, 3.75)).items()
    }
    files |= {f"images_2/{k}.jpg": build.picture(k, (6, 4), "JPEG") for k in range(4)}
    found = read_capture(build.write(tmp_path, files))
    assert found.sizes.tolist() == [[6, 4]] * 4
    assert found.intrinsics[0] == pytest.approx((5.0, 5.5, 3.125, 1.875))
    with pytest.raises(AssetError, match="none of its images can be used: 4 listed images left out"):
        read_capture(tmp_path, images="elsewhere")


@pytest.mark.parametrize(
    ("model", "parameters", "expected"),
    [
        ("SIMPLE_PINHOLE", (9.0, 6.0, 4.0), (9.0, 9.0, 6.0, 4.0)),
        ("PINHOLE", (9.0, 10.0, 6.0, 4.0), (9.0, 10.0, 6.0, 4.0)),
        ("SIMPLE_RADIAL", (9.0, 6.0, 4.0, 0.01), (9.0, 9.0, 6.0, 4.0)),
        ("RADIAL", (9.0, 6.0, 4.0, 0.01, 0.002), (9.0, 9.0, 6.0, 4.0)),
        ("OPENCV_FISHEYE", (9.0, 10.0, 6.0, 4.0, 0.01, 0.0, 0.0, 0.0), (9.0, 10.0, 6.0, 4.0)),
        ("FULL_OPENCV", (9.0, 10.0, 6.0, 4.0, 0.01, 0.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0), (9.0, 10.0, 6.0, 4.0)),
        ("RADIAL_FISHEYE", (9.0, 6.0, 4.0, 0.01, 0.0), (9.0, 9.0, 6.0, 4.0)),
    ],
)
@pytest.mark.parametrize("binary", [True, False])
def test_camera_models(model: str, parameters: tuple, expected: tuple, binary: bool, tmp_path: Path) -> None:
    found = read_capture(build.write(tmp_path, build.colmap(2, binary, model, parameters)))
    assert found.intrinsics[0] == pytest.approx(expected)


def test_a_model_that_is_not_known_leaves_its_images_out(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=r"2 listed images left out \(0.jpg, 1.jpg\): its camera model is FOV; known are"):
        read_capture(build.write(tmp_path, build.colmap(2, True, "FOV", (9.0, 10.0, 6.0, 4.0, 0.9))))


def test_blender_sets(tmp_path: Path) -> None:
    """Two files, a field of view, names without endings, transparency over black."""
    found = read_capture(build.write(tmp_path, build.blender()), up="none")
    assert len(found) == 6
    assert found.held_out is not None
    assert [found.names[k] for k in found.held_out_ids] == [f"./test/r_{k}" for k in range(3)]
    assert found.intrinsics == pytest.approx(np.tile((20.0, 20.0, 6.0, 4.0), (6, 1)))
    assert found.position == pytest.approx(np.concatenate([build.poses(3, 1)[0], build.poses(3, 0)[0]]))
    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 4))
    expected = np.rint(pixels[..., :3] * pixels[..., 3:] / 255.0)
    assert (found.rgb[3] == expected).all()


def test_splits_in_the_file(tmp_path: Path) -> None:
    files = build.transforms(5)
    names = [f"images/{k}.png" for k in range(5)]

    def split(table: dict) -> None:
        table |= {"train_filenames": names[:3], "test_filenames": names[3:4]}

    found = read_capture(build.write(tmp_path, changed(files, split)))
    assert found.names == tuple(names[:4])
    assert found.held_out_ids.tolist() == [3]
    assert found.training.tolist() == [0, 1, 2]
    assert found.skipped == ("1 listed image left out (images/4.png): it is in no part of the split",)


def test_every_so_many_th_is_held_out(tmp_path: Path) -> None:
    build.write(tmp_path, build.transforms(5))
    assert read_capture(tmp_path, every=2).held_out_ids.tolist() == [0, 2, 4]
    assert read_capture(tmp_path, every=0).held_out_ids.tolist() == []
    assert read_capture(tmp_path, every=1).held_out_ids.tolist() == []  # nothing would be left
    with pytest.raises(AirworthyError, match="are no request"):
        read_capture(tmp_path, every=-1)
    with pytest.raises(AirworthyError, match="are no request"):
        read_capture(tmp_path, width=0)


def test_intrinsics_per_frame_and_fields_of_view(tmp_path: Path) -> None:
    def change(table: dict) -> None:
        for key in ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2", "ply_file_path"):
            del table[key]
        table["camera_angle_x"] = 2.0 * np.arctan(0.5)
        table["frames"][1] |= {"fl_x": 8.0, "cx": 5.0}
        table["frames"][2] |= {"camera_angle_x": 2.0 * np.arctan(0.25), "camera_angle_y": 2.0 * np.arctan(0.5)}

    found = read_capture(build.write(tmp_path, changed(build.transforms(3), change)))
    assert found.intrinsics == pytest.approx(np.array([(12, 12, 6, 4), (8, 8, 5, 4), (24, 8, 6, 4)]))
    assert found.points is None


def test_a_fisheye_by_its_flag(tmp_path: Path) -> None:
    def change(table: dict) -> None:
        del table["camera_model"], table["p1"], table["p2"]
        table["is_fisheye"] = True

    build.write(tmp_path / "a", changed(build.transforms(2), change))
    build.write(tmp_path / "b", build.transforms(2, camera_model="OPENCV_FISHEYE", p1=0.0))
    a, b = read_capture(tmp_path / "a"), read_capture(tmp_path / "b")
    assert all((x == y).all() for x, y in zip(a.rgb, b.rgb, strict=True))


def test_what_is_missing_is_left_out_and_said(tmp_path: Path) -> None:
    def change(table: dict) -> None:
        frames_ = table["frames"]
        frames_[1]["transform_matrix"][0][3] = None
        frames_[2]["transform_matrix"] = [[0.0] * 4] * 4
        frames_[3]["camera_model"] = "EQUIRECTANGULAR"
        frames_[4]["file_path"] = "images/gone.png"
        frames_[6]["w"] = 26
        frames_[7]["mask_path"] = "masks/gone.png"

    files = changed(build.transforms(9), change)
    files["images/5.png"] = files["images/5.png"][:60]
    files["images/8.png"] = b"GIF89a"
    found = read_capture(build.write(tmp_path, files))
    assert found.names == ("images/0.png",)
    reasons = dict(line.removeprefix("1 listed image left out (").split("): ", 1) for line in found.skipped)
    assert reasons == {
        "images/1.png": "its pose is not finite, or no matrix of 3 or 4 rows of 4 numbers",
        "images/2.png": "its pose holds no rotation",
        "images/3.png": "its camera model is 'EQUIRECTANGULAR'",
        "images/gone.png": "there is no such file",
        "images/5.png": "its file is damaged",
        "images/6.png": "it has 12 x 8 pixels, its camera 26 x 8",
        "images/7.png": "there is no file of its mask",
        "images/8.png": "its file is neither PNG nor JPEG nor WebP",
    }


def test_formats_of_images(tmp_path: Path) -> None:
    """Grey, palettes and WebP are read; 16 bits are not."""
    from PIL import Image

    files = build.transforms(4)
    build.write(tmp_path, files)
    grey = np.arange(96, dtype=np.uint8).reshape(8, 12)
    Image.fromarray(grey).save(tmp_path / "images" / "0.png")
    Image.fromarray(grey).convert("P").save(tmp_path / "images" / "1.png")
    Image.fromarray(np.repeat(grey[..., None], 3, axis=-1)).save(tmp_path / "images" / "2.png", "WEBP", lossless=True)
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "images" / "3.png")
    found = read_capture(tmp_path)
    assert len(found) == 3
    assert all((image == found.rgb[0]).all() for image in found.rgb)
    assert found.skipped == ("1 listed image left out (images/3.png): its file has 16 bits a channel, or more",)


def test_names_are_read_without_endings_and_with_backslashes(tmp_path: Path) -> None:
    def change(table: dict) -> None:
        table["frames"][0]["file_path"] = "images\\0"
        table["frames"][1]["file_path"] = "./images/1"

    assert len(read_capture(build.write(tmp_path, changed(build.transforms(2), change)))) == 2
    assert len(read_capture(tmp_path / "transforms.json")) == 2


def test_up_is_what_the_set_says_or_what_the_cameras_say(tmp_path: Path) -> None:
    """The poses are turned as a whole; the mean of the cameras finds the way back to within what their rolls leave."""
    files = build.transforms(12)
    turn = frames.from_euler(0.4, -0.7, 0.0)
    matrix = np.eye(4)
    matrix[:3, :3] = frames.to_matrix(turn)

    def change(table: dict) -> None:
        for frame in table["frames"]:
            frame["transform_matrix"] = (matrix @ frame["transform_matrix"]).tolist()

    build.write(tmp_path / "turned", changed(files, change))
    plain = read_capture(build.write(tmp_path / "plain", files), up="none")
    found = read_capture(tmp_path / "turned")
    up = frames.rotate(found.source.rotation, frames.rotate(turn, (0.0, 0.0, 1.0)))
    assert np.arccos(up[2]) < 0.02  # rolls of 0.05 rad, twelve of them around
    assert mean_up(found.attitude)[0] == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert found.notes[-1].startswith("up: the mean of the cameras' upward directions, (")
    back = frames.rotate_inverse(found.source.rotation, found.position)
    assert back == pytest.approx(frames.rotate(turn, plain.position), abs=1e-9)
    assert found.points == pytest.approx(frames.rotate(found.source.rotation, np.eye(3)), abs=1e-6)
    tipped = read_capture(tmp_path / "plain", up="y")
    assert frames.rotate(tipped.source.rotation, (0.0, 1.0, 0.0)) == pytest.approx((0.0, 0.0, 1.0), abs=1e-12)
    build.write(tmp_path / "upright", changed(files, lambda table: table.update(up="z")))
    upright = read_capture(tmp_path / "upright")
    assert (upright.metric, upright.notes[-1]) == (False, "up: z, as the set says")
    assert (upright.position == plain.position).all()
    build.write(tmp_path / "metric", changed(files, lambda table: table.update(metric=True)))
    metric = read_capture(tmp_path / "metric")
    assert metric.metric
    assert (metric.position == plain.position).all()
    assert metric.notes[-1] == "up: z, as the set says"
    with pytest.raises(AirworthyError, match="Unknown up axis 'w'"):
        read_capture(tmp_path / "plain", up="w")


def test_cameras_that_disagree_tell_nothing(tmp_path: Path) -> None:
    def change(table: dict) -> None:
        for k, frame in enumerate(table["frames"]):  # looking straight down, turned around
            attitude = frames.multiply(frames.from_euler(0.0, 0.0, k * np.pi / 2), (1.0, 0.0, 0.0, 0.0))
            frame["transform_matrix"] = build.opengl_matrix(np.zeros(3), attitude)

    found = read_capture(build.write(tmp_path, changed(build.transforms(4), change)))
    assert found.notes == ("up: unknown, since the cameras disagree (their mean is 0.00 long); frame left as it is",)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    found = read_capture(build.write(tmp_path / "a", build.transforms(9)), width=10)
    path = write_capture(found, tmp_path / "b")
    assert path == tmp_path / "b" / "transforms.json"
    again = read_capture(tmp_path / "b")
    assert all((x == y).all() for x, y in zip(found.rgb, again.rgb, strict=True))
    for x, y in zip(found.masks, again.masks, strict=True):
        assert (x is None) == (y is None)
        assert x is None or y is None or (x == y).all()
    assert again.position == pytest.approx(found.position, abs=1e-12)
    assert same_rotation(again.attitude, found.attitude) < 1e-7
    assert (again.intrinsics == found.intrinsics).all()
    assert (again.held_out_ids == found.held_out_ids).all()
    assert again.points == pytest.approx(found.points, abs=1e-6)
    assert again.metric == found.metric
    first = {name.relative_to(tmp_path / "b"): name.read_bytes() for name in (tmp_path / "b").rglob("*.*")}
    write_capture(found, tmp_path / "c")
    assert first == {name.relative_to(tmp_path / "c"): name.read_bytes() for name in (tmp_path / "c").rglob("*.*")}


def test_names_that_meet_are_told_apart(tmp_path: Path) -> None:
    found = read_capture(build.write(tmp_path / "a", build.transforms(2)))
    twice = CaptureImages(found.rgb, found.intrinsics, found.position, found.attitude, names=("a/x.png", "b/x.jpg"))
    write_capture(twice, tmp_path / "b")
    assert {path.name for path in (tmp_path / "b" / "images").iterdir()} == {"00000_x.png", "00001_x.png"}


def test_parts_of_a_capture_and_what_cannot_be_one(tmp_path: Path) -> None:
    found = read_capture(build.write(tmp_path, build.transforms(5)))
    part = found[found.training[1:]]
    assert part.names == ("images/2.png", "images/3.png", "images/4.png")
    assert len(found[2:3]) == len(found[2]) == 1
    with pytest.raises(AirworthyError, match=r"The position of 5 posed images have the shape \(4, 3\)"):
        CaptureImages(found.rgb, found.intrinsics, found.position[:4], found.attitude)
    with pytest.raises(AirworthyError, match="not finite"):
        CaptureImages(found.rgb, found.intrinsics * np.nan, found.position, found.attitude)
    with pytest.raises(AirworthyError, match="without images"):
        write_capture(found[:0], tmp_path / "none")


@pytest.mark.slow
def test_the_fox_photographs(data_dir: Path) -> None:
    """67 frames are listed, of which 17 have no file."""
    found = read_capture(data_dir / "splats" / "fox_images", width=54)
    assert len(found) == 50
    assert found.sizes.tolist() == [[54, 96]] * 50
    assert found.skipped == (
        "17 listed images left out (images/0005.jpg, images/0016.jpg, images/0017.jpg, ...): there is no such file",
    )
    assert found.intrinsics[0] == pytest.approx((1375.52 / 20, 1374.49 / 20, 554.558 / 20, 965.268 / 20), rel=1e-9)
    assert found.masks[0] is not None
    assert 0.9 < found.masks[0].mean() < 1.0
    assert not found.metric
    assert len(found.held_out_ids) == 7


@pytest.mark.parametrize("name", ["1.jpg.png", "1.png"])
@pytest.mark.parametrize("factor", [1, 2])
def test_masks_beside_a_sparse_model(name: str, factor: int, tmp_path: Path) -> None:
    """COLMAP ignores an image where its mask is black; the mask may be that of the whole image where it is a reduced one."""
    held = io.BytesIO()
    shown = np.zeros((8 * factor, 12 * factor), np.uint8)
    shown[:, : 5 * factor] = 255
    Image.fromarray(shown).save(held, "PNG")
    files = build.colmap(model="PINHOLE", parameters=(10.0, 11.0, 6.0, 4.0)) | {f"masks/{name}": held.getvalue()}
    found = read_capture(build.write(tmp_path, files))
    assert [mask is None for mask in found.masks] == [True, False, True, True]
    assert found.masks[1] is not None
    assert np.array_equal(found.masks[1], np.arange(12) < 5 + np.zeros((8, 1)))


def test_a_mask_of_another_shape_leaves_its_image_out(tmp_path: Path) -> None:
    files = build.colmap() | {"masks/1.jpg.png": build.picture(5, (12, 30), channels=1)}
    found = read_capture(build.write(tmp_path, files))
    assert len(found) == 3
    assert "its mask has another shape" in found.skipped[0]
