"""Panes of recorded images, plots with their line at the time shown, measuring, cropping, and colours by direction."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from tests.viewer.chromium import until
from tests.viewer.test_flights import _straight

from airworthy.core import frames
from airworthy.core.files import make_folder, write_json
from airworthy.geometry import Box
from airworthy.scenes.record import Instance, Scene, SplatPlacement
from airworthy.scenes.splats import Splats, read_splats
from airworthy.scenes.splats.record import colors
from airworthy.simulation.sensor_recording import depth_16bit, write_png
from airworthy.vehicles import vehicle
from airworthy.viewer import Subject, Viewer, load_flight
from airworthy.viewer.panes import WIDTH, RecordedImages, fitted, recorded_images
from airworthy.viewer.picking import Picker
from airworthy.viewer.plots import flight_plots, room_plot, with_cursor
from airworthy.viewer.splat_nodes import ViewColors, colors_from
from airworthy.viewer.tools import CLICKS, ClickTools, distance_text, printed_text


def _recorded(folder: Path, name: str, channel: str, stamps: tuple[float, ...], env: int = 0) -> None:
    """A sensor's folder as `airworthy fly --sensors` leaves it; image k is k metres away, or k times ten bright."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    where = make_folder(folder / "sensors" / name)
    rows = []
    for k, stamp in enumerate(stamps):
        image = np.full((6, 8, 3), 10 * k, np.uint8) if channel == "rgb" else depth_16bit(np.full((6, 8), float(k)))
        make_folder(where / str(env))
        write_png(where / str(env) / f"{k}.png", image)
        pose = {f"position_{a}_m": 0.0 for a in "xyz"} | {f"attitude_{a}": float(a == "w") for a in "xyzw"}
        rows.append({"env": env, "t": stamp, f"file_{channel}": f"{env}/{k}.png", **pose})
    pq.write_table(pa.Table.from_pylist(rows), where / "index.parquet")
    size: dict[str, Any] = {"width": 8, "height": 6, "projection": {"fy": 5.0}, "depth_unit_m": 1e-3}
    write_json(where / "calibration.json", {**size, "files": {channel: "png"}, "limits": {"maximum": 4.0}})


