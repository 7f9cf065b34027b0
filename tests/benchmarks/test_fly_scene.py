"""Flying in a scene from the command's configuration: its way, contact, sensors and what is left on the disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.benchmarks.fly.replay import refly
from airworthy.benchmarks.fly.scene import mounted_sensors, refuse_unknown, with_course
from airworthy.cli.fly import failures
from airworthy.core.errors import AirworthyError
from airworthy.evaluation import read_summary
from airworthy.geometry.distance import clearance
from airworthy.scenes import GateFrame, Pose, Scene, SceneBatch, scene
from airworthy.simulation import read_flight
from airworthy.vehicles import named_vehicle, vehicle, write_vehicle
from airworthy.vehicles.record import SensorMount

CARL = vehicle("carl")
QUICK = {"vehicle": ("carl",), "report": False, "hold": 0.0}


def test_a_scene_brings_its_course() -> None:
    assert with_course(FlyConfig(scene="mid_gate"), scene("mid_gate")) == ("robustness", ())
    assert with_course(FlyConfig(scene="mid_gate", course="line"), scene("mid_gate"))[0] == "line"


def test_a_scenario_is_crossed_straight() -> None:
    place = scene("forest:3")
    course, points = with_course(FlyConfig(scene="forest:3"), place)
    assert course is None
    assert [float(x) for x in points[0].split(",")] == pytest.approx(place.start.position)
    assert [float(x) for x in points[1].split(",")] == pytest.approx(place.goal.position)


def test_gates_are_flown_through_at_a_right_angle_whatever_their_corners_order() -> None:
    """Points 1.5 m before, in and 1.5 m behind, along the normal in the direction of flight."""
    corners = ((4.0, 1.0, 2.0), (4.0, -1.0, 2.0), (4.0, -1.0, 1.0), (4.0, 1.0, 1.0))
    for order in (corners, corners[::-1]):
        place = Scene(
            "gate",
            gates=(GateFrame("a", order), GateFrame("b", tuple((x + 5, y, z) for x, y, z in order))),
            start=Pose((0, 0, 1.5)),
        )
        points = np.array([[float(x) for x in text.split(",")] for text in with_course(FlyConfig(scene="gate"), place)[1]])
        assert np.allclose(points[:, 0], [0.0, 2.5, 4.0, 5.5, 7.5, 9.0, 10.5])
        assert np.allclose(points[:, 1], 0.0)
        assert np.allclose(points[:, 2], 1.5)


def test_a_scene_without_a_way_says_what_to_give() -> None:
    with pytest.raises(AirworthyError, match="has no course, gates or goal of its own: give --course or --waypoints"):
        with_course(FlyConfig(scene="x"), Scene("x"))


@pytest.mark.parametrize(
    ("sensors", "message"),
    [
        (("realsense_d445",), "Unknown sensor 'realsense_d445'"),
        (("a=realsense_d455", "a=oak_d"), "Two sensors are named 'a'"),
        (("a/b=oak_d",), "A sensor is named 'a/b'"),
    ],
)
def test_sensor_mistakes(sensors: tuple[str, ...], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        mounted_sensors(FlyConfig(scene="mid_gate", sensors=sensors), [CARL])


def test_sensor_tokens() -> None:
    found = mounted_sensors(FlyConfig(sensors=("eye=oak_d:rgb,depth st_vl53l5cx",)), [CARL])
    assert list(found) == ["eye", "st_vl53l5cx"]
    assert found["eye"].channels == ("rgb", "depth")


def test_a_device_that_is_none_is_named_with_file_and_sensor(tmp_path: Path) -> None:
    top = SensorMount("top", "lidar", "ouster_os0_63")
    write_vehicle(replace(CARL, name="mine", sensors=(top,)), tmp_path / "mine.toml")
    file = str(tmp_path / "mine.toml")
    config = FlyConfig(vehicle=(file,), sensors=("carried",))
    with pytest.raises(AirworthyError) as caught:
        mounted_sensors(config, [named_vehicle(file)])
    assert str(caught.value).startswith(f"{file!r}: Sensor 'top' of vehicle 'mine': Unknown sensor 'ouster_os0_63'.")


def test_sensors_without_a_scene_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="Sensors need something to see: name a --scene"):
        run_fly(FlyConfig(sensors=("oak_d",), out=tmp_path))


def test_a_flight_into_a_trunk_ends_there(tmp_path: Path) -> None:
    """Straight through a forest: a collision, at the body's distance from the trunk, never moving again."""
    result = run_fly(FlyConfig(scene="random_cylinder:4", out=tmp_path, **QUICK))
    flight = result.summary["flights"][0]
    assert flight["outcome"] == "collision"
    assert flight["collisions"] == 1
    assert flight["scene"] == "random_cylinder:4"
    table = pq.read_table(tmp_path / "flight.parquet")
    status, distance = table["status"].to_numpy(), table["clearance_m"].to_numpy()
    stopped = np.flatnonzero(status == 2)
    assert stopped.size
    assert np.ptp(table["position_x_m"].to_numpy()[stopped]) == 0.0
    radius = max(CARL.body.size)
    assert 0.0 < distance[stopped[-1]] < 1.7 * radius  # a box's corner is farther from the centre than its side
    assert (distance[: stopped[0]] > 0.0).all()
    t = table["t"].to_numpy()[stopped[0]]
    place = np.round([table[f"position_{axis}_m"].to_numpy()[stopped[0]] for axis in "xyz"], 3) + 0.0
    x, y, z = (f"{value:.3g}" for value in place)
    assert flight["cause"].startswith("it hit 'cylinder_")
    assert flight["cause"].endswith(f"' at {t:.2f} s, at ({x}, {y}, {z}) m")
    assert failures(result.summary["flights"]) == [f"collision: {flight['cause']}."]


