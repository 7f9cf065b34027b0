"""Sensors of one's own: devices in a TOML file, classes in a Python file, and what is said where one is none."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.scene import mounted_sensors
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.scenes import Instance, Scene, SceneBatch
from airworthy.sensors import Device, Pinhole, RangeLimits, device, device_or_sensor, make_sensor
from airworthy.sensors.own import check_sample, check_sensor, is_own, sampled
from airworthy.simulation import MountedSensors, SensorRecorder, Simulator
from airworthy.vehicles import vehicle

WALL = Scene("wall", {"wall": Box((0.5, 20.0, 20.0))}, instances=(Instance("wall", (3.5, 0.0, 0.0)),))


@pytest.fixture
def folder(repository: Path, tmp_path: Path) -> Path:
    """The page's two files."""
    text = (repository / "docs" / "howto" / "sensors.md").read_text(encoding="utf-8")
    (tmp_path / "sonar.py").write_text(re.findall(r"```python\n(.*?)```", text.partition("### A new kind")[2], re.DOTALL)[0])
    (tmp_path / "mine.toml").write_text(re.findall(r"```toml\n(.*?)```", text.partition("## Adding one")[2], re.DOTALL)[0])
    return tmp_path


def test_a_device_of_ones_own_file_is_one_like_those_of_the_catalogue(folder: Path) -> None:
    found = device_or_sensor(f"{folder / 'mine.toml'}:short_lidar")
    assert isinstance(found, Device)
    assert (found.name, found.kind, found.height, found.width, found.rate) == ("short_lidar", "lidar", 16, 512, 10)
    assert found.limits == RangeLimits(0.3, 25)
    assert device_or_sensor("d435") == device("d435")
    assert make_sensor(found).capture(SceneBatch(WALL, 1), _view())["range"].shape == (1, 16, 512)


def _view() -> Any:
    from airworthy.sensors import SensorView

    return SensorView(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]))


def test_words_of_a_flight_name_files(folder: Path) -> None:
    words = (f"top={folder}/mine.toml:short_lidar:range,points", f"{folder}/sonar.py:Sonar", "d435:rgb")
    found = mounted_sensors(FlyConfig(sensors=words), [vehicle("carl")])
    assert list(found) == ["top", "Sonar", "d435"]
    assert found["top"].resolved().channels == ("range", "points")
    assert found["Sonar"].resolved().kind == "sonar"
    assert not is_own("d435:rgb")


def test_a_class_of_ones_own_is_mounted_sampled_and_recorded(folder: Path) -> None:
    import pyarrow.parquet as pq

    simulator = Simulator(vehicle("carl"), env_count=3)
    sensors = MountedSensors(simulator, SceneBatch(WALL, 3), {"a": f"{folder / 'sonar.py'}:Sonar", "b": "d435"})
    with SensorRecorder(folder, sensors, names=("a",)):
        for _ in range(3):
            simulator.step()
    # The wall's face is at 3 m, the mount 0.1 m before the body.
    np.testing.assert_allclose(sensors.latest("a")["range"], 2.9, atol=1e-3)
    assert sensors.sensor("a").name == "a"
    table = pq.read_table(folder / "sensors" / "a" / "index.parquet").to_pydict()
    assert table["env"] == [0, 1, 2]
    np.testing.assert_allclose(table["range"], 2.9, atol=1e-3)
    assert set(table["valid"][0]) == {1.0}


class Counter:
    """Remembers how many samples each flight had; casts nothing."""

    def __init__(self) -> None:
        self.device = Device("counter", "counter", Pinhole.from_fov(2, 2, horizontal=1.0), rate=100.0)
        self.seen: dict[int, int] = {}

    def capture(self, scene: Any, view: Any, channels: Any = ()) -> dict[str, Any]:
        for env in view.env:
            self.seen[int(env)] = self.seen.get(int(env), 0) + 1
        return {"count": [[self.seen[int(env)]] for env in view.env]}

    def reset(self, env_ids: Any) -> None:
        for env in env_ids:
            self.seen.pop(int(env), None)

    def save(self) -> dict[str, Any]:
        return {"seen": np.array(sorted(self.seen.items()))}

    def restore(self, saved: dict[str, Any]) -> None:
        self.seen = {int(env): int(count) for env, count in saved["seen"]}


def test_one_object_is_mounted_twice_and_its_memory_is_saved() -> None:
    simulator, counter = Simulator(vehicle("carl"), env_count=2), Counter()
    sensors = MountedSensors(simulator, SceneBatch(WALL, 2), {"a": counter, "b": counter})
    assert counter.seen == {}
    assert sensors.sensor("a").number != sensors.sensor("b").number
    snapshot, saved = simulator.save(), sensors.save()
    for _ in range(5):
        simulator.step()
    later = sensors.latest("a")["count"].copy()
    assert later.min() > 1
    simulator.restore(snapshot)
    sensors.restore(saved)
    for _ in range(5):
        simulator.step()
    np.testing.assert_array_equal(sensors.latest("a")["count"], later)
    simulator.reset([1])
    assert sensors.latest("a")["count"].ravel().tolist() == [later[0, 0], 1]


