"""A finished run to look at and to damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.small_pictures import small_pictures  # noqa: F401

from airworthy.benchmarks.fly.job import FlyConfig, run_fly


@pytest.fixture(autouse=True)
def _small_pictures(small_pictures: None) -> None:  # noqa: F811
    """Commands are tested here, not how fine their pictures are."""


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of three randomised flights; not to be changed."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    run_fly(FlyConfig(course="hover", envs=3, randomize=("default",), turbulence=0.5, seed=5, hold=0.2, out=folder))
    return folder
