"""Messages that name what is wrong, and commands whose output was closed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

import airworthy as aw
from airworthy.benchmarks.fly.scene import _add
from airworthy.cli.common import run_tyro
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.schema import Bound
from airworthy.scenes import scene


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("fly --envs 1e-9", "'1e-9' is not a whole number"),
        ("fly --envs 1e9", "--envs is 1000000000; expected 1 to 1000000."),
        ("fly --slower fast", "'fast' is not a number"),
        ("train recovery --hidden 64", "--hidden: got '64'; expected 2 numbers. Run"),
        ("tasks show", "airworthy tasks show needs an argument: name of the task"),
        ("train svnet", "airworthy train svnet needs an argument: folder of a data set. Run"),
        (
            "train hover --randomize mass=0.1 lag=0.1 mass=0.2",
            "--randomize got mass twice, mass=0.1 and mass=0.2; give it once.",
        ),
        ("--verison", "Unknown option '--verison'. Closest: '--version'."),
        ("fly --pilot runs/nopolicy", "svnet:FOLDER, policy:FOLDER, avoid:FOLDER or navigation:FOLDER"),
        ("tune carl --out /proc/x", "Could not make the folder '/proc/x'"),
    ],
)
def test_mistakes_are_named_plainly(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert says in told
    assert "invalid literal" not in told


@dataclass(frozen=True)
class Counted:
    """Whole numbers, as options have them."""

    plain: int = 1
    """Alone."""
    left: int | None = None
    """Left out."""
    pair: tuple[int, int] = (1, 2)
    """Two."""
    several: tuple[int, ...] = ()
    """As many as are given."""
    bounded: Annotated[int, Bound(0, 10**12)] = 0
    """With bounds."""
    share: float = 0.5
    """No whole number."""


def test_whole_numbers_may_be_written_as_powers_of_ten(capsys: pytest.CaptureFixture[str]) -> None:
    """As in Python, where aw.train(..., steps=1e6) is taken: exactly, and nothing that is not whole."""
    words = "--plain 1e6 --left 5.24e7 --pair 6.4e1 64 --several 1E3 -2e0 1_000 --bounded +1e12 --share 1e-3"
    found = run_tyro(Counted, words.split(), "counted", "x")
    assert found == Counted(10**6, 52_400_000, (64, 64), (1000, -2, 1000), 10**12, 1e-3)
    assert all(type(one) is int for one in (found.plain, found.left, *found.pair, *found.several, found.bounded))
    # A float would be 9007199254740992.
    assert run_tyro(Counted, ["--plain", "9.007199254740993e15"], "counted", "x").plain == 2**53 + 1
    for word in ("1.5", "1e-3", "nan", "inf", "1e400", "1e", "six", ""):
        with pytest.raises(SystemExit):
            run_tyro(Counted, ["--plain", word], "counted", "x")
        assert f"{word!r} is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("train_hover:TrainHoverConfig", "--trainer native_ppo --steps 3.2e1"),
        ("train_hover:TrainHoverConfig", "--iterations 3.2e1"),
        ("train_hover:TrainMotorCommandConfig", "--steps 3.2e1"),
        ("train_foundation:TrainFoundationConfig", "--iterations 3.2e1"),
        ("train_distill:TrainDistillConfig", "--rounds 3.2e1"),
        ("train_avoid:TrainAvoidConfig", "--iterations 3.2e1"),
        ("train_navigation:TrainNavigationConfig", "--steps 3.2e1"),
        ("train_navigation:TrainEncoderConfig", "--iterations 3.2e1"),
        ("train:TrainSvNetConfig", "DATA --epochs 3.2e1"),
        ("train_boundary:TrainBoundaryConfig", "LABELS --epochs 3.2e1"),
        ("train_task:TrainTaskConfig", "recovery --steps 3.2e1"),
    ],
)
def test_every_training_takes_its_length_so(place: str, words: str) -> None:
    module, name = place.split(":")
    kind = getattr(importlib.import_module(f"airworthy.cli.learning.{module}"), name)
    option = words.split()[-2].removeprefix("--")
    assert getattr(run_tyro(kind, words.split(), "train", "x"), option) == 32


def test_the_record_of_a_scene_is_no_vehicle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scene.toml"
    path.write_text('version = 1\nname = "yard"\nbounds = { lower = [0, 0, 0], upper = [1, 1, 1] }\n')
    assert main(["vehicles", "validate", str(path)]) == 2
    assert "is the record of a scene, not of a vehicle" in capsys.readouterr().err


@pytest.mark.parametrize("corner", ["1 0 nan", "0 1e30 0"])
def test_a_model_of_wild_corners_says_so(corner: str, tmp_path: Path) -> None:
    path = tmp_path / "wild.obj"
    path.write_text(f"v 0 0 0\nv {corner}\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(AssetError, match="no triangle is left, since 1 of 1 have a corner that is not finite or lies beyond"):
        scene(path)


def test_words_are_no_places() -> None:
    with pytest.raises(AirworthyError, match=r"`position` of cameras is 'abc'; expected numbers, \(3,\) or \(c, 3\)"):
        aw.render("hall", position="abc", target=(0.0, 0.0, 1.0))


def test_a_second_sensor_is_told_how_to_be_named() -> None:
    found = {"front": object()}
    with pytest.raises(AirworthyError, match="--sensors left=d435"):
        _add(found, "front", found["front"], "d435")  # type: ignore[arg-type]


def test_a_command_whose_output_is_closed_ends_well() -> None:
    code = (
        "import sys; sys.stdout = sys.stderr = None; from airworthy.cli.main import main; sys.exit(main(['courses', 'list']))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), timeout=60, check=False)
    assert done.returncode == 0
