"""Training of SV-Net: what learns and what stays, stopping and going on, faults, what is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.files import lock_folder, sha256_file
from airworthy.core.idle_options import without_idle
from airworthy.learning.svnet import RunOptions, SvNetOptions, train_svnet
from airworthy.learning.svnet.options import IDLE_RULES
from airworthy.pilots.svnet.variants import PUBLISHED, VARIANTS

torch = pytest.importorskip("torch")

from airworthy.learning.svnet.data import training_data  # noqa: E402
from airworthy.learning.svnet.model import SvNet  # noqa: E402
from airworthy.learning.svnet.run import SvNetRun  # noqa: E402
from airworthy.learning.svnet.stages import TrainingStage  # noqa: E402
from airworthy.pilots.svnet.contract import read_policy  # noqa: E402

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Networks and minibatches here are small: a second thread only waits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


ONE = RunOptions(device="cpu", threads=1)
OFTEN = replace(ONE, checkpoint_minutes=0.0)
"""A checkpoint after every minibatch."""
SMALL = SvNetOptions(epochs=2, history_epochs=2, batch=16, history_batch=16, precision="float32")


def small_options(**changes: Any) -> SvNetOptions:
    """A small training of a variant, without what it has no use for."""
    return without_idle(replace(SMALL, **changes), IDLE_RULES)


FILES = ("weights.safetensors", "weights_last.safetensors", "contract.json", "training.jsonl")


def digests(folder: Path) -> list[str]:
    return [sha256_file(folder / name) for name in FILES]


def small(pairs_in_memory: Make, **made: Any) -> Any:
    return pairs_in_memory(**{"rollouts": 8, "ticks": 6, "side": 20, "courses": ("a", "b"), "held": 1, **made})


def begun(pairs: Any, options: SvNetOptions) -> SvNetRun:
    data = training_data(pairs, VARIANTS[options.variant], options.form)
    return SvNetRun(data, options, torch.device("cpu"))


# ---- what learns ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sv_net", "no_latent"])
def test_a_frozen_history_network_keeps_every_bit(pairs_in_memory: Make, name: str) -> None:
    run = begun(small(pairs_in_memory), small_options(variant=name))
    before = run.weights("last")
    steps = run.minibatches()
    while run.stage.name == "history":
        next(steps)
    frozen = run.weights("last")
    for _ in steps:
        pass
    after = run.weights("last")
    for key, value in after.items():
        learns = key.startswith("history.")
        assert np.array_equal(before[key], frozen[key]) is not learns  # the history step moves these alone
        assert np.array_equal(frozen[key], value) is learns  # the command step all others


def test_without_pretraining_the_history_network_learns_with_the_rest(pairs_in_memory: Make) -> None:
    run = begun(small(pairs_in_memory), small_options(variant="no_pretrain", epochs=1))
    before = run.weights("last")
    assert list(run.minibatches())[-1] == run.total
    after = run.weights("last")
    assert {row["stage"] for row in run.notes["journal"]} == {"command"}
    assert not np.array_equal(before["history.body.0.weight"], after["history.body.0.weight"])
    assert np.array_equal(before["history.estimate.weight"], after["history.estimate.weight"])  # nobody reads it


@pytest.mark.parametrize(("normalize", "epochs", "share"), [(False, 40, 0.7), (True, 20, 0.25)])
def test_the_history_network_beats_the_mean_predictor(
    pairs_in_memory: Make, normalize: bool, epochs: int, share: float
) -> None:
    # Acceptance 8, on 90 roll-outs: numbers as they are need many more epochs at the published rate.
    pairs = small(pairs_in_memory, rollouts=120, ticks=12, side=0, held=15)
    options = SvNetOptions(
        variant="hp_net", epochs=1, history_epochs=epochs, history_rate=2e-3, history_dropout=0.0, normalize=normalize
    )
    run = begun(pairs, options)
    for _ in run.minibatches():
        pass
    row = [row for row in run.notes["journal"] if row["stage"] == "history"][-1]
    assert row["ratio_error"] < share * row["ratio_error_of_mean"]


def test_folding_mean_and_spread_into_the_weights_changes_no_estimate(pairs_in_memory: Make) -> None:
    run = begun(small(pairs_in_memory, side=0), small_options(variant="hp_net", normalize=True, history_epochs=3))
    stage = run.stage
    for _ in range(3 * stage.per_epoch - 1):
        next(run.minibatches())
    predicted = stage.evaluated(run.data.held_out)[1]
    folded = SvNet("hp_net")
    folded.load_state_dict(stage.finish(run.model.state_dict()))
    with torch.no_grad():
        plain = folded.history(torch.from_numpy(run.data.history[run.data.held_out]))[1].numpy()
    # Float32; inputs such as dt are divided by spreads of some 1e-3.
    np.testing.assert_allclose(plain, predicted, rtol=2e-5)


def test_what_is_learnt_lowers_the_loss(pairs_in_memory: Make) -> None:
    pairs = small(pairs_in_memory, rollouts=12, side=0)
    # A command that follows from what is seen: the expert is a straight line.
    pairs.command = np.clip(0.4 - 0.1 * pairs.sensed[:, 4:7] @ np.ones((3, 4)), -1.0, 1.0)
    run = begun(pairs, small_options(variant="hp_net", epochs=60, dropout=0.0, rate=1e-3))
    for _ in run.minibatches():
        pass
    losses = [row["train_loss"] for row in run.notes["journal"] if row["stage"] == "command"]
    assert losses[-1] < 0.1 * losses[0]


def test_rates_rise_and_fall_as_asked(pairs_in_memory: Make) -> None:
    options = small_options(variant="no_rma", schedule="cosine", warmup=2, epochs=4)
    stage: TrainingStage = begun(small(pairs_in_memory), options).stage
    rates = [stage.rate(step) for step in range(stage.minibatches)]
    assert rates[0] == pytest.approx(0.5e-4, rel=0.05)
    assert max(rates) == rates[1]
    assert rates == sorted(rates[:2]) + sorted(rates[2:], reverse=True)
    assert rates[-1] < 0.1 * rates[1]


# ---- stopping and going on --------------------------------------------------------------------------------------------------


class KilledError(Exception):
    """Stands for a process that ends without a word."""


def killed_at(monkeypatch: pytest.MonkeyPatch, minibatch: int) -> None:
    """The run dies when it begins this minibatch: what is on disk then is all that is left."""
    learn, calls = TrainingStage.learn, [0]

    def counted(self: TrainingStage, step: int, which: Any, images: Any) -> float:
        calls[0] += 1
        if calls[0] > minibatch:
            raise KilledError
        return learn(self, step, which, images)

    monkeypatch.setattr(TrainingStage, "learn", counted)


@pytest.mark.parametrize("name", ["sv_net", "no_pretrain"])
def test_a_training_killed_anywhere_ends_with_the_same_bytes(
    pairs_in_memory: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pairs = small(pairs_in_memory)
    options = small_options(variant=name, brightness=0.2, image_noise=2.0, normalize=True, clip=1.0)
    whole = train_svnet(pairs, tmp_path / "whole", options, ONE, quiet=True)
    rng = np.random.default_rng(1)
    done, kills = False, 0
    while not done:
        with monkeypatch.context() as patch:
            killed_at(patch, int(rng.integers(1, 4)))
            try:
                done = train_svnet(pairs, tmp_path / "cut", options, OFTEN, quiet=True).finished
            except KilledError:
                kills += 1
    assert kills >= 2
    assert digests(whole.folder) == digests(tmp_path / "cut")
    assert not (tmp_path / "cut" / "checkpoints").exists()
    again = train_svnet(pairs, tmp_path / "cut", options, ONE, quiet=True)  # it is finished: nothing is done
    assert again.figures == json.loads((tmp_path / "cut" / "report.json").read_text())


def test_a_damaged_checkpoint_costs_a_notice_and_nothing_else(
    pairs_in_memory: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net")
    whole = train_svnet(pairs, tmp_path / "whole", options, ONE, quiet=True)
    with monkeypatch.context() as patch:
        killed_at(patch, 4)
        with pytest.raises(KilledError):
            train_svnet(pairs, tmp_path / "cut", options, OFTEN, quiet=True)
    newest = max((tmp_path / "cut" / "checkpoints").glob("*.safetensors"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    train_svnet(pairs, tmp_path / "cut", options, OFTEN, quiet=True)
    assert "damaged" in capsys.readouterr().err
    assert digests(whole.folder) == digests(tmp_path / "cut")


def test_it_stops_after_its_minutes_and_goes_on(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net", epochs=1)
    parts = 0
    while not (found := train_svnet(pairs, tmp_path / "cut", options, replace(ONE, minutes=1e-9), quiet=True)).finished:
        parts += 1
        assert 0 < found.minibatches < found.total
    assert parts >= 3
    whole = train_svnet(pairs, tmp_path / "whole", options, ONE, quiet=True)
    assert digests(whole.folder) == digests(tmp_path / "cut")


def test_a_signal_saves_and_stops(pairs_in_memory: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net")
    learn = TrainingStage.learn

    def signalled(self: TrainingStage, step: int, which: Any, images: Any) -> float:
        if step == 2:
            signal.raise_signal(signal.SIGINT)
        return learn(self, step, which, images)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingStage, "learn", signalled)
        with pytest.raises(KeyboardInterrupt):
            train_svnet(pairs, tmp_path, options, ONE, quiet=True)
    manifest = json.loads((tmp_path / "checkpoints" / "step_000000003.json").read_text())
    assert manifest["notes"]["random"] == {"seed": 0, "stage": 0, "step": 3}
    assert manifest["machine"]["threads"] == 1
    assert manifest["data"] == pairs.digest
    assert train_svnet(pairs, tmp_path, options, ONE, quiet=True).finished


_CHILD = """
import importlib.util, sys
from dataclasses import replace
spec = importlib.util.spec_from_file_location("made", sys.argv[1])
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
from airworthy.learning.svnet import RunOptions, SvNetOptions, train_svnet
from airworthy.learning.svnet.options import IDLE_RULES
pairs = made.PairsInMemory(40, 8, 32, 0, 3, ("a", "b"))
run = RunOptions(device="cpu", threads=2, checkpoint_minutes=float(sys.argv[3]))
train_svnet(pairs, sys.argv[2], SvNetOptions(epochs=6, history_epochs=2, batch=16), run, quiet=True)
"""


@pytest.mark.slow
def test_kill_9_at_any_time_costs_nothing(tmp_path: Path) -> None:
    def child(folder: str, minutes: str) -> subprocess.Popen[bytes]:
        made = Path(__file__).with_name("conftest.py")
        source = Path(train_svnet.__code__.co_filename).parents[3]
        paths = os.pathsep.join(filter(None, (str(source), os.environ.get("PYTHONPATH", ""))))
        arguments = [sys.executable, "-c", _CHILD, str(made), str(tmp_path / folder), minutes]
        return subprocess.Popen(arguments, env={**os.environ, "PYTHONPATH": paths})

    assert child("whole", "100").wait() == 0
    rng, kills = np.random.default_rng(4), 0
    while not (tmp_path / "cut" / "report.json").is_file():
        process = child("cut", "0")
        while not (tmp_path / "cut").is_dir():  # loading torch takes its time
            time.sleep(0.02)
        if kills < 10:
            time.sleep(float(rng.uniform(2.0, 6.0)))
            process.kill()
            kills += 1
        process.wait()
    assert digests(tmp_path / "whole") == digests(tmp_path / "cut")


# ---- mistakes and faults ----------------------------------------------------------------------------------------------------


def test_another_training_in_the_folder_is_named(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net")
    train_svnet(pairs, tmp_path, options, ONE, quiet=True)
    with pytest.raises(AirworthyError, match="another training \\(epochs was 2, not 3\\): choose another folder"):
        train_svnet(pairs, tmp_path, replace(options, epochs=3), ONE, quiet=True)
    other = small(pairs_in_memory, side=0, seed=1)
    with pytest.raises(AirworthyError, match="its data were others"):
        train_svnet(other, tmp_path, options, ONE, quiet=True)
    (tmp_path / "training.json").unlink()
    with pytest.raises(AirworthyError, match=r"no training\.json"):
        train_svnet(pairs, tmp_path, options, ONE, quiet=True)


def test_what_cannot_begin_does_not_hold_the_folder(pairs_in_memory: Make, tmp_path: Path) -> None:
    """Weights that are no SqueezeNet are found out before the options are written down: the corrected command must go."""
    pairs, other = small(pairs_in_memory), tmp_path / "other.safetensors"
    train_svnet(pairs, tmp_path / "a", replace(SMALL, epochs=1, history_epochs=1), ONE, quiet=True)
    other.write_bytes((tmp_path / "a" / "weights.safetensors").read_bytes())
    with pytest.raises(AirworthyError, match="holds no SqueezeNet"):
        train_svnet(pairs, tmp_path / "b", replace(SMALL, weights=str(other)), ONE, quiet=True)
    assert not list((tmp_path / "b").iterdir())


def test_a_training_begins_with_the_networks_of_another_policy(pairs_in_memory: Make, tmp_path: Path) -> None:
    """With no history step every tensor is taken over; with one, the history network alone learns anew."""
    pairs = small(pairs_in_memory)
    learnt = train_svnet(pairs, tmp_path / "a", replace(SMALL, epochs=1, history_epochs=1), ONE, quiet=True).folder
    weights = read_policy(learnt)[1]
    whole = begun(pairs, replace(SMALL, start=str(learnt), history_epochs=0)).weights("last")
    assert all(np.array_equal(whole[key], value) for key, value in weights.items())
    anew = begun(pairs, replace(SMALL, start=str(learnt))).weights("last")
    plain = begun(pairs, SMALL).weights("last")
    for key, value in anew.items():
        np.testing.assert_array_equal(value, (plain if key.startswith("history.") else weights)[key], err_msg=key)


def test_a_beginning_that_does_not_fit_is_said(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs = small(pairs_in_memory)
    learnt = train_svnet(pairs, tmp_path / "a", replace(SMALL, epochs=1, history_epochs=1), ONE, quiet=True).folder
    start = replace(SMALL, start=str(learnt))
    for options, reason in (
        (small_options(start=str(learnt), variant="no_rma"), "it is of variant 'sv_net', and 'no_rma' is to be trained"),
        (replace(start, form="code"), r"its history is of the form 'paper', and 'code' was asked for \(--form\)"),
        (replace(start, start="nowhere"), "'nowhere' is no folder"),
    ):
        with pytest.raises(AirworthyError, match=reason):
            train_svnet(pairs, tmp_path / "b", options, ONE, quiet=True)
    with pytest.raises(AirworthyError, match="two beginnings of the image network"):
        replace(start, weights="x.safetensors")
    # Another policy where the first one lay is another training.
    train_svnet(pairs, tmp_path / "c", replace(start, epochs=1), ONE, quiet=True)
    data = (learnt / "weights_last.safetensors").read_bytes()
    (learnt / "weights.safetensors").write_bytes(data[:-4] + b"\0\0\0\0")
    with pytest.raises(AirworthyError, match="the weights it began with, or its version, were others"):
        train_svnet(pairs, tmp_path / "c", replace(start, epochs=1), ONE, quiet=True)


def test_what_was_finished_and_is_not_whole_is_said(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net")
    train_svnet(pairs, tmp_path, options, ONE, quiet=True)
    kept = (tmp_path / "report.json").read_text()
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(AirworthyError, match=r"not hold the figures of a training \('minibatches' is missing\)\. This tra"):
        train_svnet(pairs, tmp_path, options, ONE, quiet=True)
    (tmp_path / "report.json").write_text(kept)
    log = tmp_path / "training.jsonl"
    log.write_text("{broken\n" + log.read_text())
    with pytest.warns(AssetWarning, match=r"Line 1 of '.*training.jsonl' is not a row of its training log"):
        assert train_svnet(pairs, tmp_path, options, ONE, quiet=True).finished
    log.unlink()
    with pytest.warns(AssetWarning, match=r"training.jsonl' is missing or empty"):
        assert train_svnet(pairs, tmp_path, options, ONE, quiet=True).finished
    (tmp_path / "weights.safetensors").unlink()
    with pytest.raises(AirworthyError, match=r"no file .*weights.safetensors'\..* This training was finished and is not whole"):
        train_svnet(pairs, tmp_path, options, ONE, quiet=True)


def test_a_stop_while_the_report_is_made_loses_no_epoch(
    pairs_in_memory: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airworthy.learning.svnet import training

    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net")
    train_svnet(pairs, tmp_path / "whole", options, ONE, quiet=True)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(training, "write_results", stop)
        with pytest.raises(KeyboardInterrupt):
            train_svnet(pairs, tmp_path / "cut", options, ONE, quiet=True)

    def learn(*_: Any) -> None:
        raise AssertionError("nothing is left to learn")

    monkeypatch.setattr(SvNetRun, "_learn", learn)
    train_svnet(pairs, tmp_path / "cut", options, ONE, quiet=True)
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")


def test_more_threads_than_any_machine_has_are_refused() -> None:
    with pytest.raises(AirworthyError, match="threads is 1000000000; expected 0 to 1,024"):
        RunOptions(threads=1_000_000_000)


def test_one_run_per_folder(pairs_in_memory: Make, tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(AirworthyError, match="Another run"):
        train_svnet(small(pairs_in_memory, side=0), tmp_path, small_options(variant="hp_net"), ONE, quiet=True)


def test_minibatches_that_are_not_finite_are_left_out_and_counted(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net", batch=6)
    pairs.command[[5, 11]] = np.nan  # of the last ticks of two roll-outs: no history knows of them
    found = train_svnet(pairs, tmp_path / "some", options, ONE, quiet=True)
    assert 2 <= found.figures["skipped_minibatches"] <= 4  # one or two in each of two epochs
    _, weights = read_policy(found.folder)
    assert all(np.isfinite(value).all() for value in weights.values())
    pairs.command[:] = np.inf
    with pytest.raises(AirworthyError, match="6 minibatches of the history step gave numbers that are not finite"):
        train_svnet(pairs, tmp_path / "all", replace(options, skip_most=5), ONE, quiet=True)


def test_a_skipped_minibatch_changes_no_weight(pairs_in_memory: Make) -> None:
    run = begun(small(pairs_in_memory, side=0), small_options(variant="hp_net", history_epochs=0))
    run.data.command[:] = np.nan
    run.data_loader.table("command")[:] = torch.nan
    before = run.weights("last")
    next(run.minibatches())
    assert run.notes["skipped"] == 1
    assert all(np.array_equal(before[key], value) for key, value in run.weights("last").items())


def test_devices_that_are_not_there_are_named(pairs_in_memory: Make, tmp_path: Path) -> None:
    for device, says in (("tpu9", "no device 'tpu9'"), ("cuda:99", "torch sees"), ("meta", "not on 'meta'")):
        with pytest.raises(AirworthyError, match=says):
            train_svnet(
                small(pairs_in_memory, side=0),
                tmp_path,
                small_options(variant="hp_net"),
                replace(ONE, device=device),
                quiet=True,
            )


def test_going_on_elsewhere_is_said(
    pairs_in_memory: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, options = small(pairs_in_memory, side=0), small_options(variant="hp_net")
    with monkeypatch.context() as patch:
        killed_at(patch, 2)
        with pytest.raises(KilledError):
            train_svnet(pairs, tmp_path, options, OFTEN, quiet=True)
    capsys.readouterr()
    train_svnet(pairs, tmp_path, options, replace(OFTEN, threads=2))
    assert "another machine (threads 1, now 2)" in capsys.readouterr().err


# ---- what is left behind ----------------------------------------------------------------------------------------------------


def test_the_folder_is_a_policy_with_a_report(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs = small(pairs_in_memory)
    threads, settled = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.manual_seed(9)
    wanted = torch.rand(2)
    torch.manual_seed(9)
    found = train_svnet(pairs, tmp_path, SMALL, ONE, "airworthy train svnet data & more", quiet=True)
    assert torch.equal(torch.rand(2), wanted)  # no draw from the global generator
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (threads, settled)
    contract, _ = read_policy(tmp_path)
    assert (contract.variant, contract.data, contract.history) == ("sv_net", pairs.digest, "paper")
    assert contract.view is not None
    assert (contract.view.width, contract.view.fx) == (20, 26.0)
    assert contract.training["options"]["batch"] == 16
    assert (tmp_path / "weights.safetensors").stat().st_size < 8e6
    page = (tmp_path / "report.html").read_text()
    assert "data &amp; more" in re.sub(r"</?span[^>]*>", "", page)  # each word of a command breaks as a whole
    assert page.count("<svg") >= 7
    rows = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [(row["stage"], row["epoch"]) for row in rows] == [("history", 1), ("history", 2), ("command", 1), ("command", 2)]
    assert found.figures["pairs_per_second"]["command"] > 0.0
    assert set(found.figures["by_course"]) == {"a", "b"}
    assert found.figures["history_full"]["ratio_error_of_mean"] > 0.0


def test_best_and_last_weights_are_both_kept(pairs_in_memory: Make, tmp_path: Path) -> None:
    options = small_options(variant="hp_net", epochs=8, rate=0.05, history_epochs=1)
    found = train_svnet(small(pairs_in_memory, side=0), tmp_path / "best", options, ONE, quiet=True)
    rows = [json.loads(line) for line in (tmp_path / "best" / "training.jsonl").read_text().splitlines()]
    losses = [row["held_out_loss"] for row in rows if row["stage"] == "command"]
    assert found.figures["best_epoch"]["command"] == int(np.argmin(losses)) + 1
    assert found.figures["command_mse"] == pytest.approx(min(losses), rel=1e-5)
    options = replace(options, keep="last")
    train_svnet(small(pairs_in_memory, side=0), tmp_path / "last", options, ONE, quiet=True)
    other = [sha256_file(tmp_path / name) for name in ("best/weights_last.safetensors", "last/weights.safetensors")]
    assert other[0] == other[1]


def test_bfloat16_and_images_on_the_device_give_nearly_and_exactly_the_same(pairs_in_memory: Make, tmp_path: Path) -> None:
    pairs, options = small(pairs_in_memory), replace(SMALL, epochs=1, history_epochs=1)
    first = train_svnet(pairs, tmp_path / "a", options, ONE, quiet=True)
    second = train_svnet(pairs, tmp_path / "b", options, replace(ONE, resident="yes"), quiet=True)
    assert digests(first.folder) == digests(second.folder)
    half = train_svnet(pairs, tmp_path / "c", replace(options, precision="bfloat16"), ONE, quiet=True)
    assert half.figures["command_mse"] == pytest.approx(first.figures["command_mse"], rel=0.02)  # 8 bits of mantissa


def test_all_variants_by_one_command(
    pairs_in_memory: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from airworthy.cli.main import main
    from airworthy.learning.datasets import ExpertDataset

    monkeypatch.setattr(ExpertDataset, "open", lambda *_, **__: small(pairs_in_memory))
    training = ["train", "svnet", "data", "--variant", "all", "--out", str(tmp_path), "--epochs", "1", "--history-epochs", "1"]
    assert main([*training, "--threads", "1", "--device", "cpu", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in said["variants"]] == list(PUBLISHED)
    table = json.loads((tmp_path / "ablation.json").read_text())["variants"]
    assert [row["ratio_error"] is None for row in table] == [False, True, True, False, False]
    assert all(read_policy(tmp_path / name)[0].variant == name for name in PUBLISHED)
    command = json.loads((tmp_path / "no_rma" / "report.json").read_text())["command"]
    assert command.startswith("airworthy train svnet data --variant no_rma")
    assert main([*training, "--no-resume"]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_adaptation_is_measured_only_of_who_estimates(pairs_in_memory: Make, tmp_path: Path) -> None:
    from airworthy.learning.svnet.adaptation import AdaptationConfig, estimated_parameters, measure_adaptation

    for options, says in (({"flights": 10**8}, "1 to 10,000"), ({"seed": -1}, "seed is -1"), ({"payload": 0.0}, "not 0")):
        with pytest.raises(AirworthyError, match=says):
            AdaptationConfig(**options)
    train_svnet(small(pairs_in_memory, side=0), tmp_path / "h", small_options(variant="hp_net", epochs=1), ONE, quiet=True)
    with pytest.raises(
        AirworthyError, match=r"'hover' lasts [12] s; a payload in the middle of it shows on courses of 3 s or more"
    ):
        measure_adaptation(tmp_path / "h", AdaptationConfig(course="hover", flights=1))

    train_svnet(small(pairs_in_memory), tmp_path / "a", small_options(variant="no_rma", epochs=1), ONE, quiet=True)
    with pytest.raises(AirworthyError, match="does not estimate parameters"):
        measure_adaptation(tmp_path / "a")
    network, history = SvNet("hp_net"), np.random.default_rng(0).normal(size=(5, 75))
    weights = {key: value.numpy() for key, value in network.state_dict().items()}
    with torch.no_grad():
        expected = network.history(torch.from_numpy(history.astype(np.float32)))[1].numpy()
    np.testing.assert_allclose(estimated_parameters(weights, history), expected, atol=1e-5)
