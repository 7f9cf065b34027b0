"""One policy for all quadrotors: vehicles drawn from nothing, a training on them, and the program that flies the catalogue."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from airworthy.dynamics.state import padded_rotor_count
from airworthy.learning.gradient import GradientOptions, foundation
from airworthy.learning.gradient.foundation import FOUNDATION, FoundationTraining, drawn_quadrotor, write_foundation_policy
from airworthy.pilots import read_motor_policy
from airworthy.pilots.motor_policy.quadrotor import QuadrotorTerms
from airworthy.simulation import SimulatorConfig
from airworthy.simulation.parameters import rigid_column
from airworthy.vehicles import check, hover_speed, indicators, vehicle
from benchmarks import foundation as program
from benchmarks import hardware

SMALL = GradientOptions(env_count=16, window=20, hidden=16, iterations=6, flight_s=0.5)
# A kernel that other tests have, too.


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foundation, "_POOL", 24)


def test_drawn_vehicles_are_sound_and_as_wide_apart_as_they_are_said_to_be() -> None:
    fleet = [check(drawn_quadrotor(3, k)) for k in range(200)]
    mass, ratio, turn, rise = np.array(
        [
            (v.mass, (i := indicators(v)).thrust_to_weight, i.thrust_to_weight / i.alpha_xy_max, v.rotors[0].response.rise[0])
            for v in fleet
        ]
    ).T
    for values, low, high in ((mass, 0.02, 5.0), (ratio, 1.5, 5.0), (turn, 0.001, 0.1), (1.0 / rise, 0.01, 0.15)):
        assert low * (1 - 1e-9) <= values.min() < low * 1.6
        assert high / 1.6 < values.max() <= high * (1 + 1e-9)
    for item in fleet[:20]:
        terms = QuadrotorTerms.of(item, 0.15)
        assert (terms.order.tolist(), terms.turn) == ([0, 1, 2, 3], 0.0)
        np.testing.assert_allclose(hover_speed(item), 1000.0, rtol=1e-9)
    assert drawn_quadrotor(3, 7) == fleet[7]
    assert drawn_quadrotor(4, 7).mass != fleet[7].mass


def test_each_flight_has_a_vehicle_of_its_own_and_a_stopped_training_the_same() -> None:
    whole, stopped = FoundationTraining(SMALL), FoundationTraining(SMALL)
    first = {row: values.copy() for row, values in whole.window.parameters.items()}
    for _ in range(6):
        whole.step()
    for _ in range(3):
        stopped.step()
    other = FoundationTraining(SMALL)
    other.restore(stopped.save())
    while not other.finished:
        other.step()
    for a, b in zip(whole.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    layout = whole.surrogate.layout
    row = layout.offsets["mass_inverse"]
    flown = whole.window.parameters[row]
    assert np.any(flown != first[row])
    mine = [drawn_quadrotor(0, int(k)) for k in (np.arange(16) + whole.episode * 16) % 24]
    np.testing.assert_allclose(flown, [1.0 / v.mass for v in mine], rtol=1e-6)
    # Everything that the step reads of a vehicle is of the same one, and rotors keep to the band.
    column = rigid_column(mine[5], SimulatorConfig(), layout, padded_rotor_count(4))
    for name in ("inertia", "rotor_position", "rotor_thrust", "rotor_torque", "rotor_rise"):
        for at in range(*layout.rows(name).indices(layout.size)):
            if at in whole.window.parameters:
                assert whole.window.parameters[at][5] == pytest.approx(column[at], rel=1e-6)
    np.testing.assert_allclose(whole.window.parameters[layout.offsets["rotor_max"]], 1150.0)
    np.testing.assert_allclose(whole.hover, 0.0, atol=1e-12)


def test_the_policy_is_small_and_of_any_quadrotor(tmp_path: Path) -> None:
    training = FoundationTraining(SMALL)
    policy = read_motor_policy(write_foundation_policy(tmp_path, training))
    assert policy.contract.band == pytest.approx(0.15)
    assert (policy.contract.family, policy.contract.history) == ("quadrotor", 0)
    own = policy.fitted(vehicle("virt_01"))
    # A policy that has learnt nothing yet hovers, whatever it is fitted to.
    seen = np.random.default_rng(0).normal(size=(4, own.contract.observed))
    np.testing.assert_allclose(own.command(own.action(seen)), np.tile(hover_speed(vehicle("virt_01")), (4, 1)), rtol=0.01)
    widths = 18 + 4 * FOUNDATION.history, FOUNDATION.hidden, FOUNDATION.hidden, 4
    assert sum((a + 1) * b for a, b in pairwise(widths)) <= 3000


def test_the_program_flies_each_quadrotor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])  # the other tests keep theirs
    assert [v.rotor_count for v in program.quadrotors()] == [4] * 52
    refused = replace(vehicle("x500"), name="odd", rotors=tuple(replace(r, spin=1) for r in vehicle("x500").rotors))
    monkeypatch.setattr(program, "quadrotors", lambda: [vehicle("carl"), refused])
    monkeypatch.setattr(program, "FOUNDATION", SMALL)
    words = ["--out", str(tmp_path / "p"), "--iterations", "1", "--flights", "16", "--json", str(tmp_path / "f.json")]
    assert program.main(words) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert found["trained"]["env_steps"] == 320
    assert [(row["vehicle"], row["held"]) for row in found["rows"]] == [("carl", False), ("odd", False)]
    assert "turn against each other" in found["rows"][1]["refused"]
    assert "held within 10 cm: 0 of 2" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        program.main([])
