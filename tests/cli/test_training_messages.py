"""What `airworthy train` says of an option that it cannot take names the option; Python's face names the field."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.common import option_fields
from airworthy.cli.learning.seed_trainings import how_to_fly
from airworthy.cli.learning.train import TrainSvNetConfig
from airworthy.cli.learning.train_boundary import TrainBoundaryConfig
from airworthy.cli.learning.train_hover import TrainHoverConfig, TrainMotorCommandConfig
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.core.keyword_messages import in_options
from airworthy.learning.gradient import GradientTraining
from airworthy.learning.gradient.config import HoverConfig
from airworthy.learning.gradient.run import train_hover
from airworthy.learning.gradient.trainer import GradientOptions
from airworthy.learning.native_ppo import PpoTrainingOptions
from airworthy.learning.native_ppo.config import MotorCommandConfig
from airworthy.learning.native_ppo.training import PpoTraining, check_learner
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.options import NavigationOptions
from airworthy.learning.navigation.run import train_navigation, train_navigation_seeds
from airworthy.learning.navigation.training import NavigationTraining, plain_eye
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.vehicles import vehicle

COMMANDS: dict[str, tuple[type, list[str]]] = {
    "hover": (TrainHoverConfig, []),
    "motor_command": (TrainMotorCommandConfig, []),
    "svnet": (TrainSvNetConfig, ["no-such-folder"]),
    "boundary": (TrainBoundaryConfig, ["no-such-folder"]),
}
_WORDS = ("data", "labels", "out", "device", "tensorboard", "weights", "start", "vehicle", "rotors", "randomize")
"""Options that take a path, a name or words, or nothing, and so no number."""


def numbers_of(command: str) -> list[str]:
    """Options of a command that a number is given to."""
    kind: Any = COMMANDS[command][0]
    flags = {item.name for item in fields(kind) if item.type in ("bool", bool)}
    return [name for name in option_fields(kind) if name not in flags and name not in _WORDS]


@pytest.mark.parametrize("bad", ["-1", "nan", "x"])
@pytest.mark.parametrize(("command", "name"), [(c, name) for c in COMMANDS for name in numbers_of(c)])
def test_a_bad_value_names_the_option(command: str, name: str, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    option, value = f"--{name.replace('_', '-')}", [bad] * (2 if (command, name) == ("motor_command", "hidden") else 1)
    words = ["train", command, *COMMANDS[command][1], *([option, *value] if len(value) > 1 else [f"{option}={bad}"])]
    try:
        code: Any = main(words)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    said = capsys.readouterr().err
    assert option in said or f"Unknown {name}" in said, said
    assert said.count("\n") == 1
    for inner in ("Options.", "Protocol.", "Config.", "no type matching"):
        assert inner not in said, said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hover", "--delay", "-1"], "--delay is -1; expected 0 to 8."),
        (["hover", "--delay", "9"], "--delay is 9; expected 0 to 8."),
        (["hover", "--hidden", "17"], "--hidden is 17; expected 16, 32, 64."),
        (["hover", "--env-count", "17"], "--env-count is 17; expected a multiple of 16."),
        (["hover", "--flights", "0"], "--flights is 0; expected 1 to 1000000."),
        (["hover", "--seeds", "0"], "--seeds is 0; expected 1 to 100."),
        (["hover", "--minutes", "-1"], "--minutes is -1; expected 0 or more."),
        (["hover", "--trainer", "native_ppo", "--env-count", "17"], "--env-count is 17; expected a multiple of 16, of"),
        (["hover", "--trainer", "native_ppo", "--hidden", "0"], "--hidden is [0, 0]; expected two widths of 1 to 128."),
        (["hover", "--randomize", "mass=2"], "--randomize: mass is 2; expected at least 0 and less than 1."),
        (["recovery", "--randomize", "drag=2"], "--randomize: drag is 2; expected 0 to 1."),
        (
            ["depth_navigation", "--minibatches", "7"],
            "--minibatches is 7; expected a number that divides its 512 environments, which go together.",
        ),
        (["depth_navigation", "--recurrent", "0", "--minibatches", "7"], "divides 1,024, the blocks of 16 samples of 512 env"),
        (["lidar_navigation", "--levels", "30", "1000"], "--levels has 1000; expected at most 70, the last of the curriculum."),
        (["recovery", "--env-count", "-1"], "--env-count is -1; expected 16 to 1048576."),
        (["recovery", "--seeds", "0"], "--seeds is 0; expected 1 to 100."),
        (["recovery", "--minutes", "-1"], "--minutes is -1; expected 0 or more."),
        (["recovery", "--flights", "0"], "--flights is 0; expected 1 to 1000000."),
        (["avoid", "--iterations", "0"], "--iterations is 0; expected 1 to 10000000."),
        (["motor_command", "--hidden", "0", "24"], "--hidden is [0, 24]; expected two widths of 1 to 128."),
        (["svnet", "x", "--epochs", "0"], "--epochs is 0; expected 1 to 1,000,000,000."),
        (["svnet", "x", "--threads", "-1"], "--threads is -1; expected 0 to 1,024."),
        (["svnet", "x", "--view", "3"], "--view is 3 px; expected 17 to 1024, or 0."),
        (["boundary", "x", "--safe", "-1"], "--safe is -1.0; expected above 0"),
    ],
)
def test_sentences(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *words]) == 2
    assert said in capsys.readouterr().err


def test_python_is_told_the_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirworthyError, match=r"^delay is -1; expected 0 to 8\.$"):
        HoverConfig(delay=-1)
    with pytest.raises(AirworthyError, match=r"^env_count is 17; expected a multiple of 16"):
        MotorCommandConfig(env_count=17)
    with pytest.raises(AirworthyError, match=r"^GradientOptions\.history is 9; expected 0 to 8\.$"):
        GradientOptions(history=9)
    # Said before there are environments, which take half a minute to begin.
    monkeypatch.setattr(NavigationEnvironments, "__init__", lambda *a, **k: pytest.fail("environments begin"))
    options = NavigationOptions(minibatches=7)
    for refused in (
        lambda: train_navigation(tmp_path / "out", options),
        lambda: train_navigation_seeds(tmp_path / "out", options, 2),
        lambda: NavigationTraining(options, plain_eye("depth_navigation")),
    ):
        with pytest.raises(AirworthyError, match=r"^minibatches is 7; expected a number that divides its 512 environments"):
            refused()
    assert not (tmp_path / "out").exists()
    with pytest.raises(AirworthyError, match=r"minibatches is 7; expected a number that divides 128, the blocks of 16 samples"):
        check_learner(64, TorchPpoOptions(rollout=32, minibatches=7))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Options.learning_rate is 2; expected", "--learning-rate is 2; expected"),
        ("rate is 2; the rate is high", "--rate is 2; the rate is high"),
        ("Options.inner is 2; expected", "inner is 2; expected"),
        ("the learning_rate of Options is 2", "the learning_rate of Options is 2"),
        ("rate[1] is 2", "--rate[1] is 2"),
    ],
)
def test_fields_become_options(written: str, said: str) -> None:
    assert in_options(written, ("rate", "learning_rate")) == said


@pytest.mark.parametrize(
    ("held", "asked", "names"),
    [
        (PpoTrainingOptions(), GradientOptions(), "had episode_steps, ppo, steps, task"),
        (GradientOptions(), PpoTrainingOptions(), "which had blend, clip, cost, critic,"),
        (GradientOptions(), GradientOptions(window=50), "window was 100, not 50"),
    ],
)
def test_a_folder_of_another_training_is_refused_before_anything_is_compiled(
    held: Any, asked: Any, names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import asdict

    (tmp_path / "training.json").write_text(json.dumps({"options": asdict(held)}, default=str))

    def compiled(*_: Any) -> None:
        raise AssertionError("it was made ready first")

    monkeypatch.setattr(GradientTraining, "__init__", compiled)
    monkeypatch.setattr(PpoTraining, "__init__", compiled)
    with pytest.raises(AirworthyError, match=names):
        train_hover(vehicle("tinyprop"), tmp_path, asked)


def test_what_a_shell_is_told_to_fly_is_one_word() -> None:
    """A folder with a space in it is quoted."""
    assert how_to_fly(Path("my runs/x"), Path("r.html")) == (
        "Policy: my runs/x, to fly with --pilot 'policy:my runs/x'; report: r.html"
    )
    told = how_to_fly(Path("runs/x"), Path("r.html"), "avoid", "Student", "--vehicle NAME")
    assert told == "Student: runs/x, to fly with --vehicle NAME --pilot avoid:runs/x; report: r.html"


def test_help_of_a_task_says_the_whole_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "recovery", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: airworthy train recovery [-h] ")
