"""SV-Net in other programs: by the contract's text, by the runner without the package, and in C; the commands of a flight."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learning.test_export_motor import run_c
from tests.pilots.contract_stranger import Stranger
from tests.pilots.svnet_cases import contract, weights

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.learning import export_policy
from airworthy.pilots import FlightPlan, fly, policy_camera, svnet_pilot
from airworthy.pilots.pilot import Observation
from airworthy.pilots.svnet.contract import PolicyImage, read_policy, shipped_policy, write_policy
from airworthy.pilots.svnet.example import example_image
from airworthy.pilots.svnet.pilot import policy_images
from airworthy.pilots.svnet.variants import VARIANTS, variant
from airworthy.scenes import SceneBatch, scene
from airworthy.simulation import MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.trajectories import course, kinematic_state
from airworthy.vehicles import vehicle

PARITY = 1e-5
"""Of commands [share of full thrust, rad/s], and of what the network reads."""
ROUNDING = 1e-6
"""Of a command that is decided of the same past; 3.6e-7 was found, of a network in float64, too."""
DRIFT = 1e-4
"""Of commands over five seconds in which each program remembers its own. A policy that reads what it commanded forgets little:
a push of 1e-4 in one command is 9e-5 in another five seconds later, and 3.6e-7 in each became 0.3e-5 to 2.6e-5 in six draws."""
compiled = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
CARL = vehicle("carl")
FULL, WEIGHT = 27.6, CARL.mass * CARL.gravity
SIDE = 24

Fly = Callable[..., Any]


# ---- flights of the package's own pilot, tick by tick -----------------------------------------------------------------------


class Recorder:
    """A pilot that keeps what another one is given and commands."""

    def __init__(self, pilot: Any):
        self.pilot, self.kept = pilot, list[dict[str, Any]]()
        self.name, self.level, self.observes = pilot.name, pilot.level, pilot.observes

    def command(self, observation: Observation) -> Array:
        command = np.array(self.pilot.command(observation))
        shown = observation.sample("camera")
        self.kept.append(
            {
                "time": float(observation.time[0]),
                "place": float(observation["height"][0]),
                "velocity": np.array(observation["velocity"][0]),
                "attitude": np.array(observation["attitude"][0]),
                "image": policy_images(self.pilot.contract.view, shown["rgb"])[0] if shown.valid[0] else None,
                "command": command[0],
            }
        )
        return command


@pytest.fixture(scope="module")
def recorded() -> tuple[Path, Array, list[dict[str, Any]]]:
    """Five seconds of the shipped policy in its hall: folder, objective in the network's frames, ticks."""
    folder = shipped_policy()
    made = read_policy(folder)[0]
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100, control_rate=50)
    sim, path = Simulator(CARL, config, 1), course("robustness")
    begin = path.trajectory().sample(np.array([0.0]))
    attitude = kinematic_state(begin).attitude[0]
    sim.reset(position=begin.position[0] + [0.1, -0.2, 0.05], velocity=begin.velocity[0] + 0.2, attitude=attitude)
    camera = MountedSensor(policy_camera(CARL, made))
    mounted = MountedSensors(sim, SceneBatch(scene("hall"), 1), {"camera": camera})
    recorder = Recorder(svnet_pilot(folder, sim, path, "camera", mounted))
    fly(sim, recorder, FlightPlan(5.0), mounted=mounted)
    assert len(recorder.kept) == 250
    assert made.setting is not None
    return folder, made.setting.objective("robustness"), recorder.kept


SCALE = np.array([FULL, 1.0, 1.0, 1.0])


def worst(flown: Fly, ticks: list[dict[str, Any]], remind: Callable[[Array], None] = lambda _: None) -> float:
    """Largest difference of a command: thrust as a share of full thrust, rates [rad/s].

    `remind` puts the command that was flown, as the network says it, in the place of what the program itself commanded.
    """
    names, off = ("time", "place", "velocity", "attitude", "image"), []
    for tick in ticks:
        off.append(np.abs(flown(*(tick[name] for name in names)) - tick["command"]) / SCALE)
        remind(as_said(tick))
    return float(np.max(off))


