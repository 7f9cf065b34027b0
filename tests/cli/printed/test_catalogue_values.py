"""What commands of catalogues list, show, check and write, for a few entries: `vehicles`, `courses`, `scenes`, `sensors`."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot
from tests.fixtures.transcripts import Transcript

from airworthy.benchmarks import step_tests
from airworthy.cli import courses, scenes, sensors, vehicles
from airworthy.cli.learning import tasks
from airworthy.cli.scenes import pictures as scene_pictures
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.scenes import Scene
from airworthy.scenes.viewpoints import Viewpoint
from airworthy.trajectories import course
from airworthy.trajectories.course_file import write_course
from airworthy.vehicles import Indicators, indicators, vehicle, write_vehicle

FILES = Path(__file__).parent / "snapshots" / "catalogue"
Patch = pytest.MonkeyPatch


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Patch) -> Transcript:
    monkeypatch.chdir(tmp_path)
    return Transcript(capsys, {str(tmp_path): "HERE"})


# ---- vehicles ---------------------------------------------------------------------------------------------------------------

VEHICLES = ("carl", "cf2x_L250", "flightgoggles", "real_01", "tinyprop")


def test_vehicles(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(vehicles, "vehicle_names", lambda: VEHICLES)
    monkeypatch.setattr(vehicles, "vehicle_text", lambda record: f"TEXT of {record.name}\n")
    for words in ("", "list --json", *(f"show {name}" for name in VEHICLES)):
        told.run(f"vehicles {words}", lambda words=words: vehicles.main(words.split()))
    told.check(FILES / "vehicles.txt")


def test_vehicles_as_json(told: Transcript) -> None:
    carl = vehicle("carl")
    heavy = dataclasses.replace(carl, mass=50.0, name="heavy")
    for record in (carl, vehicle("virt_05"), heavy):
        told.run(record.name, lambda record=record: (vehicles._summary(record), vehicles._hover(record)))
        told.run(f"{record.name}, in words", lambda record=record: vehicles._hover_text(record))
    told.check(FILES / "vehicle_summaries.txt")


URDF = """<robot name="two">
<link name="base"><inertial>
<mass value="1.25"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<link name="arm"><inertial>
<mass value="0.5"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1"
 velocity="1"/></joint>
