"""Runs of the tracking protocol: what they keep, how they go on, what they tell; the command."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import EXPERT, PLACE, changed_expert, on_stage

from airworthy.benchmarks.tracking import block, job, store
from airworthy.benchmarks.tracking import config as configs
from airworthy.benchmarks.tracking.config import EvaluateConfig, command_line, quick
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import CAMERA, TrackingMethod, VehicleSpread, method_of, methods_of
from airworthy.benchmarks.tracking.store import read_results
from airworthy.cli.common import gathered
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import lock_folder
from airworthy.core.jobs import block_store
from airworthy.optics.projections import Pinhole
from airworthy.pilots.expert import expert_for, expert_reference
from airworthy.pilots.svnet.contract import PolicyContract, write_policy
from airworthy.pilots.svnet.variants import tensor_shapes
from airworthy.sensors.carried import vehicle_camera
from airworthy.simulation import MountedSensor
from airworthy.tasks import TrackingProtocol


class Killed(BaseException):
    """What a killed process looks like from inside: nothing after it runs but the operating system's own cleaning."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six blocks, never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    assert evaluate(stage_config(folder)).complete
    return folder


def stage_config(folder: Path, **changes: Any) -> EvaluateConfig:
    return on_stage(folder, **{"conditions": ("baseline", "payload", "wind"), "report": False, **changes})


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything that must be the same in the end; the summary names the folder."""
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: data for name, data in found.items() if name not in ("summary.json", "report.html")}


class Fate:
    """Kills at the n-th call of anything that it watches: while flying, or between any two files of a block."""

    def __init__(self) -> None:
        self.left = 0

    def watched(self, function: Any) -> Any:
        """The same function, which may be the last."""

        def run(*args: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise Killed
            return function(*args, **options)

        return run


@pytest.mark.slow
def test_nothing_of_a_block_is_held_while_the_next_is_flown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A captured place, its renderer and a pilot's images are hundreds of megabytes a block."""
    held: list[int] = []
    batches: list[weakref.ref[Any]] = []

    class Watched(block.SceneBatch):
        def __init__(self, *args: Any, **options: Any):
            held.append(sum(one() is not None for one in batches))
            super().__init__(*args, **options)
            batches.append(weakref.ref(self))

    monkeypatch.setattr(block, "SceneBatch", Watched)
    # Python's own collections would hide it, or not, as they happen to come.
    gc.disable()
    try:
        assert evaluate(stage_config(tmp_path)).complete
    finally:
        gc.enable()
    assert len(held) >= 3
    assert not any(held)


@pytest.mark.slow
def test_ten_kills_change_nothing(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fate, flown, kills, rng = Fate(), list[str](), 0, np.random.default_rng(0)
    for module, name in ((store, "write_bytes"), (block_store, "write_json"), (store, "write_flight"), (job, "fly_block")):
        monkeypatch.setattr(module, name, fate.watched(getattr(module, name)))
    while kills < 10:
        fate.left = int(rng.integers(1, 5))
        try:
            done = evaluate(stage_config(tmp_path), step=flown.append)
        except Killed:
            kills += 1
    fate.left = 0
    done = evaluate(stage_config(tmp_path), step=flown.append)
    assert done.complete
    assert done.blocks == 6
    assert len(set(flown)) == len(flown)  # no block was finished twice
    assert files_of(tmp_path) == files_of(whole)


def test_a_finished_run_is_not_flown_again(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **options: Any) -> Any:
        raise AssertionError("flown again")

    monkeypatch.setattr(job, "fly_block", never)
    before = files_of(whole)
    assert evaluate(stage_config(whole)).complete
    assert files_of(whole) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flights": 4}, "flights: 3 before, 4 now"),
        ({"seed": 1}, "seed: 0 before, 1 now"),
        ({"spread": VehicleSpread(mass=0.2)}, "spread.mass: 0.0 before, 0.2 now"),
        ({"protocol": TrackingProtocol(proximity_m=0.2)}, "protocol.proximity_m: 0.3 before, 0.2 now"),
        ({"conditions": ("baseline",)}, "conditions: baseline payload wind before, baseline now"),
    ],
)
def test_another_configuration_is_refused_in_a_sentence(whole: Path, changes: dict[str, Any], message: str) -> None:
    before = files_of(whole)
    with pytest.raises(AirworthyError, match=re.escape(message)) as caught:
        evaluate(stage_config(whole, **changes))
    assert "\n" not in str(caught.value)
    assert "--out" in str(caught.value)
    assert files_of(whole) == before


