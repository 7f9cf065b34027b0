"""The figures of `airworthy verify --only identify`: they hold, and would not if what they measure were wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airworthy.vehicles import Known, identify
from airworthy.verification.identification import figures
from airworthy.verification.identification.figures import identify_figures, misses
from airworthy.verification.identification.truths import RATE, flown, truths


@pytest.mark.slow
def test_figures_hold(data_dir: object) -> None:
    found = list(identify_figures())
    assert len(found) == 52
    assert [figure for figure in found if not figure.passed] == []


def test_shared_logs_are_decoded_11_1(data_dir: Path, tmp_path: Path) -> None:
    found = list(figures.decoder_figures(data_dir))
    assert len(found) == 6
    assert all(figure.passed for figure in found)
    # One byte of a record that is not what it was is told by the checksum.
    place = tmp_path / "flights/crazyflie_sysid"
    place.mkdir(parents=True)
    content = bytearray((data_dir / "flights/crazyflie_sysid/log10").read_bytes())
    content[100_000] ^= 1
    (place / "log10").write_bytes(content)
    assert not all(figure.passed for figure in figures.decoder_figures(tmp_path))


def test_vehicles_differ() -> None:
    names = [truth.vehicle.name for truth in truths()]
    assert len(set(names)) == len(names) == 11
    assert {truth.vehicle.rotor_count for truth in truths()} == {4, 6, 8}


@pytest.mark.slow
def test_a_wrong_dead_time_would_be_found() -> None:
    truth = truths()[0]
    mass = truth.vehicle.mass
    known = Known(mass=(mass, 0.001 * mass), vehicle=truth.known)
    found = identify([flown(truth, 0, 12.0)], known, quick=True)
    assert misses(truth, found).delay < 0.5 / RATE
    assert misses(replace(truth, delay=truth.delay + 2), found).delay > 1.5 / RATE
    assert figures.AIMS[2][1] == "delay"
