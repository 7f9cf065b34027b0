"""`airworthy tune`: candidates, step figures, the front, the choice, its file flown, and wrong gains."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.benchmarks.tuning.run import TuneConfig, choice, pareto
from airworthy.benchmarks.tuning.sweep import GainCandidate, candidates_for, fly_candidates, step_figures
from airworthy.benchmarks.tuning.sweep import Path as Figure
from airworthy.cli.main import main
from airworthy.control.gain_parameters import gain_rows
from airworthy.control.gain_sets import GainSet, gain_set, read_gain_set, write_gain_set
from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle, write_vehicle


def test_candidates_spread_and_repeat() -> None:
    some = candidates_for(64, 3)
    assert some[0] == GainCandidate()
    assert some == candidates_for(64, 3)
    assert some != candidates_for(64, 4)
    values = np.log([[c.position, c.position_damping, c.attitude, c.attitude_damping] for c in some[1:]])
    assert (values.min(0) < np.log([0.5, 0.8, 0.6, 0.8])).all()
    assert (values.max(0) > np.log([2.0, 1.4, 2.0, 1.4])).all()


def test_factors_keep_frequency_and_damping() -> None:
    """K_x = w^2 and K_v = 2 zeta w: a loop twice as fast with the same damping."""
    factors = GainCandidate(2.0, 1.0, 3.0, 0.5).factors()
    assert factors == {"position_gain": 4.0, "velocity_gain": 2.0, "attitude_gain": 9.0, "rate_gain": 1.5}


def test_step_figures_of_a_second_order_response() -> None:
    """Overshoot exp(-pi z / sqrt(1 - z^2)); the time constant of the envelope is 1 / (z w)."""
    z, w = 0.4, 5.0
    t = np.arange(1, 5001) / 1000.0
    d = w * math.sqrt(1.0 - z * z)
    response = 1.0 - np.exp(-z * w * t) * (np.cos(d * t) + z * w / d * np.sin(d * t))
    found = step_figures(t, response)
    assert found.overshoot == pytest.approx(math.exp(-math.pi * z / math.sqrt(1.0 - z * z)), abs=1e-4)
    inside = np.flatnonzero(np.abs(response - 1.0) > 0.02)[-1]
    assert found.settling == t[inside + 1]
    tenth, most = np.interp([0.1, 0.9], response[:400], t[:400])
    assert found.rise == pytest.approx(most - tenth, abs=2e-3)
    never = step_figures(t, 0.5 * np.ones_like(t))
    assert math.isnan(never.settling)
    assert math.isnan(never.rise)


def test_the_path_begins_and_ends_at_rest_and_its_derivatives_agree() -> None:
    path = Figure(vehicle("lmf2"))
    times = np.linspace(0.0, path.duration, 4001)
    commands = np.array([path.command(t) for t in times])
    np.testing.assert_allclose(commands[[0, -1], 3:12], 0.0, atol=2e-2)
    dt = times[1] - times[0]
    for k in (0, 3, 6):
        slope = np.gradient(commands[:, k : k + 3], dt, axis=0)
        assert np.abs(slope - commands[:, k + 3 : k + 6])[2:-2].max() < 0.02 * np.abs(commands[:, k + 3 : k + 6]).max()


def test_the_front_and_the_choice() -> None:
    error = np.array([1.0, 2.0, 3.0, 0.5, 4.0, 2.0])
    effort = np.array([5.0, 2.0, 1.0, 9.0, 1.5, 3.0])
    among = np.array([True, True, True, False, True, True])
    front = pareto(error, effort, among)
    assert front.tolist() == [True, True, True, False, False, False]
    assert choice(error, effort, front, 1.0) == 0
    assert choice(error, effort, front, 0.0) == 2
    assert choice(error, effort, front, 0.5) == 1


def test_candidates_fly_alone_as_in_a_batch() -> None:
    some = candidates_for(4)
    together, alone = fly_candidates(vehicle("carl"), some), fly_candidates(vehicle("carl"), some[2:3])
    np.testing.assert_array_equal(together.responses[:, 2], alone.responses[:, 0])
    assert together.tracking_error[2] == alone.tracking_error[0]
    assert not together.diverged.any()


@pytest.mark.slow
def test_a_tuned_file_flies_better_and_replays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, order = tmp_path / "tuned", ["--priority", "attitude-yaw-force"]
    assert main(["tune", "carl", "--candidates", "32", "--prefer", "0.8", "--out", str(out), "--json", *order]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((out / "tuning.json").read_text())
    assert found["chosen"]["tracking_error_m"] < 0.8 * found["auto"]["tracking_error_m"]
    assert all(m["gain_db"] >= 6.0 and m["phase_deg"] >= 30.0 for m in found["chosen"]["margins"].values())
    assert "<svg" in (out / "report.html").read_text()
    written = read_gain_set(out / "gains.toml")
    assert written.midpoint().keys() == found["chosen"]["gains"].keys()
    assert written.priority == found["chosen"]["priority"] == "attitude-yaw-force"
    errors = []
    for gains in ("auto", str(out / "gains.toml")):
        run = tmp_path / f"run{len(errors)}"
        flags = ["--vehicle", "carl", "--course", "line", "--gains", gains, "--out", str(run), "--no-report", "--json"]
        assert main(["fly", *flags]) == 0
        errors.append(json.loads(capsys.readouterr().out)["tracking_error_m"]["mean"])
    assert errors[1] < errors[0]
    (out / "gains.toml").unlink()
    assert main(["replay", str(run)]) == 0


def test_gains_are_those_asked_for(tmp_path: Path) -> None:
    item = vehicle("carl")
    file = tmp_path / "mine.toml"
    values = {"position_gain": (1.0, 2.0, 3.0)}
    write_gain_set(GainSet("mine", "geometric", "bench", values, values), file)
    auto = gain_rows(item, ControlConfig(), "tracking", 0.001, 4)
    mine = ControlConfig(gains=str(file), gain_values=(("rate_gain", 0.5), ("inclination_max", 0.5)))
    own = gain_rows(item, mine, "tracking", 0.001, 4)
    assert tuple(own["position_gain"]) == (1.0, 2.0, 3.0)
    assert tuple(own["rate_gain"]) == (0.5, 0.5, 0.5)
    assert own["inclination_tangent"] == pytest.approx(math.tan(0.5))
    for name in ("velocity_gain", "attitude_gain", "thrust_max", "pull_max"):
        np.testing.assert_array_equal(own[name], auto[name])
    lee = gain_rows(item, ControlConfig(gains="lee", gain_values=(("position_gain", (4.0, 4.0, 6.0)),)), "tracking", 0.001, 4)
    assert tuple(lee["position_gain"]) == (4.0, 4.0, 6.0)
    assert tuple(lee["attitude_gain"]) == tuple(gain_set("lee").midpoint()["attitude_gain"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks 'law'"),
        ('law = "mellinger"', "law must be 'geometric', but is 'mellinger'"),
        ('law = "geometric"', "no gain"),
        ('law = "geometric"\n[values]', "no gain"),
        ('law = "geometric"\n[values]\nposition_gain = [1, 2]', "expected 3 numbers"),
        ('law = "geometric"\n[values]\nposition_gain = [1, 2, nan]', r"position_gain\[2\] must be a finite number, but is nan"),
        ('law = "geometric"\n[values]\nposition_gain = -1', r"position_gain is -1 1/s\^2; expected 0 to 1000000"),
        ('law = "geometric"\n[values]\nposition_gian = 1', "closest: 'position_gain'"),
        ('law = "geometric"\n[values]\nposition_gain = "x"', "must be a number or a list, but is 'x'"),
        ('law = "geometric"\npriority = "yaw"\n[values]\nposition_gain = 1', "attitude-force-yaw"),
        ('law = "geometric"\nlwa = 1\n[values]\nposition_gain = 1', "unknown key 'lwa'"),
        ('law = "geometric"\n[values]\nposition_gain = 1\n[limits]\nyaw = 1', "limit"),
    ],
)
def test_a_wrong_file_gets_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(AirworthyError, match=said) as error:
        read_gain_set(file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--gains", "nowhere.toml"], "nowhere.toml"),
        (["--gain", "position_gain"], "not NAME=NUMBER"),
        (["--gain", "position_gain=a,b"], "not NAME=NUMBER"),
        (["--gain", "position_gain=nan"], "position_gain is nan 1/s^2; expected 0 to 1000000"),
        (["--gain", "stiffness=3"], "stiffness"),
        (["--gain", "rate_gain=3", "rate_gain=4"], "given twice"),
        (["--gain", "thrust_max=3"], "changes nothing"),
        (["--pilot", "position", "--gain", "yaw_rate_max=3"], "changes nothing"),
        (["--gain", "pull_max=3,3,3"], "expected 2 numbers"),
        (["--pilot", "mellinger", "--gain", "position_gain=3"], "takes none"),
    ],
)
def test_a_wrong_command_gets_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fly", "--out", str(tmp_path / "run"), *arguments]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("change", [{"candidates": 1}, {"prefer": math.nan}, {"delay": -1.0}, {"physics_rate": "960"}])
def test_what_cannot_be_tuned_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(AirworthyError, match=next(iter(change))):
        TuneConfig(**change)  # type: ignore[arg-type]


def test_a_vehicle_without_authority_is_told_about_which_axis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rotors side by side cannot pitch."""
    item = vehicle("flightgoggles")
    left, right = (replace(item.rotors[k], position=(0.0, y, 0.0), spin=s) for k, y, s in ((0, 0.2, 1), (1, -0.2, -1)))
    write_vehicle(replace(item, name="pair", mass=0.5, rotors=(left, right)), tmp_path / "pair.toml")
    assert main(["tune", str(tmp_path / "pair.toml"), "--candidates", "4", "--out", str(tmp_path / "tuned")]) == 2
    message = capsys.readouterr().err
    assert "pitch" in message
    assert message.strip().count("\n") == 0


def test_gains_of_a_batch_are_bounded() -> None:
    sim = Simulator(vehicle("carl"), SimulatorConfig(level="position"))
    for name, value in (("control_position_gain", -4.0), ("control_attitude_gain", 1e9), (5, 1.0)):
        with pytest.raises(AirworthyError):
            sim.set_parameter(name, value)  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match="seed"):
        Simulator(vehicle("carl"), SimulatorConfig(level="position"), seed=2**64)


def test_a_run_of_what_cannot_hover_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_vehicle(replace(vehicle("flightgoggles"), name="heavy", mass=9.0), tmp_path / "heavy.toml")
    assert (
        main(
            [
                "fly",
                "--vehicle",
                str(tmp_path / "heavy.toml"),
                "--course",
                "line",
                "--no-report",
                "--out",
                str(tmp_path / "run"),
            ]
        )
        == 0
    )
    assert "WARNING: heavy cannot hover: it weighs" in capsys.readouterr().out
