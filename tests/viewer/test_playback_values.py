"""Panel, clock, cameras and first views of the viewer, against lines on file and by their formulas; its server's answers."""

from __future__ import annotations

import dataclasses
import json
from math import atan, exp, pi, radians, tan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.recording import Recorder
from tests.fixtures.snapshots import check_snapshot
from tests.viewer.test_flights import _straight
from tests.viewer.test_nodes_values import cloud, yard

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.scenes.record import Instance, Scene, SplatPlacement
from airworthy.scenes.splats import write_splats
from airworthy.scenes.viewpoints import view
from airworthy.sensors import device
from airworthy.vehicles import vehicle
from airworthy.viewer import LiveCamera, Subject, Viewer, cameras, controls, load_flight, playback, server, subjects
from airworthy.viewer.controls import Actions, Controls, Follower, first_view
from airworthy.viewer.flight_nodes import reach_of

SNAPSHOTS = Path(__file__).parent / "snapshots" / "playback.txt"


@pytest.fixture
def web() -> Any:
    """A server that writes down what it is asked, with two browsers that look on."""
    book: list[tuple[str, Any]] = []
    parts = {name: Recorder(name, book) for name in ("scene", "gui", "camera")}
    clients = {
        k: SimpleNamespace(atomic=lambda: Recorder("atomic", []), camera=Recorder(f"client {k}", book)) for k in range(2)
    }
    return SimpleNamespace(
        scene=parts["scene"], gui=parts["gui"], initial_camera=parts["camera"], book=book, get_clients=lambda: clients,
        on_client_connect=lambda _: None, atomic=lambda: Recorder("atomic", []), get_host=lambda: "127.0.0.1",
        get_port=lambda: 8123,
    )  # fmt: skip


def asked(web: Any, *of: str) -> dict[str, Any]:
    """Lines of some of what was asked, those of the scene left out."""
    lines = [(name, value) for name, value in web.book if not name.startswith(("scene.", "add_mesh", "add_line", "add_frame"))]
    return {f"{k} {name}": value for k, (name, value) in enumerate(lines) if not of or name.startswith(of)}


def check(part: str, lines: dict[str, Any]) -> None:
    check_snapshot(SNAPSHOTS, lines, rtol=1e-6, of_means=1e-6, part=part)


# ---- the viewer as a whole --------------------------------------------------------------------------------------------------


