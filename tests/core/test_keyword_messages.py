"""Messages to callers from Python name keyword arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

import airworthy as aw
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.core.keyword_messages import in_keywords, raises_in_keywords


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("--pairs 5 changes nothing without --scenes, in which", "pairs=5 changes nothing without scenes, in which"),
        ("--least-distance 1e-05 changes", "least_distance=1e-05 changes"),
        ("--wind 1 0 -0.5 changes nothing", "wind=(1, 0, -0.5) changes nothing"),
        ("move its start, or fly with --contact none.", "move its start, or fly with contact='none'."),
        ("add --record video, or leave it out.", "add record='video', or leave it out."),
        ("--no-report changes nothing", "report=False changes nothing"),
        ("--perturb.moving-speed 2 changes", "moving_speed=2 changes"),
        ("give --course or --waypoints.", "give course or waypoints."),
        ("name a --scene (`airworthy scenes --help` lists them)", "name a scene (`airworthy scenes --help` lists them)"),
        ("give --goal X Y Z, in metres.", "give goal=(x, y, z), in metres."),
        ("listens on IPv4 only: leave --host out.", "listens on IPv4 only: leave host out."),
        ("--vehicle my.toml changes nothing", "vehicle='my.toml' changes nothing"),
        ("a -- b, well--known, a file x--y", "a -- b, well--known, a file x--y"),
    ],
)
def test_options_become_keywords(written: str, said: str) -> None:
    assert in_keywords(written) == said


def test_calls_from_python_are_told_keywords(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"^pairs=5 changes nothing without scenes, "):
        aw.bench.navigation(pilots=("straight",), pairs=5, out=tmp_path / "run")
    with pytest.raises(AirworthyError, match=r"^least_distance=5 changes nothing without scenes, "):
        aw.bench.navigation(pilots=("straight",), least_distance=5.0, out=tmp_path / "run")
    with pytest.raises(AirworthyError, match=r"^contact='reset' changes nothing .*: name a scene, or leave it out\.$"):
        aw.fly(contact="reset", out=tmp_path / "run")
    with pytest.raises(AirworthyError, match="finds its own way: name a scene"):
        aw.fly(pilot="ego", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_error_keeps_its_kind_and_the_function_its_name() -> None:
    @raises_in_keywords
    def looked_up(name: str) -> None:
        """Look up."""
        raise UnknownNameError(f"Unknown --scene-name {name!r}.")

    assert (looked_up.__name__, looked_up.__doc__) == ("looked_up", "Look up.")
    with pytest.raises(UnknownNameError, match=r"^Unknown scene_name 'x'\.$"):
        looked_up("x")
