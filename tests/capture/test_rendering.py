"""Captures of scenes of our own: exact poses, points on surfaces, and runs that go on where they were."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.capture import read_capture, rendering
from airworthy.capture.rendering import RenderCaptureOptions, render_capture
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.scenes import Instance, Material, PointLight, Region, Scene
from airworthy.simulation.flights import FlightTable, write_flight
from airworthy.trajectories import course

SMALL = RenderCaptureOptions(views=5, held_out=2, width=32, height=24, samples=1)
FLOWN = replace(SMALL, held_out=RenderCaptureOptions().held_out)
"""Along a path every eighth image is held out, whatever the option says."""
RED_CENTRE, RED_HALF = np.array([0.5, -0.25, 1.0]), 0.3


def place(roughness: float = 1.0) -> Scene:
    """A room with a red box in it."""
    walls = [((3.0, 3.0, 0.1), (0.0, 0.0, -0.1)), ((3.0, 3.0, 0.1), (0.0, 0.0, 3.1))]
    walls += [((0.1, 3.0, 1.5), (x, 0.0, 1.5)) for x in (-3.1, 3.1)] + [((3.0, 0.1, 1.5), (0.0, y, 1.5)) for y in (-3.1, 3.1)]
    shapes = {f"wall{k}": Box(half) for k, (half, _) in enumerate(walls)} | {"box": Box((RED_HALF,) * 3)}
    things = tuple(Instance(f"wall{k}", where, materials=("grey",)) for k, (_, where) in enumerate(walls))
    return Scene(
        "room",
        shapes=shapes,
        materials={"grey": Material((0.5, 0.5, 0.5, 1.0), roughness=roughness), "red": Material((0.8, 0.02, 0.02, 1.0))},
        instances=(*things, Instance("box", tuple(RED_CENTRE), materials=("red",))),
        lights=(PointLight((-1.0, 0.5, 2.4), intensity=20.0),),
        bounds=Region((-3.0, -3.0, 0.0), (3.0, 3.0, 3.0)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("capture")
    render_capture(place(), path, replace(SMALL, views=12, width=64, height=48, samples=4, points=600))
    return path


def test_poses_and_pixels_belong_together(folder: Path) -> None:
    """Where the middle of the red box is projected, the image is red; where a face's corner is not, it is not."""
    images = read_capture(folder)
    assert images.metric
    assert len(images) == 14
    assert images.held_out_ids.tolist() == [12, 13]
    visible = 0
    for k in range(len(images)):
        eye = frames.rotate_inverse(images.attitude[k], RED_CENTRE - images.position[k])
        fx, fy, cx, cy = images.intrinsics[k]
        u, v = eye[0] / eye[2] * fx + cx, eye[1] / eye[2] * fy + cy
        reddish = (images.rgb[k][..., 0].astype(int) > images.rgb[k][..., 1].astype(int) + 30).mean()
        if eye[2] > RED_HALF and 2 < u < 62 and 2 < v < 46:
            visible += 1
            red, green, _ = images.rgb[k][int(v), int(u)].astype(int)
            assert red > green + 30
        elif eye[2] < -2.0 * RED_HALF:
            assert reddish < 0.01  # light of the box on the walls aside
    assert visible >= 2


def test_points_lie_on_surfaces_in_their_colours(folder: Path) -> None:
    images = read_capture(folder)
    assert images.points is not None
    assert images.colors is not None
    assert len(images.points) == 600  # a closed room: every ray hits
    off_walls = np.minimum(
        3.0 - np.abs(images.points[:, :2]).max(axis=1), np.minimum(images.points[:, 2], 3.0 - images.points[:, 2])
    )
    off_box = np.abs(np.abs(images.points - RED_CENTRE).max(axis=1) - RED_HALF)
    assert np.minimum(np.abs(off_walls), off_box).max() < 1e-4  # float32 at some metres
    red = (off_box < 1e-4) & (off_walls > 0.01)
    assert red.any()
    # A pixel at the box's border shows the wall behind as well.
    assert np.median(images.colors[red, 0].astype(int) - images.colors[red, 1]) > 30


def test_a_run_goes_on_where_it_was(folder: Path, tmp_path: Path) -> None:
    path = render_capture(place(), tmp_path, SMALL)
    before = {file.name: file.read_bytes() for file in tmp_path.rglob("*.*")}
    stamps = {file: file.stat().st_mtime_ns for file in (tmp_path / "images").iterdir()}
    (tmp_path / "images" / "00003.png").unlink()
    (tmp_path / "images" / "00004.png").write_bytes(b"half a file")
    path.unlink()
    render_capture(place(), tmp_path, SMALL)
    assert before == {file.name: file.read_bytes() for file in tmp_path.rglob("*.*")}
    again = {file for file, stamp in stamps.items() if file.stat().st_mtime_ns != stamp}
    assert {file.name for file in again} == {"00003.png", "00004.png"}


