"""Options that change nothing beside the others are refused with one sentence, from Python and the command line, and listed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import airworthy as aw
from airworthy.benchmarks import EvaluateConfig, FlyConfig, NavigationConfig, Perturbation, evaluate, run_benchmark, run_fly
from airworthy.benchmarks.tracking.methods import VehicleSpread
from airworthy.bridges.server import ServeConfig
from airworthy.capture import AlignOptions, CaptureVideoOptions, FilmOptions, RenderCaptureOptions, TrainOptions
from airworthy.capture.images import CaptureReading
from airworthy.cli.capture import AlignConfig
from airworthy.cli.courses import ValidateCourseConfig
from airworthy.cli.courses.drawing import DrawCourseConfig
from airworthy.cli.learning.synthesize import SynthesizeDatasetConfig
from airworthy.cli.learning.train_hover import TrainHoverConfig
from airworthy.cli.learning.train_task import TrainTaskConfig
from airworthy.cli.main import main
from airworthy.cli.scenes import ExportSceneConfig, MaterialsConfig, RenderSceneConfig
from airworthy.cli.vehicle_bench import BenchConfig
from airworthy.cli.vehicle_identify import IdentifyConfig
from airworthy.cli.view import ViewConfig
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, idle_options, option_name, refuse_idle, without_idle
from airworthy.gates import GatesBenchConfig, run_gates
from airworthy.gates.labels.config import GateLabelsConfig
from airworthy.gates.labels.job import synthesize_gates
from airworthy.gates.training import BoundaryOptions, train_boundary
from airworthy.learning import HoverConfig
from airworthy.learning.avoid.config import AvoidOptions
from airworthy.learning.datasets import DatasetConfig, synthesize_dataset
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.learning.svnet import RunOptions, SvNetOptions, train_svnet
from airworthy.learning.task_training.config import TaskConfig
from airworthy.learning.visuomotor.config import Augmentation, VisuomotorOptions
from airworthy.race.benchmark.job import RaceBenchConfig
from airworthy.race.learned.config import RacePolicyOptions
from airworthy.race.pilots.catalogue import race_pilot
from airworthy.scenes import Scene, scene
from airworthy.scenes.catalogue import SceneArguments
from airworthy.tasks.navigation import NavigationProtocol
from airworthy.vehicles import vehicle

REPOSITORY = Path(__file__).resolve().parents[2]


def _page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("idle_options_page", REPOSITORY / "tools" / "idle_options_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = _page()

# ---- Every rule, by an example: what is given, and what it meets ------------------------------------------------------------


def _bare(kind: Any, **given: Any) -> Any:
    """Return a configuration that was not checked when it was made."""
    made = object.__new__(kind)
    for name, item in kind.__dataclass_fields__.items():
        object.__setattr__(made, name, given.get(name, item.default))
    return made


def _fly(**given: Any) -> FlyConfig:
    return FlyConfig(**given)


def _nav(**given: Any) -> NavigationConfig:
    return NavigationConfig(**given)


def _scene_config(kind: Any, **given: Any) -> Any:
    return kind(name="forest", **given)


DRAGLESS, LAGLESS = vehicle("cf2x_scg_iros2022"), vehicle("cf2x_scg_iros2022")
SPLIT, UNSPLIT = SimpleNamespace(split=True, what="transforms.json"), SimpleNamespace(split=False, what="transforms.json")

EXAMPLES: dict[str, list[tuple[Any, ...]]] = {
    "airworthy fly": [
        (_fly(units="cm", up="y", recentre=True, keep_frame=True, voxel=0.1, unknown="free"),),
        (_fly(contact="respond"),),
        (_fly(course_check="warn"),),
        (_fly(course_check="warn", scene="forest", contact="none"),),
        (_fly(video_camera="chase", video_env=1, video_size=(320, 240), video_rate=20.0),),
        (_fly(record_rate=200.0),),
        (_fly(rotors="rotors.toml"),),
        (_fly(patience=2.0, wait=9.0),),
        (_fly(form="legacy"),),
        (_fly(dynamics="semi_kinematic", imu="ideal", ground=True, wind=(1.0, 0.0, 0.0), turbulence=1.0, integrator="euler"),),
        (_fly(start=(0.0, 0.0, 1.0), goal=(1.0, 0.0, 1.0)), False),
        (_fly(time_limit=5.0), False),
        (_fly(pilot="ego", course="line", laps=2, slower=2.0), True),
        (_fly(pilot="ego", hold=3.0), True),
        (_fly(pilot="ego", control_rate=50.0), True),
        (_fly(pilot="ego", course_check="none"), True),
        (_fly(pilot="ego", start=(0.0, 0.0, 1.0), goal=(1.0, 0.0, 1.0), waypoints=("0,0,1", "3,0,1")), True),
    ],
    "airworthy courses validate": [
        (ValidateCourseConfig(file=Path("line"), vehicle="racer", clear=1.0, view=False, unknown="free"),),
    ],
    "airworthy courses draw": [
        (DrawCourseConfig(out=Path("x.json"), points="0 0 1; 1 0 1", height=1.0, smooth=0.1, detail=0.2, clear=0.5),),
        (DrawCourseConfig(out=Path("x.json"), walk=Path("room"), scene="hall", check="warn"),),
        (DrawCourseConfig(out=Path("x.json"), points="0 0 1; 1 0 1", check="warn"),),
        (DrawCourseConfig(out=Path("x.json"), walk=Path("room"), clear=0.5),),
        (DrawCourseConfig(out=Path("x.json"), walk=Path("room"), host="localhost", port=0, open=True),),
        (DrawCourseConfig(out=Path("x.json"), yaw="fixed", json=True),),
    ],
    "airworthy evaluate": [
        (EvaluateConfig(rotors="rotors.toml"),),
        (EvaluateConfig(patience=2.0, wait=9.0),),
        (EvaluateConfig(conditions=("extended",), course="line"),),
        (EvaluateConfig(conditions=("extended",), scene="forest", unknown="free"),),
        (EvaluateConfig(conditions=("drones",), spread=VehicleSpread(mass=0.1)),),
        (EvaluateConfig(conditions=("drones",), spread=VehicleSpread(thrust=0.1)),),
        (EvaluateConfig(quick=True, conditions=("baseline",), flights=3),),
    ],
    "airworthy synthesize": [
        (DatasetConfig(view="none", scene="forest", clear=1.0, camera="other", light=(0.5, 2.0), image_noise=3.0),),
        (DatasetConfig(delay=0.004),),
        (DatasetConfig(keep_within=0.0, keep_rate=100.0),),
        (SimpleNamespace(cluster="auto", workers=3),),
        (SynthesizeDatasetConfig(view="none", course_check="warn"),),
        (SynthesizeDatasetConfig(preset="look", per_second=1.0, repetitions=1, keep_rate=50.0, view="32", shard=5),),
    ],
    "airworthy synthesize gates": [
        (GateLabelsConfig(randomisation="none", draws=3), DRAGLESS),
        (GateLabelsConfig(drag=False), DRAGLESS),
        (GateLabelsConfig(rotor_lag=False), LAGLESS),
    ],
    "airworthy train hover": [
        (_bare(HoverConfig, trainer="native_ppo", window=50, iterations=100, critic=True, memory="gru", history=2, delay=1),),
        (_bare(HoverConfig, steps=1000),),
        (_bare(HoverConfig, device="cuda", mirror="y"),),
        (_bare(TrainHoverConfig, rotors=Path("rotors.toml")),),
    ],
    "airworthy train motor_command": [(_bare(MotorCommandConfig, device="cuda", mirror="y"),)],
    "airworthy train race": [
        (
            _bare(
                RacePolicyOptions,
                updates=20,
                env_count=64,
                rollout=32,
                hold=2,
                warm_up=3,
                from_start=0.5,
                ppo_learning_rate=1e-3,
                initial_std=0.2,
                margin=0.2,
                margin_cost=1.0,
                crash_cost=5.0,
                smoothness_cost=0.1,
            ),
        ),
        (_bare(RacePolicyOptions, trainer="ppo", margin=0.2, margin_cost=0.0),),
    ],
    "airworthy train visuomotor": [
        (_bare(VisuomotorOptions, rounds=2, good_percent=90.0, good_m=0.2, augmentation=Augmentation()),),
        (_bare(VisuomotorOptions, looks=1, augmentation=Augmentation(0.1, 0.1, 0.1, 0.1, 1.0)),),
        (_bare(VisuomotorOptions, delay=0.004, augmentation=Augmentation()),),
    ],
    "airworthy train TASK": [
        (
            _bare(
                TaskConfig,
                trainer="gradient",
                option=("history=4",),
                hidden=(16, 16),
                episode_steps=100,
                randomize=("mass=0.1",),
            ),
        ),
        (_bare(TrainTaskConfig, rotors=Path("rotors.toml")),),
    ],
    "airworthy train svnet": [
        (SvNetOptions(variant="no_rma", form="code", history_dropout=0.1),),
        (SvNetOptions(variant="no_pretrain", history_epochs=3, history_batch=8, history_rate=1e-3, normalize=True),),
        (SvNetOptions(history_epochs=0, history_batch=8, history_rate=1e-3, history_dropout=0.1, normalize=True),),
        (
            SvNetOptions(
                variant="hp_net", view=112, brightness=0.1, image_noise=1.0, paste=0.1, weights="w", precision="float32"
            ),
        ),
        (RunOptions(resident="yes"), SvNetOptions(variant="hp_net")),
    ],
    "airworthy train avoid": [
        (_bare(AvoidOptions, vehicles="", condition="none", identify_steps=9),),
        (_bare(AvoidOptions, vehicles="virtual", condition="told", identify_steps=9),),
    ],
    "airworthy train boundary": [
        (BoundaryOptions(safe=1.0, unsafe=1.0, alpha=5.0),),
        (BoundaryOptions(noise=0.0, noise_on="physical"),),
        (BoundaryOptions(epochs=20, rate_step=20, gamma=0.5),),
        (BoundaryOptions(gamma=1.0, rate_step=20),),
    ],
    "airworthy bench navigation": [
        (_nav(pairs=3, least_distance=2.0),),
        (_nav(unknown="free"),),
        (_nav(scenes=("yard",), trials=2, configurations=(1, 2)),),
        (_nav(trials=2, configurations=(3, 4)),),
        (_nav(scenarios=("forest", "urban"), hard_repeats=3),),
        (_nav(perturb=Perturbation(moving_speed=2.0)),),
        (_nav(scenes=("yard",), perturb=Perturbation(moving_obstacles=2)),),
        (
            _nav(
                pilots=("straight", "oracle"),
                sensing="full",
                perturb=Perturbation(depth_noise=0.1, depth_dropout=0.1, latency=0.1),
            ),
        ),
        (_nav(compute="zero"),),
        (_nav(pilots=("ego",), warm_up=3.0),),
        (_nav(protocol=NavigationProtocol(ceiling_is_solid=True, above_m=1.0)),),
        (_nav(cluster="auto", workers=4),),
        (_nav(quick=True, vehicles=("real_01",), trials=1),),
    ],
    "airworthy bench gates": [
        (GatesBenchConfig(randomize="identified", mass_spread=0.005),),
        (GatesBenchConfig(reserve=0.3, body_rate=2.0, yaw_acceleration=3.0, rotor_share=0.8),),
        (GatesBenchConfig(random=0, random_gates=4, random_heading=0.3, random_compared=3, block=7),),
        (GatesBenchConfig(certificate="vehicle", limit=(3.0, 0.2), network="oracle:published"),),
        (GatesBenchConfig(courses=(), flights=3, laps=2),),
        (GatesBenchConfig(network="oracle", baselines=("search:published",), off_grid=7),),
        (GatesBenchConfig(device="cuda:0", threads=2),),
        (GatesBenchConfig(quick=True, courses=("circle_8",), flights=2, random=2, random_compared=1, off_grid=3),),
    ],
    "airworthy bench race": [
        (RaceBenchConfig(charge_compute="0.2"), [race_pilot("servo")]),
        (RaceBenchConfig(in_process=True), [SimpleNamespace(name="external:5000")]),
        (RaceBenchConfig(patience=5.0, in_process=True), [race_pilot("servo")]),
        (RaceBenchConfig(decoy_beacons=True), [race_pilot("truth:race"), race_pilot("race:camera"), race_pilot("race:stereo")]),
    ],
    "airworthy scenes show, validate, export, render": [
        (SceneArguments("cm", "y", None, 0.1), "generator"),
        (SceneArguments("cm", "y", None, 0.1), "scene file"),
        (SceneArguments(voxel=0.1), "mesh"),
        (SceneArguments(recentre=True), "splats"),
        (SceneArguments(unknown="free"), "mesh"),
    ],
    "airworthy scenes export": [
        (_scene_config(ExportSceneConfig, spacing=0.2, ground=False, inside=True), "glb"),
        (_scene_config(ExportSceneConfig, time=1.0), "toml"),
        (_scene_config(ExportSceneConfig, time=1.0), Scene("still")),
    ],
    "airworthy scenes render": [
        (_scene_config(RenderSceneConfig, eye=(0.0, 0.0, 1.0), target=(1.0, 0.0, 1.0), view="top"),),
        (
            _scene_config(
                RenderSceneConfig, channels=("depth",), samples=1, bake=True, shade=False, sky=("noon",), exposure="12"
            ),
        ),
        (_scene_config(RenderSceneConfig, channels=("depth",), quality="still"),),
        (_scene_config(RenderSceneConfig, quality="still", bake=True, shade=False),),
        (_scene_config(RenderSceneConfig, quality="policy", shade=False),),
        (_scene_config(RenderSceneConfig, bake=True, shade=False),),
        (_scene_config(RenderSceneConfig, seed=5),),
        (_scene_config(RenderSceneConfig, time=1.0), Scene("still")),
    ],
    "airworthy scenes materials": [(MaterialsConfig(cell=128, columns=3, map_size=256),)],
    "airworthy capture show, align, train": [
        (CaptureReading(every=4), SPLIT),
        (CaptureReading(images="images_2"), UNSPLIT),
    ],
    "airworthy capture render": [(_bare(RenderCaptureOptions, along="line", held_out=3),)],
    "airworthy capture align": [
        (AlignConfig(folder=Path("set"), refine=False),),
        (AlignConfig(folder=Path("set"), image_times=Path("t.json"), imu_axes="x,y,z"),),
        (AlignOptions(dictionary="6x6_250"), {0: {}}),
        (AlignOptions(unscaled=True, known_distance=(("0,0,0", "1,0,0", 1.0),)), None),
        (AlignOptions(level="marker", marker_on="wall"), None),
    ],
    "airworthy capture train": [
        (_bare(TrainOptions, camera_rate=1e-3),),
        (_bare(TrainOptions, degree=0, degree_every=50),),
        (_bare(TrainOptions, relocate_until=0.0, relocate_every=50, grow=1.1, strain=1e-3, fade_every=500),),
        (_bare(TrainOptions, strain=1e-3, fade_every=500),),
        (_bare(TrainOptions, densify="gradient", grow=1.1, noise=1.0),),
        (_bare(TrainOptions, surfaces_from=0.5),),
        (_bare(TrainOptions, place_rate=0.0, noise=1.0),),
    ],
    "airworthy serve": [
        (_bare(ServeConfig, clock="lockstep", factor=2.0),),
        (_bare(ServeConfig, autopilot="px4", form="4.4", self_test=True),),
        (_bare(ServeConfig, autopilot="ardupilot", magnetometer="rm3100", barometer="bmp388", gnss="m8n"),),
        (_bare(ServeConfig, autopilot="ardupilot", home=(1.0, 2.0, 3.0)),),
    ],
    "airworthy vehicles bench": [
        (BenchConfig(propeller="10x4.5", map=Path("m.toml"), motors=4),),
        (BenchConfig(Path("stand.csv"), propeller_table=Path("p.txt")),),
        (BenchConfig(propeller="10x4.5", voltage=11.1),),
    ],
    "airworthy vehicles identify": [
        (IdentifyConfig((Path("a.ulg"),), bench_map=Path("m.toml")),),
        (IdentifyConfig((Path("a.ulg"),), rotor="2212-980"),),
        (IdentifyConfig((Path("a.ulg"),), propeller_table=Path("p.txt")),),
        (IdentifyConfig((Path("a.ulg"),), propeller="10x4.5", voltage=11.1),),
    ],
    "airworthy view": [
        (ViewConfig("run", export=Path("x.html"), host="localhost", port=0, open=True, training=True),),
    ],
    "airworthy capture video": [
        (_bare(CaptureVideoOptions, rule="published", frames=50),),
        (_bare(CaptureVideoOptions, train=False, steps=10, train_width=99, gaussians=200),),
    ],
    "airworthy capture film": [(_bare(FilmOptions, shutter=0.0, exposures=2),)],
}
"""Command -> an example of each of its rules, in their order: a configuration, and what else the rule is told."""

CASES = [
    pytest.param(rule, example, id=f"{command.removeprefix('airworthy ')}: {option_name(rule.options[0])[2:]} {k}")
    for command, rules in PAGE.COMMANDS.items()
    for k, (rule, example) in enumerate(zip(rules, EXAMPLES[command], strict=True))
]


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_every_option_of_every_rule_is_refused(rule: IdleRule, example: tuple[Any, ...]) -> None:
    """One clear sentence: the option with its value, why nothing reads it, what to do."""
    config, *known = example
    if isinstance(config, SimpleNamespace):  # arguments of a call, of which no configuration is made
        assert rule.when(config, *known)
        return
    found = list(idle_options(config, [rule], *known))
    assert [name for _, name, _ in found] == list(rule.options)
    with pytest.raises(AirworthyError, match=r"^--[a-z.-]+.* changes nothing .*: .*leave it out.*\.$"):
        refuse_idle(config, [rule], *known)


@pytest.mark.parametrize(
    ("example", "command"),
    [
        ((_fly(),), "airworthy fly"),
        ((_fly(scene="forest", contact="respond", record=("video",), video_rate=20.0), False), "airworthy fly"),
        ((_fly(pilot="ego", scene="forest", time_limit=5.0, start=(0.0, 0.0, 1.0)), True), "airworthy fly"),
        ((EvaluateConfig(course="line", scene="forest", spread=VehicleSpread(mass=0.1), quick=True),), "airworthy evaluate"),
        ((EvaluateConfig(conditions=("extended", "baseline"), course="line"),), "airworthy evaluate"),
        ((SynthesizeDatasetConfig(scene="forest", delay=0.01, preset="own", course_check="warn"),), "airworthy synthesize"),
        ((_nav(scenes=("yard",), scenarios=("forest",), trials=2, pairs=3, workers=3),), "airworthy bench navigation"),
        ((_nav(pilots=("straight", "ego"), sensing="full", compute="zero", quick=True),), "airworthy bench navigation"),
        (
            (GatesBenchConfig(certificate="vehicle", reserve=0.3, limit=(3.0, 0.2), baselines=("oracle",)),),
            "airworthy bench gates",
        ),
        ((TrainHoverConfig(iterations=100, delay=1, vehicle="a.urdf", rotors=Path("r.toml")),), "airworthy train hover"),
        ((TrainHoverConfig(trainer="native_ppo", steps=100_000),), "airworthy train hover"),
        ((TrainHoverConfig(trainer="ppo", steps=100_000, device="auto"),), "airworthy train hover"),
        ((MotorCommandConfig(trainer="ppo", device="cuda:1", mirror="xy"),), "airworthy train motor_command"),
        ((RacePolicyOptions(trainer="ppo", updates=20, hold=2, margin=0.2),), "airworthy train race"),
        ((VisuomotorOptions(good_m=0.2, delay=0.01, augmentation=Augmentation(light=0.1)),), "airworthy train visuomotor"),
        ((BoundaryOptions(alpha=5.0, rate_step=20, gamma=0.5, noise_on="physical"),), "airworthy train boundary"),
        ((SvNetOptions(history_epochs=3, view=112, form="code"),), "airworthy train svnet"),
    ],
)
def test_options_that_something_reads_are_taken(example: tuple[Any, ...], command: str) -> None:
    """No rule refuses what another configuration has a use for; nor anything at its default."""
    config, *known = example
    for rule in PAGE.COMMANDS[command]:
        if rule.when.__code__.co_argcount == 1 + len(known) and rule is not PAGE.CLUSTER_WORKS:
            refuse_idle(config, [rule], *known)


def test_what_changes_nothing_can_be_left_out_for_the_user() -> None:
    rules = PAGE.COMMANDS["airworthy bench navigation"]
    config = _nav(pairs=3, trials=2, perturb=Perturbation(moving_speed=2.0, drift=0.1))
    cleaned = without_idle(config, rules)
    assert cleaned == _nav(trials=2, perturb=Perturbation(drift=0.1))
    refuse_idle(cleaned, rules)


def test_options_are_written_as_on_the_command_line() -> None:
    given = {"video_rate": 20.0, "report": False, "perturb.moving_speed": 2.5, "wind": (1.0, 0.0, 0.5), "bake": True}
    names = [option_name(name, value) for name, value in given.items()]
    assert names == ["--video-rate 20", "--no-report", "--perturb.moving-speed 2.5", "--wind 1 0 0.5", "--bake"]
    assert option_name("spread.mass") == "--spread.mass"
    assert len(option_name("course", "x" * 500)) < 60


def test_the_page_is_that_of_the_rules() -> None:
    path = REPOSITORY / "docs" / "howto" / "idle_options.md"
    assert path.read_text(encoding="utf-8") == PAGE.page(), f"python tools/idle_options_page.py {path.relative_to(REPOSITORY)}"


# ---- Each job refuses by itself: what Python calls is what the command line calls -------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda out: run_fly(FlyConfig(contact="reset", out=out)), "--contact reset changes nothing"),
        (lambda out: run_fly(FlyConfig(time_limit=5.0, out=out)), "--time-limit 5 changes nothing"),
        (lambda out: run_fly(FlyConfig(pilot="ego", scene="forest", hold=3.0, out=out)), "--hold 3 changes nothing"),
        (
            lambda out: run_fly(FlyConfig(vehicle=("carl",), randomize=("drag=0.2",), out=out)),
            "--randomize drag=0.2 changes nothing, since carl has no drag",
        ),
        (
            lambda out: run_fly(FlyConfig(dynamics="semi_kinematic", randomize=("lag=0.2",), out=out)),
            "--randomize lag=0.2 changes nothing in semi-kinematic dynamics",
        ),
        (
            lambda out: run_fly(FlyConfig(pilot="straight", scene="forest", control_rate=50.0, out=out)),
            "--control-rate 50 changes nothing for a planner",
        ),
        (lambda out: evaluate(EvaluateConfig(conditions=("extended",), course="line", out=out)), "--course line changes"),
        (lambda out: synthesize_dataset(DatasetConfig(view="none", clear=1.0), out), "--clear 1 changes nothing"),
        (lambda out: synthesize_dataset(DatasetConfig(), out, cluster="auto", workers=2), "--workers 2 changes nothing"),
        (lambda out: synthesize_gates(GateLabelsConfig(rotor_lag=False), out), "--no-rotor-lag changes nothing"),
        (lambda out: train_svnet(None, out, SvNetOptions(variant="no_rma", history_epochs=2)), "--history-epochs 2"),  # type: ignore[arg-type]
        (
            lambda out: train_svnet(None, out, SvNetOptions(variant="hp_net"), RunOptions(resident="no")),  # type: ignore[arg-type]
            "--resident no changes nothing",
        ),
        (lambda out: train_boundary(None, out, BoundaryOptions(gamma=1.0, rate_step=9)), "--rate-step 9 changes"),  # type: ignore[arg-type]
        (lambda out: run_benchmark(NavigationConfig(pairs=3, out=out)), "--pairs 3 changes nothing without --scenes"),
        (lambda out: run_gates(GatesBenchConfig(courses=(), laps=2, out=out), []), "--laps 2 changes nothing"),
        (lambda out: scene("forest", "cm"), "--units cm changes nothing for a scene of the catalogue"),
        (lambda out: scene("forest", recentre=True), "--recentre changes nothing"),
        (lambda out: RenderCaptureOptions(along="line", held_out=3), "--held-out 3 changes nothing with --along"),
        (lambda out: TrainOptions(camera_rate=1e-3), "--camera-rate 0.001 changes nothing without --cameras"),
        (lambda out: aw.render("forest", (0.0, 0.0, 2.0), (1.0, 0.0, 2.0), channels=("depth",), samples=2), "samples changes"),
    ],
)
def test_python_calls_refuse_before_anything_is_written(call: Callable[[Path], object], says: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError) as refused:
        call(tmp_path / "out")
    assert str(refused.value).startswith(says)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("evaluate --conditions extended --scene forest", "--scene forest changes nothing under these --conditions"),
        ("synthesize --view none --light 0.5 2", "--light 0.5 2 changes nothing with --view none"),
        ("synthesize gates --no-drag", "--no-drag changes nothing for a vehicle whose record has no drag"),
        ("bench navigation --pairs 5 --pilots straight --out x", "--pairs 5 changes nothing without --scenes"),
        ("bench navigation --least-distance 5", "--least-distance 5 changes nothing without --scenes"),
        ("fly --course line --time-limit 5", "--time-limit 5 changes nothing for a pilot that follows a course, whose end"),
        ("bench navigation --trials 2 --configurations 1", "--trials 2 changes nothing beside --configurations"),
        ("train race --updates 9", "--updates 9 changes nothing for the trainer imitation"),
        ("bench smoke --quick", "--quick changes nothing for airworthy bench smoke"),
        ("bench gates --courses line --quick --network oracle --off-grid 5", "--off-grid 5 changes nothing where no network"),
        ("scenes render forest --eye 0 0 1 --target 1 0 1 --view top", "--view top changes nothing with --eye"),
        ("scenes materials brick --cell 128", "--cell 128 changes nothing without --out"),
        ("scenes render empty_room --time 3", "--time 3 changes nothing in a scene where nothing moves"),
        ("scenes export forest --out x.glb --spacing 0.5", "--spacing 0.5 changes nothing in a file that is no cloud"),
        ("scenes show forest --voxel 0.2", "--voxel 0.2 changes nothing for a scene of the catalogue"),
    ],
)
def test_commands_refuse_with_one_sentence(
    arguments: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 2
    message = capsys.readouterr().err
    assert message.startswith(says)
    assert message.count("\n") == 1
    assert not list(tmp_path.iterdir())