def test_without_contact_it_flies_through(tmp_path: Path) -> None:
    result = run_fly(FlyConfig(scene="random_cylinder:4", contact="none", out=tmp_path, **QUICK))
    assert (read_flight(tmp_path)[0].status == 0).all()
    assert result.summary["flights"][0]["collisions"] >= 1  # but its centre was inside something


def test_sensors_are_recorded_and_change_no_bit(tmp_path: Path) -> None:
    sensors = ("zones=st_vl53l5cx", "down=lightware_sf11b")
    config = FlyConfig(
        scene="backroom", waypoints=("1.5,0,0.7", "1.5,1,0.7"), sensors=sensors, envs=2, out=tmp_path / "a", **QUICK
    )
    run_fly(config)
    index = pq.read_table(tmp_path / "a" / "sensors" / "zones" / "index.parquet").to_pydict()
    assert set(index["env"]) == {0, 1}
    # 30 Hz on 960 Hz physics: every 32 steps from the start on.
    assert index["step"][:4] in ([0, 0, 32, 32], [0, 32, 64, 96])
    assert all((tmp_path / "a" / "sensors" / "zones" / name).is_file() for name in index["file_range"])
    run_fly(FlyConfig(**{**vars(config), "sensors": (), "out": tmp_path / "b"}))
    assert (tmp_path / "a" / "flight.parquet").read_bytes() == (tmp_path / "b" / "flight.parquet").read_bytes()
    assert refly(tmp_path / "a").equal
    run_fly(FlyConfig(**{**vars(config), "sensors": ()}))
    assert not (tmp_path / "a" / "sensors").exists()  # of the earlier run
    assert read_summary(tmp_path / "a")["flights"][0]["scene"] == "backroom"


@pytest.mark.slow
def test_the_report_shows_the_place(tmp_path: Path) -> None:
    config = FlyConfig(
        scene="obstacle_room:1",
        waypoints=("0,0,0", "1,0,0"),
        sensors=("st_vl53l5cx",),
        vehicle=("carl",),
        hold=0.0,
        out=tmp_path,
    )
    run_fly(config)
    page = (tmp_path / "report.html").read_text()
    assert 'class="place"' in page
    assert "What they saw" in page
    assert "st_vl53l5cx, range, at" in page