def test_another_capture_is_not_mixed_in(tmp_path: Path) -> None:
    render_capture(place(), tmp_path, SMALL)
    for scene, options, what in (
        (place(), replace(SMALL, views=6), r"with another views \(5, now 6\): choose another folder"),
        (place(0.5), SMALL, r"with another scene_sha256"),
    ):
        with pytest.raises(AirworthyError, match=what):
            render_capture(scene, tmp_path, options)
    (tmp_path / "capture.json").unlink()
    with pytest.raises(AirworthyError, match="holds a capture that was not rendered here"):
        render_capture(place(), tmp_path, SMALL)


def test_along_a_course(tmp_path: Path) -> None:
    render_capture(place(), tmp_path, replace(FLOWN, along="line", views=9))
    images = read_capture(tmp_path)
    path = course("line").trajectory()
    expected = path.sample(np.linspace(0.0, path.duration, 9))
    assert len(images) == 9
    assert images.held_out_ids.tolist() == [0, 8]
    assert images.position == pytest.approx(expected.position, abs=1e-9)
    ahead = frames.rotate(images.attitude, (0.0, 0.0, 1.0))
    assert ahead == pytest.approx(np.stack((np.cos(expected.yaw), np.sin(expected.yaw), 0.0 * expected.yaw), -1), abs=1e-9)
    assert frames.rotate(images.attitude, (0.0, -1.0, 0.0))[:, 2] == pytest.approx(np.ones(9))


def test_along_a_flight(tmp_path: Path) -> None:
    count = 21
    time = np.linspace(0.0, 1.0, count)
    attitude = frames.from_euler(0.1 * np.ones(count), 0.0, time)
    columns = {"env": np.zeros(count, np.int32), "t": time, "status": np.zeros(count, np.int8)}
    for name, values in (("position", np.stack((time, -time, 1.0 + time), -1)), ("velocity", np.zeros((count, 3)))):
        columns |= {f"{name}_{axis}_m{'_s' * (name == 'velocity')}": values[:, k] for k, axis in enumerate("xyz")}
    columns |= {f"attitude_{axis}": attitude[:, k] for k, axis in enumerate("xyzw")}
    columns |= {f"rate_{axis}_rad_s": np.zeros(count) for axis in "xyz"}
    write_flight(tmp_path / "flight", FlightTable.from_columns(columns), {})
    render_capture(place(), tmp_path / "set", replace(FLOWN, along=str(tmp_path / "flight"), views=5))
    images = read_capture(tmp_path / "set")
    assert images.position[:, 0] == pytest.approx(np.linspace(0.0, 1.0, 5), abs=1e-6)
    expected = frames.camera_attitude(frames.from_euler(0.1, 0.0, np.linspace(0.0, 1.0, 5)))
    assert frames.angle_between(images.attitude, expected).max() < 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"views": 0}, "expected 1 to"),
        ({"width": 7}, "expected 1 to"),
        ({"fov": 3.2}, "expected 1 to"),
        ({"samples": 3}, "expected 1 to"),
        ({"exposure": float("nan")}, "expected a finite number"),
        ({"views": 1001}, "would meet the held-out ones"),
    ],
)
def test_options_out_of_range(change: dict, message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        replace(SMALL, **change)


def test_unknown_ways(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"Unknown course 'lime'\. Closest: 'line'"):
        render_capture(place(), tmp_path, replace(FLOWN, along="lime"))


def test_the_record_says_what_was_rendered(folder: Path) -> None:
    record = json.loads((folder / "capture.json").read_text())
    assert record["scene"] == "room"
    assert len(record["scene_sha256"]) == 64
    assert (record["views"], record["width"], record["seed"]) == (12, 64, 0)


def test_an_image_is_of_the_rays_through_its_pixels_centres(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RenderCaptureOptions(views=1, held_out=0, width=12, height=9, fov=1.0)
    asked = {}

    def render(batch: object, table: object, *rest: object, projection: object, **more: object) -> dict[str, np.ndarray]:
        asked.update(table=table, projection=projection)
        return {"rgb": np.zeros((1, 9, 12, 3), np.float32)}

    monkeypatch.setattr(rendering, "render", render)
    assert rendering._image(None, np.zeros(3), np.array(frames.IDENTITY), options).shape == (9, 12, 3)  # type: ignore[arg-type]
    directions = asked["table"].directions
    directions = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    np.testing.assert_allclose(directions, asked["projection"].rays().directions, atol=1e-6)  # float32
    assert asked["projection"].width == 2.0 * asked["projection"].cx
