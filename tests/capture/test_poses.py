"""Poses of a capture without its images: those that `read_capture` gives, in the order in which people number films."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from airworthy.capture import CaptureImages, read_capture, read_poses, write_capture
from airworthy.core import frames
from airworthy.core.errors import AirworthyError


def _capture(folder: Path, names: tuple[str, ...], metric: bool = True) -> CaptureImages:
    rng = np.random.default_rng(2)
    count = len(names)
    images = CaptureImages(
        rgb=tuple(rng.integers(0, 255, (6, 8, 3), np.uint8) for _ in range(count)),
        intrinsics=np.tile((8.0, 8.0, 4.0, 3.0), (count, 1)),
        position=rng.normal(size=(count, 3)),
        attitude=frames.normalize(np.array([-0.5, 0.5, -0.5, 0.5]) + rng.normal(0.0, 0.1, (count, 4))),
        names=names,
        metric=metric,
    )
    write_capture(images, folder)
    return images


def test_poses_are_those_of_the_images(tmp_path: Path) -> None:
    _capture(tmp_path / "room", tuple(f"{k:03d}.png" for k in range(7)))
    poses, images = read_poses(tmp_path / "room"), read_capture(tmp_path / "room", every=0)
    assert poses.names == images.names
    assert poses.metric
    assert len(poses) == 7
    np.testing.assert_allclose(poses.position, images.position)
    np.testing.assert_allclose(poses.attitude, images.attitude)


def test_images_need_not_be_there(tmp_path: Path) -> None:
    _capture(tmp_path / "room", ("a.png", "b.png"))
    for path in (tmp_path / "room").rglob("*.png"):
        path.unlink()
    assert len(read_poses(tmp_path / "room")) == 2


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    _capture(tmp_path / "room", ("frame_10.png", "frame_9.png", "frame_100.png"))
    assert [Path(name).stem for name in read_poses(tmp_path / "room").names] == ["frame_9", "frame_10", "frame_100"]


def test_where_cameras_look(tmp_path: Path) -> None:
    """A level camera's heading is its optical axis; straight down, its upper edge."""
    level = np.array([-0.5, 0.5, -0.5, 0.5])  # optical z along x of the world
    down = frames.multiply(frames.from_axis_angle(np.array([0.0, 1.0, 0.0]), np.array(np.pi / 2)), level)
    turn = frames.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.array(0.7))
    images = _capture(tmp_path / "room", ("a.png", "b.png"))
    poses = read_poses(tmp_path / "room")
    turned = type(poses)(poses.names, images.position, frames.multiply(turn, np.stack([level, down])), True)
    np.testing.assert_allclose(turned.heading, 0.7, atol=1e-9)


def test_what_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="holds neither transforms"):
        read_poses(tmp_path)
    (tmp_path / "transforms.json").write_text(json.dumps({"camera_angle_x": 1.0, "frames": []}))
    with pytest.raises(AirworthyError, match="no list of frames"):
        read_poses(tmp_path)