class TestPanes:
    def test_the_newest_image_up_to_a_time(self, tmp_path: Path) -> None:
        _recorded(tmp_path, "front", "rgb", (0.0, 0.5, 1.0))
        (item,) = recorded_images(tmp_path)
        assert (item.title, item.scale_text()) == ("front: colour", "")
        found = item.at(0, 0.75)
        assert found is not None
        assert (found[1], int(found[0].max())) == (0.5, 10)
        assert found[0].shape == (WIDTH * 6 // 8, WIDTH, 3)
        assert item.at(0, -0.1) is None
        assert item.at(3, 1.0) is None

    def test_distances_are_coloured_by_the_devices_reach(self, tmp_path: Path) -> None:
        _recorded(tmp_path, "lidar", "range", (0.0, 1.0, 2.0, 3.0))
        item = RecordedImages(tmp_path, "lidar", "range")
        near, far = item.at(0, 1.0), item.at(0, 3.0)
        assert near is not None
        assert far is not None
        assert near[0][0, 0, 0] > near[0][0, 0, 2]  # red is near
        assert far[0][0, 0, 2] > 100  # and blue far
        assert item.scale_text() == "near red to 4 m blue, black: no return"
        nothing = item.at(0, 0.0)
        assert nothing is not None
        assert nothing[0].max() < 40

    def test_wide_scans_become_tall_enough(self) -> None:
        assert fitted(np.zeros((16, 1024, 3), np.uint8)).shape == (WIDTH // 6, WIDTH, 3)
        assert fitted(np.zeros((480, 640, 3), np.uint8)).shape == (315, WIDTH, 3)

    def test_panes_follow_the_time_line(self, server: Any, tmp_path: Path) -> None:
        flight = _straight(tmp_path / "run", 1)
        _recorded(flight, "front", "rgb", (0.0, 0.5, 1.0))
        _recorded(flight, "lidar", "range", (0.2, 1.2))
        viewer = Viewer(server, Subject("run", None, load_flight(flight)))
        assert viewer.panes is not None
        words = viewer.panes._words
        viewer.show(0.1)
        assert words["lidar: range"].content == "nothing was recorded yet"
        viewer.show(0.7)
        assert words["front: colour"].content == "taken at 0.500 s"
        assert words["lidar: range"].content.startswith("taken at 0.200 s; near red")
        (flight / "sensors" / "front" / "0" / "2.png").write_bytes(b"no image")
        viewer.show(1.5)
        assert "is not an image" in words["front: colour"].content

    def test_the_cameras_own_images_are_not_shown_twice(self, server: Any, tmp_path: Path) -> None:
        from airworthy.viewer import RecordedCamera

        flight = _straight(tmp_path / "run", 1)
        _recorded(flight, "front", "rgb", (0.0, 0.5))
        viewer = Viewer(server, Subject("run", None, load_flight(flight)), RecordedCamera(flight, "front"))
        assert viewer.panes is None
        viewer.show(0.8)
        assert viewer.settle()
        assert viewer.controls.picture.label == "camera, 0.50 s"


class TestPlots:
    def test_what_a_flight_says(self, tmp_path: Path) -> None:
        """`_straight` flies 1 m/s along x."""
        track = load_flight(_straight(tmp_path / "run", 1)).track(0)
        plots = {plot.title: plot for plot in flight_plots(track)}
        np.testing.assert_allclose(plots["speed [m/s]"].lines[0][1], np.linalg.norm(track.velocity, axis=1), rtol=1e-6)
        assert all(len(line) == len(plot.time) for plot in plots.values() for _, line in plot.lines)

    def test_the_line_stands_at_the_time(self, tmp_path: Path) -> None:
        track = load_flight(_straight(tmp_path / "run", 1)).track(0)
        plot = flight_plots(track)[0]
        for now in (0.0, 0.533, float(plot.time[-1])):
            times, line, cursor = with_cursor(plot, now)
            assert (np.diff(times) >= 0.0).all()
            here = np.flatnonzero(np.isfinite(cursor))
            np.testing.assert_array_equal(times[here], [now, now])
            assert tuple(cursor[here]) == plot.span
            np.testing.assert_allclose(line[here], np.interp(now, plot.time, plot.lines[0][1]))

    def test_the_room_that_was_left(self, tmp_path: Path) -> None:
        """A wall beside the flight: its distance less carl's ball of 0.15 m."""
        track = load_flight(_straight(tmp_path / "run", 1)).track(0)
        y = float(track.position[:, 1].max()) + 1.0
        wall = Scene("w", {"wall": Box((50.0, 0.1, 50.0))}, instances=(Instance("wall", (0.0, y + 0.1, 0.0)),))
        plot = room_plot(track, wall, vehicle("carl"))
        np.testing.assert_allclose(plot.lines[0][1], y - track.position[:, 1] - 0.15, atol=1e-5)

    def test_plots_follow_flights_and_time(self, server: Any, tmp_path: Path) -> None:
        box = Scene("b", {"box": Box((0.5, 0.5, 0.5))}, instances=(Instance("box", (2.0, 2.0, 0.0)),))
        viewer = Viewer(server, Subject("run", box, load_flight(_straight(tmp_path / "run", 2))))
        assert viewer.plots is not None
        assert viewer.plots.settle()
        assert [plot.title for plot in viewer.plots.plots][-1] == "room [m]"
        viewer.choose(1)
        assert viewer.plots.settle()
        viewer.show(0.4)
        handle = viewer.plots._handles[0]
        assert handle.data[0][np.isfinite(handle.data[-1])] == pytest.approx([0.4, 0.4])
        viewer.close()


class TestTools:
    def test_distances_in_words(self) -> None:
        assert distance_text((0, 0, 0), (3, 0, 4)) == "5.000 m (3.000 m level, 4.000 m up)"
        assert printed_text((0, 0, 0), (3, 0, -4)).endswith("--known-distance 0,0,0 3,0,-4 METRES")

    def test_measuring_marking_and_ends(self, server: Any) -> None:
        floor = Scene("f", {"floor": Box((6.0, 6.0, 0.5))}, instances=(Instance("floor", (0.0, 0.0, -0.5), name="floor"),))
        told: list[str] = []
        tools = ClickTools(server.scene, server.gui, lambda: Picker(floor), 10.0, told.append)
        tools.click((1, 1, 3), (0, 0, -1))
        assert not told  # a click only looks at first
        tools.choice.value = CLICKS[1]
        tools.click((1, 1, 3), (0, 0, -1))
        tools.click((4, 5, 3), (0, 0, -1))
        ((begin, end),) = tools.measured
        assert np.linalg.norm(end - begin) == pytest.approx(5.0, abs=1e-6)
        assert told[-1].startswith("measured 5.000 m")
        tools.choice.value, tools.lift.value = CLICKS[3], 1.2
        tools.click((-2, 0, 3), (0, 0, -1))
        tools.click((-3, 0, 3), (0, 0, -1))  # there is one start
        tools.choice.value = CLICKS[4]
        tools.click((2, 0, 3), (0, 0, -1))
        assert [(place.kind, round(place.position[0], 6)) for place in tools.places] == [("start", -3.0), ("goal", 2.0)]
        assert told[-1] == "to fly it: --waypoints -3,0,1.2 2,0,1.2"
        tools.click((2, 0, 3), (0, 0, 1))
        assert tools.words.content == "Nothing is there: click a surface."
        tools.clear()
        assert not tools.places


def _cloud(count: int, degree: int) -> Splats:
    rng = np.random.default_rng(4)
    turn = frames.normalize(rng.normal(size=(count, 4)))
    harmonics = rng.normal(0.0, 0.2, (count, (degree + 1) ** 2, 3))
    return Splats(rng.normal(size=(count, 3)), turn, rng.uniform(0.01, 0.05, (count, 3)), np.full(count, 0.9), harmonics)


class TestSplats:
    @pytest.mark.parametrize("degree", [0, 1, 3])
    def test_colours_are_those_of_the_renderer(self, degree: int) -> None:
        """By the readable function of the record; float32 against float64."""
        splats, eye = _cloud(50, degree), np.array([0.3, -2.0, 1.0])
        away = splats.position.astype(float) - eye
        expected = colors(splats.harmonics, away / np.linalg.norm(away, axis=1, keepdims=True))
        np.testing.assert_allclose(colors_from(splats, eye), np.clip(expected, 0.0, 1.0), atol=2e-6)

    def test_a_placed_cloud_is_coloured_in_its_own_frame(self, server: Any) -> None:
        """Turned, moved and scaled, it looks the same from an eye that is turned, moved and scaled with it."""
        turn = tuple(frames.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.array(0.8)))
        place = SplatPlacement("x", (1.0, 2.0, 3.0), turn, 2.0)
        viewer = Viewer(server, Subject("x", Scene("x", clouds={"x": _cloud(40, 2)}, splats=(place,))))
        assert viewer.splats is not None
        eye = np.array([0.5, -1.5, 0.7])
        viewer.splats.color(2.0 * frames.rotate(np.array(turn), eye) + np.array([1.0, 2.0, 3.0]))
        expected = np.rint(255.0 * colors_from(_cloud(40, 2), eye))
        assert np.abs(viewer.nodes["/splats/0_x"].rgbs.astype(int) - expected).max() <= 1
        viewer.close()

    def test_a_box_crops_and_gives_back(self, server: Any) -> None:
        cloud = _cloud(200, 1)
        viewer = Viewer(server, Subject("x", Scene("x", clouds={"x": cloud}, splats=(SplatPlacement("x"),))))
        assert viewer.crop is not None
        viewer.crop.on.value, viewer.crop.lower.value, viewer.crop.upper.value = True, (-9.0, -9.0, 0.0), (9.0, 9.0, 9.0)
        viewer.crop.renew()
        inside = int((cloud.position[:, 2] >= 0.0).sum())
        assert viewer.nodes["/splats/0_x"].buffer.shape == (inside, 8)
        assert viewer.crop.words.content.startswith(f"{inside} gaussians are inside")
        viewer.crop.lower.value = (-9.0, -9.0, 10.0)
        viewer.crop.renew()
        assert viewer.crop.words.content.startswith("The lower corner must be below")
        assert viewer.crop.save.disabled
        viewer.crop.on.value = False
        viewer.crop.renew()
        assert viewer.nodes["/splats/0_x"].buffer.shape == (200, 8)
        viewer.close()

    def test_what_is_inside_is_saved_whole(self, server: Any, tmp_path: Path) -> None:
        """Of a cloud that is shown merged, every gaussian in the box, in the world, with its harmonics."""
        cloud, told = _cloud(200, 2), []
        place = SplatPlacement("x", (10.0, 0.0, 0.0))
        scene = Scene("x", clouds={"x": cloud}, splats=(place,))
        viewer = Viewer(server, Subject("my room", scene), splats_max=20, say=told.append)
        assert viewer.crop is not None
        sent: list[tuple[str, bytes]] = []
        client = type("Client", (), {"send_file_download": lambda self, name, content, **_: sent.append((name, content))})()
        viewer.crop.download(client)
        assert not sent  # nothing is cropped
        viewer.crop.on.value, viewer.crop.lower.value, viewer.crop.upper.value = True, (10.0, -9.0, -9.0), (19.0, 9.0, 9.0)
        viewer.crop.renew()
        assert told[-1].endswith("as a new cloud: --crop 10 -9 -9 19 9 9")
        viewer.crop.download(client)
        ((name, content),) = sent
        assert name == "my_room_cropped.ply"
        (tmp_path / name).write_bytes(content)
        kept = cloud.position[:, 0] >= 0.0
        held = read_splats(tmp_path / name).splats
        np.testing.assert_allclose(held.position, cloud.position[kept] + (10.0, 0.0, 0.0), atol=1e-5)
        np.testing.assert_allclose(held.harmonics, cloud.harmonics[kept], atol=1e-5)
        viewer.close()

    def test_colours_wait_until_the_camera_rests(self) -> None:
        seen: list[Any] = []
        server = type("Server", (), {"on_client_connect": lambda self, _: None})()
        viewed = ViewColors(server, lambda eye: seen.append(np.array(eye)), 10.0)
        for x in np.linspace(0.0, 1.0, 6):
            viewed.look((x, 0.0, 0.0))
        until(lambda: bool(seen), 10.0)
        viewed.look((1.01, 0.0, 0.0))  # by a thousandth of what is shown: nobody sees it
        viewed.close()
        assert len(seen) == 1
        np.testing.assert_allclose(seen[0], (1.0, 0.0, 0.0))

    def test_a_grey_cloud_needs_no_colours(self, server: Any) -> None:
        grey = dataclasses.replace(_cloud(5, 1), harmonics=_cloud(5, 0).harmonics)
        viewer = Viewer(server, Subject("x", Scene("x", clouds={"x": grey}, splats=(SplatPlacement("x"),))))
        assert viewer.colors is None