def test_other_weights_under_the_same_name_are_refused(tmp_path: Path) -> None:
    small = stage_config(tmp_path, conditions=("baseline",), flights=1)
    evaluate(small, methods=[replace(EXPERT, identity={"weights.safetensors": "1"})])
    with pytest.raises(AirworthyError, match="other weights"):
        evaluate(small, methods=[replace(EXPERT, identity={"weights.safetensors": "2"})])


def test_two_runs_in_one_folder(whole: Path) -> None:
    with lock_folder(whole), pytest.raises(AirworthyError, match="Another run"):
        evaluate(stage_config(whole))


@pytest.mark.parametrize("how", ["flip", "truncate", "flight"])
def test_damage_is_refused_and_mended_by_deleting(tmp_path: Path, how: str) -> None:
    small = stage_config(tmp_path, conditions=("baseline",), flights=1)
    evaluate(small)
    rows = next((tmp_path / "blocks").iterdir())
    victim = next(tmp_path.rglob("flight.parquet")) if how == "flight" else rows
    whole, data = files_of(tmp_path), bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data[: len(data) // 2] if how == "truncate" else data)
    with pytest.raises(AssetError, match="changed or damaged"):
        evaluate(small)
    rows.unlink()
    assert evaluate(small).complete
    assert files_of(tmp_path) == whole


def test_ctrl_c_keeps_what_is_finished(whole: Path, tmp_path: Path) -> None:
    ticks = 0

    def interrupted(tick: int, command: Any) -> Any:
        nonlocal ticks
        ticks += 1
        if ticks == 50:  # in the third block: a flight has 20 ticks
            signal.raise_signal(signal.SIGINT)  # as a user's Ctrl-C: what a pilot raises itself is its own failure
        return command

    stopped = evaluate(
        stage_config(tmp_path), methods=[replace(changed_expert("mpc", interrupted), senses=False, identity=EXPERT.identity)]
    )
    assert stopped.interrupted
    assert stopped.finished == 2
    assert not stopped.complete
    assert stopped.summary["state"]["complete"] is False
    again = evaluate(stage_config(tmp_path))
    assert again.complete
    assert files_of(tmp_path) == files_of(whole)


def test_the_table_has_a_row_per_flight_and_the_summary_its_thresholds(whole: Path) -> None:
    state, rows = read_results(whole / "results.parquet")
    assert [(row["condition"], row["flight"]) for row in rows] == [
        (c, k) for c in ("baseline", "payload", "wind") for k in range(3)
    ]
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["protocol"] == TrackingProtocol().__dict__
    assert summary["state"]["digest"] == state["digest"]
    assert {entry["condition"]: entry["classes"]["success"] for entry in summary["aggregate"]} == dict.fromkeys(
        ("baseline", "payload", "wind"), 3
    )
    assert summary["flights"][0]["vehicle"] == "carl"
    assert summary["flights"][0]["seed"] == 0
    # Another course than the paper's has no row of the paper beside it.
    assert {entry["published"] for entry in summary["aggregate"]} == {None}
    steps = [entry["payload_step"] for entry in summary["adaptation"]["estimates"]]
    assert steps == pytest.approx([1.0], abs=1e-3)  # the motion itself tells the whole payload


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not a table" * 50])
def test_a_table_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "results.parquet").write_bytes(data)
    with pytest.raises(AssetError):
        read_results(tmp_path / "results.parquet")