def test_a_start_inside_an_obstacle_is_refused(tmp_path: Path) -> None:
    """In the middle of a trunk of this forest; beside it; and without contact it flies."""
    run_fly(FlyConfig(scene="random_cylinder:4", out=tmp_path / "found", **QUICK))
    table, _ = read_flight(tmp_path / "found")
    stopped = np.flatnonzero(table.status == 2)[-1]
    x, y, z = (float(value) for value in table.vector("position")[stopped])
    hit = f"{x + 0.2:.4f},{y:.4f},{z:.4f}"  # a little ahead of where the vehicle met the trunk
    config = FlyConfig(scene="random_cylinder:4", waypoints=(hit, f"{x + 0.2},{y},{z + 3}"), out=tmp_path / "run", **QUICK)
    with pytest.raises(AirworthyError, match=r"^The course starts at \(.*\) m, .* obstacle.*--contact none\.$"):
        run_fly(config)
    assert not (tmp_path / "run").exists()
    ahead = np.linspace(x, x + 0.5, 501)
    at = np.stack((ahead, np.full(501, y), np.full(501, z)), axis=-1)
    gap = clearance(SceneBatch(scene("random_cylinder:4"), 1).geometry, at, env=0).distance
    near = ahead[np.flatnonzero((gap > 0.0) & (gap < min(CARL.body.size) - 2e-3))[0]]
    touching = replace(config, waypoints=(f"{near},{y},{z}", f"{x - 1},{y},{z}"))
    with pytest.raises(AirworthyError, match="nearer than the vehicle is large"):
        run_fly(touching)
    assert run_fly(replace(config, contact="none")).summary["flights"][0]["collisions"] >= 0


def test_empty_air_has_no_floor(tmp_path: Path) -> None:
    """The course is half a metre up; a pilot that lets go falls through z = 0 and on: nothing is there to be hit."""

    class Falling:
        name, level = "falling", "rotor_speed"
        observes: tuple[str, ...] = ()

        def command(self, observation: object) -> list[float]:
            return [0.0] * 4

    config = FlyConfig(waypoints=("0,0,0.5", "1,0,0.5"), out=tmp_path, **{**QUICK, "hold": 3.0})
    (flight,) = run_fly(config, pilot=Falling()).summary["flights"]  # type: ignore[arg-type]
    assert read_flight(tmp_path)[0].vector("position")[:, 2].min() < -5.0
    assert flight["collisions"] == 0
    assert flight["outcome"] == "out_of_bounds"


def test_a_urdf_flies_and_is_flown_again_without_it(tmp_path: Path) -> None:
    links = "".join(
        f'<link name="{k}"/><joint name="j{k}" type="fixed"><parent link="base"/><child link="{k}"/>'
        f'<origin xyz="{0.12 * x} {0.12 * y} 0"/></joint>'
        for k, (x, y) in enumerate([(1, 1), (-1, 1), (-1, -1), (1, -1)])
    )
    inertial = '<inertial><mass value="0.8"/><inertia ixx="0.004" iyy="0.004" izz="0.007"/></inertial>'
    body = '<collision><geometry><sphere radius="0.15"/></geometry></collision>'
    (tmp_path / "quad.urdf").write_text(f'<robot name="quad"><link name="base">{inertial}{body}</link>{links}</robot>')
    rotors = "".join(f'[[rotors]]\nlink = "{k}"\nspin = {(-1) ** k}\n' for k in range(4))
    shared = (
        "thrust = [0, 0, 1.3e-5]\ntorque = [0, 0, 1.5e-7]\nresponse = { rise = [25, 0], fall = [25, 0] }\nspeed_max = 850\n"
    )
    (tmp_path / "rotors.toml").write_text(f'version = 1\nname = "quad"\n[rotor]\n{shared}{rotors}')
    urdf, named = str(tmp_path / "quad.urdf"), str(tmp_path / "rotors.toml")
    config = FlyConfig(**{**QUICK, "vehicle": (urdf,)}, rotors=named, course="line", out=tmp_path / "run")
    assert run_fly(config).summary["flights"][0]["outcome"] == "success"
    (tmp_path / "quad.urdf").unlink()
    assert refly(tmp_path / "run").equal


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("known_free:", "nothing behind a colon: write known_free"),
        ("known_freee", "Closest: 'known_free'"),
        ("mpcc", "Closest: 'mpc'"),
    ],
)
def test_a_word_that_no_pilot_goes_by_is_told_with_planners_in_mind(word: str, says: str) -> None:
    with pytest.raises(AirworthyError, match=says):
        refuse_unknown(word)
    for known in ("known_free", "mpc", "svnet:folder", "avoid:folder", "mine.py:Mine"):
        refuse_unknown(known)
