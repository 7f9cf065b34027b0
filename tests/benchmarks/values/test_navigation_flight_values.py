"""What flights of the navigation benchmark are given, leave and are named by: plans, draws, places, rows, folders, own pilots.

Modules: airworthy.benchmarks.navigation.config, .missions, .own_scenes, .takeoff, .store, .flight_records,
.sensing, .methods, .fly_batch, .agent_adapter, .planner_adapter, .job, .replay.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import stage
from tests.fixtures.snapshots import check_snapshot
from tests.fixtures.transcripts import Transcript, plain

import airworthy
from airworthy.benchmarks.navigation import (
    agent_adapter,
    config,
    flight_records,
    flown_folder,
    fly_batch,
    job,
    methods,
    missions,
    own_scenes,
    planner_adapter,
    replay,
    sensing,
    store,
    takeoff,
)
from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation
from airworthy.benchmarks.navigation.own_scenes import OwnScene, OwnSceneConfig, Pair
from airworthy.core import own_modules
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import Observation
from airworthy.planners.common.interface import MapSettings
from airworthy.scenes import SceneBatch
from airworthy.tasks.navigation import NavigationProtocol

FILES = Path(__file__).parent / "snapshots" / "navigation_flights"
Patch = pytest.MonkeyPatch
FLIGHTS = [Flight("maze", 1, "virt_05"), Flight("forest", 3, "real_09", 2), Flight("narrow_gap", 2, "real_01")]
ROUGH = Perturbation(0.02, 0.01, 0.05, 0.1, 0.2, 0.1, 2, 1.5)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Patch) -> Transcript:
    monkeypatch.chdir(tmp_path)
    return Transcript(capsys, {str(tmp_path): "HERE", airworthy.__version__: "VERSION"})


# ---- plans ------------------------------------------------------------------------------------------------------------------


def test_plans(told: Transcript) -> None:
    found = config.flights_of(("forest", "maze"), ("a", "b"), (2, 1), 2, 3)
    told.run("flights", lambda: [(f.scenario, f.configuration, f.vehicle, f.repeat) for f in found])
    told.run("as many", lambda: len(config.flights_of(("forest", "maze"), ("a",), (1,), 2)))
    told.run("blocks", lambda: [(b.name, b.pilot, b.index, len(b.flights)) for b in config.blocks_of(("a b", "c"), found, 7)])
    told.run("numbers", lambda: [flight.number for flight in FLIGHTS])
    told.run("names", lambda: [config.file_name(name) for name in ("a/b c.py:K", "x_y-1.2")])
    for tokens in (("real",), ("virtual", "carl", "carl"), ("a.toml",), ("nobody",)):
        told.run(f"vehicles {tokens}", lambda tokens=tokens: config.vehicle_names_of(tokens))
    for tokens in (("all",), ("maze", "forest", "maze"), ("sudden_drop_plus",), ("mazes",)):
        told.run(f"scenarios {tokens}", lambda tokens=tokens: config.scenario_names(tokens))
    usual = NavigationConfig()
    for changes in (
        {"quick": True},
        {"quick": True, "vehicles": ("carl",), "trials": 3},
        {"quick": True, "configurations": (2,)},
        {"quick": True, "scenes": ("x",)},
    ):
        told.run(f"quick {changes}", lambda changes=changes: plain(config.quick(replace(usual, **changes))))
    told.run("worse", lambda: [item.any for item in (Perturbation(), ROUGH, Perturbation(moving_speed=2.0))])
    wrong: list[dict[str, Any]] = [{"pilots": ()}, {"vehicles": ()}, {"scenarios": ()}, {"scenarios": (), "scenes": ("x",)}]
    wrong += [{"pilots": ("a", "a")}, {"configurations": (1, 1)}, {"configurations": (11,)}, {"configurations": (0,)}]
    wrong += [{"configurations": (1, 10)}, {"scenes": ("a", "a")}, {"controller": "so4"}]
    for name, values in (
        ("hard_repeats", (-1, 0, 1000, 1001)),
        ("least_distance", (-1.0, float("inf"), 0.0)),
        ("pairs", (0, 1, 1000, 1001)),
        ("trials", (0, 10, 11)),
        ("repeats", (0, 1000, 1001)),
        ("batch", (0, 10_000, 10_001)),
        ("workers", (0, 1024, 1025)),
        ("layouts", (-1, 2**63)),
        ("decision_timeout", (0.0, 1e-9, float("inf"))),
        ("warm_up", (-1.0, 0.0, float("nan"))),
        ("compute", ("slow",)),
    ):
        wrong += [{name: value} for value in values]
    for changes in wrong:
        told.run(f"check {changes}", lambda changes=changes: config.check(loose(**changes)))
    for name, most in config._MOST.items():
        for value in (most, most * 1.01, -0.01):
            told.run(f"{name} {value:g}", lambda name=name, value=value: config.check(loose(perturb=worse(name, value))))
    for count in (200, 201, -1):
        told.run(f"{count} obstacles", lambda count=count: config.check(loose(perturb=worse("moving_obstacles", count))))
    told.check(FILES / "plans.txt")


def test_when_options_change_nothing(told: Transcript) -> None:
    cases: list[dict[str, Any]] = [{}, {"scenes": ("a",)}, {"scenes": ("a",), "scenarios": ("maze",)}, {"configurations": (1,)}]
    cases += [{"scenarios": ("forest", "urban")}, {"scenarios": ("forest",), "scenes": ("a",)}, {"pilots": ("ego", "own.py:K")}]
    cases += [
        {"pilots": ("straight", "oracle")},
        {"pilots": ("ego",), "compute": "measured"},
        {"cluster": "auto", "perturb": ROUGH},
    ]
    cases += [{"quick": True}, {"quick": True, "vehicles": ("carl",), "trials": 2}, {"quick": True, "configurations": (1,)}]
    cases += [{"protocol": NavigationProtocol(ceiling_is_solid=not NavigationProtocol().ceiling_is_solid)}]
    for changes in cases:
        given = NavigationConfig(**changes)
        told.run(f"{plain(changes)}", lambda g=given: [(rule.options, bool(rule.when(g))) for rule in config.NAVIGATION_RULES])
    told.check(FILES / "idle.txt")


def loose(**changes: Any) -> Any:
    """Options that nobody has checked yet."""
    made = SimpleNamespace(**vars(NavigationConfig()))
    vars(made).update(changes)
    return made


def worse(name: str, value: float) -> Any:
    made = SimpleNamespace(**vars(Perturbation()))
    setattr(made, name, value)
    return made


# ---- what is drawn, and where -----------------------------------------------------------------------------------------------


def test_draws_and_missions() -> None:
    values: dict[str, Any] = {}
    for name, perturb in (("ideal", Perturbation()), ("rough", ROUGH)):
        draws = missions.draws_of(FLIGHTS, 5, perturb)
        values[name] = [draws.offset, draws.yaw, draws.gains, draws.thrust]
        for a_max, body in (("common", "sphere"), ("vehicle", "body")):
            chosen = NavigationConfig(a_max=a_max, body=body, seed=5, perturb=perturb)  # type: ignore[arg-type]
            mission = missions.mission_of(FLIGHTS, chosen, draws)
            parts = (
                mission.start,
                mission.goal,
                mission.speed,
                mission.acceleration,
                mission.lower,
                mission.upper,
                mission.flight,
            )
            values[f"{name} {a_max}"] = [np.asarray(part, float) for part in parts]
            radius = np.array([0.3, 0.2, 0.4])
            values[f"{name} {a_max} stands"] = list(missions.standing(mission, draws, radius))
    low = replace(mission, lower=mission.lower - [0.0, 0.0, 20.0])
    values["deep"] = list(missions.standing(low, draws, radius))
    values["radii"] = [missions.largest_radius(("virt_05", "real_09"), body) for body in ("sphere", "body")]
    moved = missions.layout_scene("maze", 1, 0, 2, 1.5)
    for k, actor in enumerate(moved.actors):
        values[f"mover {k}"] = np.array([(stop.time, *stop.position) for stop in actor.path])
    values["movers"] = [len(moved.actors), len(moved.shapes), len(moved.materials)]
    check_snapshot(FILES / "missions.txt", values, rtol=1e-9)


def own_config() -> OwnSceneConfig:
    pairs = (Pair((-2.0, 0.0, 1.0), (2.0, 0.0, 1.0), 4.5), Pair((0.0, 2.0, 1.0), (1.0, -2.0, 2.0), 6.0))
    mine = OwnScene("own_stage", "stage.toml", "abc", (-4.0, -4.0, 0.0), (4.0, 4.0, 3.0), 0.3, pairs)
    return OwnSceneConfig(scenes=("stage.toml",), places=(mine,), scenarios=())


def test_places_of_ones_own(told: Transcript, monkeypatch: Patch) -> None:
    place, chosen = stage(0, 0), own_config()
    second = Flight("own_stage", 2, "virt_05")
    told.run(
        "terms",
        lambda: (missions._terms(second, chosen), missions.own_line(second, chosen), missions.scene_sha256(second, chosen)),
    )
    found = own_scenes.feasible_pairs(place, "stage", 3, 0.3, np.random.default_rng(1))
    told.run("pairs", lambda: [plain(item) for item in found])
    told.run(
        "far",
        lambda: [plain(item) for item in own_scenes.feasible_pairs(place, "stage", 2, 0.1, np.random.default_rng(2), 5.0)],
    )
    told.run("too far", lambda: own_scenes.feasible_pairs(place, "stage", 2, 0.3, np.random.default_rng(1), 50.0))
    told.run("too large", lambda: own_scenes.feasible_pairs(place, "stage", 2, 3.0, np.random.default_rng(1)))
    told.run(
        "empty", lambda: own_scenes.feasible_pairs(replace(place, instances=()), "stage", 2, 0.3, np.random.default_rng(1))
    )
    taken = np.ones((2, 2, 30), bool)
    for heights in ((8, 20), (2, 29), (2,)):
        taken[:] = True
        taken[0, 1, list(heights)] = False
        told.run(f"starts at {heights}", lambda: own_scenes._starts(taken, 0.1).tolist())
    monkeypatch.setattr(own_scenes, "_scene", lambda specifier, unknown: (place, f"digest of {specifier}"))
    for words in ("stage", "a/b c!.toml", "x:3@1", "-.-", "y" * 60):
        told.run(words, lambda words=words: plain(own_scenes.make_own_scene(words, 1, 0.3, 4)))
    told.run("changed", lambda: own_scenes.load_own_scene(chosen.places[0]))
    told.run("same", lambda: own_scenes.load_own_scene(replace(chosen.places[0], sha256="digest of stage.toml")).name)
    for scenes, scenarios in (((), ("all",)), (("a/x.toml", "b/x.toml"), ("all",)), (("a",), ("maze",))):
        given = NavigationConfig(scenes=scenes, scenarios=scenarios, pairs=1)
        told.run(f"placed {scenes} {scenarios}", lambda given=given: placed_words(own_scenes.placed(given, 0.2)))
    told.run("placed again", lambda: own_scenes.placed(chosen, 0.3) is chosen)
    record = json.loads(json.dumps([{**vars(chosen.places[0]), "pairs": [vars(pair) for pair in chosen.places[0].pairs]}]))
    told.run("read", lambda: own_scenes.own_scenes_from(record) == chosen.places)
    for name, value in (("name", "stage"), ("word", 3), ("pairs", []), ("lower", [1, 2])):
        told.run(f"read {name}", lambda name=name, value=value: own_scenes.own_scenes_from([{**record[0], name: value}]))
    told.check(FILES / "own_places.txt")


def placed_words(found: NavigationConfig) -> Any:
    return [type(found).__name__, found.scenarios, [item.name for item in getattr(found, "places", ())]]


# ---- taking off -------------------------------------------------------------------------------------------------------------


def test_fingerprints() -> None:
    states = [np.arange(6.0).reshape(2, 3), np.ones((2, 4))]
    trace = takeoff.TraceHash([2, 3])
    found = [trace.texts()]
    trace.update(states, np.arange(8.0).reshape(2, 4), np.array([True, True]))
    found.append(trace.texts())
    trace.update(states, np.arange(8.0).reshape(2, 4) + 1.0, np.array([False, True]))
    found.append(trace.texts())
    other = takeoff.TraceHash([2, 3])
    other.update(states, np.array([[0.0, 1.0, 9.0, 9.0], [4.0, 5.0, 6.0, 9.0]]), np.array([True, True]))
    assert other.texts() == found[1]  # what a batch adds for neighbours with more rotors is no part of it
    check_snapshot(FILES / "fingerprints.txt", {f"{k}": " ".join(texts) for k, texts in enumerate(found)})


class Posing:
    """In place of a simulator: two flights whose numbers follow from the tick."""

    rotor_count = 2

    def __init__(self) -> None:
        self.tick = 0

    @property
    def time(self) -> Any:
        return np.array([0.01, 0.01]) * self.tick

    def field(self, name: str) -> Any:
        width = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3}.get(name)
        base = self.tick + np.arange(2.0) * 10.0
        return base if width is None else base[:, None] + np.arange(1.0, width + 1.0) * 0.1

    def rotors(self, name: str) -> Any:
        return self.field("rate")[:, :2] * (2.0 if name == "rotor_command" else 1.0)


def test_flown_tracks() -> None:
    track, posing = takeoff.FlownTrack(2, 100.0), Posing()
    for tick, active in enumerate(([True, True], [True, True], [True, False])):
        posing.tick = tick
        track.add(posing, np.array(active))  # type: ignore[arg-type]
    table = track.table(3)
    values: dict[str, Any] = {name: np.asarray(column, float) for name, column in table.columns.items()}
    values |= {"path 0": track.path(0), "path 1": track.path(1), "attitudes": track.attitudes(1)}
    check_snapshot(FILES / "tracks.txt", values)


def test_taking_off() -> None:
    """Three flights for a tenth of a second: nobody has settled, and where they are is known."""
    protocol = NavigationProtocol(settle_limit_s=0.1)
    draws = missions.draws_of(FLIGHTS[:2], 1, ROUGH)
    mission = missions.mission_of(FLIGHTS[:2], NavigationConfig(seed=1), draws)
    vehicles = [missions.flown_vehicle(flight.vehicle, "sphere") for flight in FLIGHTS[:2]]
    found = takeoff.fly_takeoff(vehicles, mission, draws, np.array([0.3, 0.3]), protocol)
    assert np.isnan(found.time).all()
    assert not found.settled.any()
    simulator = takeoff.Simulator(vehicles, takeoff.SimulatorConfig(level="tracking"), 2)
    before = {
        name: np.array(simulator.parameter(name)) for name in ("rotor_thrust", "control_position_gain", "control_rate_gain")
    }
    takeoff.apply_perturbation(simulator, draws)
    ratios = {
        name: np.array(simulator.parameter(name)).reshape(2, -1) / np.where(b == 0.0, 1.0, b).reshape(2, -1)
        for name, b in before.items()
    }
    values = {"state": dict(found.state), "ratios": ratios}
    check_snapshot(FILES / "taking_off.txt", values, rtol=1e-4)


# ---- rows and folders -------------------------------------------------------------------------------------------------------


def row(**changes: Any) -> dict[str, Any]:
    kinds = {str: "", int: 0, float: 0.5}
    made = {name: kinds[kind] for name, kind in flight_records.COLUMNS.items()}
    made |= {"pilot": "ego", "scenario": "maze", "configuration": 1, "vehicle": "virt_05", "outcome": "success", "success": 1}
    made |= {"category": "virtual"}
    return made | changes


def test_rows_on_file(told: Transcript) -> None:
    for name, rows in (
        ("good", [row(), row(repeat=1, outcome="collision", success=0)]),
        ("a wrong outcome", [row(outcome="won")]),
        ("a success that is none", [row(outcome="collision")]),
        ("no such layout", [row(configuration=11)]),
        ("layout 0", [row(), row(configuration=0)]),
        ("no such repeat", [row(repeat=-1)]),
        ("no such scenario", [row(scenario="mazes")]),
        ("own", [row(scenario="own_a", configuration=1000, line_m=3.0)]),
        ("own, beside", [row(scenario="own_a", line_m=3.0), row()]),
        ("own, too many", [row(scenario="own_a", configuration=1001, line_m=3.0)]),
        ("own, no line", [row(scenario="own_a", line_m=0.0)]),
        ("own, too far", [row(scenario="own_a", line_m=1e6)]),
        ("own, no name", [row(scenario="own_a b", line_m=3.0)]),
    ):
        Path("rows.parquet").write_bytes(store.parquet_bytes(rows, {"digest": "x"}))
        told.run(
            name, lambda: [(item["scenario"], item["outcome"], item.get("line_m")) for item in store.read_rows("rows.parquet")]
        )
    told.run("same", lambda: flight_records.same_row(row(time_s=float("nan")), row(time_s=float("nan"), versions="2")))
    told.run("other", lambda: flight_records.same_row(row(time_s=1.0, cause="a"), row(time_s=2.0, cause="b")))
    told.run("gone", lambda: flight_records.same_row(row(), {}))
    told.run("facts", lambda: [flight_records._facts(name) for name in ("real_01", "virt_05", "carl")])
    told.check(FILES / "rows.txt")


def test_manifests(told: Transcript) -> None:
    for name, value in (
        ("identity", {"config": [], "version": "1"}),
        ("identity", {"config": {}, "version": 1}),
        ("pilots", {"a": 1}),
        ("blocks", {"b": {"sha256": 1}}),
        ("blocks", {"b": {"sha256": "x", "seconds": {"a": 1.5}}}),
        ("blocks", {"b": {"sha256": "x", "seconds": {"a": "x"}}}),
        ("blocks", {"b": {"sha256": "x", "seconds": []}}),
        ("blocks", {"b": 3}),
        ("words", {"a": "b"}),
        ("words", {"a": 1}),
        ("division", {"division": "open", "because": ["a"]}),
        ("division", {"division": "open", "because": [1]}),
        ("division", {"division": 1}),
        ("division", {"division": "open"}),
        ("command", 3),
    ):
        told.run(f"{name} {value}", lambda name=name, value=value: store._KINDS[name](value))
    odd = NavigationConfig(seed=3, warm_up=1.0, decision_timeout=2.0, vehicles=("virt_05",), scenarios=("maze",), perturb=ROUGH)
    told.run("identity", lambda: store.identity_of(odd))
    told.run("usual", lambda: sorted(store.identity_of(NavigationConfig())["config"]))
    told.run("command", lambda: store.command_line(replace(odd, quick=True, json=True)))
    folder = Path("folder")
    folder.mkdir()
    identity = store.identity_of(odd)
    kept = store.NavigationStore(
        folder,
        identity,
        {"ego": {"a": 1}},
        {"words": {"ego": "ego"}, "division": {"division": "open", "because": ["pilot x", "--seed"]}},
    )
    kept.keep("one", [row()], {"flying": 1.23456})
    told.run(
        "kept",
        lambda: (
            kept.seconds(),
            [item["pilot"] for item in kept.rows("one")],
            kept.has("one"),
            kept._files("one").keys() == {"blocks/one.parquet"},
        ),
    )
    told.run("results", lambda: (kept.write_results([]), str(kept.write_results(["one"]))))
    again = store.NavigationStore(
        folder, identity, {"fast": {"b": 2}}, {"words": {"fast": "fast"}, "division": {"division": "closed", "because": []}}
    )
    told.run("again", lambda: (sorted(again.pilots), again.notes))
    told.run("another pilot", lambda: store.NavigationStore(folder, identity, {"ego": {"a": 2}}))
    told.run("read", lambda: sorted(store.read_manifest(folder)))
    for changes in ({"pilots": {"a": 1}}, {"words": 1}):
        (folder / "benchmark.json").write_text(json.dumps({**json.loads((folder / "benchmark.json").read_text()), **changes}))
        told.run(f"damaged {changes}", lambda: store.read_manifest(folder))
    told.check(FILES / "manifests.txt")


def test_configurations_come_back(told: Transcript) -> None:
    for chosen in (NavigationConfig(seed=3, decision_timeout=2.0, perturb=ROUGH, configurations=(2,)), own_config()):
        identity = json.loads(json.dumps(store.identity_of(chosen)))
        told.run(type(chosen).__name__, lambda i=identity: plain(flown_folder.config_of(i, "there")))
        for changes in ({"more": 1}, {"seed": -1}, {"protocol": {"x": 1}}, {"vehicles": 3}, {"trials": 11}):
            told.run(
                f"{changes}",
                lambda i=identity, c=changes: plain(flown_folder.config_of({"config": {**i["config"], **c}}, "there")),
            )
    told.run("nothing", lambda: flown_folder.config_of({}, "there"))
    told.run(
        "word",
        lambda: [replay._scene_specifier(row(scenario=name, configuration=4), own_config()) for name in ("own_stage", "maze")],
    )
    told.check(FILES / "configurations.txt")


# ---- who flies --------------------------------------------------------------------------------------------------------------


class Own:
    level, observes = "velocity", ("position", "estimate")
    batched = True

    def command(self, observation: Any) -> Any:
        return np.full((1, 4), observation["position"][0, 0])


class Planning:
    name = "plans"
    privileged = True

    def update(self) -> None: ...

    def setpoints(self) -> None: ...

    def reset(self) -> None: ...

    def check_ready(self) -> None:
        raise AirworthyError("It has no weights.")


def test_methods(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(methods, "_MADE", {})  # which others may have added
    for name in methods.method_names():
        told.run(name, lambda name=name: shown(methods.method_of(name, 0.45)))
    for given in (Own, Own(), Planning, object, SimpleNamespace(command=1)):
        told.run(
            f"own {getattr(given, '__name__', type(given).__name__)}", lambda given=given: shown(methods.own_method(given))
        )
    told.run("registered", lambda: methods.register(methods.NavigationMethod("ego", Own)))
    monkeypatch.setattr(methods, "_MADE", {"mine": methods.NavigationMethod("mine", Own)})
    told.run("twice", lambda: methods.register(methods.NavigationMethod("mine", Own)))
    told.run("made", lambda: shown(methods.method_of("mine")))
    for word in ("egoo", "x.py:K", "x.py:", ":K", "x:K"):
        told.run(f"word {word}", lambda word=word: (methods.is_own_pilot(word), shown(methods.method_of(word))))
    Path("x.py").write_text("class K:\n    name = 3\n\n    def command(self, observation):\n        return 0\n\n\nVALUE = 3\n")
    for word in ("x.py:K", "x.py:L", "x.py:VALUE"):
        told.run(f"file {word}", lambda word=word: {k: v for k, v in shown(methods.method_of(word)).items() if k != "identity"})
    told.run("ready", lambda: methods.check_ready(methods.own_method(Planning)))
    told.run("needs nothing", lambda: methods.check_ready(methods.own_method(Own)))
    told.run("no name", lambda: methods.own_pilot(methods.own_method(Own)))
    told.run("raises", lambda: methods.own_pilot(methods.NavigationMethod("bad", lambda: 1 / 0)))
    for who, changes in (
        ("ego", {}),
        ("oracle", {}),
        ("ego", {"seed": 3}),
        ("ego", {"a_max": "vehicle", "perturb": ROUGH}),
        ("own", {}),
    ):
        who_flies = methods.own_method(Own) if who == "own" else methods.method_of(who)
        told.run(f"division {who} {sorted(changes)}", lambda w=who_flies, c=changes: job.track_of(NavigationConfig(**c), [w]))
    for limit in (3.0, 4.0):
        slow = NavigationConfig(protocol=NavigationProtocol(acceleration_m_s2=limit))
        told.run(f"limit {limit}", lambda slow=slow: job.track_of(slow, []))
    for text in (
        'name = "a"\nnotes = "b"\n',
        'notes = "b"\n',
        'name = ""\n',
        'name = "a"\nmore = "x"\n',
        "name = 3\n",
        f'name = "{"x" * 4001}"\n',
    ):
        Path("system.toml").write_text(text)
        told.run(f"system {text[:30]!r}", lambda: job.read_system(Path("system.toml")))
    told.run("no system", lambda: job.read_system(None))
    told.check(FILES / "methods.txt")


def shown(item: methods.NavigationMethod) -> dict[str, Any]:
    return {key: value for key, value in vars(item).items() if key != "make"}


def test_what_own_files_import(told: Transcript) -> None:
    Path("mine").mkdir()
    Path("mine/__init__.py").write_text("")
    Path("mine/part.py").write_text("import other\n")
    Path("other.py").write_text("import os, json.decoder\nfrom . import x\n")
    Path("bare").mkdir()
    Path("bare/a.py").write_text("")
    Path("fast.so").write_text("")
    Path("broken.py").write_text("def (")
    Path("pilot.py").write_text(
        "import mine.part\nimport numpy\nimport bare\nimport fast\nimport broken\nfrom airworthy import x\n"
    )
    told.run("found", lambda: plain(own_modules.own_modules("pilot.py")))
    told.run("imports", lambda: sorted(own_modules._imported(Path("other.py"))))
    told.run("broken", lambda: sorted(own_modules._imported(Path("broken.py"))))
    told.run("nowhere", lambda: own_modules.own_modules("nowhere.py"))
    digests = [own_modules.own_digest("pilot.py"), own_modules.own_digest("broken.py")]
    Path("other.py").write_text("import os\n")
    told.run(
        "changes", lambda: [digests[0] != own_modules.own_digest("pilot.py"), digests[1] == own_modules.own_digest("broken.py")]
    )
    told.run("tops", lambda: sorted(own_modules._tops(own_modules.own_modules("pilot.py"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_modules, "FILES_MAX", 2)
        told.run("too many", lambda: plain(own_modules.own_modules("pilot.py")))
    told.run(
        "libraries",
        lambda: [
            own_modules._is_library(module) for module in (np, json, SimpleNamespace(__file__="/x/y.py"), SimpleNamespace())
        ],
    )
    told.run(
        "below",
        lambda: [
            own_modules._lies_below(SimpleNamespace(__file__=file), str(Path.cwd()))
            for file in (str(Path("a.py").resolve()), "/x/y.py", None)
        ],
    )
    told.check(FILES / "own_modules.txt")


def observation(count: int = 2) -> Observation:
    fields = {"position": np.arange(3.0 * count).reshape(count, 3), "velocity": np.ones((count, 3)), "height": np.ones(count)}
    return Observation(np.arange(count) * 0.5, fields, {})


def test_own_pilots(told: Transcript) -> None:
    draws = missions.draws_of(FLIGHTS, 0, Perturbation())
    mission = missions.mission_of(FLIGHTS, NavigationConfig(), draws)

    class Alone:
        name, level = "alone", "velocity"

        def reset(self, part: Any) -> None:
            if part.flight[0] == FLIGHTS[1].number:
                raise ValueError("no way")
            self.part = part

        def command(self, seen: Any) -> Any:
            if self.part.flight[0] == FLIGHTS[2].number:
                return np.full(4, np.nan)
            return np.arange(4.0) + seen["position"][0, 0]

    alone = agent_adapter.OwnPilots(Alone, mission, True)
    told.run("alone", lambda: (alone.name, alone.level, alone.observes, alone.causes))
    told.run("command", lambda: alone.command(observation(3)))
    told.run("failed", lambda: (alone.causes, alone.failed))
    together = agent_adapter.OwnPilots(Own, mission, False)
    told.run("together", lambda: (together.name, together.level, together.observes, together.command(observation(3))))
    for changes in ({"level": "thrust"}, {"observes": "position"}):
        kind = type("Wrong", (Own,), changes)
        told.run(f"{changes}", lambda kind=kind: agent_adapter.OwnPilots(kind, mission, False))
    part = agent_adapter.one_of(observation(3), 1)
    told.run("one of", lambda: (part.time, dict(part.fields)))
    told.run("part", lambda: [agent_adapter.part_of(mission, 2).start, agent_adapter.part_of(mission, 2).flight])
    counts = planner_adapter.CallCounts(2)
    told.run("calls", lambda: [counts.update(np.array([k, 2 * (k // 2)]), np.array([k // 11, 0])) for k in range(1, 12)])
    told.run("searching", lambda: (counts.searching, counts._vain, counts._idle))
    for _ in range(200):
        counts.update(np.array([11, 10]), np.array([1, 0]))
    told.run("given up", lambda: counts.searching)
    told.check(FILES / "own_pilots.txt")


def test_sensing(told: Transcript) -> None:
    settings = MapSettings()
    for name, chosen in (
        ("usual", NavigationConfig()),
        ("rough", NavigationConfig(perturb=ROUGH)),
        ("full", NavigationConfig(sensing="full")),
    ):
        for given in (None, settings):
            told.run(f"{name}, maps: {given is not None}", lambda c=chosen, g=given: plain(sensing.depth_camera(c, g)))
        told.run(f"{name} odometry", lambda chosen=chosen: plain(sensing.odometry_of(chosen)))
    tilted = np.array([[0.0, 0.0, 0.0, 1.0], [0.6, 0.0, 0.0, 0.8], [0.1, 0.2, 0.3, 0.9]])
    told.run("upright", lambda: sensing.upright(tilted))
    drifting = sensing.odometry_of(NavigationConfig(perturb=ROUGH))
    for level in ("tracking", "velocity"):
        sensed = sensing.Sensed(drifting, 3, np.array([1, 2]), level)
        told.run(
            f"{level} sees",
            lambda sensed=sensed: {name: np.round(v, 6) for name, v in sensed.observation(observation()).fields.items()},
        )
        told.run(f"{level} acts", lambda sensed=sensed: np.round(sensed.command(np.ones((2, 4))), 6))
    ideal = sensing.Sensed(sensing.odometry_of(NavigationConfig()), 3, np.array([1, 2]), "tracking")
    seen, given_command = observation(), np.ones((2, 4))
    told.run("ideal", lambda: (ideal.observation(seen) is seen, ideal.command(given_command) is given_command))
    told.check(FILES / "sensing.txt")


def test_flights_end_as_they_do(told: Transcript) -> None:
    place = stage(0, 0)
    batch = SceneBatch(place, 1)
    told.run("met", lambda: [fly_batch._met(batch, 0, k) for k in range(-1, 5)])
    told.run("only", lambda: [fly_batch._only(k, 3).tolist() for k in (0, 2)])
    brief = NavigationConfig(protocol=NavigationProtocol(time_limit_s=1.0, settle_limit_s=8.0), warm_up=0.0)
    asked: list[int] = []
    rows, seconds = job.flown_rows([FLIGHTS[0]], methods.method_of("straight"), brief, asked.append)
    assert set(seconds) == {"setup", "flying", "planning", "asked", "thinking", "calls"}
    kept = {name: value for name, value in rows[0].items() if isinstance(value, float | int) and "integral" not in name}
    words = {
        name: value
        for name, value in rows[0].items()
        if isinstance(value, str) and name in ("outcome", "cause", "pilot", "category")
    }
    told.run("words", lambda: (words, asked, seconds["asked"], seconds["calls"]))
    told.check(FILES / "ends.txt")
    # Single precision, over some thousand steps.
    check_snapshot(FILES / "row.txt", {name: value for name, value in kept.items() if np.isfinite(value)}, rtol=2e-3)