# ---- several pilots, the report -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The expert and a worse one, which says what it believes of its drone, over a sweep."""

    class Believing:
        name, level, observes = "believing", "rate_thrust", ("position", "velocity", "attitude")

        def __init__(self, inner: Any, count: int):
            self._inner, self.estimate = inner, np.tile([1.2, 6.9], (count, 1))

        def command(self, observation: Any) -> Any:
            return self._inner.command(observation) * [1.02, 1.0, 1.0, 1.0]

    def make(simulator: Any, course: Any, mounted: Any) -> Any:
        assert mounted.names == (CAMERA,)
        return Believing(expert_for(simulator, expert_reference(course)), simulator.env_count)

    def sensors(vehicle: Any) -> Any:
        eye = vehicle_camera(vehicle).variant(projection=Pinhole(24, 24, 20.0, 20.0, 12.0, 12.0), rate=20.0)
        return {CAMERA: MountedSensor(eye)}

    worse = TrackingMethod("<b>worse</b>", make, sensors, variant="no_rma", identity={"pilot": "worse"})
    conditions = ("baseline", "payload", "dynamic", "wind:1", "wind:2")
    config = on_stage(tmp_path_factory.mktemp("pair"), conditions=conditions, flights=1, family=("rigid",))
    return config, evaluate(config, methods=[EXPERT, worse])


@pytest.mark.slow
def test_pilots_are_compared_flight_by_flight(pair: Any) -> None:
    _, done = pair
    differences = done.summary["against_first_pilot"]
    assert {item["minus"] for item in differences} == {"mpc"}
    assert len(differences) == 5
    assert all(item["pairs"] == 1 and item["tracking_error_m"]["value"] > 0.0 for item in differences)
    estimates = {entry["estimate"]: entry for entry in done.summary["adaptation"]["estimates"] if entry["pilot"] != "mpc"}
    assert estimates["ratio_told"]["conditions"]["baseline"]["mean"] == pytest.approx(6.9 / 1.2)
    assert estimates["ratio_told"]["payload_step"] == pytest.approx(0.0)


def test_the_report_is_whole_and_says_what_is_simulated(pair: Any) -> None:
    config, done = pair
    page = done.report.read_text()
    for specifier in (
        "<b>simulated</b> flights",
        "<b>real</b> flights",
        "arXiv:2412.16346",
        "0.173",
        "SV no RMA",
        "Where they flew",
    ):
        assert specifier in page
    assert "&lt;b&gt;worse" in page
    assert "<b>worse" not in page
    assert command_line(config) in re.sub(r"</?span[^>]*>", "", page)  # each word of a command breaks as a whole
    assert done.summary["state"]["digest"] in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "http://" not in re.sub(r'xmlns="[^"]+"', "", page)
    assert page.count("data:image/jpeg") == 3  # sweeps have none


# ---- choices ------------------------------------------------------------------------------------------------------------


def test_the_command_repeats_the_choices() -> None:
    protocol, spread = TrackingProtocol(proximity_m=0.25), VehicleSpread(mass=0.3)
    chosen = EvaluateConfig(pilot=("mpc", "svnet:a b"), flights=5, family=("rigid",), protocol=protocol, spread=spread)
    tokens = command_line(chosen)
    assert tokens == (
        "airworthy evaluate --pilot mpc 'svnet:a b' --flights 5 --family rigid --spread.mass 0.3 --protocol.proximity-m 0.25"
    )
    assert quick(EvaluateConfig(quick=True)).flights == 2
    assert quick(EvaluateConfig(quick=True, flights=7)).flights == 7


def test_lists_may_be_named_several_times() -> None:
    given = ["--pilot", "a", "--seed", "3", "--pilot=b", "--family", "rigid", "semi_kinematic", "--json"]
    lists = ("--pilot", "--conditions", "--family")
    assert gathered(given, lists) == ["--seed", "3", "--json", "--pilot", "a", "b", "--family", "rigid", "semi_kinematic"]
    assert gathered(["--pilot=-x", "--pilot", "a"], lists) == ["--pilot=-x", "--pilot", "a"]  # no option, though it looks it


