"""Flights on a live server: where a scrub puts things, what is marked, what the camera shows, who follows."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.pilots.motor_cases import learnt

pytest.importorskip("viser")

from airworthy.cli.main import main
from airworthy.cli.view import camera_of
from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning.gradient import write_motor_policy
from airworthy.scenes.record import Scene, Sun
from airworthy.scenes.splats import Splats
from airworthy.simulation.flights import FlightTable, flight_columns, write_flight
from airworthy.vehicles import vehicle
from airworthy.viewer import LiveCamera, RecordedCamera, Viewer, ViewerImage, load_flight, load_subject
from airworthy.viewer.controls import LISTED, Follower
from airworthy.viewer.flight_nodes import DISC, FRONT_DISC, VehicleNodes
from airworthy.viewer.flights import between, segments
from airworthy.viewer.playback import ImageStream, Request

NOWHERE = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])


def _straight(folder: Path, envs: int = 2, crash: float | None = 1.0, outcomes: dict[int, str] | None = None) -> Path:
    """Flights of two seconds along x at 1 m/s; those with odd numbers meet something, if at all, and stay there."""
    times = np.linspace(0.0, 2.0, 101)
    rows = np.tile(times, envs)
    env = np.repeat(np.arange(envs), len(times))
    columns = {name: np.zeros(len(rows)) for name in flight_columns(4)}
    hit = (env % 2 == 1) & (rows > (np.inf if crash is None else crash))
    columns |= {"env": env, "t": rows, "position_x_m": np.where(hit, crash or 0.0, rows), "position_y_m": env.astype(float)}
    columns |= {"position_z_m": np.ones(len(rows)), "attitude_w": np.ones(len(rows)), "status": 2 * hit}
    columns |= {"velocity_x_m_s": np.where(hit, 0.0, 1.0)}
    for rotor in range(4):
        columns[f"rotor_speed_{rotor}_rad_s"] = np.where(hit, 0.0, 800.0 if rotor else 400.0)
    write_flight(folder, FlightTable.from_columns(columns), {"vehicle": "flightgoggles"})
    if outcomes is not None:
        flights = [{"env": number, "outcome": label} for number, label in outcomes.items()]
        (folder / "summary.json").write_text(json.dumps({"flights": flights}))
    return folder


class Slow:
    """A camera that takes its time."""

    fov, aspect = 1.0, 1.5

    def __init__(self) -> None:
        self.asked: list[float] = []

    def take_image(self, env: int, time: float, position: Any, attitude: Any) -> ViewerImage:
        import time as clock

        self.asked.append(time)
        clock.sleep(0.05)
        return ViewerImage(np.full((4, 6, 3), int(10 * time), np.uint8), position, attitude)


class TestFlight:
    def test_nodes_and_scrubbing(self, server: Any, flown: Path) -> None:
        viewer = Viewer(server, load_subject(str(flown)))
        assert {"/flight/vehicle", "/flight/path", "/flight/planned", "/flight/others"} <= set(viewer.nodes)
        assert any(name.startswith("/scene/meshes/static/") for name in viewer.nodes)
        table = load_flight(flown).table.flight(0)
        row = table.row_count // 2
        viewer.show(float(table.t[row]))
        body = viewer.nodes["/flight/vehicle"]
        np.testing.assert_allclose(body.position, table.vector("position")[row], atol=1e-6)
        turn = frames.from_wxyz(np.asarray(body.wxyz))
        assert frames.angle_between(turn, table.vector("attitude")[row].astype(float)) < 1e-3  # float32 unit quaternions
        viewer.show(1e9)
        assert viewer.time == viewer.duration == table.t[-1]
        assert viewer.controls.caption.content.startswith(f"flight 0: {viewer.duration:.2f} s, ")

    def test_other_environments(self, server: Any, flown: Path) -> None:
        viewer = Viewer(server, load_subject(str(flown)))
        assert viewer.controls.flight.options == ("0  success", "1  success")
        viewer.show(0.5)
        first = np.array(viewer.nodes["/flight/vehicle"].position)
        viewer.choose(1)
        second = np.array(viewer.nodes["/flight/vehicle"].position)
        np.testing.assert_allclose(second, load_flight(flown).track(1).pose(0.5)[0], atol=1e-6)
        assert not np.allclose(first, second, atol=1e-4)
        assert viewer.controls.flight.value == "1  success"
        with pytest.raises(AirworthyError, match="no environment 7"):
            viewer.choose(7)
        viewer.controls._step(1)  # Page Down, past the last one
        assert viewer.flight is not None
        assert viewer.flight.env == 0

    @pytest.mark.slow
    def test_a_learnt_policy_is_watched_as_any_pilot(self, server: Any, tmp_path: Path) -> None:
        folder = write_motor_policy(tmp_path / "hover", learnt())
        command = ["fly", "--pilot", f"policy:{folder}", "--vehicle", "tinyprop", "--course", "robustness"]
        assert main([*command, "--envs", "2", "--out", str(tmp_path / "run")]) == 0
        viewer = Viewer(server, load_subject(str(tmp_path / "run")))
        viewer.show(0.5)
        place, _ = load_flight(tmp_path / "run").track(0).pose(0.5)
        np.testing.assert_allclose(viewer.nodes["/flight/vehicle"].position, place, atol=1e-6)
        assert len(viewer.controls.flight.options) == 2

    def test_many_flights_are_chosen_by_number(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, load_subject(str(_straight(tmp_path / "run", LISTED + 1))))
        assert viewer.controls.flight.max == LISTED
        viewer.choose(5)
        assert viewer.controls.flight.value == 5

    def test_playing_goes_on_at_its_speed_and_begins_again(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, load_subject(str(_straight(tmp_path / "run"))))
        viewer.controls.speed.value = "2"
        viewer.step(0.25)
        assert viewer.time == pytest.approx(0.5)
        viewer._play()  # Space
        viewer.step(0.25)
        assert viewer.time == pytest.approx(0.5)
        viewer._play()
        viewer.step(viewer.duration)
        assert viewer.time == 0.0

    def test_what_happened_is_marked(self, server: Any, tmp_path: Path) -> None:
        folder = _straight(tmp_path / "run", outcomes={0: "success", 1: "collision"})
        flight = load_flight(folder)
        assert flight.track(0).events == ()
        (event,) = flight.track(1).events
        assert event.label == "collided"
        assert event.time == pytest.approx(1.02)  # the first row after the impact
        np.testing.assert_allclose(event.position, (1.0, 1.0, 1.0))
        viewer = Viewer(server, load_subject(str(folder)))
        assert server.scene.get_handle_by_name("/flight/events/outcome").text == "success"
        viewer.choose(1)
        assert server.scene.get_handle_by_name("/flight/events/outcome") is None
        assert server.scene.get_handle_by_name("/flight/events/0_word").text == "collided at 1.02 s"
        others = viewer.nodes["/flight/others"]
        colors = np.asarray(others.colors).reshape(2, -1, 3)
        assert (colors == colors[:, :1]).all()
        assert colors[0, 0].tolist() != colors[1, 0].tolist()  # the one that failed stands out

    def test_switches(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, load_subject(str(_straight(tmp_path / "run"))), Slow())
        assert viewer.settle()
        shown = {key: box.value for key, box in viewer.controls.boxes.items()}
        assert shown == {
            **dict.fromkeys(("vehicle", "path", "planned", "events", "camera"), True),
            "others": False,
            "grid": True,
        }
        for key in ("path", "events", "camera"):
            viewer.switch(key, False)
            assert not viewer.nodes[f"/flight/{key}"].visible
        viewer.choose(1)  # what is hidden stays hidden
        viewer.show(1.0)
        assert viewer.settle()
        assert not any(viewer.nodes[f"/flight/{key}"].visible for key in ("path", "events", "camera"))
        viewer.switch("others", True)
        assert viewer.nodes["/flight/others"].visible

    def test_a_scene_that_is_gone(self, tmp_path: Path) -> None:
        from airworthy.simulation.flights import read_flight

        folder = _straight(tmp_path / "run")
        table, meta = read_flight(folder)
        write_flight(folder, table, {**meta, "scene": "moved/away.toml"})
        with pytest.raises(AirworthyError, match=r"'moved/away.toml' is not to be had \(--scene takes another\): "):
            load_subject(str(folder))
        assert load_subject(str(folder), "empty_room").scene is not None

    def test_an_odd_summary_is_no_outcome(self, tmp_path: Path) -> None:
        folder = _straight(tmp_path / "run", outcomes={})
        for text in ('{"flights": 3}', '{"flights": [1, {"env": "x"}, {"env": 1}]}', "[]"):
            (folder / "summary.json").write_text(text)
            assert load_flight(folder).outcomes == {}
        (folder / "summary.json").write_text("{")
        with pytest.raises(AssetError):
            load_flight(folder)


class TestVehicle:
    def test_propellers_turn_as_recorded(self, server: Any, tmp_path: Path) -> None:
        track = load_flight(_straight(tmp_path / "run")).track(1)
        np.testing.assert_allclose(track.turning(0.5), (0.5, 1.0, 1.0, 1.0))
        np.testing.assert_allclose(track.turned(0.5), (0.25, 0.5, 0.5, 0.5))  # time at the highest speed
        np.testing.assert_allclose(track.turned(0.51), (0.255, 0.51, 0.51, 0.51))  # between rows too
        np.testing.assert_allclose(track.turned(2.0), track.turned(1.5))  # they stand after the impact
        viewer = Viewer(server, load_subject(str(tmp_path / "run")))
        viewer.choose(1)
        assert viewer.flight is not None
        body = viewer.flight.body
        viewer.show(0.5)
        turned = np.array(body.blades[1].wxyz)
        viewer.show(0.55)
        assert not np.allclose(turned, body.blades[1].wxyz, atol=1e-3)
        assert all(disc.visible for disc in body.discs)
        viewer.show(2.0)
        assert not any(disc.visible for disc in body.discs)

    def test_a_vehicle_is_drawn_about_its_centre_of_mass(self) -> None:
        import dataclasses

        made: dict[str, Any] = {}

        def add(name: str, vertices: Any, faces: Any, **options: Any) -> Any:
            made[name] = (np.asarray(vertices), options.get("position", np.zeros(3)))
            return SimpleNamespace(visible=True, wxyz=None)

        api = SimpleNamespace(add_mesh_simple=add)
        record = vehicle("flightgoggles")
        count = record.rotor_count
        VehicleNodes(api, "/v", record)
        names = ["/v/body", "/v/nose", *(f"/v/{part}_{i}" for i in range(count) for part in ("rotor", "disc"))]
        assert list(made) == names
        np.testing.assert_allclose(made["/v/rotor_0"][1], np.array(record.rotors[0].position) - record.center_of_mass)
        before = made["/v/body"][0]
        VehicleNodes(api, "/v", dataclasses.replace(record, center_of_mass=(0.1, 0.0, 0.0)))
        shift = np.array(record.center_of_mass) - (0.1, 0.0, 0.0)
        np.testing.assert_allclose(made["/v/body"][0], before + shift, atol=1e-6)  # float32
        made.clear()
        VehicleNodes(api, "/v", dataclasses.replace(record, rotors=()))
        assert list(made) == ["/v/body", "/v/nose"]

    def test_discs_of_front_rotors_have_a_colour_of_their_own(self) -> None:
        colors: dict[str, Any] = {}

        def add(name: str, vertices: Any, faces: Any, **options: Any) -> Any:
            colors[name] = options["color"]
            return SimpleNamespace(visible=True, wxyz=None)

        record = vehicle("flightgoggles")
        VehicleNodes(SimpleNamespace(add_mesh_simple=add), "/v", record)
        ahead = [rotor.position[0] > 0.0 for rotor in record.rotors]
        assert sum(ahead) == 2
        assert [colors[f"/v/disc_{k}"] == FRONT_DISC for k in range(4)] == ahead
        assert [colors[f"/v/disc_{k}"] == DISC for k in range(4)] == [not front for front in ahead]


class TestFollowing:
    def test_modes(self) -> None:
        follower = Follower(vehicle("flightgoggles"))
        place, turn = np.array([1.0, 2.0, 3.0]), frames.from_euler(0.0, 0.0, 0.5 * math.pi)  # the nose to +y
        assert follower.view(0.0, place, turn) is None
        follower.choose("chase")
        view = follower.view(0.0, place, turn)
        assert view is not None
        np.testing.assert_allclose(view[1], place)
        assert abs(view[0][0] - 1.0) < 1e-9
        assert view[0][1] < 1.5  # behind
        assert view[0][2] > 3.0  # and above
        follower.choose("onboard")
        view = follower.view(0.0, place, frames.from_euler(0.3, 0.0, 0.5 * math.pi))
        assert view is not None
        np.testing.assert_allclose(view[0], place)
        np.testing.assert_allclose(view[1] - view[0], (0.0, 1.0, 0.0), atol=1e-9)
        np.testing.assert_allclose(view[2], (math.sin(0.3), 0.0, math.cos(0.3)), atol=1e-9)  # it rolls with the vehicle

    def test_a_camera_that_follows_turns_without_haste(self) -> None:
        follower = Follower(vehicle("flightgoggles"))
        follower.choose("chase")
        place, ahead, left = np.zeros(3), frames.from_euler(0.0, 0.0, 0.0), frames.from_euler(0.0, 0.0, 0.5 * math.pi)
        follower.view(0.0, place, ahead)
        view = follower.view(0.5, place, left)  # its time constant
        assert view is not None
        heading = math.atan2(-view[0][1], -view[0][0])
        assert heading == pytest.approx(0.5 * math.pi * (1.0 - math.exp(-1.0)))
        view = follower.view(0.0, place, left)  # back in time: at once
        assert view is not None
        assert math.atan2(-view[0][1], -view[0][0]) == pytest.approx(0.5 * math.pi)

    def test_out_of_its_own_eyes_it_is_not_seen(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, load_subject(str(_straight(tmp_path / "run"))), Slow())
        assert viewer.settle()
        body, frustum = viewer.nodes["/flight/vehicle"], viewer.nodes["/flight/camera"]
        for mode, expected in (("onboard", (False, False)), ("chase", (True, False)), ("free", (True, True))):
            viewer.follow(mode)
            assert viewer.settle()
            assert (body.visible, frustum.visible) == expected
            assert viewer.controls.view.value == mode
        viewer.follow("onboard")
        viewer.reset()
        assert viewer.controls.view.value == "free"


class TestImages:
    def test_only_the_newest_wish_is_granted(self) -> None:
        camera, shown = Slow(), []
        stream = ImageStream(camera, lambda taken, problem: shown.append((taken, problem)))
        for k in range(20):
            stream.ask(Request(0, 0.1 * k, *NOWHERE))
        assert not stream.idle
        assert stream.wait(10.0)
        assert stream.idle
        stream.close()
        assert camera.asked[-1] == pytest.approx(1.9)
        assert len(camera.asked) <= 3
        assert shown[-1][0].image[0, 0, 0] == 19

    def test_what_is_wrong_is_said(self, server: Any, tmp_path: Path) -> None:
        class Broken(Slow):
            def take_image(self, env: int, time: float, position: Any, attitude: Any) -> ViewerImage:
                raise AssetError("'0.png' is not an image.")

        viewer = Viewer(server, load_subject(str(_straight(tmp_path / "run"))), Broken())
        assert viewer.settle()
        assert viewer.controls.caption.content == "The camera shows nothing: '0.png' is not an image."

    def test_a_paused_flight_shows_the_image_of_its_time(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, load_subject(str(_straight(tmp_path / "run"))), Slow())
        viewer.show(1.5)
        assert viewer.settle()
        assert viewer.controls.picture.image[0, 0, 0] == 15
        np.testing.assert_allclose(viewer.nodes["/flight/camera"].position, (1.5, 0.0, 1.0), atol=1e-6)

    def test_the_live_camera_sees_the_floor(self, server: Any, flown: Path) -> None:
        subject = load_subject(str(flown))
        camera = camera_of("auto", subject)
        assert isinstance(camera, LiveCamera)
        viewer = Viewer(server, subject, camera)
        assert viewer.settle()
        node = viewer.nodes["/flight/camera"]
        image = np.asarray(camera.take_image(0, 0.0, np.array([0.0, 0.0, 1.0]), NOWHERE[1]).image, float)
        assert image.shape[2] == 3
        assert image.shape[1] / image.shape[0] == pytest.approx(camera.aspect)
        assert np.abs(image[:40].mean((0, 1)) - image[-40:].mean((0, 1))).max() > 20  # sky above, floor below
        axis = frames.rotate(frames.from_wxyz(np.asarray(node.wxyz)), np.array([0.0, 0.0, 1.0]))
        body = frames.rotate(load_flight(flown).track(0).pose(0.0)[1], np.array([1.0, 0.0, 0.0]))
        np.testing.assert_allclose(axis, body, atol=1e-6)  # the camera looks where the nose points

    def test_the_live_camera_sees_splats(self) -> None:
        """A red wall of gaussians before the camera, and nothing else: the middle of the image is red."""
        y, z = np.meshgrid(np.arange(-2.0, 2.0, 0.1), np.arange(-2.0, 2.0, 0.1))
        points = np.stack((np.full_like(y, 3.0), y, z), axis=-1).reshape(-1, 3)
        count = len(points)
        color = np.tile((0.9, 0.1, 0.1), (count, 1))
        wall = Splats(
            points,
            np.tile((0.0, 0.0, 0.0, 1.0), (count, 1)),
            np.full((count, 3), 0.08),
            np.full(count, 0.99),
            ((color - 0.5) / 0.28209479177387814)[:, None],
        )
        from airworthy.scenes.record import SplatPlacement

        place = Scene("wall", clouds={"wall": wall}, splats=(SplatPlacement("wall"),), lights=(Sun((0.0, 0.0, -1.0)),))
        taken = LiveCamera(place).take_image(0, 0.0, *NOWHERE)
        height, width, _ = taken.image.shape
        red, green, _ = taken.image[height // 2, width // 2].astype(int)
        assert red > 200
        assert green < 60


class TestRecordedCamera:
    """Files as `simulation.SensorRecorder` lays them out, made small by hand."""

    def _recorded(self, flown: Path, tmp_path: Path, file: str = "0/{k}.png") -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from PIL import Image

        folder = tmp_path / "run"
        shutil.copytree(flown, folder)
        (folder / "sensors/front/0").mkdir(parents=True)
        rows = {"env": [0, 0], "t": [0.0, 0.5], **{f"position_{a}_m": [1.0, 2.0] for a in "xyz"}}
        rows |= {f"attitude_{a}": [0.0, 0.0] for a in "xyz"} | {"attitude_w": [1.0, 1.0]}
        rows["file_rgb"] = [file.format(k=k) for k in range(2)]
        for k in range(2):
            Image.new("RGB", (8, 6), (10 + k, 0, 0)).save(folder / f"sensors/front/0/{k}.png")
        pq.write_table(pa.table(rows), folder / "sensors/front/index.parquet")
        facts = {"width": 8, "height": 6, "projection": {"fy": 3.0}, "files": {"rgb": "png"}}
        (folder / "sensors/front/calibration.json").write_text(json.dumps(facts))
        return folder

    def test_the_latest_image_where_it_was_taken(self, flown: Path, tmp_path: Path) -> None:
        camera = camera_of("auto", load_subject(str(self._recorded(flown, tmp_path))))
        assert isinstance(camera, RecordedCamera)
        assert camera.aspect == pytest.approx(4 / 3)
        assert camera.fov == pytest.approx(math.pi / 2)
        for time, red, place in ((0.49, 10, 1.0), (0.5, 11, 2.0), (9.0, 11, 2.0)):
            taken = camera.take_image(0, time, *NOWHERE)
            assert taken is not None
            assert taken.image.shape == (6, 8, 3)
            assert taken.image[0, 0, 0] == red
            assert taken.position[0] == place
        assert camera.take_image(1, 0.5, *NOWHERE) is None

    def test_an_index_cannot_lead_out_of_its_folder(self, flown: Path, tmp_path: Path) -> None:
        folder = self._recorded(flown, tmp_path, "../../../secret.png")
        camera = RecordedCamera(folder, "front")
        with pytest.raises(AirworthyError, match="outside its own folder"):
            camera.take_image(0, 0.0, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))

    def test_a_damaged_index(self, flown: Path, tmp_path: Path) -> None:
        folder = self._recorded(flown, tmp_path)
        (folder / "sensors/front/index.parquet").write_bytes(b"PAR1 no")
        with pytest.raises(AirworthyError, match="not an index of recorded colour images"):
            RecordedCamera(folder, "front")


class TestPoses:
    def test_between_rows(self) -> None:
        turn = frames.from_euler(0.0, 0.0, np.array([0.0, 1.0]))
        times, places = np.array([1.0, 2.0]), np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
        place, attitude = between(times, places, turn * np.array([[1.0], [-1.0]]), 1.25)  # -q is the same attitude
        np.testing.assert_allclose(place, (0.5, 0.0, 0.0))
        assert frames.angle_between(attitude, frames.from_euler(0.0, 0.0, 0.25)) < 1e-7
        np.testing.assert_allclose(between(times, places, turn, 9.0)[0], (2.0, 0.0, 0.0))
        np.testing.assert_allclose(between(times[:1], places[:1], turn[:1], 9.0)[0], 0.0)

    def test_paths_are_thinned_and_skip_gaps(self) -> None:
        points = np.arange(30.0).reshape(10, 3)
        points[4] = np.nan
        assert segments(points).shape == (8, 2, 3)
        assert segments(points, 3).shape == (2, 2, 3)
        assert segments(points[:1]).shape == (0, 2, 3)