</robot>
"""


def test_vehicle_files(told: Transcript) -> None:
    carl = vehicle("carl")
    longer = tuple(dataclasses.replace(rotor, position=tuple(250.0 * x for x in rotor.position)) for rotor in carl.rotors)
    turning = tuple(dataclasses.replace(rotor, spin=1) for rotor in carl.rotors)
    for name, record in (
        ("good", carl),
        ("heavy", dataclasses.replace(carl, mass=50.0)),
        ("long", dataclasses.replace(carl, rotors=longer)),
        ("turning", dataclasses.replace(carl, rotors=turning)),
        ("unsourced", dataclasses.replace(carl, sources={})),
    ):
        write_vehicle(dataclasses.replace(record, name=name), Path(f"{name}.toml"))
        told.run(f"validate {name}", lambda name=name: vehicles.main(["validate", f"{name}.toml"]))
    Path("two.URDF").write_text(URDF)
    for words in ("two.URDF", "good.toml --rotors good.toml", "nowhere.toml"):
        told.run(f"validate {words}", lambda words=words: vehicles.main(["validate", *words.split()]))
    told.check(FILES / "vehicle_files.txt")


def test_vehicles_are_measured(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(vehicles, "vehicle_names", lambda: ["virt_05", "carl"])

    def measured(records: Any) -> list[Indicators]:
        rising = (indicators(record, from_rest=False) for record in records)
        return [Indicators(v.thrust_to_weight * 1.01, v.alpha_xy_max * 0.97, v.alpha_z_max * 1.02) for v in rising]

    monkeypatch.setattr(step_tests, "measured_indicators", measured)
    for words in ("", "real_01", "carl --json", "carl virt_05"):
        told.run(f"measure {words}", lambda words=words: vehicles.main(["measure", *words.split()]))
    told.run("percent", lambda: [vehicles._percent(*pair) for pair in ((3.0, 2.0), (3.0, 0.0), (3.0, np.inf), (1.0, 4.0))])
    for numbers in ([], [None], [1.239, -2.345, None], [-0.001, 0.0], [2.0, -1.0]):
        told.run(f"worst of {numbers}", lambda numbers=numbers: vehicles._worst(numbers))
    told.check(FILES / "measured.txt")


def test_vehicles_are_synthesized(told: Transcript, monkeypatch: Patch) -> None:
    made = dataclasses.replace(vehicle("carl"), name="other")
    monkeypatch.setattr(vehicles, "synthesize", told.fake("synthesize", made))
    monkeypatch.setattr(vehicles, "write_vehicle", lambda record, path: told.fake("write_vehicle")(record.name, path))
    monkeypatch.setattr(vehicles, "_named", lambda name: f"the vehicle {name}")
    for words in ("--omega-scale 1.5 --no-fly", ""):
        line = f"synthesize --base carl --mass 2.5 --arm 0.25 --out there/other.toml {words}"
        told.run(line, lambda line=line: vehicles.main(line.split()))
    told.check(FILES / "synthesized.txt")


# ---- courses ----------------------------------------------------------------------------------------------------------------


def test_courses(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(courses, "course_names", lambda: ["hover", "line", "robustness"])
    for words in ("", "list --json", "show hover", "show robustness", "show line --json", "show nowhere/x.json"):
        told.run(f"courses {words}", lambda words=words: courses.main(words.split()))
    write_course(course("line"), Path("line.json"))
    write_course(dataclasses.replace(course("line"), source="", name="bare"), Path("bare.json"))
    for words in ("validate line.json", "validate bare.json", "validate nothing.json"):
        told.run(f"courses {words}", lambda words=words: courses.main(words.split()))
    path = course("line").trajectory()
    for count in (100, 101):
        many = SimpleNamespace(waypoints=["here"] * count, kind="waypoints", name="many", source="x")
        many.trajectory = lambda: path
        monkeypatch.setattr(courses, "read_course", lambda file, many=many: many)
        told.run(f"{count} way-points", lambda: courses.main(["validate", "many.json"]))
    for value in (1.23456789, "x", [1.0, 2.34567], 3):
        told.run(f"shown {value}", lambda value=value: courses._shown(value))
    told.check(FILES / "courses.txt")


@dataclasses.dataclass(frozen=True)
class Hold:
    """Hold a place,
    come what may.

    More of it.
    """

    name: str = "hold"
    vehicle: str = "carl"
    rate: float = 50.0
    episode_steps: int = 30
    spread: tuple[float, ...] = (0.5, 1.25)


class Drift:
    name, vehicle, rate, episode_steps = "drift", "tinyprop", 12.5, 7


def test_tasks(told: Transcript, monkeypatch: Patch) -> None:
    known: dict[str, Any] = {"hold": Hold(), "drift": Drift()}
    traits = {
        "hold": SimpleNamespace(level="velocity", curriculum=None),
        "drift": SimpleNamespace(level="rotor_speed", curriculum=1),
    }
    monkeypatch.setattr(tasks, "learning_tasks", lambda: list(known))
    monkeypatch.setattr(tasks, "NAVIGATION_TASKS", {})
    monkeypatch.setattr(tasks, "learning_task", known.__getitem__)
    monkeypatch.setattr(tasks, "traits_of", lambda task: traits[task.name])
    formulas = {
        "hold": tasks.RewardFormulas({"crash": "-1", "place": "a b"}, {}, "d > 2", "d < 1", {"a": "1 - d"}, {"E(x)": "exp(-x)"})
    }
    monkeypatch.setattr(tasks, "reward_terms", lambda task: ("place",))
    monkeypatch.setattr(tasks, "reward_formulas", lambda task, terms: formulas.get(task.name))
    for words in ("", "--json", "show hold", "show hold --json", "show drift", "show drift --json"):
        told.run(f"tasks {words}", lambda words=words: tasks.main(words.split()))
    for value in (SimpleNamespace, object(), Indicators, Indicators(1.0, 2.0, 3.0)):
        told.run(f"options of a {type(value).__name__}", lambda value=value: tasks._options(value))
    told.check(FILES / "tasks.txt")


# ---- sensors ----------------------------------------------------------------------------------------------------------------


SENSORS = (
    *("base_depth_camera", "base_lidar", "d435", "flightgoggles_beacons", "generic_radar", "lightware_sf11b"),
    *("oak_d_datasheet", "pmd_flexx2"),
)
"""One of each kind."""


def test_sensors(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sensors, "device_names", lambda: SENSORS)
    monkeypatch.setattr(sensors, "rig_names", lambda: ["flightgoggles_race"])
    for words in ("", "list --json", "--kind lidar", "--kind lidr", *(f"show {name}" for name in SENSORS)):
        told.run(f"sensors {words}", lambda words=words: sensors.main(words.split()))
    for words in ("show flightgoggles_race", "show d435 --json", "show flightgoggles_race --json"):
        told.run(f"sensors {words}", lambda words=words: sensors.main(words.split()))
    for value in ({"a": 1.23456789, "b": None}, [1, 2.5], None, float("inf"), "x", True, 7):
        told.run(f"{value}", lambda value=value: (sensors._shown(value), sensors._plain(value)))
    told.run("plain", lambda: sensors._plain({"a": np.array([1.0, np.inf]), "b": (1, float("nan"), "c")}))
    told.check(FILES / "sensors.txt")


def test_the_gallery(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.reports import gallery

    monkeypatch.setattr(gallery, "write_gallery", told.fake("write_gallery", Path("out/gallery.html")))
    for words in ("", "--scene forest --scan x.ply --no-bake --seed 3 --out there", "--json"):
        told.run(f"gallery {words}", lambda words=words: sensors.main(["gallery", *words.split()]))
    told.check(FILES / "gallery.txt")


# ---- scenes -----------------------------------------------------------------------------------------------------------------


def yard() -> Scene:
    """What `airworthy scenes new` writes, with two courses, read again."""
    if not Path("yard/scene.toml").exists():
        assert scenes.main(["new", "yard"]) == 0
        path = Path("yard/scene.toml")
        path.write_text(path.read_text().replace("version = 1", 'version = 1\ncourses = ["hover", "line"]', 1))
    return scenes.scene("yard")


def test_scenes_are_started(told: Transcript) -> None:
    for words in ("yard", "yard", "a/b/my scene!.toml", "x.y", "scene.toml"):
        told.run(f"new {words}", lambda words=words: scenes.main(["new", words]))
    names = [path.read_text().split('name = "')[1].split('"')[0] for path in sorted(Path().rglob("*.toml"))]
    told.run("names", lambda: [str(path) for path in sorted(Path().rglob("*.toml"))] + names)
    told.check(FILES / "started.txt")


def test_scenes(told: Transcript, monkeypatch: Patch) -> None:
    item = yard()
    monkeypatch.setattr(scenes, "scene_generators", lambda: {"forest": None, "hall": None})
    for words in ("", "list --json"):
        told.run(f"scenes {words}", lambda words=words: scenes.main(words.split()))

    def found(*given: Any, **named: Any) -> Scene:
        told.fake("scene")(*given, **named)
        for text in ("It lost a.", "It lost b", "It lost a."):
            warnings.warn(text, AssetWarning, stacklevel=1)
        warnings.simplefilter("always")  # until what records them ends
        warnings.warn("other", UserWarning, stacklevel=1)
        return item

    monkeypatch.setattr(scenes, "scene", found)
    for words in ("yard", "yard --json", "yard --units cm --up -y --voxel 0.5 --recentre", "yard --keep-frame"):
        told.run(f"show {words}", lambda words=words: scenes.main(["show", *words.split()]))
    told.run("show yard both", lambda: scenes.main(["show", "yard", "--recentre", "--keep-frame"]))
    for words in ("yard", "yard --json"):
        told.run(f"validate {words}", lambda words=words: scenes.main(["validate", *words.split()]))
    inside = dataclasses.replace(item, start=dataclasses.replace(item.start, position=(1.0, 2.0, 0.5)))
    monkeypatch.setattr(scenes, "scene", lambda *_, **__: inside)
    for words in ("validate yard", "validate yard --json", "show yard"):
        told.run(f"{words}, a start inside", lambda words=words: scenes.main(words.split()))
    empty = dataclasses.replace(item, instances=(), actors=(), lights=(), courses=(), start=None, goal=None)
    monkeypatch.setattr(scenes, "scene", lambda *_, **__: empty)
    for words in ("validate yard", "show yard"):
        told.run(f"{words}, empty", lambda words=words: scenes.main(words.split()))
    for value in (1.23456789, 1234567, "x", [1.0, 20000, "y"], True):
        told.run(f"shown {value}", lambda value=value: scenes._shown(value))
    told.check(FILES / "scenes.txt")


def test_scenes_are_exported(told: Transcript, monkeypatch: Patch) -> None:
    item = yard()
    splats = dataclasses.replace(item, splats=("one",))
    still = dataclasses.replace(item, actors=())
    monkeypatch.setattr(scenes, "export_scene", lambda scene, path, ending: told.fake("export_scene", path)(path, ending))
    monkeypatch.setattr(scenes, "write_scene", lambda scene, path: told.fake("write_scene", path)(path))
    monkeypatch.setattr(scenes, "sample_points", lambda scene, *more, **named: told.fake("sample_points")(*more, **named))
    monkeypatch.setattr(scenes, "posed", lambda scene, time: told.fake("posed")(time) or scene)
    monkeypatch.setattr(scenes, "_CLOUDS", {name: told.fake(name, Path(f"there/x.{name}")) for name in ("pcd", "cloud.ply")})
    cases = [f"there/x.{ending}" for ending in scenes.FORMATS] + [
        "there/y",
        "there/scene.toml",
        "Z.GLB",
        "x.tar.zip",
        "x --format obj",
    ]
    cases += ["x.pcd --spacing 0.5 --no-ground --inside", "x.glb --spacing 0.5", "x --time 2.0", "x.stl --time 2.0"]
    for words in cases:
        for name, given in (("yard", item), ("splats", splats)) if words in cases[:2] + cases[-6:-4] else (("yard", item),):
            monkeypatch.setattr(scenes, "scene", lambda *_, given=given, **__: given)
            told.run(
                f"export {name} --out {words}", lambda words=words: scenes.main(["export", "yard", "--out", *words.split()])
            )
    monkeypatch.setattr(scenes, "scene", lambda *_, **__: still)
    told.run("nothing moves", lambda: scenes.main(["export", "yard", "--out", "x.glb", "--time", "1.0"]))
    told.check(FILES / "exported.txt")


def test_scenes_are_rendered(told: Transcript, monkeypatch: Patch) -> None:
    item = yard()
    monkeypatch.setattr(scenes, "scene", lambda *_, **__: item)

    def drawn(scene: Scene, camera: Any, size: Any, channels: Any, *more: Any) -> dict[str, Any]:
        words = plain_view(camera) if isinstance(camera, Viewpoint) else camera
        told.fake("pictures")(words, size, channels, *more)
        return {channel: np.zeros((size[1], size[0], 3), np.uint8) for channel in channels}

    monkeypatch.setattr(scene_pictures, "pictures", drawn)
    for words in (
        "",
        "--out there/a.JPG --view top --width 8 --height 8 --time 1.5 --samples 2 --bake",
        "--channels depth normal --out b.webp --width 16 --height 12",
        "--eye 0 -5 2 --target 0 0 1",
        "--eye 0 0 1",
        "--target 0 0 1",
        "--width 7",
        "--height 7",
        "--width 16385",
        "--height 16385",
        "--out x.bmp",
        "--channels depth --samples 2",
        "--eye 0 0 1 --target 1 0 1 --view top",
    ):
        told.run(f"render {words}", lambda words=words: scenes.main(["render", "yard", *words.split()]))
    told.check(FILES / "rendered.txt")


def plain_view(camera: Viewpoint) -> str:
    return f"from {camera.position.tolist()} by {np.round(camera.attitude, 6).tolist()}"


# ---- their pictures ---------------------------------------------------------------------------------------------------------


def test_colours_of_channels() -> None:
    nan, inf = float("nan"), float("inf")
    up, side = [0.0, 0.0, 1.0], [-0.6, 0.8, 0.0]
    values: dict[str, Any] = {}
    depths = ([[1.0, 2.0], [4.0, inf]], [[inf, inf]], [[3.0, 3.0]], [[1e-5, 1e-4, 1.0, 5.0]], [[0.5, 10.0, 20.0, 100.0]])
    for k, depth in enumerate(depths):
        values[f"depth {k}"] = scene_pictures._depth(np.array(depth, np.float32)).astype(int)
    for k in range(-1, 9):
        values[f"number {k}"] = scene_pictures._numbers(np.array([[k]])).astype(int)
    values["numbers"] = scene_pictures._numbers(np.array([[7, -1], [7, 0]])).astype(int)
    values["normal"] = scene_pictures._normal(np.array([[up, side, [nan] * 3, [-1.0, 0.5, 0.25]]])).astype(int)
    classes, normals = np.array([[3, -1, 3, 20]]), np.array([[up, up, side, [0.35, 0.55, -0.76]]])
    values["matte"] = scene_pictures._matte(classes, normals).astype(int)
    values["matte of nothing"] = scene_pictures._matte(np.array([[-1, 2]]), np.full((1, 2, 3), nan)).astype(int)
    check_snapshot(FILES / "colours.txt", values)


@pytest.mark.parametrize("view", ["top", "start"])
def test_pictures(view: str, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    item = yard()
    channels = ("instance", "matte", "depth", "semantic", "normal")
    made = scene_pictures.pictures(item, view, (24, 16), channels, time=1.5)
    assert tuple(made) == channels
    for channel in channels:
        (alone,) = scene_pictures.pictures(item, view, (24, 16), (channel,), time=1.5).values()
        np.testing.assert_array_equal(alone, made[channel])
    rows = {f"{name} {k}": pixels[k, 1::6].astype(int) for name, pixels in made.items() for k in range(1, 16, 3)}
    check_snapshot(FILES / f"pictures_{view}.txt", rows, rtol=1.5 / 255.0)  # a count may be rounded otherwise


def test_what_cannot_be_drawn(told: Transcript) -> None:
    item = yard()
    told.run("channel", lambda: scene_pictures.pictures(item, "top", (8, 8), ("depht",)))
    told.run("view", lambda: scene_pictures.pictures(item, "tpo", (8, 8), ("depth",)))
    told.check(FILES / "undrawn.txt")
    with pytest.raises(AirworthyError):
        scenes._camera(scenes.RenderSceneConfig("yard", eye=(0.0, 0.0, 1.0)))