def test_a_flight_is_played(web: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flight = load_flight(_straight(tmp_path / "run", 3, outcomes={0: "success", 1: "not_at_goal"}))
    now = [10.0]
    monkeypatch.setattr(playback.clock, "monotonic", lambda: now[0])
    viewer = Viewer(web, Subject("run", None, flight))
    assert viewer.url == "http://127.0.0.1:8123"
    assert viewer.duration == 2.0
    viewer.controls.playing.value, viewer.controls.speed.value = True, "0.5"
    for passed in (0.5, 0.05, 0.06, 0.1):  # the words follow every tenth of a second
        now[0] += passed
        viewer.step(passed)
    assert viewer.time == pytest.approx(0.355)
    viewer.follow("chase")
    viewer.show(1.0)
    viewer.choose(1)
    viewer.follow("onboard")
    viewer.show(9.0)
    viewer.show(-1.0)
    viewer.reset()
    for key, on in (("others", True), ("path", False), ("grid", False), ("nothing", True)):
        viewer.switch(key, on)
    viewer._play()
    before = viewer.time
    viewer.step(1.0)
    assert viewer.time == before  # paused
    viewer._play()
    viewer.step(3.9)
    assert viewer.time == pytest.approx(before + 1.95)
    viewer.step(0.2)
    assert viewer.time == 0.0  # from the beginning
    check("a flight", asked(web))


def test_a_scene_that_moves_and_one_that_does_not(web: Any) -> None:
    viewer = Viewer(web, Subject("yard", yard()))
    assert viewer.duration == 60.0
    viewer.show(1.0)
    viewer.switch("collision", True)
    viewer.switch("roof", False)
    viewer.choose(3)  # there are no flights
    assert viewer.flight is None
    assert viewer.settle()
    still = dataclasses.replace(yard(), actors=())
    other = Viewer(web, Subject("still", still))
    assert other.duration == 0.0
    other.step(1.0)
    assert other.time == 0.0
    check("scenes", asked(web))


def test_splats_and_their_facts(web: Any) -> None:
    place = Scene("cloud", clouds={"x": cloud(1500)}, splats=(SplatPlacement("x"),))
    viewer = Viewer(web, Subject("cloud", place, bare=True), splats_max=700)
    assert viewer.splats is not None
    colored = "colours for where you look from, once it rests"
    assert viewer._facts() == f"{viewer.splats.count:,} gaussians, merged from 1,500, {colored}."
    assert Viewer(web, Subject("cloud", place))._facts() == f"1,500 gaussians, {colored}."
    grey = dataclasses.replace(place, clouds={"x": dataclasses.replace(cloud(9), harmonics=cloud(9).harmonics[:, :1])})
    assert Viewer(web, Subject("cloud", grey))._facts() == "9 gaussians, one colour each."
    viewer.switch("splats", False)
    assert not viewer.nodes["/splats/0_x"].visible
    assert [row[:1] + row[2:] for row in viewer._switches()] == [
        ("splats", True), ("collision", False), ("directions", True), ("grid", True)
    ]  # fmt: skip


def test_a_camera_s_problem_is_told(web: Any, tmp_path: Path) -> None:
    viewer = Viewer(web, Subject("run", None, load_flight(_straight(tmp_path / "run"))))
    viewer.show(0.5)
    viewer._shown(None, "no light")
    assert viewer.controls.caption.content == "The camera shows nothing: no light"
    viewer._shown(None, "")
    assert viewer.controls.caption.content == "The camera shows nothing: no light"


def test_running_keeps_the_rhythm_of_its_ticks(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = Viewer(web, Subject("yard", yard()))
    times, slept, steps = iter([0.0, 0.01, 0.05, 0.2, 0.21]), [], []

    def step(elapsed: float) -> None:
        steps.append(elapsed)
        if len(steps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(playback.clock, "monotonic", lambda: next(times))
    monkeypatch.setattr(playback.clock, "sleep", slept.append)
    monkeypatch.setattr(viewer, "step", step)
    with pytest.raises(KeyboardInterrupt):
        viewer.run()
    assert slept == pytest.approx([1.0 / 30.0 - 0.01, 0.0])
    assert steps == pytest.approx([0.05, 0.16])


def test_nothing_plays_for_nobody(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer that is left open waits where it is until a browser comes."""
    viewer = Viewer(web, Subject("yard", yard()))
    ticks, steps = iter(range(100)), []
    looking = web.get_clients()
    told = iter([{}, {}, looking, {}])
    monkeypatch.setattr(web, "get_clients", lambda: next(told))
    monkeypatch.setattr(playback.clock, "monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr(playback.clock, "sleep", lambda seconds: None)
    monkeypatch.setattr(viewer, "step", steps.append)
    with pytest.raises(StopIteration):
        viewer.run()
    assert steps == [2.0]


# ---- the panel --------------------------------------------------------------------------------------------------------------


def panel(web: Any, duration: float, flights: dict[int, str], follows: bool) -> tuple[Controls, list[Any]]:
    told: list[Any] = []

    def note(name: str) -> Any:
        return lambda *given: told.append((name, *given))

    actions = Actions(**{name: note(name) for name in ("seek", "play", "choose", "follow", "reset", "switch")})
    switches = [("path", "flown path", True), ("others", "all paths", False)]
    return Controls(web.gui, "run", "Some facts.", duration, flights, follows, switches, actions), told


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("a flight", (8.126, {0: "0", 3: "3  success"}, True)),
        ("a moment", (0.001, {5: "5"}, True)),
        ("a scene", (0.0, {}, False)),
        ("many flights", (1.0, {2 * k: str(k) for k in range(controls.LISTED + 1)}, True)),
        ("listed flights", (1.0, {2 * k: str(k) for k in range(controls.LISTED)}, True)),
    ],
)
def test_what_is_on_the_panel(name: str, given: Any, web: Any) -> None:
    made, _ = panel(web, *given)
    made.show_time(1.23456, "words")
    made.show_time(1.5, "words")
    made.show_image(np.zeros((2, 3, 3), np.uint8))
    made.show_image(np.ones((2, 3, 3), np.uint8))
    check(f"panel of {name}", asked(web))


def test_flights_are_chosen_by_label_or_by_number(web: Any) -> None:
    made, told = panel(web, 8.0, {3: "third", 7: "seventh", 9: "ninth"}, True)
    made.choose(7)
    assert made.flight.value == "seventh"
    made._step(1)
    made.flight.value = "third"
    made._step(-1)
    assert told == [("choose", 9), ("choose", 9)]
    many, told = panel(web, 8.0, {2 * k: str(k) for k in range(controls.LISTED + 1)}, True)
    many.choose(10)
    assert many.flight.value == 5
    many._step(1)
    many.flight.value = controls.LISTED
    many._step(1)
    assert told == [("choose", 12), ("choose", 0)]
    many.view.value = "onboard"
    many._next_view()
    assert told[-1] == ("follow", "free")
    assert many.view.value == "free"


# ---- where browsers look from -----------------------------------------------------------------------------------------------


def test_a_first_view_of_a_flight_and_of_nothing(tmp_path: Path) -> None:
    track = load_flight(_straight(tmp_path / "run")).track(0)
    found = first_view(None, track)
    np.testing.assert_allclose(found.middle, [1.0, 0.0, 1.0], atol=1e-6)
    assert (found.size, found.floor, found.fov) == (pytest.approx(2.0), 1.0, pytest.approx(radians(55.0)))
    away = found.position - found.target
    np.testing.assert_allclose(found.target, found.middle)
    # Half of the diagonal, and 8 % of room, fill half of the view.
    assert float(np.linalg.norm(away)) == pytest.approx(1.08 * 0.5 * 2.0 / tan(radians(27.5)))
    np.testing.assert_allclose(away / np.linalg.norm(away), np.array([-0.62, -0.62, 0.42]) / np.linalg.norm([0.62, 0.62, 0.42]))
    nothing = first_view(None, None)
    np.testing.assert_allclose(nothing.middle, [0.0, 0.0, 1.5])
    assert (nothing.size, nothing.floor) == (pytest.approx(np.sqrt(209.0)), 0.0)
    point = dataclasses.replace(track, position=np.zeros((101, 3)))
    assert first_view(None, point).size == 0.1


def test_a_first_view_of_a_place(tmp_path: Path) -> None:
    place = Scene("yard", {"cube": Box((3.0, 2.0, 1.0))}, instances=(Instance("cube", (1.0, 0.0, 1.0)),))
    track = load_flight(_straight(tmp_path / "run")).track(0)
    orbit, found, flown = view(place, "orbit"), first_view(place, None), first_view(place, track)
    for one in (found, flown):
        np.testing.assert_allclose(one.position, orbit.position)
        assert one.fov == pytest.approx(2.0 * atan(tan(0.5 * orbit.fov) * 9.0 / 16.0))
    np.testing.assert_allclose(flown.target, [1.0, 0.0, 1.0], atol=1e-6)  # the middle of the flight
    forward = frames.rotate(orbit.attitude, np.array([0.0, 0.0, 1.0]))
    ahead = found.target - found.position
    np.testing.assert_allclose(np.cross(ahead, forward), 0.0, atol=1e-9)
    assert float(ahead @ forward) == pytest.approx(max(float(forward @ (found.middle - orbit.position)), 0.1 * found.size))
    check("first views", {"place": found, "flight": flown, "yard": first_view(yard(), None)})


@pytest.mark.parametrize(
    ("size", "near", "far"), [(0.5, 0.002, 1000.0), (10.0, 0.02, 1000.0), (25.0, 0.05, 1000.0), (60.0, 0.05, 1200.0)]
)
def test_from_where_on_things_are_drawn(size: float, near: float, far: float) -> None:
    shown = controls.FirstView(np.zeros(3), np.ones(3), 1.0, np.zeros(3), size, 0.0)
    assert (shown.near, shown.far) == (pytest.approx(near), pytest.approx(far))


def test_a_camera_that_follows() -> None:
    record = vehicle("flightgoggles")
    follower = Follower(record)
    assert follower.mode == "free"
    follower.choose("chase")
    place, level = np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.0, 1.0])
    position, _, up = follower.view(5.0, place, level)  # type: ignore[misc]
    far = max(8.0 * reach_of(record), 0.8)
    np.testing.assert_allclose(position - place, far * np.array([-np.cos(radians(18.0)), 0.0, np.sin(radians(18.0))]))
    np.testing.assert_allclose(up, [0.0, 0.0, 1.0])
    left = frames.from_euler(0.0, 0.0, 3.0)
    for time, turned in ((5.25, 3.0 * (1 - exp(-0.5))), (7.24, None), (9.25, 3.0), (9.0, 3.0)):
        position, _, _ = follower.view(time, place, left)  # type: ignore[misc]
        heading = float(np.arctan2(-(position - place)[1], -(position - place)[0]))
        if turned is not None:
            assert heading == pytest.approx(turned, abs=1e-9)
    # The shorter way round, past +-180 degrees.
    follower.view(10.0, place, frames.from_euler(0.0, 0.0, -3.0))
    position, _, _ = follower.view(10.5, place, frames.from_euler(0.0, 0.0, -3.0))  # type: ignore[misc]
    heading = float(np.arctan2(-(position - place)[1], -(position - place)[0]))
    assert abs(heading) > 3.0
    follower.aim(vehicle("cf2x_L250"))
    position, _, _ = follower.view(11.0, place, level)  # type: ignore[misc]
    assert float(np.linalg.norm(position - place)) == pytest.approx(0.8)


# ---- the vehicle's camera ---------------------------------------------------------------------------------------------------


def test_a_live_camera_is_where_its_vehicle_carries_it() -> None:
    place = Scene("yard", {"cube": Box((30.0, 30.0, 0.1))}, instances=(Instance("cube"),))
    carl = vehicle("carl")
    camera = LiveCamera(place, vehicle=carl)
    item = next(item for item in carl.sensors)
    turn = frames.from_euler(0.1, -0.2, 0.7)
    taken = camera.take_image(0, 0.0, np.array([0.0, 0.0, 3.0]), turn)
    offset = np.array(item.position) - carl.center_of_mass
    np.testing.assert_allclose(taken.position - (0.0, 0.0, 3.0), frames.rotate(turn, offset), atol=1e-9)
    assert taken.image.shape == (180, 320, 3)
    assert camera.aspect == pytest.approx(16.0 / 9.0)
    plain = LiveCamera(place)
    assert (plain.aspect, plain.take_image(0, 0.0, np.array([0.0, 0.0, 3.0]), turn).image.shape) == (1.6, (200, 320, 3))
    # 90 degrees across 320 columns: f = 160, and 199 rows from the middle of the first to that of the last.
    assert plain.fov == pytest.approx(2.0 * atan(0.5 * 199 / 160), abs=1e-4)
    np.testing.assert_allclose(plain.take_image(0, 0.0, np.zeros(3), turn).position, 0.0)
    named = LiveCamera(place, "realsense_d455", carl)
    mount = device("realsense_d455").effective_mount
    np.testing.assert_allclose(named._offset, np.asarray(mount.position) - carl.center_of_mass)
    np.testing.assert_allclose(LiveCamera(place, "realsense_d455")._offset, mount.position)
    with pytest.raises(AirworthyError, match="'ouster_os1_64', a lidar; name one that takes images"):
        LiveCamera(place, "ouster_os1_64")


def test_images_of_devices_are_reduced() -> None:
    lens = Pinhole(640, 361, 400.0, 410.0, 310.0, 200.0)
    small = cameras._small(lens)
    assert isinstance(small, Pinhole)
    assert (small.width, small.height, small.fx, small.fy, small.cx, small.cy) == (320, 180, 200.0, 205.0, 155.0, 100.0)
    exact = Pinhole(320, 200, 1.0, 1.0, 160.0, 100.0)
    assert cameras._small(exact) is exact
    assert cameras._small(Pinhole(9000, 4, 1.0, 1.0, 1.0, 1.0)).height == 1
    wide = np.zeros((3, 3, 3))
    wide[0, 1], wide[-1, 1] = (0.0, -1.0, 0.0), (0.0, 1.0, 0.0)
    assert cameras._fov(wide) == pytest.approx(radians(150.0))
    wide[-1, 1] = (0.0, 0.0, 1.0)
    assert cameras._fov(wide) == pytest.approx(pi / 2)


@pytest.mark.parametrize(
    ("projection", "height", "fov"),
    [
        ({"fy": 3.0}, 6.0, pi / 2),
        ({"fy": 1e-3}, 6.0, radians(150.0)),
        ({"fy": 0.0}, 6.0, pi / 2),
        ({"fy": "x"}, 6.0, pi / 2),
        (None, 6.0, pi / 2),
        ({"fy": 6.0}, 6.0, 2 * atan(0.5)),
    ],
)
def test_the_angle_of_recorded_images(projection: Any, height: float, fov: float) -> None:
    assert cameras.RecordedCamera._vertical(projection, height) == pytest.approx(fov)


def test_sensors_that_recorded_colour_images(tmp_path: Path) -> None:
    kinds = {"b": "rgb", "a": "rgb", "c": "depth", "d": "rgb", "e": ""}
    for name, kind in kinds.items():
        files, index = {kind: "png"} if kind else None, name != "d"
        folder = tmp_path / "sensors" / name
        folder.mkdir(parents=True)
        (folder / "calibration.json").write_text(json.dumps({"files": files}))
        if index:
            (folder / "index.parquet").write_bytes(b"")
    assert cameras.recorded_names(tmp_path) == ["a", "b"]
    assert cameras.recorded_names(tmp_path / "none") == []


# ---- what is looked at, and who may look ------------------------------------------------------------------------------------


def test_bounds_of_a_splat_file(tmp_path: Path) -> None:
    """Two percent are left out at each end of each axis; a twentieth of the extent is room."""
    x = np.linspace(0.0, 100.0, 101)
    points = np.stack([x, 0.1 * x, 0.0 * x + 2.0], axis=1)
    some = dataclasses.replace(cloud(101), position=points.astype(np.float32))
    found = subjects._bounds(some)
    np.testing.assert_allclose(found.lower, [2.0 - 4.8, 0.2 - 4.8, 2.0 - 4.8], atol=1e-4)
    np.testing.assert_allclose(found.upper, [98.0 + 4.8, 9.8 + 4.8, 2.0 + 4.8], atol=1e-4)
    point = dataclasses.replace(cloud(3), position=np.zeros((3, 3), np.float32))
    np.testing.assert_allclose(subjects._bounds(point).upper, 5e-5)
    write_splats(some, tmp_path / "cloud.ply")
    subject = subjects.load_subject(str(tmp_path / "cloud.ply"))
    assert (subject.title, subject.bare, subject.flight) == ("cloud.ply", True, None)
    assert subject.scene is not None
    assert subject.scene.name == "cloud"
    room = subjects.load_subject("empty_room")
    assert (room.title, room.bare) == ("empty_room:0", False)


def test_folders_are_told_apart(tmp_path: Path) -> None:
    assert not subjects._is_flight(tmp_path)
    (tmp_path / "meta.json").write_text('{"means": 1}')
    assert not subjects._is_flight(tmp_path)
    (tmp_path / "meta.json").write_text("{}")
    assert subjects._is_flight(tmp_path)
    (tmp_path / "meta.json").write_text('{"means": 1}')
    (tmp_path / "flight.parquet").write_bytes(b"")
    assert subjects._is_flight(tmp_path)


def test_a_demo_s_folder_is_that_of_its_last_flight(tmp_path: Path) -> None:
    flown = _straight(tmp_path / "demo" / "last")
    manifest = tmp_path / "demo" / "demo.json"
    assert subjects._of_demo(manifest.parent) == manifest.parent
    manifest.write_text('{"view": "last"}')
    assert subjects._of_demo(manifest.parent) == flown
    assert subjects.load_subject(str(manifest.parent)).title == "last"
    for text in ('{"view": "../last"}', '{"view": 3}', "[]"):
        manifest.write_text(text)
        with pytest.raises(AssetError, match="does not name the flight to show"):
            subjects._of_demo(manifest.parent)
    manifest.write_text('{"view": "next"}')
    with pytest.raises(AssetError, match="has not come to its last flight yet"):
        subjects._of_demo(manifest.parent)


def test_ports_are_tried_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def refused(host: str, port: int) -> OSError | None:
        tried.append((host, port))
        return OSError(98, "in use") if port < 8085 else None

    monkeypatch.setattr(server, "_refused", refused)
    assert server.free_port("localhost") == 8085
    assert tried == [("127.0.0.1", port) for port in range(8080, 8086)]
    with pytest.raises(AirworthyError, match=r"100 ports of 127\.0\.0\.1 from 7000 on are taken"):
        server.free_port(first=7000)
    assert len(tried) == 6 + 100
    tried.clear()
    monkeypatch.setattr(server, "_refused", lambda host, port: tried.append(port) or OSError(98, "in use"))
    with pytest.raises(AirworthyError, match="are taken"):
        server.free_port(first=65500)
    assert tried == list(range(65500, 65536))


@pytest.mark.parametrize(("port", "fits"), [(0, True), (65535, True), (-1, False), (65536, False)])
def test_ports(port: int, fits: bool) -> None:
    if fits:
        assert server._loopback("localhost", port) == "127.0.0.1"
        return
    with pytest.raises(AirworthyError, match=f"--port is {port}; expected 0"):
        server._loopback("127.0.0.2", port)


def test_how_to_reach_it_from_elsewhere() -> None:
    for port, shown in ((0, 8080), (9000, 9000)):
        with pytest.raises(AirworthyError, match=f"ssh -L {shown}:127.0.0.1:{shown} HOST"):
            server._loopback("0.0.0.0", port)  # noqa: S104


def test_a_server_that_took_another_port_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    import viser

    stopped: list[Any] = []

    class Other:
        gui = Recorder("gui")

        def __init__(self, **given: Any):
            self.given = given

        def get_port(self) -> int:
            return 8099

        def stop(self) -> None:
            stopped.append(self.given["port"])

    monkeypatch.setattr(viser, "ViserServer", Other)
    monkeypatch.setattr(server, "_refused", lambda host, port: None)
    with pytest.raises(AirworthyError, match=r"Could not listen on 127.0.0.1:8098 \(in use\)"):
        server.serve(port=8098)
    assert stopped == [8098]
    monkeypatch.setattr(server, "is_guarded", lambda host, port: (host, port) == ("127.0.0.1", 8099))
    assert server.serve(port=8099).get_port() == 8099
    assert server.serve(port=0).get_port() == 8099
    assert Other.gui.lines["0 gui.configure_theme"] == {
        "show_share_button": "False",
        "show_logo": "False",
        "control_width": "large",
    }

    def silent(host: str, port: int) -> bool:
        raise OSError("silent")

    monkeypatch.setattr(server, "is_guarded", silent)
    with pytest.raises(AirworthyError, match=r"does not answer \(silent\)"):
        server.serve(port=8099)
    assert stopped == [8098, 8099]
