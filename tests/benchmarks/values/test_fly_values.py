"""What a run of `airworthy fly` asks for, refuses, names and writes, for places, flights and folders that are written here.

Modules: airworthy.benchmarks.fly.causes, .config, .film, .job, .metrics, .open_meshes, .replay, .run_record, .scene.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import stage
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.fixtures.transcripts import Transcript, plain

import airworthy
from airworthy.benchmarks.fly import causes, config, film, job, metrics, open_meshes, replay, run_record
from airworthy.benchmarks.fly import scene as places
from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.core.errors import AirworthyError
from airworthy.evaluation.metrics import FlightResult
from airworthy.geometry import Box, Mesh
from airworthy.pilots import FlightRun
from airworthy.scenes import GateFrame, Instance, Scene, SceneBatch
from airworthy.scenes.record import Pose
from airworthy.simulation import FlightTable, Simulator
from airworthy.tasks import FlightStatus, TrackingReference
from airworthy.trajectories import Gate, course
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Drag

FILES = Path(__file__).parent / "snapshots" / "fly"
CARL = vehicle("carl")
Patch = pytest.MonkeyPatch


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Patch) -> Transcript:
    monkeypatch.chdir(tmp_path)
    return Transcript(capsys, {str(tmp_path): "HERE", airworthy.__version__: "VERSION"})


def ends(position: tuple[float, float, float]) -> Pose:
    return Pose(position)


def place(**changes: Any) -> Scene:
    return replace(stage(0, 0), **changes)


# ---- what is asked for ------------------------------------------------------------------------------------------------------


def test_words_of_options(told: Transcript) -> None:
    for words in (
        ("mass=0.1",),
        ("default",),
        ("default", "mass=0.3 wind=2"),
        ("mas=1",),
        ("mass",),
        ("mass=x",),
        ("mass=-1",),
        (),
    ):
        told.run(f"randomize {words}", lambda words=words: plain(config.randomization(words)))
    gains = (("position_gain=4,4,6", "rate_gain=1"), ("position_gain",), ("position_gain=x",), ("a=1",), ("yaw_rate_max=1,2",))
    for words in (*gains, ("rate_gain=1", "rate_gain=2"), ("rate_gain=",), ()):
        told.run(f"gain {words}", lambda words=words: plain(config.control_of(FlyConfig(gain=words))))
    for changes in (
        {},
        {"vehicle": ()},
        {"vehicle": ("carl", "lmf2")},
        {"vehicle": ("carl", "lmf2"), "envs": 2},
        {"record": ("vido",)},
        {"recentre": True, "keep_frame": True, "scene": "x.glb"},
        {"course": "line", "waypoints": ("0,0,1", "1,0,1")},
        {"out": Path("a\nb")},
        {"gains": "lee", "pilot": "mpc"},
        {"gain": ("rate_gain=1",), "pilot": "mellinger"},
        {"gain": ("thrust_max=1",)},
        {"gain": ("yaw_rate_max=1",), "pilot": "position"},
        {"gain": ("pull_max=1",), "pilot": "velocity"},
        {"record": ("video",)},
        {"record": ("video",), "scene": "hall", "video_env": 1},
        {"record": ("video",), "scene": "hall", "envs": 2, "video_env": 1},
        {"record": ("video",), "scene": "hall", "video_size": (3, 3)},
        {"record": ("video",), "scene": "hall", "video_size": (64, 48)},
    ):
        told.run(f"check {changes}", lambda changes=changes: config.check_config(FlyConfig(**changes)))
    full = FlyConfig(
        vehicle=("a", "b"), envs=2, scene="s", wind=(1.0, 0.0, -2.0), goal=(1.0, 2.0, 3.0), record=("video",), up="y"
    )
    told.run("resolved", lambda: print(json.dumps(config.resolved(full), default=str, indent=0)))
    told.run("command", lambda: config.command_line(full))
    told.run("no film", lambda: plain(config.without_film(replace(full, video_camera="chase", video_env=1, video_rate=10.0))))
    told.run("as it is", lambda: plain(config.read_as_it_is(replace(full, units="cm", voxel=1.0, recentre=True))))
    told.run(
        "draws", lambda: [config.draws(FlyConfig(**given)) for given in ({}, {"turbulence": 0.1}, {"randomize": ("mass=0.1",)})]
    )
    told.check(FILES / "options.txt")


def test_when_options_change_nothing(told: Transcript) -> None:
    """Of every rule, on both sides of its condition."""
    video = {"scene": "s", "record": ("video",)}
    cases: list[dict[str, Any]] = [{}, {"dynamics": "semi_kinematic"}, video, {"record_rate": 200.0}, {"record_rate": 100.0}]
    cases += [{"vehicle": ("a.URDF",)}, {"waypoints": ("0,0,1", "1,0,1")}, {"control_rate": 50.0}, {"course": "line"}]
    for changes in cases:
        given = FlyConfig(**changes)
        told.run(f"{changes}", lambda given=given: [(rule.options, bool(rule.when(given))) for rule in config.FLY_RULES])
        for plans in (True, False):
            told.run(
                f"{changes}, plans: {plans}",
                lambda g=given, p=plans: [(rule.options, bool(rule.when(g, p))) for rule in config.PLANNER_RULES],
            )
    told.check(FILES / "idle.txt")


def test_configurations_are_read(told: Transcript) -> None:
    good = config.resolved(FlyConfig(envs=3, wind=(1.0, 2.0, 3.0)))
    cases: dict[str, Any] = {"good": good, "version": {**good, "version": 9}, "list": [1], "unknown": {**good, "more": 1}}
    for name, value in (
        ("envs", 3.0),
        ("envs", True),
        ("speed", 3),
        ("speed", None),
        ("speed", "x"),
        ("wind", [1, 2]),
        ("wind", [1, 2, 3]),
        ("wind", [1, 2, True]),
        ("contact", "reset"),
        ("contact", "bounce"),
        ("out", 5),
        ("report", 1),
        ("report", False),
        ("course", 3),
        ("vehicle", "carl"),
        ("priority", "none"),
    ):
        cases[f"{name} {value}"] = {**good, name: value}
    for name, content in cases.items():
        Path("config.json").write_text(json.dumps(content))
        told.run(name, lambda: plain(config.read_config(".")))
    told.check(FILES / "configurations.txt")


def test_ways_that_scenes_name(told: Transcript) -> None:
    square = np.array([[0.0, -1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, -1.0, 2.0]])
    gate = GateFrame("a", tuple(map(tuple, square + np.array([1.0, 0.0, 0.0]))))
    turned = GateFrame("b", tuple(map(tuple, square[:, [1, 0, 2]] + np.array([3.0, 2.0, 0.0]))))
    start, goal = ends((-3.0, 0.0, 1.0)), ends((3.0, 1.0, 1.5))
    for name, scene in (
        ("none", None),
        ("bare", place()),
        ("courses", place(courses=("mine", "line", "hover"))),
        ("ends", place(start=start, goal=goal)),
        ("start alone", place(start=start)),
        ("goal alone", place(goal=goal)),
        ("a gate", place(gates=(gate,))),
        ("gates", place(gates=(gate, turned), start=start)),
        ("gates without a start", place(gates=(turned, gate))),
    ):
        told.run(name, lambda scene=scene: places.with_course(FlyConfig(), scene))
        told.run(f"{name}, asked", lambda scene=scene: places.with_course(FlyConfig(course="hover"), scene))
        told.run(f"{name}, for a planner", lambda scene=scene: places.ends_of(FlyConfig(pilot="ego"), scene))
    both = FlyConfig(start=(0.0, 0.5, 1.0), goal=(1.0, 1.0, 1.0), pilot="ego")
    told.run("asked ends", lambda: places.ends_of(both, place(start=start)))
    told.run("two points", lambda: places.ends_of(FlyConfig(waypoints=("0,0,1", "1,0,1")), place()))
    told.run("three points", lambda: places.ends_of(FlyConfig(waypoints=("0,0,1",) * 3), place()))
    told.run(
        "limits", lambda: [plain(places.limited(given)) for given in (FlyConfig(), FlyConfig(speed=1.0, acceleration=2.0))]
    )
    told.run("regions", lambda: [places.region_of(item) for item in (None, place())])
    told.run(
        "contacts", lambda: [plain(places.contact_of(given)) for given in (FlyConfig(), FlyConfig(scene="x", contact="none"))]
    )
    told.run("contact", lambda: plain(places.contact_of(FlyConfig(scene="x", contact="respond"))))
    for values in ((1.23456, -0.0001, 1234.5), (-0.0, 0.0, 1e-9)):
        told.run(f"{values}", lambda values=values: places.point_text(np.array(values)))
    for gap in (-0.1, 0.0, 0.1234, -0.0):
        told.run(f"gap {gap}", lambda gap=gap: places._nearness(gap))
    told.run(
        "plans",
        lambda: [places.plans(item) for item in (SimpleNamespace(update=1, setpoints=1, reset=1), SimpleNamespace(update=1))],
    )
    told.check(FILES / "ways.txt")


def test_starts_and_goals(told: Transcript) -> None:
    batch = SceneBatch(place(), 1)
    for contact in ("freeze", "respond", "none"):
        for start in ((0.0, 0.8, 0.5), (0.0, 0.7, 0.5), (0.0, 0.0, 1.0)):
            for goal in (None, (3.5, 0.0, 1.5), (1.0, 0.0, 1.0)):
                given = FlyConfig(scene="stage", contact=contact)  # type: ignore[arg-type]
                end = None if goal is None else np.array(goal)
                told.run(
                    f"{contact} {start} {goal}",
                    lambda g=given, s=start, e=end: places.check_ends(g, batch, [CARL], np.array(s), e),
                )
    told.check(FILES / "ends.txt")


def test_sensors_by_their_words(told: Transcript) -> None:
    def named(*words: str) -> list[str]:
        found = places.mounted_sensors(FlyConfig(sensors=words, vehicle=("carl",)), [CARL])
        return [f"{name}: {item.device.name} {item.channels}" for name, item in found.items()]  # type: ignore[union-attr]

    for words in (
        ("d435",),
        ("left=d435:rgb", "base_lidar"),
        ("a=d435 b=d435:rgb,",),
        ("d435", "d435"),
        ("a b=d435",),
        ("carried",),
    ):
        told.run(f"{words}", lambda words=words: named(*words))
    for words in (("nothing",), ("x=",), ("a!=d435",), ("=d435",), ("d435:depht",)):
        told.run(f"{words}", lambda words=words: named(*words))
    bare = replace(CARL, name="bare", sensors={}, extra={}) if hasattr(CARL, "sensors") else CARL
    told.run("nothing carried", lambda: places.mounted_sensors(FlyConfig(sensors=("carried",), vehicle=("bare",)), [bare]))
    for text in ("d435", "d435:rgb,depth", "a.toml:x:rgb", "b/c.py:K", "a.toml:x"):
        told.run(text, lambda text=text: places._kind_of(text))
    told.run("no scene", lambda: places.batch_of(FlyConfig(sensors=("d435",)), None))
    told.run("no sensors", lambda: places.batch_of(FlyConfig(), None))
    told.check(FILES / "sensors.txt")


# ---- what is flown ----------------------------------------------------------------------------------------------------------


def test_trajectories(told: Transcript) -> None:
    def ways(**changes: Any) -> list[float]:
        path, gates = job.planned(FlyConfig(**changes))
        sample = path.sample(np.linspace(0.0, path.duration, 5))
        return [round(path.duration, 6), round(path.length(), 6), len(gates), *np.round(sample.position[2], 5).tolist()]

    points = ("0,0,1", "2,0,1", "2,2,1.5")
    for changes in (
        {},
        {"course": "line", "slower": 2.0},
        {"waypoints": points},
        {"waypoints": points, "speed": 1.0, "acceleration": 1.0},
        {"waypoints": points, "laps": 2},
        {"course": "line", "speed": 0.5},
        {"course": "line", "speed": 5.0},
        {"course": "line", "acceleration": 0.7},
        {"course": "line", "acceleration": 0.5},
        {"course": "figure_eight", "laps": 2} if "figure_eight" in airworthy_courses() else {"course": "hover", "laps": 3},
        {"course": "line", "laps": 2},
        {"waypoints": ("0,0", "1,1,1")},
        {"waypoints": ("0,0,x", "1,1,1")},
        {"waypoints": ("0,0,inf", "1,1,1")},
        {"waypoints": ("0,0,1e9", "1,1,1")},
    ):
        told.run(f"{changes}", lambda changes=changes: ways(**changes))
    told.run("farthest", lambda: [causes.farthest_from_start(course(name).trajectory()) for name in ("hover", "line")])
    told.check(FILES / "trajectories.txt")


def airworthy_courses() -> list[str]:
    from airworthy.trajectories import course_names

    return course_names()


def test_how_it_is_flown(told: Transcript) -> None:
    path = course("line").trajectory()
    odd = FlyConfig(
        hold=2.0,
        control_rate=50.0,
        record_rate=20.0,
        latency=0.1,
        wind=(1.0, 0.0, 0.0),
        turbulence=0.5,
        ground=True,
        imu="ideal",
    )
    for name, given in (
        ("usual", FlyConfig()),
        ("odd", odd),
        ("rare", FlyConfig(record_rate=90.0)),
        ("contact", FlyConfig(scene="s")),
    ):
        told.run(f"{name} simulator", lambda given=given: plain(job.simulator_config(given, "tracking")))
        told.run(f"{name} plan", lambda given=given: plain(replace(job._plan(given, path, place(), None), reference=None)))
    for envs, rate in ((1, 50.0), (1_000_000, 100.0)):
        given = FlyConfig(envs=envs, record_rate=rate)
        told.run(f"{envs} flights", lambda given=given: job._check_size(given, job._plan(given, path, None, None), 4))
    for level, dynamics in (("tracking", "rigid"), ("rotor_speed", "semi_kinematic"), ("rate_thrust", "semi_kinematic")):
        given = FlyConfig(dynamics=dynamics, pilot="mine")  # type: ignore[arg-type]
        told.run(f"{level} in {dynamics}", lambda given=given, level=level: job._check_pilot(given, level))
    other = (
        FlyConfig(priority="attitude-yaw-force")
        if "attitude-yaw-force" in str(job.PRIORITIES)
        else FlyConfig(priority=job.PRIORITIES[1])
    )
    for name, given, level, plans in (
        ("usual", FlyConfig(), "rotor_speed", True),
        ("asked", other, "tracking", False),
        ("rotors", other, "rotor_speed", False),
        ("planner", other, "tracking", True),
        ("no rotors", replace(other, dynamics="semi_kinematic"), "tracking", False),
    ):
        told.run(f"priority, {name}", lambda g=given, lv=level, p=plans: job._check_priority(g, lv, p))
    told.run("devices", lambda: job.check_device("cpu"))
    names = (
        "flight.parquet",
        "meta.json",
        "video.mp4",
        "video_a_sheet.png",
        "video.txt",
        "sensors",
        "mine",
        "record",
        "vide.mp4",
    )
    told.run("owned", lambda: [job.owned_by_run(name) for name in names])
    given = FlyConfig(seed=3, scene="hall")
    told.run(
        "labels",
        lambda: [metrics.labels_of(given, *way, own_way=False) for way in ((None, ()), ("a", ()), (None, ("x",)))],
    )
    told.check(FILES / "flying.txt")


def test_what_was_drawn() -> None:
    values: dict[str, Any] = {}
    for name, words in (("nothing", ()), ("all", ("default",)), ("mass", ("mass=0.2",))):
        given = FlyConfig(randomize=words, envs=3)
        simulator = Simulator([CARL] * 3, job.simulator_config(given, "tracking"), seed=4)
        job._place(simulator, course("line").trajectory())
        values[name] = job.drawn_parameters(simulator)
        # What is zero but for rounding is another zero on another processor.
        placed = [np.array(getattr(simulator, part), float) for part in ("position", "velocity", "attitude")]
        values[f"{name} placed"] = [np.round(part, 9) + 0.0 for part in placed]
        values[f"{name} exact"] = " ".join(job.exactly_turned(simulator))
    for opening, yaw in (((2.0, 1.0), 0.0), ((1.0, 3.0), 0.7)):
        values[f"corners {yaw}"] = metrics._corners(Gate((1.0, 2.0, 3.0), yaw, opening))
    check_snapshot(FILES / "drawn.txt", values, rtol=1e-5)


# ---- what became of it ------------------------------------------------------------------------------------------------------


def table(statuses: dict[int, int], positions: dict[int, tuple[float, float, float]]) -> FlightTable:
    """One flight of ten rows along x; some rows of other status, or elsewhere."""
    t = np.arange(10) * 0.25
    columns: dict[str, Any] = {"env": np.zeros(10, int), "t": t, "status": np.zeros(10, np.int8)}
    place_of = np.stack([0.5 * t, 0.0 * t, 1.0 + 0.0 * t], axis=1)
    for row, point in positions.items():
        place_of[row] = point
    for k, axis in enumerate("xyz"):
        columns[f"position_{axis}_m"] = place_of[:, k]
        columns[f"velocity_{axis}_m_s"] = 0.0 * t
        columns[f"rate_{axis}_rad_s"] = 0.0 * t
    for axis in "xyzw":
        columns[f"attitude_{axis}"] = np.ones(10) * (axis == "w")
    columns["saturated"] = 0.0 * t
    columns["clearance_m"] = 0.05 + np.abs(t - 1.0)
    for row, status in statuses.items():
        columns["status"][row] = status
    return FlightTable.from_columns(columns)


def test_why_flights_failed(told: Transcript) -> None:
    reference = TrackingReference.from_trajectory(course("line").trajectory(), 20.0)
    hit = table({8: FlightStatus.COLLISION, 9: FlightStatus.COLLISION}, {8: (0.0, 0.72, 0.5), 9: (0.0, 0.72, 0.5)})
    away = table({7: FlightStatus.OUT_OF_BOUNDS}, {7: (-4.5, 9.0, 1.0)})
    inside = table({7: FlightStatus.OUT_OF_BOUNDS}, {7: (1.0, 2.0, 1.0)})
    below = table({7: FlightStatus.OUT_OF_BOUNDS}, {7: (1.0, 2.0, -0.5)})
    far = table({}, {5: (0.0, 3.0, 1.0), 6: (0.0, 2.0, 1.0)})
    bare = FlightTable.from_columns({key: value for key, value in far.columns.items() if key != "clearance_m"})
    for name, flown, result in (
        ("hit", hit, FlightResult(0, "collision")),
        ("near", far, FlightResult(0, "collision")),
        ("not recorded", bare, FlightResult(0, "collision")),
        ("out", away, FlightResult(0, "out_of_bounds")),
        ("too far", inside, FlightResult(0, "out_of_bounds")),
        ("below", below, FlightResult(0, "out_of_bounds")),
        ("never out", far, FlightResult(0, "out_of_bounds")),
        ("left its path", far, FlightResult(0, "off_course", tracking_error_max_m=3.0)),
        ("no end", far, FlightResult(0, "off_course", tracking_error_max_m=1.0, end_distance_m=0.75)),
        ("half", far, FlightResult(0, "off_course", tracking_error_max_m=1.0, end_distance_m=0.1, coverage_percent=45.6)),
        ("good", far, FlightResult(0, "success")),
    ):
        for scene in (None, place()):
            told.run(
                f"{name}, scene: {scene is not None}",
                lambda f=flown, r=result, s=scene: causes.causes_of(f, [r], reference, s, farthest=30.0),
            )
    run = FlightRun(far, causes={0: "a cause"}, outcomes={})
    told.run("causes", lambda: [metrics._cause(run, env, {1: "why"}) for env in (0, 1, 2)])
    told.run("by env", lambda: [metrics._by_env({"a": given}, "a") for given in ({"0": "x", "b": "y", "12": 3}, [1], None)])
    told.check(FILES / "causes.txt")


def test_open_meshes(told: Transcript) -> None:
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
    lid = [[1, 5, 7], [1, 7, 3]]

    def around(item: Instance, faces: list[list[int]], point: tuple[float, float, float]) -> list[str]:
        shapes = {"tub": Mesh(corners, np.array(faces)), "box": Box((1.0, 1.0, 1.0))}
        return open_meshes.open_meshes_around(
            place(shapes={**stage(0, 0).shapes, **shapes}, instances=(item,)), np.array(point)
        )

    tub = Instance("tub", (1.0, 0.0, 0.0), name="tub", scale=2.0)
    for name, item, which, point in (
        ("inside", tub, faces, (2.0, 1.0, 0.5)),
        ("outside", tub, faces, (3.5, 1.0, 0.5)),
        ("closed", tub, faces + lid, (2.0, 1.0, 0.5)),
        ("inwards", tub, [face[::-1] for face in faces], (2.0, 1.0, 0.5)),
        ("seen only", replace(tub, collide=False), faces, (2.0, 1.0, 0.5)),
        ("nameless", replace(tub, name=""), faces, (2.0, 1.0, 0.5)),
        ("a box", Instance("box", (2.0, 1.0, 0.5)), faces, (2.0, 1.0, 0.5)),
    ):
        told.run(name, lambda i=item, f=which, p=point: around(i, f, p))
    many = [f"m{k}" for k in range(5)]
    for count in (1, 2, 4):
        with warnings.catch_warnings(record=True) as caught, pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("always")
            patch.setattr(open_meshes, "open_meshes_around", lambda scene, point, count=count: many[:count] if point else [])
            open_meshes.warn_of_open_meshes(place(), {"start": 1, "goal": count > 1})  # type: ignore[dict-item]
            open_meshes.warn_of_open_meshes(place(), {"start": 0})  # type: ignore[dict-item]
        told.run(f"{count} meshes", lambda caught=caught: [str(item.message) for item in caught])
    told.check(FILES / "open_meshes.txt")


# ---- what is kept -----------------------------------------------------------------------------------------------------------


def test_records(told: Transcript, tmp_path: Path, monkeypatch: Patch) -> None:
    from airworthy.vehicles import write_vehicle

    monkeypatch.setattr(run_record, "surroundings", lambda: {"airworthy": "1.0", "numpy": "2"})
    write_vehicle(CARL, Path("own.toml"))
    Path("own.py").write_text("import beside\n\n\nclass Own:\n    pass\n")
    Path("beside.py").write_text("VALUE = 1\n")
    given = FlyConfig(vehicle=("own.toml",), course="line", pilot="own.py:Own", scene="stage")
    path = course("line").trajectory()
    made = run_record.write_record(
        Path("run"), given, given, [CARL], path, place(), "tracking", {"mass_kg": np.array([1.0, 2.0])}
    )
    told.run("record", lambda: [made.vehicles, made.course, made.waypoints, made.copies, made.sources, made.parameters])
    told.run("digests", lambda: sorted(made.digests))
    told.run("gains", lambda: [sorted(rows) for rows in made.gains])
    told.run("files", lambda: sorted(str(item) for item in Path("run").rglob("*") if item.is_file()))
    read = run_record.read_record("run")
    assert {**asdict(read), "gains": list(read.gains)} == {**asdict(made), "gains": list(made.gains)}
    told.run("again", lambda: plain(run_record.repeated(given, read)))
    told.run("vehicles", lambda: [item.name for item in run_record.recorded_vehicles("run", {})])
    for meta in (
        {"vehicle": "carl"},
        {"config": {"vehicle": ["carl", "lmf2"]}},
        {"config": {"vehicle": []}},
        {"vehicle": ""},
        {},
    ):
        told.run(
            f"by name {meta}", lambda meta=meta: [item.name for item in run_record.recorded_vehicles("elsewhere/run", meta)]
        )
    for meta in ({"scene": "hall"}, {"scene": ""}, {}):
        told.run(
            f"scene {meta}", lambda meta=meta: [run_record.recorded_scene(folder, meta) for folder in ("run", "elsewhere")]
        )
    told.run("digest now", lambda: [read.digest_now(name) == read.digests[name] for name in ("vehicle 0", "pilot")])
    told.run("changed", lambda: replay._changed(read, given))
    write_vehicle(replace(CARL, mass=2.0), Path("own.toml"))
    Path("own.py").unlink()
    told.run("changed since", lambda: replay._changed(read, given))
    record = Path("run/record/record.json")
    content = json.loads(record.read_text())
    for name, other in (
        ("version", {"version": 9}),
        ("less", {"course": 3}),
        ("nobody", {"vehicles": []}),
        ("numbers", {"vehicles": [1]}),
        ("elsewhere", {"copies": {"scene": "../x"}}),
        ("another pilot", {"copies": {"pilot": "pilot/../own.py"}}),
        ("another digest", {"digests": {**content["digests"], "trajectory": "0" * 64}}),
        ("a list", {"digests": []}),
        ("more", {"more": 1}),
    ):
        record.write_text(json.dumps({**content, **other}))
        told.run(f"damaged: {name}", lambda: run_record.read_record("run").vehicles)
    record.unlink()
    told.run("none", lambda: run_record.read_record("run"))
    told.check(FILES / "records.txt")


def test_where_inputs_come_from(told: Transcript) -> None:
    Path("here").mkdir()
    for changes in (
        {},
        {"vehicle": ("a.toml", "carl", "b/c", "d.URDF")},
        {"course": "x.json", "scene": "here"},
        {"course": "line", "scene": "forest:3"},
        {"scene": "a/b.glb", "gains": "g.toml"},
        {"pilot": "policy:there"},
        {"pilot": "svnet"},
        {"pilot": "p.py:K"},
    ):
        told.run(f"{changes}", lambda changes=changes: run_record._sources(FlyConfig(**changes)))
    told.run(
        "bytes", lambda: run_record._bytes_of(place(facts={"a": np.zeros(10), "b": [np.ones((2, 3), np.float32)], "c": 1.5}))
    )  # type: ignore[dict-item]
    told.run(
        "places",
        lambda: [run_record._pilot_place(item) for item in ({"pilot": "pilot/a.py"}, {"pilot": 3}, {}, None, {"pilot": "x"})],
    )
    told.run(
        "gains",
        lambda: [sorted(run_record._gains(CARL, FlyConfig(dynamics=d), "tracking")) for d in ("rigid", "semi_kinematic")],
    )  # type: ignore[arg-type]
    told.run(
        "trajectory",
        lambda: (
            run_record.digest_of_trajectory(course("hover").trajectory())
            != run_record.digest_of_trajectory(course("line").trajectory())
        ),
    )
    told.check(FILES / "sources.txt")


def test_what_differs(told: Transcript, monkeypatch: Patch) -> None:
    now = {"airworthy": "1.0", "source": "b" * 64, "warp": "1.9", "numpy": "2", "instruction set": "x86_64 avx2"}
    monkeypatch.setattr(replay, "surroundings", lambda: now)

    def record(digests: dict[str, str], **around: str) -> Any:
        return SimpleNamespace(digests=digests, surroundings={**now, **around})

    one, other = {"scene": "0" * 64, "course": "1" * 64}, {"scene": "2" * 64, "course": "1" * 64, "gains": "3" * 64}
    told.run("nothing", lambda: replay._causes(record(one), record(one), "cpu", "cpu"))
    told.run("inputs", lambda: replay._causes(record(one), record(other), "cpu", "cpu"))
    told.run("source", lambda: replay._causes(record(one, source="a" * 64), record(one), "cpu", "cuda:0"))
    told.run(
        "version", lambda: replay._causes(record(one, source="a" * 64, airworthy="0.9", warp="1"), record(one), "cpu", "cpu")
    )
    told.run("older", lambda: replay._causes(SimpleNamespace(digests=one, surroundings={}), record(one), "cpu", "cpu"))
    told.run("short", lambda: [replay._short(text) for text in (None, "a" * 64, "a" * 63, "")])
    told.check(FILES / "differs.txt")


# ---- films ------------------------------------------------------------------------------------------------------------------


def test_films(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(film, "video_suffix", lambda: ".webp")
    for path in ("a/b", "x.MP4", "y.webp", "z.avi", "a.b/c"):
        told.run(path, lambda path=path: film._target(path))
    told.run(
        "options",
        lambda: plain(film.options_of(FlyConfig(video_camera="chase", video_env=2, video_size=(64, 48), video_rate=12.0))),
    )
    for given in ({"rate": 1.0}, {"rate": 0.5}, {"rate": 1e4}, {"size": (3, 5)}, {"size": (64, 48)}, {"camera": "nowhere"}):
        told.run(f"{given}", lambda given=given: film.check_video_options(film.VideoOptions(**given), CARL))
    told.run("nowhere", lambda: film._scenery(None, None))
    told.run("given", lambda: film._scenery(place(), "hall").name)
    video = film.Video(Path("video.mp4"), Path("sheet.png"), 1, "chase", (64, 48), 12.0, 24, 0.5, 3.25)
    Path("video.mp4").write_bytes(b"film")
    told.run("described", video.described)
    told.run("line", lambda: [video.summary_line, replace(video, hint="More.").summary_line])
    filmed = FlyConfig(record=("video",), scene="stage", video_env=3, out=Path("."))
    monkeypatch.setattr(film, "clear_film", told.fake("clear_film"))
    for end in (video, KeyboardInterrupt(), AirworthyError("no")):
        monkeypatch.setattr(
            film,
            "record_video",
            lambda *given, end=end, **named: told.fake("record_video", end)(
                *given[2:], named["device"], named["flyer"].name, named["quiet"]
            ),
        )
        for given, scene in ((filmed, place()), (replace(filmed, record=()), place()), (filmed, None)):
            told.run(
                f"{end} {scene is None}",
                lambda g=given, s=scene: plain(film.film_run(g, SimpleNamespace(), s, [CARL, replace(CARL, name="b")])),
            )  # type: ignore[arg-type]
    asked: list[Any] = []
    monkeypatch.setattr(film, "check_video_options", lambda options, flyer: asked.append(flyer.name))
    film.check_film(filmed, [CARL, replace(CARL, name="b")])
    film.check_film(replace(filmed, record=()), [CARL])
    told.run("checked", lambda: asked)
    told.check(FILES / "films.txt")
    assert condensed([1.0])["words"].startswith("0 ")


@pytest.mark.parametrize(
    "name",
    ["linear", "quadratic_norm", "quadratic_axis", "rotor_speed", "angular_linear", "angular_norm", "angular_axis", "hub"],
)
def test_any_one_drag_is_drag(name: str) -> None:
    still = replace(CARL, drag=Drag(center=(0.0, 0.0, 0.1)), rotors=tuple(replace(r, hub_drag=(0.0, 0.0)) for r in CARL.rotors))
    assert config._dragless(still)
    if name == "hub":
        first, *others = still.rotors
        assert not config._dragless(replace(still, rotors=(*others, replace(first, hub_drag=(0.0, 1e-9)))))
    else:
        assert not config._dragless(replace(still, drag=Drag(**{name: (0.0, 0.0, 1e-9)})))
