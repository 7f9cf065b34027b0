"""What checks of places, sensors, splats and damaged files feed to what they check, and how they judge: values, bars."""

# ruff: noqa: PLW0108 - functions are looked up when they are called, since names of their modules are replaced.

from __future__ import annotations

import copy
import dataclasses
import json
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot
from tests.verification.conftest import Compare

import airworthy.verification.damaged_files as damaged_files
import airworthy.verification.scenes as scenes
import airworthy.verification.sensors as sensors
import airworthy.verification.splats as splats
from airworthy.core.errors import AssetError
from airworthy.scenes.generators.flyingtrust import layout_of

SNAPSHOTS = Path(__file__).parent / "snapshots" / "places.txt"
MODULES = (damaged_files, scenes, sensors, splats)
CASES: dict[str, Callable[[], Any]] = {
    "beacons": lambda: sensors._beacons(),
    "ranger": lambda: sensors._ranger(2000),
    "focal length": lambda: sensors._focal_length(),
    "lenses": lambda: sensors.lens_figures(50),
    "stereo": lambda: sensors._stereo(),
    "lidar": lambda: sensors._lidar(),
    "noise": lambda: sensors._noise(2000),
    "stamps": lambda: sensors._stamps(),
    "memory": lambda: iter([sensors._memory()]),
    "damaged splats": lambda: splats._damaged(10),
    "twin of splats": lambda: splats._against_twin(range(2)),
    "order of splats": lambda: iter([splats._order()]),
    "derivatives of splats": lambda: splats._derivatives(),
    "clearance": lambda: iter([scenes.clearance_figure("mid_gate", "robustness")]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_and_judged(case: str, compare: Compare) -> None:
    compare("places.txt", case, MODULES, CASES[case], unsteady="Slowest", leave_out=("exact_step",))


@pytest.mark.parametrize("name", list(scenes._OF))
def test_ranges_of_a_scenario(name: str) -> None:
    """Everything that is stated of its third configuration, with the value that is found, and that none is broken."""
    plan = layout_of(name, 3)
    stated = list(scenes._stated(plan, 3))
    told = [(what, np.array([value, low, min(high, 1e9)], float)) for what, value, low, high in stated]
    whats = list(dict.fromkeys(what for what, _ in told))
    values = {what: np.array([row for other, row in told if other == what]) for what in whats}
    check_snapshot(SNAPSHOTS, values, rtol=1e-6, of_means=1e-6, part=f"scenario {name}")
    assert scenes.violations(plan, 3) == []


@pytest.mark.parametrize(("by", "wrong"), [(0.0, False), (0.9e-6, False), (1.1e-6, True)])
def test_a_number_out_of_its_range_by_more_than_a_hair_is_told(by: float, wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    plan: Any = SimpleNamespace(scenario="forest")
    for value in (2.0 + by, 1.0 - by):
        monkeypatch.setattr(scenes, "_stated", lambda plan, index, value=value: iter([("width", value, 1.0, 2.0)]))
        said = [f"forest:4: width is {value:g}, stated 1 to 2"] if wrong else []
        assert scenes.violations(plan, 4) == said


@pytest.mark.parametrize(
    ("name", "free", "aim", "passed"),
    [
        ("forest", 0, "1 to 2", False),
        ("forest", 1, "1 to 2", True),
        ("forest", 2, "1 to 2", True),
        ("forest", 3, "1 to 2", False),
        ("narrow_gap", 1, "1", True),
        ("narrow_gap", 2, "1", False),
        ("maze", 0, "0", True),
        ("maze", 1, "0", False),
    ],
)
def test_straight_flights_that_arrive(name: str, free: int, aim: str, passed: bool) -> None:
    figure = scenes.straight_figure(name, [True] * free + [False] * (10 - free))
    assert (figure.measured, figure.aim, figure.passed) == (float(free), aim, passed)


def test_configurations_without_a_way_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "_plans", lambda name: tuple((name, k) for k in range(1, 11)))
    monkeypatch.setattr(scenes, "solvable", lambda plan: np.inf if plan in (("maze", 10), ("urban", 2)) else 3.0)
    some, every = scenes._solved((1, 10)), scenes._solved(tuple(range(1, 11)))
    assert (some.measured, every.measured) == (1.0, 2.0)
    assert some.name.endswith("0.1 m grid, configurations 1 and 10 (14)")
    assert every.name.endswith("0.1 m grid, all (70)")


@pytest.mark.parametrize(("least", "passed"), [(0.35, True), (0.3499, False)])
def test_courses_keep_clear_of_their_halls(least: float, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def clearance(geometry: Any, points: Any, env: Any) -> Any:
        asked.append((points, env))
        return SimpleNamespace(distance=np.array([least, 9.0]))

    monkeypatch.setattr(scenes, "clearance", clearance)
    figure = scenes.clearance_figure("mid_gate", "robustness")
    assert (figure.measured, figure.passed) == (least, passed)
    (points, env), path = asked[0], scenes.course("robustness").trajectory()
    np.testing.assert_allclose(points, path.sample(np.linspace(0.0, path.duration, 4001)).position)
    assert not env.any()


@pytest.mark.parametrize(("shared", "passed"), [(981, True), (980, False)])
def test_exported_clouds_and_meshes_share_their_cells(shared: int, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    cloud, mesh = np.arange(1200) < 1000, np.arange(1200) < shared
    monkeypatch.setattr(scenes, "cloud_cells", lambda path, low, high: asked.append((path, low, high)) or cloud)
    monkeypatch.setattr(scenes, "mesh_cells", lambda path, low, high: mesh)
    monkeypatch.setattr(scenes, "write_pcd", lambda path, points: path)
    monkeypatch.setattr(scenes, "export_scene", lambda place, path: path)
    monkeypatch.setattr(scenes, "sample_points", lambda place, cell, inside: (cell, inside))
    figure = scenes._export("sudden_drop")
    assert (figure.measured, figure.passed) == (pytest.approx(shared / 10.0), passed)
    (_, low, high), bounds = asked[0], scenes.scene("sudden_drop:2").bounds
    np.testing.assert_allclose(high, [np.floor(bounds.upper[0]), 6.0, bounds.upper[2]])
    np.testing.assert_allclose(low, [-high[0], -6.0, 0.0])


def test_cells_of_clouds_and_meshes(tmp_path: Any) -> None:
    from airworthy.geometry import Box
    from airworthy.scenes import Instance, Scene

    low, high = np.array([-1.0, -0.5, 0.0]), np.array([1.0, 0.5, 1.0])
    points = np.array(
        [[-0.95, -0.45, 0.05], [0.95, 0.45, 0.95], [-0.95, -0.45, 0.07], [1.05, 0.0, 0.5], [0.0, -0.55, 0.5], [0.0, 0.0, -0.05]]
    )
    cells = scenes.cloud_cells(scenes.write_pcd(tmp_path / "a.pcd", points), low, high)
    assert cells.shape == (20, 10, 10)
    assert np.argwhere(cells).tolist() == [[0, 0, 0], [19, 9, 9]]
    place = Scene("box", {"box": Box((0.25, 0.15, 0.2))}, instances=(Instance("box", (0.3, 0.0, 0.4), scale=1.0),))
    found = scenes.mesh_cells(scenes.export_scene(place, tmp_path / "mesh.ply"), low, high)
    middles = low + 0.1 * (np.argwhere(np.ones(found.shape, bool)) + 0.5)
    inside = (np.abs(middles - [0.3, 0.0, 0.4]) < [0.25, 0.15, 0.2]).all(axis=1).reshape(found.shape)
    assert found[inside].all()
    near = (np.abs(middles - [0.3, 0.0, 0.4]) < np.array([0.25, 0.15, 0.2]) + 0.101).all(axis=1).reshape(found.shape)
    assert not found[~near].any()


@pytest.mark.parametrize("name", list(scenes._SAME))
def test_other_bytes_in_another_process_are_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {name: f"{k:064d}" for k, name in enumerate(scenes._SAME)}
    lines = [digest if other != name else "f" * 64 for other, digest in digests.items()]
    monkeypatch.setattr(scenes, "scene", lambda name: name)
    monkeypatch.setattr(scenes, "scene_digest", lambda name: digests[name])
    done = SimpleNamespace(stdout="\n".join(["a note", *lines]))
    monkeypatch.setattr(scenes.subprocess, "run", lambda *_, **__: done)
    assert scenes._bytes().measured == 1.0
    done.stdout = "\n".join(lines[1:])
    assert scenes._bytes().measured == float(len(lines))
    done.stdout = "\n".join(digests.values())
    assert scenes._bytes().passed


# ---- sensors ----------------------------------------------------------------------------------------------------------------


def test_instants_of_samples_in_whole_numbers() -> None:
    assert [sensors.exact_step(k, 7.0, 960.0) for k in (0, 1, 7, 8)] == [0, 138, 960, 1098]
    assert [sensors.exact_step(k, 400.0 / 3.0, 960.0) for k in (1, 5, 10)] == [8, 36, 72]
    assert sensors.exact_step(3, 960.0, 960.0) == 3


def test_a_sample_that_comes_late_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = sensors.exact_step
    monkeypatch.setattr(sensors, "exact_step", lambda k, rate, physics: plain(k, rate, physics) + (k == 3 and rate == 24.0))
    clocks, flights = sensors._stamps()
    assert (clocks.measured, flights.measured) == (1.0, 1.0)
    monkeypatch.setattr(sensors, "exact_step", lambda k, rate, physics: plain(k, rate, physics) + 10**6 * (k > 2))
    assert sensors._flown_stamps(60) >= 500  # as far off as can be


@pytest.mark.parametrize(("taken", "passed"), [(2.0e9, True), (2.0001e9, False)])
def test_memory_of_a_camera_has_a_bar(taken: float, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensors, "memory", lambda batch, camera: {"a": taken - 1e9, "b": 1e9})
    monkeypatch.setattr(sensors, "SceneBatch", lambda place: place)
    monkeypatch.setattr(sensors, "scene", lambda name: name)
    assert sensors._memory().passed is passed


@pytest.mark.parametrize("lens", list(sensors.LENSES))
def test_lenses_by_other_formulas(lens: str) -> None:
    """Pixels of the check's own equations, beside Brown's and Kannala's models written out once more."""
    item = sensors.LENSES[lens]
    rays = np.random.default_rng(1).uniform((-0.5, -0.4, 1.0), (0.5, 0.4, 2.0), (40, 3))
    u, v = sensors._pixel(item, rays).T
    x, y = (rays[:, :2] / rays[:, 2:]).T
    r = np.hypot(x, y)
    if lens == "fisheye":
        k = item.polynomial  # type: ignore[union-attr]
        names = [getattr(k, name) for name in k.__dataclass_fields__]
        theta = np.arctan(r)
        bent = theta * (1 + sum(c * theta ** (2 * n + 2) for n, c in enumerate(names)))
        a, b = bent * x / r, bent * y / r
    else:
        k1, k2, p1, p2, k3 = sensors.astuple(item.distortion)  # type: ignore[union-attr]
        radial = 1 + k1 * r**2 + k2 * r**4 + k3 * r**6
        a = x * radial + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2)
        b = y * radial + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y
    np.testing.assert_allclose(u, item.fx * a + item.cx, rtol=1e-12)
    np.testing.assert_allclose(v, item.fy * b + item.cy, rtol=1e-12)


# ---- splats -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "passed"),
    [(0.999e-3, [True, True]), (1.001e-3, [False, True]), (3.162e-3, [False, True]), (3.163e-3, [False, False])],
)
def test_images_of_splats_have_two_bars(level: float, passed: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean error of a thousandth; 50 dB, a root mean square of 10^-2.5."""
    monkeypatch.setattr(splats, "_ours", lambda cloud, camera: np.full((2, 2, 3), level))
    monkeypatch.setattr(splats.twin, "render", lambda cloud, *camera: {"rgb": np.zeros((2, 2, 3))})
    found = list(splats._compared(iter([(None, ()), (None, ())]), "made up"))  # type: ignore[list-item]
    assert [figure.passed for figure in found] == passed
    assert found[1].measured == pytest.approx(-20.0 * np.log10(level))


def test_the_worst_image_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = iter([1e-4, 2e-3, 1e-5])
    monkeypatch.setattr(splats, "_ours", lambda cloud, camera: np.full((2, 2, 3), next(levels)))
    monkeypatch.setattr(splats.twin, "render", lambda cloud, *camera: {"rgb": np.zeros((2, 2, 3))})
    mean, psnr = splats._compared(iter([(None, ())] * 3), "made up")  # type: ignore[list-item]
    assert mean.measured == pytest.approx(2e-3)
    assert psnr.measured == pytest.approx(-20.0 * np.log10(2e-3))


def test_what_is_sound() -> None:
    good = splats._cloud(np.random.default_rng(1), 3, 1)
    assert splats._sound(good)
    for name, value in (("position", np.nan), ("scale", 0.0), ("scale", np.inf), ("harmonics", np.nan), ("opacity", np.nan)):
        values = np.array(getattr(good, name), float)
        values.reshape(-1)[0] = value
        fields = {key: getattr(good, key) for key in ("position", "rotation", "scale", "opacity", "harmonics")}
        assert not splats._sound(SimpleNamespace(**{**fields, name: values}))  # type: ignore[arg-type]
    assert good.harmonics.shape == (3, 4, 3)


def test_containers_off_what_is_stated_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    asked: list[Any] = []

    class Cloud:
        def __init__(self, count: int, points: Any):
            self.count, self.position = count, np.array(points, float)

        def __len__(self) -> int:
            return self.count

    def read(path: Any, level: int | None = None, up: str = "y") -> Any:
        name = str(path).split(f"{tmp_path.name}/")[1]
        asked.append((name, level, up))
        count = splats.ROBOT_LEVELS[level] if level is not None else splats.FILES.get(name, 3)
        low, high, mean = (np.array(part) for part in splats.ANGEL.get(name, ((0.0,) * 3,) * 3))
        # Between the ends lie ten points more, where the mean asks for them.
        inner = np.tile((12.0 * mean - low - high) / 10.0, (10, 1))
        points = np.vstack([low, high, inner]) if up == "z" else np.full((3, 3), 1e-4 * name.endswith(".spz"))
        return SimpleNamespace(splats=Cloud(count + (name == "guitar.compressed.ply"), points))

    monkeypatch.setattr(splats, "read_splats", read)
    counts, bounds, formats = splats._containers(tmp_path)
    assert (counts.measured, counts.passed) == (1.0, False)
    assert bounds.measured == pytest.approx(0.0, abs=1e-9)
    assert formats.measured == pytest.approx(0.1)
    assert formats.passed
    assert {level for _, level, _ in asked} == {None, *splats.ROBOT_LEVELS}


@pytest.mark.parametrize(
    ("error", "depth", "size", "passed"), [(0.0251, 0.02, 6.0, [True] * 3), (0.0252, 0.0201, 6.01, [False] * 3)]
)
def test_the_hall_has_three_bars(
    error: float, depth: float, size: float, passed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    class Renderer:
        def __init__(self, cloud: Any):
            pass

        def render(self, *given: Any, **named: Any) -> Any:
            asked["render"] = given
            return {"rgb": np.zeros((len(given[-1]), 4, 4, 3))}

    class View:
        def render(self, renderer: Any, position: Any, attitude: Any, channels: Any) -> Any:
            made = np.zeros((len(position), 4, 4, 3))
            made[-1] = error
            made[0, 0, 0, 0] = -5.0  # clipped
            return {"rgb": made}

        def of(self, whole: Any) -> Any:
            return whole

    def free(batch: Any, count: int, first: int) -> Any:
        asked["free"] = (count, first)
        return np.zeros((count, 3)), np.zeros((count, 4))

    def far(renderer: Any, batch: Any, views: Any) -> Any:
        asked["lens"] = views.lens if hasattr(views, "lens") else None
        return SimpleNamespace(median=depth)

    made = {"SplatRenderer": Renderer, "PolicyView": View, "free_poses": free, "depth_error": far, "hall_splats": dict}
    made |= {"SceneBatch": lambda place: place, "hall": dict, "hall_recipe": lambda: {"measured": {"bytes": 1e6 * size}}}
    for name, stand_in in made.items():
        monkeypatch.setattr(splats, name, stand_in)
    assert [figure.passed for figure in splats._hall(False)] == passed
    assert asked["free"] == (6, splats.HELD_OUT)
    list(splats._hall(True))
    assert asked["free"] == (20, splats.HELD_OUT)


# ---- damaged files ----------------------------------------------------------------------------------------------------------


def test_files_are_damaged_in_a_way_that_a_seed_repeats(tmp_path: Path) -> None:
    """Sixty damages each of a text and of a binary file with JSON in it, to the byte."""
    tree = json.dumps({"asset": {"version": "2.0"}, "nodes": [{"mesh": 0}, {"mesh": 1}], "list": [1, 2.5, "x"]}).encode()
    tree += b" " * (-len(tree) % 4)
    body = struct.pack("<I4s", 8, b"BIN\0") + bytes(range(8))
    binary = struct.pack("<4s4I", b"glTF", 2, 20 + len(tree) + len(body), len(tree), 0x4E4F534A) + tree + body
    text = b"v 0.5 1 -2\nv 1e3 0 0\nvt 0 1\nf 1/1 2/1 3/1\nusemtl skin\n" * 3
    cloud = b"# .PCD v0.7\nFIELDS x y z\nPOINTS 4\nDATA ascii\n0 0 0\n1 0 0.5\n" * 2
    for name, whole in (("text", text), ("glb", binary), ("cloud", cloud)):
        rng = np.random.default_rng(5)
        made = [np.frombuffer(damaged_files.damaged(whole, rng), np.uint8) for _ in range(60)]
        values = {"sizes": np.array([len(data) for data in made]), "bytes": np.concatenate(made)}
        check_snapshot(SNAPSHOTS, values, part=f"damaged {name}")
        assert len({data.tobytes() for data in made}) > 50
    for name in damaged_files.FORMATS:
        path = tmp_path / ("seed.obj" if name == "mtl" else f"seed.{name}")
        damaged_files._write(path, name)
        reader = damaged_files.read_points if name in ("pcd", "cloud.ply") else damaged_files.read_model
        found = reader(path)
        assert damaged_files._sound(found)
        if reader is damaged_files.read_points:
            assert len(found.positions) == 16
        else:
            assert [len(mesh.faces) for mesh in found.shapes.values()] == [4]


def test_what_a_reader_does_is_loaded_refused_or_broken(tmp_path: Path) -> None:
    def raises(error: Exception) -> Any:
        def reader(path: Path) -> Any:
            raise error

        return reader

    def outcome(reader: Any, sound: Any = lambda found: True) -> str:
        return damaged_files.read_outcome(reader, tmp_path, sound)

    assert outcome(lambda path: 1) == "loaded"
    assert outcome(lambda path: 1, lambda found: False) == "broken"
    assert outcome(raises(AssetError("A sentence."))) == "refused"
    for text in ("No sentence", "Two\nlines.", "x" * 699 + "."):
        assert outcome(raises(AssetError(text))) == "broken"
    assert outcome(raises(AssetError("x" * 698 + "."))) == "refused"
    assert outcome(raises(KeyError("x"))) == "broken"
    assert outcome(lambda path: warnings.warn("old", DeprecationWarning, stacklevel=1)) == "broken"


def test_damaged_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = tmp_path / "a.bin", []
    path.write_bytes(b"whole")
    monkeypatch.setattr(damaged_files, "damaged", lambda whole, rng: whole + str(len(read)).encode())
    ticks = iter([0.0, 1.0, 10.0, 12.0, 20.0, 22.5, 30.0, 31.5])
    monkeypatch.setattr(damaged_files.time, "perf_counter", lambda: next(ticks))

    def reader(path: Path) -> Any:
        read.append(path.read_bytes())
        if len(read) == 2:
            raise AssetError("Refused.")
        return len(read)

    found = damaged_files.damage_outcome(path, reader, lambda number: number != 4, 4, np.random.default_rng(0))
    # The third takes 2.5 s, the fourth is not sound.
    assert found == (2, 2.5, 2)
    assert read == [b"whole0", b"whole1", b"whole2", b"whole3"]


def test_what_was_loaded_is_sound_where_its_numbers_are(tmp_path: Path) -> None:
    damaged_files._write(tmp_path / "a.glb", "glb")
    model = damaged_files.read_model(tmp_path / "a.glb")
    (name, mesh), (item,) = next(iter(model.shapes.items())), model.instances
    assert damaged_files._sound(model)
    for field in ("vertices", "normals", "uv", "colors"):
        assert getattr(mesh, field) is not None
        spoilt = copy.copy(mesh)
        values = np.array(getattr(mesh, field))
        values[-1, 0] = np.inf
        object.__setattr__(spoilt, field, values)
        assert not damaged_files._sound(dataclasses.replace(model, shapes={name: spoilt}))
    for other in (dataclasses.replace(item, shape="gone"), dataclasses.replace(item, materials=("gone",))):
        assert not damaged_files._sound(dataclasses.replace(model, instances=(other,)))
    assert not damaged_files._sound(damaged_files.Points(np.array([[0.0, np.nan, 0.0]]), None))
