"""The viewer on a live server: what it listens on, which nodes there are, and where a scrub puts them."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from airworthy.cli.main import main
from airworthy.cli.view import camera_of
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.scenes import scene
from airworthy.scenes.formats import tessellate
from airworthy.scenes.record import Actor, Instance, Material, Scene, SplatSlot, Waypoint
from airworthy.scenes.splats import Splats, write_splats
from airworthy.viewer import LiveCamera, RecordedCamera, Subject, Viewer, load_flight, load_subject, serve
from airworthy.viewer.flights import segments
from airworthy.viewer.poses import between
from airworthy.viewer.splat_nodes import covariances
from airworthy.viewer.vehicle_nodes import add_vehicle
from airworthy.viewer.wrapping import wrapped

Output = pytest.CaptureFixture[str]


def _splats(count: int = 5) -> Splats:
    rng = np.random.default_rng(1)
    turn = frames.normalize(rng.normal(size=(count, 4)))
    return Splats(
        rng.normal(size=(count, 3)), turn, rng.uniform(0.01, 0.1, (count, 3)), np.full(count, 0.5), np.zeros((count, 1, 3))
    )


class TestServer:
    def test_listens_on_loopback_only(self, server: Any) -> None:
        assert server.get_host() == "127.0.0.1"
        with socket.create_connection(("127.0.0.1", server.get_port()), timeout=5) as link:
            link.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert link.recv(64).startswith(b"HTTP/1.1 200")
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        bound = {row[1] for row in listening if row[3] == "0A" and int(row[1].split(":")[1], 16) == server.get_port()}
        assert bound == {f"0100007F:{server.get_port():04X}"}  # 127.0.0.1, as the kernel writes it

    def test_never_opens_a_public_tunnel(self, server: Any) -> None:
        assert server.request_share_url() is None
        assert server._share_tunnel is None

    @pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])  # noqa: S104
    def test_refuses_addresses_that_others_reach(self, host: str) -> None:
        with pytest.raises(AirworthyError, match=r"others may reach.*ssh -L 8080:127\.0\.0\.1:8080"):
            serve(host)

    def test_refuses_a_port_that_is_taken(self, server: Any) -> None:
        with pytest.raises(AirworthyError, match=r"Could not listen on 127\.0\.0\.1:\d+ .*--port 0"):
            serve(port=server.get_port())

    def test_refuses_a_port_that_is_none(self) -> None:
        with pytest.raises(AirworthyError, match="--port is 65536"):
            serve(port=65536)


class TestScene:
    def test_one_node_per_shape_and_materials(self, server: Any) -> None:
        place = scene("forest:2@1")
        viewer = Viewer(server, Subject("forest", place))
        groups = {(item.shape, item.materials) for item in place.instances if item.visible}
        static = [handle for name, handle in viewer.nodes.items() if name.startswith("/scene/static/")]
        assert len(static) == len(groups)
        assert sum(len(handle.batched_positions) for handle in static) == sum(item.visible for item in place.instances)

    def test_actors_move_with_the_time_line(self, server: Any) -> None:
        path = (Waypoint(0.0, (0.0, 0.0, 0.0)), Waypoint(2.0, (4.0, 0.0, 0.0)))
        actor = Actor("cart", (Instance("cube", (0.0, 0.0, 0.5)),), "scripted", path=path)
        viewer = Viewer(server, Subject("yard", Scene("yard", {"cube": Box((0.5, 0.5, 0.5))}, actors=(actor,))))
        node = next(handle for name, handle in viewer.nodes.items() if name.startswith("/scene/actors/"))
        viewer.show(1.0)
        np.testing.assert_allclose(node.position, (2.0, 0.0, 0.5), atol=1e-6)  # float32 on the wire
        assert viewer.slider.value == 1.0

    def test_colour_is_the_material_linear(self, server: Any) -> None:
        paint = {"red": Material((1.0, 0.0, 0.2, 1.0))}  # the browser takes instances' colours as linear
        place = Scene("one", {"cube": Box((0.5, 0.5, 0.5))}, paint, instances=(Instance("cube", materials=("red",)),))
        viewer = Viewer(server, Subject("one", place))
        (node,) = viewer.nodes.values()
        assert np.asarray(node.batched_colors).reshape(-1)[:3].tolist() == [255, 0, 51]

    def test_textures_by_size_repeat_per_metre(self) -> None:
        box = tessellate(Box((2.0, 1.0, 0.5)))
        made = wrapped(box, [Material(texture_size=0.5)])
        assert made.uv is not None
        top = made.vertices[:, 2] > 0.49
        spans = np.ptp(made.uv.reshape(-1, 3, 2)[top.reshape(-1, 3).all(1)].reshape(-1, 2), axis=0)
        np.testing.assert_allclose(spans, (8.0, 4.0), rtol=1e-6)  # 4 m and 2 m in repeats of half a metre
        assert wrapped(box, [Material()]) is box


class TestSplats:
    def test_a_splat_file_is_a_node(self, server: Any, tmp_path: Path) -> None:
        file = tmp_path / "cloud.ply"
        write_splats(_splats(), file)
        subject = load_subject(str(file))
        assert subject.splats is not None
        assert len(subject.splats) == 5
        viewer = Viewer(server, subject)
        assert list(viewer.nodes) == ["/splats"]
        assert viewer.nodes["/splats"].buffer.shape == (5, 8)

    def test_a_scene_places_its_splats(self, server: Any) -> None:
        place = Scene("captured", splat=SplatSlot("x.ply", (1.0, 2.0, 3.0), scale=2.0))
        viewer = Viewer(server, Subject("captured", place, _splats()))
        np.testing.assert_allclose(viewer.nodes["/splats"].position, (1.0, 2.0, 3.0))
        assert viewer.nodes["/splats"].scale == 2.0

    def test_covariances_have_the_scales_along_the_axes(self) -> None:
        splats = _splats(20)
        variance = np.linalg.eigvalsh(covariances(splats).astype(float))
        np.testing.assert_allclose(variance, np.sort(splats.scale.astype(float) ** 2, axis=1), rtol=1e-3)  # float32 sums


class TestFlight:
    def test_nodes_and_scrubbing(self, server: Any, flown: Path) -> None:
        subject = load_subject(str(flown))
        viewer = Viewer(server, subject)
        assert {"/flight/vehicle", "/flight/path", "/flight/planned", "/flight/others"} <= set(viewer.nodes)
        assert any(name.startswith("/scene/static/") for name in viewer.nodes)
        table = load_flight(flown).table.flight(0)
        row = table.row_count // 2
        viewer.show(float(table.t[row]))
        body = viewer.nodes["/flight/vehicle"]
        np.testing.assert_allclose(body.position, table.vector("position")[row], atol=1e-6)
        turn = frames.from_wxyz(np.asarray(body.wxyz))
        assert frames.angle_between(turn, table.vector("attitude")[row].astype(float)) < 1e-3  # float32 unit quaternions
        viewer.show(1e9)
        assert viewer.time == viewer.duration == table.t[-1]

    def test_other_environments(self, server: Any, flown: Path) -> None:
        viewer = Viewer(server, load_subject(str(flown)))
        viewer.show(0.5)
        first = np.array(viewer.nodes["/flight/vehicle"].position)
        viewer.choose(1)
        second = np.array(viewer.nodes["/flight/vehicle"].position)
        expected = load_flight(flown).track(1).pose(0.5)[0]
        np.testing.assert_allclose(second, expected, atol=1e-6)
        assert not np.allclose(first, second, atol=1e-4)
        with pytest.raises(AirworthyError, match="no environment 7"):
            viewer.choose(7)

    def test_playing_goes_on_at_its_speed_and_begins_again(self, server: Any, flown: Path) -> None:
        viewer = Viewer(server, load_subject(str(flown)))
        viewer.speed.value = "2"
        viewer.step(0.25)
        assert viewer.time == pytest.approx(0.5)
        viewer.playing.value = False
        viewer.step(0.25)
        assert viewer.time == pytest.approx(0.5)
        viewer.playing.value = True
        viewer.step(viewer.duration)
        assert viewer.time == 0.0

    def test_the_live_camera_sees_the_floor(self, server: Any, flown: Path) -> None:
        subject = load_subject(str(flown))
        camera = camera_of("auto", subject)
        assert isinstance(camera, LiveCamera)
        viewer = Viewer(server, subject, camera)
        node = viewer.nodes["/flight/camera"]
        image = np.asarray(camera.shot(0, 0.0, np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])).image, float)
        assert image.shape == (150, 240, 3)
        assert np.abs(image[:40].mean((0, 1)) - image[-40:].mean((0, 1))).max() > 20  # sky above, floor below
        axis = frames.rotate(frames.from_wxyz(np.asarray(node.wxyz)), np.array([0.0, 0.0, 1.0]))
        body = frames.rotate(load_flight(flown).track(0).pose(0.0)[1], np.array([1.0, 0.0, 0.0]))
        np.testing.assert_allclose(axis, body, atol=1e-6)  # the camera looks where the nose points

    def test_a_vehicle_has_a_disc_per_rotor(self, flown: Path) -> None:
        made: list[str] = []
        api = SimpleNamespace(add_mesh_simple=lambda name, *_, **__: made.append(name))
        record = load_flight(flown).vehicle(0)
        add_vehicle(api, "/v", record)
        assert made == ["/v/body", "/v/nose", *(f"/v/rotor_{i}" for i in range(record.rotor_count))]
        made.clear()
        add_vehicle(api, "/v", dataclasses.replace(record, rotors=()))
        assert made == ["/v/body", "/v/nose"]


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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("foresst", "Unknown scene 'foresst'. Closest: 'forest'"),
        ("forest --host 0.0.0.0", "--host is '0.0.0.0', which others may reach"),
        ("forest --env 1", "--env belongs to a flight, and 'forest' is a scene: leave it out."),
        ("forest --splats 0", "--splats is 0; expected 1 or more."),
        ("missing.spz", "There is no file 'missing.spz'."),
        ("RUN --env 9", "There is no environment 9 in"),
        ("RUN --camera recorded", "No colour images were recorded in"),
        ("RUN --camera vlp16", "Unknown sensor 'vlp16'."),
        ("BROKEN", "There is no file"),
    ],
)
def test_mistakes(line: str, said: str, flown: Path, tmp_path: Path, capsys: Output) -> None:
    shutil.copytree(flown, tmp_path / "broken")
    (tmp_path / "broken" / "flight.parquet").unlink()
    words = line.replace("RUN", str(flown)).replace("BROKEN", str(tmp_path / "broken")).split()
    assert main(["view", *words]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert err.count("\n") == 1
    assert not out


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
        nowhere = np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        for time, red, place in ((0.49, 10, 1.0), (0.5, 11, 2.0), (9.0, 11, 2.0)):
            shot = camera.shot(0, time, *nowhere)
            assert shot is not None
            assert shot.image.shape == (6, 8, 3)
            assert shot.image[0, 0, 0] == red
            assert shot.position[0] == place
        assert camera.shot(1, 0.5, *nowhere) is None

    def test_an_index_cannot_lead_out_of_its_folder(self, flown: Path, tmp_path: Path) -> None:
        folder = self._recorded(flown, tmp_path, "../../../secret.png")
        camera = RecordedCamera(folder, "front")
        with pytest.raises(AirworthyError, match="outside of it"):
            camera.shot(0, 0.0, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))

    def test_a_damaged_index(self, flown: Path, tmp_path: Path) -> None:
        folder = self._recorded(flown, tmp_path)
        (folder / "sensors/front/index.parquet").write_bytes(b"PAR1 no")
        with pytest.raises(AirworthyError, match="not an index of recorded colour images"):
            RecordedCamera(folder, "front")


def test_interrupting_ends_cleanly(loopback: None, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Viewer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Viewer, "run", interrupted)
    assert main(["view", "empty_room", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("empty_room:0: http://127.0.0.1:")
    assert out.endswith("Closed.\n")
    assert not err