def as_said(tick: dict[str, Any]) -> Array:
    """The command of a tick in the network's frames."""
    return np.asarray(tick["command"]) / SCALE * [-1.0, 1.0, -1.0, -1.0]


def test_a_stranger_gives_the_same_commands_by_the_contracts_text(recorded: tuple[Path, Array, list[dict[str, Any]]]) -> None:
    folder, objective, ticks = recorded
    commands = np.array([tick["command"] for tick in ticks])
    assert np.ptp(commands, axis=0).min() > 0.05  # it steers: constant commands would be easy to repeat
    # Twenty-six decisions: its history of five ticks is full, and turns over five times.
    stranger = Stranger(folder, objective, FULL, WEIGHT)
    assert worst(stranger.tick, ticks[:65], lambda said: setattr(stranger, "in_force", said)) <= ROUNDING


def test_the_runner_without_the_package_gives_the_same_commands(
    recorded: tuple[Path, Array, list[dict[str, Any]]], tmp_path: Path
) -> None:
    runner_module = load_runner()
    folder, _, ticks = recorded
    model = export_policy(folder, tmp_path / "policy.onnx")
    runner = runner_module.Runner(str(model), "robustness", FULL, WEIGHT)
    assert worst(runner.decide, ticks, lambda said: setattr(runner, "given", said)) <= ROUNDING
    runner.reset()
    assert worst(runner.decide, ticks) <= DRIFT
    runner.reset()
    assert worst(runner.decide, ticks[:20]) <= PARITY


@compiled
def test_c_gives_the_same_commands(recorded: tuple[Path, Array, list[dict[str, Any]]], tmp_path: Path) -> None:
    """Heads in C, on scores of the backbone through onnxruntime."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    folder, objective, ticks = recorded
    export_policy(folder, tmp_path / "hall.h")
    session = onnxruntime.InferenceSession((tmp_path / "hall_backbone.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    due = [ticks[0]]  # commands are taken 50 times a second, decisions made 20: which ticks are due is the caller's in C
    for tick in ticks:
        if int(20 * tick["time"] + 1e-3) != int(20 * due[-1]["time"] + 1e-3):
            due.append(tick)
    assert len(due) == 100
    rows = []
    for k, tick in enumerate(due):
        (scores,) = session.run(["scores"], {"image": tick["image"][None]})
        dt = tick["time"] - due[k - 1]["time"] if k else 0.0
        rows.append(np.concatenate([[dt, tick["place"]], tick["velocity"], tick["attitude"], scores[0], as_said(tick)]))
    numbers = ", ".join(f"{np.float32(x)!r}".removeprefix("np.float32(").removesuffix(")") + "f" for x in objective)
    source = f"""#include "hall.h"