@pytest.mark.parametrize(
    ("text", "word", "message"),
    [
        ("x = 1", "own.py:Sonar", r"own\.py' has no class 'Sonar'"),
        ("x = 1", "own.py", r"has no class '': write FILE\.py:CLASS"),
        ("x = 1 / 0", "own.py:A", r"cannot be imported: ZeroDivisionError: division by zero \(own\.py, line 1\)\.$"),
        ("x = 1\ny = = 2", "own.py:A", r"cannot be imported: SyntaxError: invalid syntax \(own\.py, line 2\)\.$"),
        ("class A:\n    def __init__(self, x): ...", "own.py:A", r"A\(\) failed, which is built without arguments: TypeError"),
        ("class A: ...", "own.py:A", r"which lacks `device`"),
        ("", "none.py:A", r"There is no file"),
        ("[a]\nkind = 'lidar'", "own.toml:b", r"Unknown device of '.*own\.toml' 'b'.*Known: a\."),
        ("[a]\nkind = 'sonar'", "own.toml:a", r"own\.toml': Unknown kind of sensor 'sonar'"),
        ("[a]\nkind = 'lidar'\nprojection = {model = 'spherical', width = 4, height = 2}\nlimits = {minimum = 'x'}",
         "own.toml:a", r"own\.toml': .*minimum is 'x'"),
        ("[a]\nkind = 'lidar'\nprojection = 3", "own.toml:a", r"the device 'a' cannot be used: TypeError"),
        ("a = [", "own.toml:a", r"not valid TOML"),
    ],
)  # fmt: skip
def test_mistakes_in_files_are_one_sentence(tmp_path: Path, text: str, word: str, message: str) -> None:
    (tmp_path / word.partition(":")[0].replace("none", "own")).write_text(text)
    with pytest.raises(AirworthyError, match=message):
        device_or_sensor(str(tmp_path / word))


def test_a_class_that_breaks_the_contract_is_named() -> None:
    item = Device("x", "x", Pinhole.from_fov(2, 2, horizontal=1.0))
    with pytest.raises(AirworthyError, match=r"'SimpleNamespace', which lacks capture\(scene, view, channels\)"):
        check_sensor(SimpleNamespace(device=item), "s")
    with pytest.raises(AirworthyError, match="which lacks save, which goes with reset, save, restore"):
        check_sensor(SimpleNamespace(device=item, capture=print, reset=print), "s")
    for data, message in (
        (3, "gave int; expected arrays by the names"),
        ({"range": np.zeros((2, 1))}, r"gave 'range' as float64 of shape \(2, 1\); expected numbers of shape \(1, \.\.\.\)"),
        ({"range": np.zeros(1)}, r"a row per view with at least one number in it"),
        ({"name": [["a"]]}, r"gave 'name' as <U1"),
        ({"range": [[1.0], [1.0, 2.0]]}, "gave no arrays: ValueError"),
    ):
        with pytest.raises(AirworthyError, match=message):
            check_sample(data, 1, "s")
    broken: Any = SimpleNamespace(device=item, name="s", number=1, capture=lambda scene, view: 1 / 0)
    with pytest.raises(AirworthyError, match="Sensor 's' failed in capture: ZeroDivisionError"):
        sampled(broken, None, _view(), "s")


def test_a_kind_of_ones_own_has_no_sensor_here_and_objects_are_no_words() -> None:
    with pytest.raises(AirworthyError, match=r"Unknown kind of sensor 'sonar'.*mount the sensor, not its device"):
        make_sensor(device("d435").variant(kind="sonar"))
    for sensors in ([device("d435")], {"a": device("d435")}, Counter()):
        with pytest.raises(AirworthyError, match=r"`sensors` of a flight are words, and one is a \w+: name a device"):
            aw.fly(sensors=sensors)


def test_what_lies_beside_a_sensor_s_file_is_imported_as_it_is_now(tmp_path: Path) -> None:
    """An edited module beside the file makes another sensor; two files' modules of one name are each file's own."""
    source = (
        "from airworthy.sensors import device\nfrom reach_of_mine import REACH\n\n\nclass Mine:\n"
        "    device, reach = device('st_vl53l5cx'), REACH\n\n"
        "    def capture(self, scene, view, channels=None):\n        return {}\n"
    )
    for folder, reach in (("a", 1), ("b", 2), ("a", 3)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "own.py").write_text(source)
        (tmp_path / folder / "reach_of_mine.py").write_text(f"REACH = {reach}\n")
        made: Any = device_or_sensor(f"{tmp_path / folder / 'own.py'}:Mine")
        assert made.reach == reach
