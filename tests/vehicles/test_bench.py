"""Thrust stands: files of known motors in the layouts of stands, what is found of them, and what is refused."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.logs.units import RPM
from airworthy.vehicles import BenchFit, fit_bench, motor_prior, read_bench_fit, write_bench_fit
from airworthy.vehicles.bench.columns import GRAM_FORCE, BenchColumns, guess_bench_columns
from airworthy.vehicles.bench.fit import _hysteresis
from airworthy.vehicles.bench.levels import levels_of
from airworthy.vehicles.bench.motor_prior import against
from airworthy.vehicles.bench.table import bench_table
from airworthy.verification.identification.bench import StandTruth, simulated_stand

TRUTH = StandTruth()
SPEED = "Motor Electrical Speed (RPM)"


def columns(truth: StandTruth = TRUTH, **more: float) -> dict[str, np.ndarray]:
    given = {"rate": 40.0, "held": 1.0} | more
    return simulated_stand(truth, **given)  # type: ignore[arg-type]


def write_csv(path: Path, table: dict[str, np.ndarray]) -> Path:
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table) + ",", *(",".join(f"{v:.9g}" for v in row) + "," for row in rows)]
    path.write_text("\ufeff" + "\n".join(lines) + "\n")
    return path


def fitted(truth: StandTruth = TRUTH, **more: float) -> BenchFit:
    return fit_bench(bench_table(columns(truth, **more), name="stand.csv"))


# ---- What is found -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fast() -> BenchFit:
    return fitted(rate=250.0, held=1.5)


def test_a_file_as_stands_write_them_gives_the_motor_back(tmp_path: Path) -> None:
    # Names of columns as of Tyto Robotics' RCbenchmark, trailing commas and a mark of the encoding included.
    found = fit_bench(write_csv(tmp_path / "stand.csv", columns()))
    assert found.source.startswith("stand.csv[")
    assert found.state == "speed"
    assert found.thrust is not None
    assert found.torque is not None
    for speed in np.linspace(found.thrust.low, found.thrust.high, 7).tolist():
        assert found.thrust.at(speed) == pytest.approx(float(TRUTH.thrust_at(speed)), rel=0.01)
        assert found.torque.at(speed) / found.thrust.at(speed) == pytest.approx(TRUTH.torque_ratio, rel=0.01)
    assert any("Motor Electrical Speed (RPM)" in note for note in found.notes)


def test_speed_goes_with_command_and_voltage(fast: BenchFit) -> None:
    assert fast.speed is not None
    assert fast.speed.sag == pytest.approx(TRUTH.sag, abs=0.05)
    for command in (0.2, 0.5, 1.0):
        assert fast.speed.at(command, TRUTH.voltage) == pytest.approx(TRUTH.offset + TRUTH.slope * command, rel=0.005)


def test_a_lag_is_told_of_steps_that_are_sampled_fast_enough(fast: BenchFit) -> None:
    assert fast.lag is not None
    assert fast.lag.both[0] == pytest.approx(TRUTH.lag, rel=0.05)
    # Rows hold a speed for 4 ms.
    assert fast.lag.delay == pytest.approx(TRUTH.delay, abs=0.005)
    slow = fitted()
    assert slow.lag is None
    assert "asks for" in slow.no_lag


def test_a_supply_that_gives_way_does_not_make_a_rotor_look_faster() -> None:
    found = fit_bench(bench_table(columns(rate=250.0, held=1.0) | {"Voltage (V)": np.full(250 * 23, 11.1)}))
    assert found.lag is not None
    # Without the voltage the decay is that of the motor and of the battery together, 6 % faster.
    assert found.lag.both[0] < 0.97 * TRUTH.lag


def test_zero_drift_and_noise_of_the_scale_are_told(fast: BenchFit) -> None:
    assert fast.tare is not None
    assert fast.tare.drift_told
    assert fast.tare.start == pytest.approx(TRUTH.tare, abs=0.01)
    assert fast.tare.drift == pytest.approx(TRUTH.drift, abs=0.02)
    assert fast.noise == pytest.approx(TRUTH.noise, rel=0.1)
    assert fast.hysteresis is not None
    assert abs(fast.hysteresis.share) < 3.0 * fast.hysteresis.sd


def test_hysteresis_is_told_and_widens_what_a_vehicle_is_given() -> None:
    found = fitted(replace(TRUTH, hysteresis=0.06))
    assert found.hysteresis is not None
    assert found.hysteresis.share == pytest.approx(0.06, abs=0.012)
    assert found.scale_error == pytest.approx(math.hypot(0.03, 0.5 * found.hysteresis.share))


def test_little_thrust_says_nothing_of_hysteresis(fast: BenchFit) -> None:
    assert fast.thrust is not None
    levels = levels_of(bench_table(columns()))
    assert levels.thrust is not None
    model = np.array([fast.thrust.at(float(s)) for s in levels.state])
    share = model / model.max()
    for limit, seen in ((0.145, False), (0.21, True)):
        # 50 % more thrust on ways up, of levels up to a limit alone: of these 0.143 counts for nothing and 0.208 does.
        odd = replace(levels, thrust=model * np.where((share <= limit) & (levels.rising > 0.0), 1.5, 1.0))
        found = _hysteresis(odd, fast.thrust)
        assert found is not None
        assert (abs(found.share) > 0.01) is seen


def test_errors_go_with_levels_and_not_with_rows() -> None:
    # Four times the rows of a curve that is not quite the model's know it no better.
    truth = replace(TRUTH, misfit=0.02)
    few, many = (fitted(truth, rate=rate) for rate in (20.0, 80.0))
    assert few.thrust is not None
    assert many.thrust is not None
    at = 0.6 * few.thrust.high
    assert many.thrust.sd(at) == pytest.approx(few.thrust.sd(at), rel=0.3)
    assert few.thrust.sd(at) > 0.003 * few.thrust.at(at)


def test_a_whole_vehicle_on_the_scale_drops_dead_columns_by_name() -> None:
    table = columns(motors=4)
    table["rpm3"] = np.zeros_like(table["rpm3"])
    found = fit_bench(bench_table(table, name="quad.csv"))
    assert found.motors == 4
    assert any("'rpm3' is dead" in note for note in found.notes)
    assert any("Torques of 4 motors cancel" in note for note in found.notes)
    assert found.thrust is not None
    at = 0.7 * found.thrust.high
    # Sensors of the columns differ by a hundredth from each other.
    assert found.thrust.at(at) == pytest.approx(float(TRUTH.thrust_at(at)), rel=0.03)


def test_a_motor_that_counts_twice_is_outvoted() -> None:
    table = columns(motors=4)
    table["rpm2"] = table["rpm2"].copy()
    table["rpm2"][100:140] *= 2.0
    found = fit_bench(bench_table(table))
    assert found.thrust is not None
    assert found.thrust.at(700.0) == pytest.approx(float(TRUTH.thrust_at(700.0)), rel=0.03)
    assert any("over 8 % off the others" in note for note in found.notes)


def test_a_kitchen_scale_tells_thrust_over_commands() -> None:
    table = columns(replace(TRUTH, offset=0.0, slope=940.0))
    found = fit_bench(bench_table({k: table[k] for k in ("ESC signal (µs)", "Thrust (gf)", "Voltage (V)")}))
    assert found.state == "command"
    assert found.sag is not None
    assert found.sag.power == pytest.approx(TRUTH.sag, abs=0.2)
    assert found.thrust is not None
    assert found.thrust.at(0.6) == pytest.approx(
        float(TRUTH.thrust_at(564.0 * (found.sag.voltage / TRUTH.voltage) ** TRUTH.sag)), rel=0.02
    )


def test_curves_come_back_from_their_file(fast: BenchFit, tmp_path: Path) -> None:
    path = tmp_path / "curves.json"
    write_bench_fit(fast, path)
    assert read_bench_fit(path) == fast


def test_levels_are_means_of_rows_behind_the_settling() -> None:
    levels = levels_of(bench_table(columns()))
    assert levels.command is not None
    assert len(levels.command) == 21
    assert levels.rising[:10].tolist() == [1.0] * 10
    assert levels.rising[11:].tolist() == [-1.0] * 10


# ---- Columns -----------------------------------------------------------------------------------------------------------------


def test_names_and_units_of_columns_are_guessed() -> None:
    up = np.linspace(0.0, 1.0, 9)
    table = {
        "t_ms": 20.0 * np.arange(9), "throttle [%]": 100.0 * up, "load_cell_kg": up, "omega_rad/s": 900.0 * up,
        "Vbat": 12.0 - up, "current_mA": 900.0 * up, "Overall Efficiency (gf/W)": up, "Airspeed (m/s)": up,
    }  # fmt: skip
    found, _ = guess_bench_columns(table)
    units = {kind: (item.columns[0], item.unit) for kind, item in found.items()}
    assert units == {
        "time": ("t_ms", "ms"),
        "thrust": ("load_cell_kg", "kgf"),
        "speed": ("omega_rad/s", "rad/s"),
        "command": ("throttle [%]", "%"),
        "voltage": ("Vbat", "V"),
        "current": ("current_mA", "mA"),
    }


@pytest.mark.parametrize(
    ("kind", "unit", "given", "si"),
    [
        ("thrust", "mN", 1000.0, 1.0),
        ("thrust", "gf", 1.0, 9.80665e-3),
        ("thrust", "g", 1.0, 9.80665e-3),
        ("thrust", "kgf", 1.0, 9.80665),
        ("thrust", "kg", 1.0, 9.80665),
        ("thrust", "lbf", 1.0, 4.4482216152605),
        ("thrust", "ozf", 1.0, 0.27801385095378),
        ("torque", "mNm", 1.0, 1e-3),
        ("torque", "Ncm", 1.0, 1e-2),
        ("torque", "kgfm", 1.0, 9.80665),
        ("torque", "kgfcm", 1.0, 9.80665e-2),
        ("torque", "gfcm", 1.0, 9.80665e-5),
        ("torque", "ozfin", 1.0, 7.0615518e-3),
        ("torque", "lbfin", 1.0, 0.1129848290),
        ("torque", "lbfft", 1.0, 1.3558179483),
        ("speed", "rpm", 60.0, 2.0 * math.pi),
        ("speed", "Hz", 1.0, 2.0 * math.pi),
        ("voltage", "mV", 1.0, 1e-3),
        ("current", "mA", 1.0, 1e-3),
        ("time", "ms", 1.0, 1e-3),
        ("time", "us", 1.0, 1e-6),
        ("command", "%", 50.0, 0.5),
        ("command", "u8", 51.0, 0.2),
        ("command", "u16", 13107.0, 0.2),
        ("command", "us", 1250.0, 0.25),
        ("command", "dshot", 47.0, 0.0),
        ("command", "dshot", 1047.0, 0.5),
        ("command", "dshot", 2047.0, 1.0),
    ],
)
def test_units_are_what_tables_of_units_say(kind: str, unit: str, given: float, si: float) -> None:
    # NIST Special Publication 811, appendix B.8; DShot: 48 to 2047 are throttle, so that 47 stands still.
    assert BenchColumns(("a",), unit).values(kind, np.array([given])) == pytest.approx([si], rel=1e-8, abs=1e-12)


def test_a_rotors_own_turns_are_taken_before_electrical_ones() -> None:
    up = np.linspace(0.0, 1.0, 9)
    found, _ = guess_bench_columns({"erpm": 7000.0 * up, "rpm": 1000.0 * up, "erpm1": up, "erpm2": up})
    assert found["speed"].columns == ("rpm",)


def test_a_mapping_says_what_columns_are(tmp_path: Path) -> None:
    table = columns()
    plain = {"a": table["ESC signal (µs)"], "b": -table["Thrust (gf)"] * GRAM_FORCE, "c": 7.0 * table[SPEED]}
    path, mapping = write_csv(tmp_path / "plain.csv", plain), tmp_path / "mapping.toml"
    mapping.write_text(
        'command = { columns = ["a"], unit = "us" }\nthrust = { columns = ["b"], unit = "N", scale = -1.0 }\n'
        'speed = { columns = ["c"], unit = "rpm", scale = 0.142857142857 }\n'
    )
    found = fit_bench(path, mapping)
    assert found.thrust is not None
    assert found.thrust.at(700.0) == pytest.approx(float(TRUTH.thrust_at(700.0)), rel=0.01)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "maps nothing"),
        ('lift = { columns = ["a"] }', "Unknown quantity of a bench"),
        ('thrust = { columns = ["a", "b"] }', "has 2 columns; expected 1"),
        ('thrust = { columns = ["a"], unit = "stone" }', "has unit 'stone'; expected one of N, mN"),
        ('thrust = { columns = ["z"], unit = "N" }', "Unknown column 'z'"),
        ('thrust = { columns = ["a"], scale = 0.0 }', "has a scale of 0"),
        ('thrust = { columns = ["a"], low = 1.0 }', "which belong to a command"),
    ],
)
def test_mistakes_of_mappings(text: str, said: str, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(text)
    path = write_csv(tmp_path / "plain.csv", {"a": np.arange(9.0), "b": np.arange(9.0)})
    with pytest.raises(AirworthyError, match=said):
        fit_bench(path, mapping)


# ---- Hostile files -----------------------------------------------------------------------------------------------------------


def _with(**changed: object) -> dict[str, np.ndarray]:
    table = columns()
    for name, change in changed.items():
        key = next(k for k in table if k.lower().startswith(name))
        table[key] = np.asarray(change(table[key]) if callable(change) else change, np.float64)  # type: ignore[operator]
    return table


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (lambda: {"thrust": np.arange(9.0), "command": np.linspace(0, 1, 9)}, "does not say its unit; write a mapping.toml"),
        (lambda: {k: v[:4] for k, v in columns().items()}, "has 4 rows of numbers that are known; expected at least 6"),
        (lambda: _with(thrust=lambda v: v / GRAM_FORCE), r"N for each watt; expected 0.003 to 1.5"),
        (lambda: {k.replace("(RPM)", "(rad/s)"): v for k, v in columns().items()}, "power at the shaft is"),
        (lambda: _with(esc=lambda v: v + 300.0), "commands go from 0.3 to 1.3 of full; expected 0 to 1"),
        (
            lambda: {k: v - 1000.0 if "ESC" in k else v for k, v in columns().items() if "Speed" not in k},
            r"column 'ESC signal \(µs\)' holds 0 to 1000, taken in 'us' \(1000 to 2000\); give its unit",
        ),
        (
            lambda: {k.replace("Motor Electrical Speed (RPM)", "eRPM"): 7.0 * v for k, v in columns().items()},
            "electrical turns",
        ),
        (lambda: _with(thrust=math.nan) | {"Thrust (gf)": _few(columns()["Thrust (gf)"])}, "rows in which nothing is missing"),
        (lambda: _with(thrust=lambda v: -v), "thrust falls by .* give scale = -1"),
        (
            lambda: {k: np.zeros_like(v) if "Speed" in k or "Thrust" in k else v for k, v in columns().items()},
            "neither thrust nor a rotor's speed is in it",
        ),
        (lambda: {k: v for k, v in columns().items() if "Speed" not in k and "ESC" not in k}, "neither commands nor speeds"),
        (
            lambda: fitted_columns(replace(TRUTH, drift=14.0)),
            "the scale's zero drifts by .* N while motors lift",
        ),
        (lambda: narrow(columns()), "holds .* levels with motors on, speeds .*; expected at least 5, the fastest 1.5 times"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(table: object, said: str) -> None:
    with pytest.raises(AirworthyError, match=said) as caught:
        fit_bench(bench_table(table(), name="stand.csv"))  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def _few(values: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(values)) < 5, values, math.nan)


def test_rows_that_lack_a_value_are_counted() -> None:
    table = columns()
    table["Thrust (gf)"][100:150] = math.nan
    table["Voltage (V)"][200:207] = 0.0
    notes = fit_bench(bench_table(table)).notes
    rows = f"{len(table['Thrust (gf)']):,}"
    assert f"50 of {rows} rows have no thrust ('Thrust (gf)'), and are left out." in notes
    assert f"7 of {rows} rows have no voltage ('Voltage (V)'), and are left out." in notes
    assert not any("rows have no" in note for note in fitted().notes)


def fitted_columns(truth: StandTruth) -> dict[str, np.ndarray]:
    # Torque, voltage and current say that the motor is a usual one; the scale alone is ill.
    table = columns(truth)
    return {k: v for k, v in table.items() if k not in ("Torque (N·m)", "Current (A)")}


def narrow(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    command = table["ESC signal (µs)"]
    keep = (command == 1000.0) | (command > 1800.0)
    return {k: v[keep] for k, v in table.items()}


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"thrust (N)\n", b"PAR1" + b"x" * 40, b"\xff\xfe" + b"1,2\n" * 9])
def test_files_that_are_no_tables(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "stand.csv"
    path.write_bytes(content)
    with pytest.raises(AirworthyError) as caught:
        fit_bench(path)
    assert "\n" not in str(caught.value)


def test_mutated_files_give_a_sentence_or_a_fit(tmp_path: Path) -> None:
    data = write_csv(tmp_path / "stand.csv", columns(rate=8.0)).read_bytes()
    draw, path = np.random.default_rng(0), tmp_path / "mutated.csv"
    for _ in range(60):
        wrong = bytearray(data)
        for at in draw.integers(0, len(data), 12):
            wrong[at] = int(draw.integers(0, 256))
        path.write_bytes(bytes(wrong[: int(draw.integers(1, len(data)))]))
        with suppress(AirworthyError):
            fit_bench(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "is not a bench's curves"),
        ('{"format": "airworthy bench", "version": 2, "bench": {}}', "version"),
        ('{"format": "airworthy bench", "version": 1, "bench": {"state": "speed"}}', "lacks"),
    ],
)
def test_files_that_are_no_curves(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "curves.json"
    path.write_text(text)
    with pytest.raises(AirworthyError, match=said):
        read_bench_fit(path)


def test_curves_with_covariances_that_are_none(fast: BenchFit, tmp_path: Path) -> None:
    assert fast.thrust is not None
    assert fast.lag is not None
    (a, b), (_, d) = fast.thrust.covariance
    for wrong in (((a, b), (b, -d)), ((a, 2.0 * math.sqrt(a * d)), (2.0 * math.sqrt(a * d), d)), ((a, b), (0.5 * b, d))):
        write_bench_fit(replace(fast, thrust=replace(fast.thrust, covariance=wrong)), tmp_path / "wrong.json")
        with pytest.raises(AirworthyError, match=r"covariance of thrust that is none \(symmetric, positive definite\)"):
            read_bench_fit(tmp_path / "wrong.json")
    write_bench_fit(replace(fast, lag=replace(fast.lag, rise=-0.02, fall=-0.02)), tmp_path / "wrong.json")
    with pytest.raises(AirworthyError, match="holds a lag that is not above 0"):
        read_bench_fit(tmp_path / "wrong.json")


# ---- A real stand ------------------------------------------------------------------------------------------------------------


def test_a_real_vehicle_on_a_scale(data_dir: Path) -> None:
    found = fit_bench(data_dir / "flights/crazyflie_imrc/static_cf21_stock_prop.csv")
    assert found.motors == 4
    assert found.thrust is not None
    # In flight these rotors carry 34.7 g at 2,070 rad/s; the stand's ways up and down differ by 11 %.
    thrust, sd = found.thrust_at(2070.0)
    assert thrust == pytest.approx(0.0347 * 9.81 / 4.0, abs=1.645 * sd)
    assert found.hysteresis is not None
    assert found.hysteresis.share < -0.05
    blind = fit_bench(data_dir / "flights/crazyflie_imrc/static_cf21_brushless.csv")
    assert blind.thrust is None
    assert any("'weight[g]' is the same throughout" in note for note in blind.notes)


# ---- Names of motor and propeller --------------------------------------------------------------------------------------------


def test_names_promise_what_the_specification_says() -> None:
    prior = motor_prior("2212-980", "10x4.5", 11.1)
    assert prior.speed_max == pytest.approx(980.0 * RPM * 11.1 * 0.80)
    assert prior.speed_sd == pytest.approx(0.07 / 0.80)
    diameter = 10 * 0.0254
    assert prior.thrust == pytest.approx(0.10 * 1.225 * diameter**4 / (4.0 * math.pi**2))
    assert prior.thrust_sd == pytest.approx(0.2)
    torque = 0.045 / (2.0 * math.pi) * 1.225 * diameter**5 / (4.0 * math.pi**2)
    assert prior.torque_ratio * prior.thrust == pytest.approx(torque)
    assert prior.torque_ratio_sd == pytest.approx(math.hypot(0.2, 0.012 / 0.045))


def test_a_table_of_the_propeller_takes_the_place_of_what_propellers_have(tmp_path: Path) -> None:
    # Layout of the UIUC propeller site's files at rest: blanks between columns.
    path = tmp_path / "static.txt"
    path.write_text("RPM CT CP\n" + "".join(f"{r} {0.11 + 1e-7 * r:.5f} 0.0400\n" for r in range(2000, 7000, 500)))
    prior = motor_prior(None, "10x4.5", None, path)
    assert prior.speed_max is None
    assert prior.torque_ratio == pytest.approx(0.040 * 0.254 / (2.0 * math.pi * 0.1105), rel=0.01)
    assert prior.thrust_sd == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize(
    ("rotor", "propeller", "voltage", "said"),
    [
        ("brushless", "10x4.5", 11.1, "--rotor 'brushless' names no Kv"),
        ("2212-7", "10x4.5", 11.1, "names no Kv of 20 to 40000"),
        ("980KV", "big", 11.1, "--propeller 'big' has no diameter"),
        ("980KV", "254x114", 11.1, "has no diameter of 0.5 to 80 inches"),
        ("980KV", "10x4.5", 0.0, "The supply is 0 V"),
    ],
)
def test_mistakes_of_names(rotor: str, propeller: str, voltage: float, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        motor_prior(rotor, propeller, voltage)


def test_a_stand_far_from_what_names_promise_is_told(fast: BenchFit) -> None:
    assert against(motor_prior("2212-980", "10x4.5", 11.1), fast) == []
    # Electrical turns of 14 poles for turns of the rotor.
    slow = fit_bench(bench_table({k: 7.0 * v if k == SPEED else v for k, v in columns().items() if "Torque" not in k}))
    said = against(motor_prior("2212-980", "10x4.5", 11.1), slow)
    assert len(said) == 2
    assert "not electrical ones" in said[0]