static float x[1013];
int main(void)
{{
    static const float objective[18] = {{{numbers}}};
    static hall_state own, told; /* remembers its own commands; is told what was commanded */
    float command[8];
    hall_reset(&own, {WEIGHT / FULL:.9g}f);
    hall_reset(&told, {WEIGHT / FULL:.9g}f);
    while (fread(x, sizeof(float), 1013, stdin) == 1013) {{
        hall_sense(&own, x[0], x[1], x + 2, x + 5);
        hall_decide(&own, objective, x + 9, {FULL:.9g}f, command);
        hall_sense(&told, x[0], x[1], x + 2, x + 5);
        hall_decide(&told, objective, x + 9, {FULL:.9g}f, command + 4);
        memcpy(told.given, x + 1009, sizeof told.given);
        fwrite(command, sizeof(float), 8, stdout);
    }}
    return 0;
}}
"""
    found = run_c(tmp_path, source, np.array(rows), 8)
    wanted = np.array([tick["command"] for tick in due]) / SCALE
    np.testing.assert_allclose(found[:, 4:] / SCALE, wanted, rtol=0.0, atol=ROUNDING)
    np.testing.assert_allclose(found[:, :4] / SCALE, wanted, rtol=0.0, atol=DRIFT)


# ---- the worked example, for every variant ----------------------------------------------------------------------------------


def load_runner() -> Any:
    pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    pytest.importorskip("onnx", reason="the extra 'export' is not installed")
    from airworthy.learning import svnet_runner

    return svnet_runner


def example_of(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "contract.json").read_text())["example"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize("name", VARIANTS)
def test_a_stranger_repeats_the_worked_example(name: str, form: Any, tmp_path: Path) -> None:
    write_policy(tmp_path, replace(contract(name, SIDE), history=form), weights(name))
    example = example_of(tmp_path)
    stranger = Stranger(tmp_path, example["objective"], example["full_thrust_n"], example["weight_n"])
    decided = 0
    for number, tick in enumerate(example["ticks"]):
        sensed = tick["sensed"]
        place = sensed["height"] if stranger.sees else sensed["position"]
        image = example_image(number, SIDE, SIDE) if tick.get("image") else None
        command = stranger.tick(tick["time_s"], place, sensed["velocity"], sensed["attitude"], image)
        np.testing.assert_allclose(command, [tick["thrust_n"], *tick["body_rates"]], rtol=0.0, atol=FULL * PARITY)
        for key in ("state", "history", "command", "estimate"):
            if key in tick:
                decided += 1
                np.testing.assert_allclose(stranger.read[key], tick[key], rtol=0.0, atol=PARITY)
    assert decided >= 3 * 7
    assert any(tick["sensed"]["attitude"][3] < 0 for tick in example["ticks"])


@pytest.mark.parametrize("name", VARIANTS)
def test_the_runner_repeats_the_worked_example_and_says_how_long_it_takes(name: str, tmp_path: Path) -> None:
    """In a fresh interpreter, alone with what it imports."""
    load_runner()
    write_policy(tmp_path, contract(name, SIDE), weights(name))
    export_policy(tmp_path, tmp_path / "policy.onnx")
    runner = export_policy(tmp_path, tmp_path / "runner.py")
    code = f"import runpy, sys; sys.argv = ['runner.py', 'policy.onnx']; runpy.run_path({str(runner)!r}, run_name='__main__');"
    code += "print(sorted(m for m in sys.modules if m.startswith('airworthy')))"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    said, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    assert said.endswith("ms a decision")
    assert float(said.split("at most ")[1].split(" off")[0]) <= FULL * PARITY


@compiled
@pytest.mark.parametrize("name", ["hp_net", "sv_grid", pytest.param("sv_lite", marks=pytest.mark.slow)])
def test_the_worked_example_in_c(name: str, tmp_path: Path) -> None:
    """The variant that is told everything, whole; and one with other scores."""
    load_runner()
    write_policy(tmp_path, replace(contract(name, SIDE), history="code"), weights(name))
    example, sees, size = example_of(tmp_path), name != "hp_net", max(variant(name).scores, 1)
    export_policy(tmp_path, tmp_path / "net.h")
    assert (tmp_path / "net_backbone.onnx").exists() == sees
    rows, before = [], 0.0
    for number, tick in enumerate(example["ticks"]):
        sensed, scores = tick["sensed"], np.zeros(size)
        if sees and tick["image"]:
            scores = backbone_scores(tmp_path / "net_backbone.onnx", example_image(number, SIDE, SIDE))
        place = [sensed["height"], 0.0, 0.0] if sees else sensed["position"]
        head = [float(tick.get("image", True)), tick["time_s"] - before, tick["time_s"]]
        rows.append(np.concatenate([head, place, sensed["velocity"], sensed["attitude"], scores]))
        before = tick["time_s"]
    place, shown = ("x[3]", ", x + 13") if sees else ("x[2], x + 3", "")
    objective = ", ".join(f"{float(value)!r}f" if "e" in repr(value) else f"{float(value)}f" for value in example["objective"])
    source = f"""#include "net.h"