@pytest.mark.parametrize(
    "argv",
    [
        ["--pilot", "nobody"],
        ["--pilot", "mpc", "--pilot", "mpc"],
        ["--pilot", "svnet:/no/such/folder"],
        ["--conditions", "rain"],
        ["--flights", "0"],
        ["--course", "nowhere"],
        ["--scene", "nowhere"],
        ["--spread.mass", "1.5"],
        ["--protocol.proximity-m", "-1"],
        ["--device", "abacus"],
        ["--seed", "-1"],
        ["--vehicle", "carrl"],
    ],
)
def test_mistakes_end_in_one_sentence(argv: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--conditions", "baseline", "--flights", "1", "--out", str(tmp_path / "x"), *argv]) == 2
    said = capsys.readouterr().err.strip()
    assert said
    assert "Traceback" not in said
    assert "\n" not in said
    assert not (tmp_path / "x" / "evaluation.json").exists()  # or the corrected command would be refused


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_stage(tmp_path)
    argv = ["evaluate", "--quick", "--scene", PLACE, "--course", "hover", "--out", str(tmp_path), "--json", "--no-report"]
    assert main(argv) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["state"]["complete"]
    assert [entry["condition"] for entry in printed["aggregate"]] == ["baseline", "payload"]
    assert printed["aggregate"][0]["flights"] == 2


def test_an_svnet_folder_without_a_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssetError):
        method_of(f"svnet:{tmp_path}")


def a_policy(folder: Path) -> Path:
    """Of random numbers, that sees nothing."""
    shapes = tensor_shapes("hp_net")
    draw = np.random.default_rng(0)
    return write_policy(
        folder, PolicyContract("hp_net", None), {name: draw.normal(size=shape) for name, shape in shapes.items()}
    )


def test_one_policy_under_two_words_is_said(tmp_path: Path) -> None:
    folder = a_policy(tmp_path / "policy")
    with pytest.raises(AirworthyError, match="are the same policy; name each once"):
        methods_of([f"svnet:{folder}", f"svnet:{folder.parent}/./policy"])


def test_weights_that_cannot_fly_are_refused_before_anything_has_flown(tmp_path: Path) -> None:
    folder = a_policy(tmp_path / "policy")
    assert method_of(f"svnet:{folder}").variant == "hp_net"
    (folder / "weights.safetensors").unlink()
    os.mkfifo(folder / "weights.safetensors")  # must not be waited for
    with pytest.raises(AssetError, match="not a regular file"):
        method_of(f"svnet:{folder}")


def test_a_vehicle_without_a_camera_flies_the_expert(tmp_path: Path) -> None:
    found = evaluate(on_stage(tmp_path, flights=1, conditions=("baseline",), vehicle="flightgoggles", report=False))
    assert found.complete
    assert not list(tmp_path.rglob("seen.png"))


def test_every_config_field_is_in_the_identity_or_free(tmp_path: Path) -> None:
    # What came later is told where it is chosen.
    chosen = on_stage(tmp_path, unknown="free", randomize="identified")
    recorded = configs.identity_of(chosen, [EXPERT], {})["config"]
    assert set(recorded) | set(configs.FREE) == set(EvaluateConfig.__dataclass_fields__)


@pytest.mark.slow
def test_ten_real_kills(whole: Path, tmp_path: Path) -> None:
    """SIGKILL at random times in processes of their own, then once to the end."""
    code = (
        "import sys; from pathlib import Path; from tests.benchmarks.test_tracking_protocol_runs import *;"
        "print('ready', flush=True); evaluate(stage_config(Path(sys.argv[1])))"
    )
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    rng = np.random.default_rng(1)
    for kill in range(11):
        line = [sys.executable, "-c", code, str(tmp_path)]
        with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            if kill < 10:
                time.sleep(rng.uniform(0.1, 2.0))
                process.send_signal(signal.SIGKILL)
            code_of_end = process.wait()
        assert code_of_end in ((0,) if kill == 10 else (0, -signal.SIGKILL))
    assert files_of(tmp_path) == files_of(whole)
