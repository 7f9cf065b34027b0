"""The figures of `airworthy verify --only splats`: that they hold, and that they would not if what they measure were wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.scenes.splats import read_splats, write_splats
from airworthy.verification import splats as figures


def test_images_derivatives_and_damage() -> None:
    found = [*figures._against_twin(range(3)), figures._order(), *figures._derivatives(), *figures._damaged(60)]
    assert len(found) == 11
    assert all(figure.passed for figure in found), [figure for figure in found if not figure.passed]


@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_containers_and_real_scenes(some: bool, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if some:  # every container, the large captures left out; reading them is tested beside their readers
        monkeypatch.setattr(figures, "FILES", {"guitar.compressed.ply": 90_854})
        monkeypatch.setattr(figures, "ROBOT_LEVELS", {level: figures.ROBOT_LEVELS[level] for level in (4, 6)})
    found = [*figures._containers(data_dir / "splats")]
    assert len(found) == 3
    assert all(figure.passed for figure in found), [figure for figure in found if not figure.passed]


def test_a_wrong_image_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = figures._ours
    monkeypatch.setattr(figures, "_ours", lambda *given, **options: true(*given, **options) + np.float32(0.01))
    mean, psnr = figures._against_twin(range(1))
    assert not mean.passed
    assert not psnr.passed


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = figures._changed

    def wrong(splats: Any, name: str, values: Any) -> Any:
        return true(splats, name, values * 1.02 if name == "opacity" else values)

    monkeypatch.setattr(figures, "_changed", wrong)
    assert [figure.passed for figure in figures._derivatives()].count(False) == 1


def test_a_reader_that_breaks_its_promise_is_found(tmp_path: Path) -> None:
    path = write_splats(figures._cloud(np.random.default_rng(0), 5), tmp_path / "seed.ply")
    broken, _, _ = figures.damage_outcome(path, read_splats, lambda found: False, 20, np.random.default_rng(1))
    assert broken > 0