static float x[{13 + size}];
int main(void)
{{
    static const float objective[18] = {{{objective}}};
    static net_state state;
    float command[4] = {{{example["weight_n"]!r}f, 0.0f, 0.0f, 0.0f}};
    net_reset(&state, {example["weight_n"] / example["full_thrust_n"]:.9g}f);
    while (fread(x, sizeof(float), {13 + size}, stdin) == {13 + size}) {{
        net_sense(&state, x[1], {place}, x + 6, x + 9);
        if (x[0] != 0.0f) net_decide(&state, objective{shown}, {example["full_thrust_n"]!r}f, command);
        fwrite(command, sizeof(float), 4, stdout);
        fwrite(state.history, sizeof(float), 75, stdout);
    }}
    return 0;
}}
"""
    found = run_c(tmp_path, source, np.array(rows), 79)
    for row, tick in zip(found, example["ticks"], strict=True):
        command = np.array([tick["thrust_n"], *tick["body_rates"]]) / [FULL, 1, 1, 1]
        np.testing.assert_allclose(row[:4] / [FULL, 1, 1, 1], command, rtol=0.0, atol=PARITY)
        if "history" in tick:
            np.testing.assert_allclose(row[4:], tick["history"], rtol=0.0, atol=PARITY)


def backbone_scores(path: Path, image: Any) -> ArrayF32:
    import onnxruntime

    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"image": image[None]})
    return np.asarray(scores[0])


# ---- whole images -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "whole"), [(56, (90, 160)), (56, (64, 64)), (112, (360, 640)), (21, (40, 31))])
def test_whole_images_are_resized_as_the_contract_says(side: int, whole: tuple[int, int], tmp_path: Path) -> None:
    """Byte for byte, by the stranger and by the runner: sizes that shrink, and one that stretches."""
    runner_module = load_runner()
    made = contract(side=side)
    write_policy(tmp_path, made, weights())
    model = export_policy(tmp_path, tmp_path / "policy.onnx")
    image = np.random.default_rng(5).integers(0, 256, (*whole, 3), np.uint8)
    wanted = policy_images(PolicyImage.of_side(side), image[None])[0]
    runner = runner_module.Runner(str(model), np.zeros(18), FULL, WEIGHT)
    np.testing.assert_array_equal(runner.view(image), wanted)
    stranger = Stranger(tmp_path, np.zeros(18), FULL, WEIGHT)
    np.testing.assert_array_equal(stranger.view(image), stranger.view(wanted))


def test_a_cut_that_is_not_in_the_middle_begins_at_its_column_and_row(tmp_path: Path) -> None:
    """Of the whole image as it is resized, which begins at none."""
    write_policy(tmp_path, contract(side=56), weights())
    runner = load_runner().Runner(str(export_policy(tmp_path, tmp_path / "policy.onnx")), np.zeros(18), FULL, WEIGHT)
    image = np.random.default_rng(6).integers(0, 256, (90, 120, 3), np.uint8)
    runner.contract["resize"] |= {"resized": [70, 60], "corner": [0, 0]}
    runner.contract["view"] |= {"width": 70, "height": 60}
    whole = runner.view(image)
    assert whole.shape == (60, 70, 3)
    runner.contract["resize"]["corner"] = [9, 2]
    runner.contract["view"] |= {"width": 56, "height": 50}
    np.testing.assert_array_equal(runner.view(image), whole[2:52, 9:65])


def test_a_runner_of_an_older_contract_is_not_written(tmp_path: Path) -> None:
    from tests.pilots.test_svnet_contract import as_first_version

    write_policy(tmp_path, contract("hp_net"), weights("hp_net"))
    as_first_version(tmp_path)
    with pytest.raises(AirworthyError, match="`airworthy seal FOLDER` rewrites it as version 2"):
        export_policy(tmp_path, tmp_path / "runner.py")
