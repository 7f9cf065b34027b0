"""The comparison of values with those on file notices what differs, and only that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot


@dataclass(frozen=True)
class Options:
    rate: float = 0.1
    name: str | None = None
    on: bool = True
    sizes: tuple[int, ...] = (1, 2)


VALUES = {"options": Options(), "big": np.linspace(-1.0, 1.0, 50), "parts": [{"a": 1}, "b c"], "call": np.add}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "snapshots" / "values.txt"
    monkeypatch.setenv("UPDATE_SNAPSHOTS", "1")
    check_snapshot(place, VALUES)
    monkeypatch.setenv("UPDATE_SNAPSHOTS", "0")
    return place


def test_values_as_on_file_pass(file: Path) -> None:
    check_snapshot(file, VALUES)
    check_snapshot(file, {**VALUES, "big": np.linspace(-1.0, 1.0, 50) * (1.0 + 1e-10)})


@pytest.mark.parametrize(
    "other",
    [
        {"options": replace(Options(), rate=0.1 + 1e-9)},
        {"options": replace(Options(), name="None ")},
        {"options": replace(Options(), on=False)},
        {"options": replace(Options(), sizes=(2, 1))},
        {"options": replace(Options(), sizes=(1, 2, 3))},
        {"big": np.linspace(-1.0, 1.0, 51)},
        {"big": np.linspace(-1.0, 1.0, 50)[::-1]},
        {"big": np.linspace(-1.0, 1.0, 50).astype(np.float32)},
        {"big": np.where(np.arange(50) == 7, np.nan, np.linspace(-1.0, 1.0, 50))},
        {"big": np.linspace(-1.0, 1.0, 50) + 1e-6 * (np.arange(50) == 7)},
        {"parts": [{"a": 2}, "b c"]},
        {"parts": [{"a": 1}, "b d"]},
        {"parts": [{"a": 1, "z": 0}, "b c"]},
        {"new": 1},
        {"call": np.multiply},
    ],
)
def test_what_differs_is_named(file: Path, other: dict[str, object]) -> None:
    with pytest.raises(AssertionError, match=next(iter(other))):
        check_snapshot(file, {**VALUES, **other})


def test_what_is_gone_is_named_and_what_has_no_line_is_refused(file: Path) -> None:
    with pytest.raises(AssertionError, match="call: add on file, None now"):
        check_snapshot(file, {key: value for key, value in VALUES.items() if key != "call"})
    check_snapshot(file, {**VALUES, "new": 1}, growing=True)
    with pytest.raises(TypeError, match="object has no line"):
        check_snapshot(file, {"thing": object()})
