"""`airworthy synthesize` as a user meets it: its output, its mistakes, and runs that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import airworthy
from airworthy.cli.learning.synthesize import SynthesizeDatasetConfig
from airworthy.cli.main import main
from airworthy.core.files import sha256_file
from airworthy.learning.datasets import DatasetConfig, ExpertDataset, synthesize_dataset

SOURCE = str(Path(airworthy.__file__).parents[1])
TINY = (
    "--courses",
    "hover",
    "--per-second",
    "2",
    "--repetitions",
    "4",
    "--length",
    "0.5",
    "--keep-within",
    "0",
    "--shard",
    "4",
)
BARE = ("--view", "none", "--no-card")
MANY = (
    *("--per-second", "2", "--repetitions", "8", "--length", "0.5", "--keep-within", "0", "--shard", "2"),
    *("--scene", "empty_room", "--view", "48", "--no-card"),
)
"""240 roll-outs with images, in 120 shards."""


def started(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH", "")]))}
    line = [sys.executable, "-m", "airworthy.cli.main", "synthesize", *arguments]
    return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def data_files(folder: Path) -> dict[str, str]:
    """SHA-256 of everything that depends on the configuration alone."""
    found = [
        path for path in folder.rglob("*") if path.is_file() and path.name not in ("run.json", "card.html", ".airworthy.lock")
    ]
    return {str(path.relative_to(folder)): sha256_file(path) for path in sorted(found)}


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["synthesize", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_small_set_with_its_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "set")
    code, said, _ = answer(capsys, *TINY, "--scene", "empty_room", "--view", "32", "--noise", "assisted", "--out", out)
    assert code == 0
    assert "roll-outs kept" in said
    assert "rendering [s]" in said
    card = (tmp_path / "set" / "card.html").read_text()
    assert "160 pairs" in card or ">80<" in card
    assert card.count("data:image/jpeg") == 3
    assert "Noise of what is sensed" in card
    for address in ("http://", "https://", "<script", 'src="/'):
        assert address not in card
    run = json.loads((tmp_path / "set" / "run.json").read_text())
    assert run["command"].startswith("airworthy synthesize --courses hover --per-second 2.0")
    assert set(run["stages_s"]) == {"planning", "solving", "simulating", "rendering", "writing"}
    assert run["pairs_per_second"] > 0.0
    code, said, _ = answer(capsys, "check", out)
    assert (code, said) == (0, f"Whole: {run['pairs']:,} pairs of {run['kept']:,} roll-outs in 2 shards.\n")
    (tmp_path / "set" / "card.html").unlink()
    assert answer(capsys, "card", out)[0] == 0
    assert (tmp_path / "set" / "card.html").exists()


def test_what_cannot_be_trained_on_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--courses", "hover", "--per-second", "2", "--repetitions", "1", "--view", "none", "--no-card")
    assert "All of it is held out" in answer(capsys, *few, "--out", str(tmp_path / "a"))[2]
    assert "Nothing was kept" in answer(capsys, *few, "--keep-within", "1e-12", "--out", str(tmp_path / "b"))[2]
    assert answer(capsys, *few, "--shard", "1", "--out", str(tmp_path / "c"))[2] == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_the_first_shard_is_a_sentence_and_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    from airworthy.cli.learning import synthesize

    monkeypatch.setattr(synthesize, "synthesize_dataset", lambda *_, **__: signal.raise_signal(number))
    found = answer(capsys, *TINY, *BARE, "--out", str(tmp_path))
    assert found == (code, "", "Interrupted: what is finished is kept; the same command goes on from there.\n")


def test_json_is_all_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, err = answer(capsys, *TINY, *BARE, "--json", "--out", str(tmp_path / "set"))
    summary = json.loads(said)
    assert (code, err) == (0, "")
    assert (summary["rollouts"], summary["kept"], summary["pairs"], summary["keep_rate"], summary["complete"]) == (
        8,
        8,
        80,
        1.0,
        True,
    )
    code, said, _ = answer(capsys, "export", str(tmp_path / "set"), "--out", str(tmp_path / "lerobot"), "--json")
    assert json.loads(said) == {"codebase_version": "v3.0", "episodes": 8, "frames": 80}


def test_the_recorded_command_makes_the_same_set(tmp_path: Path) -> None:
    config = SynthesizeDatasetConfig(
        courses=("line", "hover"), seed=3, light=(0.5, 1.0), view="none", card=False, out=tmp_path / "a b"
    )
    line = config.command()
    assert (
        line
        == f"airworthy synthesize --courses line hover --seed 3 --view none --light 0.5 1.0 --out '{tmp_path}/a b' --no-card"
    )
    assert config.dataset() == DatasetConfig(courses=("line", "hover"), seed=3, light=(0.5, 1.0), view="none")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--courses", "robustnes"), "Unknown course 'robustnes'. Closest: 'robustness'"),
        (("--scene", "hal"), "Unknown scene 'hal'"),
        (("--view", "tiny"), "Unknown view 'tiny'"),
        (("--camera", "kamera", "--scene", "empty_room"), "Unknown camera 'kamera'"),
        (("--vehicle", "karl"), "Unknown vehicle 'karl'"),
        (("--workers", "0"), "0 workers"),
        (("chek",), "Unknown 'airworthy synthesize' subcommand 'chek'. Closest: 'check'"),
        (("check", "nowhere"), "There is no folder 'nowhere'"),
        (("export", "nowhere"), "There is no folder 'nowhere'"),
    ],
)
def test_mistakes_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, err = answer(capsys, *arguments)
    assert (code, said) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_without_ray_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = answer(capsys, *TINY, *BARE, "--cluster", "auto", "--out", str(tmp_path / "set"))
    assert (code, err) == (2, "This needs the package 'ray': pip install 'airworthy[cluster]'.\n")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stopped_run_keeps_its_shards(tmp_path: Path, number: int, code: int, workers: str) -> None:
    folder = tmp_path / "set"
    process = started(*MANY, "--repetitions", "40", "--workers", workers, "--out", str(folder))
    wait_for(process, lambda: len(list(folder.glob("shard_*"))) >= 3)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    kept = len(list(folder.glob("shard_*")))
    assert f"finished shards are kept; the same command makes the other {600 - kept}." in err
    assert "Traceback" not in err
    assert not list(folder.glob(".shard*"))
    assert json.loads((folder / "dataset.json").read_text())["complete"] is False


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_ten_kills_at_random_lose_nothing(tmp_path: Path, workers: str) -> None:
    """Killed ten times at any moment, a run that goes on ends with the bytes of one that was never disturbed."""
    whole, folder = tmp_path / "whole", tmp_path / "set"
    run_to_its_end(*MANY, "--out", str(whole))
    chance, killed, before = random.Random(5), 0, 0
    while killed < 10:
        process = started(*MANY, "--workers", workers, "--out", str(folder))
        wait_for(process, lambda: folder.exists() and (folder / ".airworthy.lock").exists())
        target = before + chance.randrange(0, 5)
        wait_for(process, lambda target=target: len(list(folder.glob("shard_*"))) >= target)  # type: ignore[misc]
        time.sleep(0.05 * chance.random())
        assert process.poll() is None
        process.kill()
        process.communicate()
        killed, before = killed + 1, len(list(folder.glob("shard_*")))
        assert before < 120
    run_to_its_end(*MANY, "--workers", workers, "--out", str(folder))
    assert data_files(folder) == data_files(whole)


def run_to_its_end(*arguments: str) -> None:
    process = started(*arguments)
    said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def wait_for(process: subprocess.Popen[str], what: Any) -> None:
    limit = time.monotonic() + 120.0
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.mark.slow
def test_a_cluster_makes_the_same_bytes(tmp_path: Path) -> None:
    """In a process of its own, which may open sockets on this machine."""
    pytest.importorskip("ray")
    config = DatasetConfig(courses=("hover",), per_second=2.0, repetitions=4, length=0.5, keep_within=0.0, shard=4, view="none")
    synthesize_dataset(config, tmp_path / "here")
    run_to_its_end(*TINY, *BARE, "--cluster", "local", "--out", str(tmp_path / "there"))
    assert data_files(tmp_path / "there") == data_files(tmp_path / "here")
    assert ExpertDataset.open(tmp_path / "there").count == 80
