"""What every step of the validation gives for a short flight written as formulas: windows, predictions, fits, tables, figures.

Modules: airworthy.benchmarks.validation.calibration, .windows, .structure, .errors, .fits, .motors, .imu, .plots, .run.
"""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.fixtures.figures import figure_values
from tests.fixtures.snapshots import check_snapshot, condensed
from tests.fixtures.transcripts import Transcript, check_text

from airworthy import __version__
from airworthy.benchmarks.validation import calibration, errors, fits, imu, motors, plots, protocol, run, structure, windows
from airworthy.benchmarks.validation.calibration import Calibration
from airworthy.benchmarks.validation.errors import ErrorSamples
from airworthy.benchmarks.validation.fits import ModelFit
from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.benchmarks.validation.motors import Bench, MotorMap, ThrustMap
from airworthy.benchmarks.validation.protocol import FITTED, OURS, PUBLISHED, REFITTED, REFITTED_TRIMMED, TRIMMED
from airworthy.benchmarks.validation.structure import STRUCTURES, DisturbanceDecay, Structure, predict
from airworthy.logs import even_clock, integrate_gyro

FILES = Path(__file__).parent / "snapshots"
STEP, POSES = 0.004, 0.01
IDEAL = Calibration(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), 0.0)
TURNED = Calibration(Rotation.from_rotvec([0.01, -0.02, 0.03]).as_quat(), np.array([0.01, 0.0, 0.02]), np.full(3, 0.01), 0.004)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # means of no windows, which are NaN


def flight(name: str = "synthetic", seconds: float = 3.0, wrong: bool = False) -> FlightLog:
    """A figure in the air: rates and positions as sums of sines, poses without any error but where asked for."""
    time, pose_time = np.arange(0.0, seconds, STEP), np.arange(0.006, seconds - 0.004, POSES)
    t = time[:, None]
    gyro = np.array([0.8, -0.6, 0.4]) * np.sin(2.0 * np.pi * np.array([0.5, 0.7, 0.3]) * t + np.array([0.1, 0.5, 1.0]))
    attitude = Rotation.from_quat(integrate_gyro(time, gyro))

    def position(t: np.ndarray) -> np.ndarray:
        return np.stack([0.5 * np.sin(1.5 * t), 0.4 * np.cos(2.0 * t), 1.0 + 0.2 * np.sin(t)], axis=1)

    acceleration = np.stack([-1.125 * np.sin(1.5 * time), -1.6 * np.cos(2.0 * time), -0.2 * np.sin(time)], axis=1)
    force = attitude.inv().apply(acceleration + np.array([0.0, 0.0, 9.81]))
    speed = 2000.0 + 60.0 * np.sin(4.0 * t + np.arange(4.0)) + 30.0 * np.sin(23.0 * t)
    poses = calibration.attitude_at(time, attitude.as_quat(), pose_time)
    if wrong:  # one pose is turned by 20 degrees, and poses are missing for 80 ms
        poses = Rotation.concatenate([poses[:50], poses[50] * Rotation.from_rotvec([0.0, 0.0, 0.35]), poses[51:]])
        keep = (pose_time < 1.8) | (pose_time > 1.88)
        poses, pose_time = poses[keep], pose_time[keep]
    pwm = (speed / 3000.0) ** 1.5
    voltage = 4.0 - 0.1 * time / seconds
    return FlightLog(name, time, gyro, force, speed, pwm, voltage, pose_time, position(pose_time), poses.as_quat(), 1.0)


@pytest.fixture(scope="module")
def log() -> FlightLog:
    return flight()


@pytest.fixture(scope="module")
def cut(log: FlightLog) -> windows.LogWindows:
    return windows.cut_windows(windows.reference(log, IDEAL))


def everything(value: Any) -> dict[str, Any]:
    return {name: np.asarray(getattr(value, name), float) for name in value.__dataclass_fields__ if name != "flight"}


def test_kinematics(log: FlightLog) -> None:
    values: dict[str, Any] = {"integrated": integrate_gyro(log.time, log.gyro)}
    values["stretches"] = np.array([(group[0], group[-1], len(group)) for group in calibration.stretches(log)])
    values["weights"] = calibration.robust_weights(np.array([[0.1, 0.0], [0.2, 0.1], [0.0, 0.3], [5.0, -2.0]]))
    values["no scatter"] = calibration.robust_weights(np.zeros((2, 3)))
    values["twice"] = calibration._twice(np.array([0.0, 1.0, 3.0]), np.array([[2.0, 0.0], [2.0, 1.0], [2.0, 3.0]]))
    values["between"] = calibration.at_times(
        np.array([0.0, 2.0]), np.array([[1.0, 4.0], [3.0, 0.0]]), np.array([-1.0, 0.5, 3.0])
    )
    bent = replace(log, gyro=log.gyro + 0.02, pose_time=log.pose_time + 0.005)
    turned = Rotation.from_quat(bent.attitude) * Rotation.from_rotvec([0.0, 0.01, -0.04])
    lifted = replace(
        bent, attitude=turned.as_quat(), position=bent.position + Rotation.from_quat(log.attitude).apply([0, 0, 0.03])
    )
    for k, found in enumerate(calibration.calibrate([lifted, replace(lifted, gyro=log.gyro)])):
        values[f"calibrated {k}"] = {name: np.asarray(getattr(found, name), float) for name in found.__dataclass_fields__}
    first = calibration._Flight(lifted, Rotation.from_rotvec([0.0, 0.0, 0.01]), np.full(3, 0.005), 0.002)
    values["angles"] = list(calibration._angle_equations(first))
    values["lever"] = list(calibration._lever_equations(first, calibration.stretches(lifted)[0]))
    check_snapshot(FILES / "kinematics.txt", values, rtol=1e-6, of_means=1e-6)


def test_clocks() -> None:
    stamps = np.array([0.0, 0.0101, 0.0199, 0.0302, 0.06, 0.0701, 0.0799])
    grid, period = even_clock(stamps, 0.01)
    doubled, longer = even_clock(2.0 * stamps + 5.0, 0.0195)
    check_snapshot(FILES / "clocks.txt", {"grid": grid, "period": period, "doubled": doubled, "longer": longer})


@pytest.mark.parametrize("case", ["ideal", "turned", "wrong"])
def test_references(case: str) -> None:
    source = windows.reference(flight(wrong=case == "wrong"), TURNED if case == "turned" else IDEAL)
    states = source.states(np.array([0.0, 0.05, 0.12, 0.5, 1.0, 1.79, 1.85, 2.0, 2.9, 2.99, 3.1]))
    values = {"states": {k: v.astype(float) for k, v in everything(states).items()}, "rejected": source.rejected}
    values |= {"times": source.pose_time, "position": source.position, "tie": source.tie, "turned": source.turned}
    part = windows.cut_windows(source, span=(0.5, 2.0))
    check_snapshot(FILES / f"reference_{case}.txt", {**values, "part": everything(part)}, rtol=1e-6, of_means=1e-6)


def test_windows(log: FlightLog, cut: windows.LogWindows) -> None:
    values = {"all": everything(cut), "flights": " ".join(cut.flight)}
    values["half of"] = everything(windows.join_windows([cut.select(np.arange(3)), cut.select(cut.time > 1.5)]))
    ramp = np.stack([log.time, log.time**2], axis=1)
    query = np.array([[-1.0, 0.0, 0.5], [1.0, 2.9, 5.0]])
    values["means"] = windows.sample_columns(log.time, ramp, query)
    values["wide means"] = windows.sample_columns(log.time, ramp, query, 0.2)
    fed = windows.cut_windows(windows.reference(log, IDEAL), rotor_speed=log.rotor_speed + 100.0)
    values["fed"] = [fed.rotor_speed, fed.past_speed]
    check_snapshot(FILES / "windows.txt", values, rtol=1e-7, of_means=1e-7)


def test_predictions(cut: windows.LogWindows) -> None:
    part = cut.select(np.arange(0, len(cut), 5))
    models = list(errors.comparators(brushless=True).values())
    ours = Structure(protocol.BRUSHLESS, STRUCTURES["full and hubs"], 2.2e-8)
    models.append(ours.model(ours.mean + 0.3 * ours.deviation))
    values: dict[str, Any] = {}
    for name, options in (
        ("plain", {}),
        ("coarse", {"coarse": True}),
        ("trimmed", {"trim": DisturbanceDecay(0.6, 0.15)}),
    ):
        found = predict(part, models, **options)
        values[name] = {key: list(getattr(found, key)) for key in ("position", "velocity", "attitude", "rate")}
    found = predict(part, models[:2])
    values["vectors"] = list(errors.error_vectors(found, part))
    samples = errors.error_samples(found, part)
    values["samples"], values["dictionary"] = samples.values, errors.as_dict(samples)
    check_snapshot(FILES / "predictions.txt", values, rtol=1e-7, of_means=1e-7)


def test_models() -> None:
    values: dict[str, Any] = {}
    for airframe in (protocol.BRUSHLESS, protocol.BRUSHED):
        for name, free in STRUCTURES.items():
            made = Structure(airframe, free, 2.0e-8)
            drawn = made.mean + made.deviation * np.cos(np.arange(len(free)))
            values[f"{airframe.name} {name}"] = condensed(astuple(made.model(drawn, "drawn")))
    for name, model in errors.comparators(brushless=True).items():
        values[name] = condensed(astuple(replace(model, vehicle=replace(model.vehicle, sources={}, extra={}))))
    check_snapshot(FILES / "models.txt", values)


@pytest.mark.slow
def test_fits(cut: windows.LogWindows, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, part = protocol.BRUSHLESS, cut.select(np.arange(0, len(cut), 4))
    values: dict[str, Any] = {"folds": fits.folds(cut).astype(float), "hover": fits.hover_coefficient(cut, frame.mass)}
    values["folds of two"] = fits.folds(replace(cut, flight=np.array(["b", "a"] * len(cut))[: len(cut)])).astype(float)
    values["thinned"] = fits.thinned(cut, 4).time
    free = ("thrust", "inertia_x", "drag_xy", "drag_height")
    made = Structure(frame, free, fits.hover_coefficient(part, frame.mass))
    craft = [made.model(made.mean), made.model(made.mean + made.deviation)]
    values["residuals"] = list(fits.residuals(craft, part))
    values["cost"] = [fits._cost(np.array(row)) for row in ([0.0], [0.1, -0.2], [3.0])]
    values["per window"] = fits.cost_per_window(craft[0], part)
    for trim in (None, DisturbanceDecay(1.0, 0.4)):
        z, cost = fits.gauss_newton(
            lambda z: made.model(made.mean + made.deviation * z), part, len(free), trim, 2 if trim is None else 1
        )
        values[f"steps, {trim}"] = [*z.tolist(), cost]
    newton = fits.gauss_newton
    monkeypatch.setattr(fits, "gauss_newton", lambda *given: newton(*given[:4], 1))  # a step tells as much as twelve
    again = fits.refit_thrust(errors.comparators(False)["RotorPy"], frame.mass, part)
    values["refitted"] = [rotor.thrust for rotor in again.vehicle.rotors]
    held = protocol.rates_held(frame, part)
    values["held"] = [held.vehicle.inertia, *(rotor.thrust for rotor in held.vehicle.rotors[:2])]
    fitted = fits.fit(frame, cut, ("thrust", "drag_xy"), iterations=1)
    values["fitted"], values["its cost"] = fitted.values(), fitted.cost
    values["few"] = refusal(lambda: fits.fit(frame, cut.select(np.arange(19)), free))
    check_snapshot(FILES / "fits.txt", values, rtol=1e-5, of_means=1e-5)


def refusal(call: Any) -> str:
    with pytest.raises(Exception, match=r"\w") as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


# ---- benches and motors -----------------------------------------------------------------------------------------------------


def bench_rows() -> list[list[float]]:
    up = np.linspace(0.0, 60000.0, 12)
    rows = []
    for k, pwm in enumerate([*up, *up[::-1]]):
        rpm = 0.0 if pwm == 0.0 else 3000.0 + 0.3 * pwm
        weight = 5.0 + 4.0 * 4e-8 * rpm**2 + (0.5 if k > 12 else 0.0)
        speeds = [rpm, rpm * 1.01, rpm, rpm * (2.0 if k == 5 else 0.99)]
        rows.append([weight, pwm, 4.0 - 2e-6 * pwm - 0.01 * k, *speeds, 4.1, 1e-5 * pwm + 0.1, 0.0])
    return rows


def bench_file(path: Path, rows: list[list[float]], head: str = ",".join(motors._COLUMNS)) -> Path:
    path.write_text("\n".join([head, *(",".join(f"{value:.6f}" for value in row) for row in rows), ""]))
    return path


def test_benches(tmp_path: Path) -> None:
    rows = bench_rows()
    bench = motors.read_bench(bench_file(tmp_path / "one.csv", rows))
    values: dict[str, Any] = {"bench": everything_of(bench)}
    values["thrust"], values["sag"], values["speed"] = motors.fit_thrust(bench), motors.fit_sag(bench), motors.fit_speed(bench)
    rising = motors.read_bench(bench_file(tmp_path / "up.csv", rows[:12]))
    values["rising alone"] = [round(number, 12) for number in astuple(motors.fit_thrust(rising))[:3]]
    none = replace(bench, thrust=np.zeros_like(bench.thrust), current=np.zeros_like(bench.current))
    values["nothing"] = [str(motors.fit_thrust(none)), str(motors.fit_sag(none))]
    turning = motors.read_bench(bench_file(tmp_path / "turning.csv", [row for row in rows if row[1] > 0.0]))
    values["never at rest"] = turning.thrust
    for name, path in (
        ("columns", bench_file(tmp_path / "a.csv", rows, "a,b")),
        ("few", bench_file(tmp_path / "b.csv", rows[:9])),
        ("infinite", bench_file(tmp_path / "c.csv", [[float("inf"), *rows[0][1:]], *rows])),
    ):
        values[name] = refusal(lambda path=path: motors.read_bench(path)).replace(str(tmp_path), "HERE")
    (tmp_path / "d.csv").write_text(",".join(motors._COLUMNS) + "\n" + ",".join(["x"] * 10) + "\n")
    values["words"] = refusal(lambda: motors.read_bench(tmp_path / "d.csv")).replace(str(tmp_path), "HERE")
    (tmp_path / "e.csv").write_text("")
    values["empty"] = refusal(lambda: motors.read_bench(tmp_path / "e.csv")).replace(str(tmp_path), "HERE")
    check_snapshot(FILES / "benches.txt", values, rtol=1e-7)


def everything_of(bench: Bench) -> dict[str, Any]:
    return {name: np.asarray(getattr(bench, name), float) for name in bench.__dataclass_fields__ if name != "name"}


def test_motors(log: FlightLog, cut: windows.LogWindows) -> None:
    values: dict[str, Any] = {}
    target = np.array([[0.0, 10.0], [10.0, 0.0], [10.0, 0.0]])
    values["lagged"] = motors.lagged(target, np.array([5.0, 5.0]), 0.1, 0.05, 0.2)
    still = replace(log, rotor_speed=log.rotor_speed * np.array([1.0, 0.0, 1.0, 1.0]))
    dropped = replace(log, rotor_speed=np.where(np.arange(len(log.time))[:, None] == [[5, -1, -1, -1]], 900.0, log.rotor_speed))
    values["recorded"] = [motors.recorded_motors(item) for item in (log, still, dropped)]
    values["refused"] = refusal(lambda: motors.fit_motor_map(replace(log, rotor_speed=0.0 * log.rotor_speed)))
    found = MotorMap(500.0, np.array([2500.0, 2600.0, 2700.0, 2800.0]), 0.04, 0.06, 3.0, (0, 2))
    values["steady"] = [found.steady(log.pwm[:1]), found.steady(log.pwm[:1], 0.9)]
    fed = motors.speeds_from_pwm(cut.select(np.arange(0, len(cut), 6)), log, found)
    values["fed"] = [fed.rotor_speed, fed.past_speed]
    fitted = motors.fit_motor_map(flight(seconds=1.2))
    values["fitted"] = {name: np.asarray(getattr(fitted, name), float) for name in fitted.__dataclass_fields__}
    check_snapshot(FILES / "motors.txt", values, rtol=1e-5, of_means=1e-6)


# ---- inertial sensors -------------------------------------------------------------------------------------------------------


def noise(count: int = 600, scale: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(4)
    return scale * (rng.normal(0.0, 0.01, (count, 6)) + np.cumsum(rng.normal(0.0, 1e-4, (count, 6)), axis=0)) + 0.5


def test_inertial_sensors(tmp_path: Path) -> None:
    samples = noise()
    found = imu.allan_deviation(samples, 100.0)
    values: dict[str, Any] = {"tau": found.tau, "deviation": found.deviation, "statistics": imu.imu_statistics(samples, 100.0)}
    values["coarse"] = imu.allan_deviation(samples[:40], 10.0, 3).tau
    values["slope"], values["white"] = found.slope(0.02, 0.3), found.white_density(0.02, 0.3)
    values["walk"] = found.walk_density(0.5, 2.0)
    values["refused"] = [
        refusal(lambda given=given: imu.allan_deviation(*given)) for given in ((samples[:31], 1.0), (samples, 0.0))
    ]
    values["refused slope"] = refusal(lambda: found.slope(0.01, 0.02))
    values["refused shape"] = refusal(lambda: imu.imu_statistics(samples[:, :3], 1.0))
    loud = np.concatenate([samples[:200], noise(100, 20.0)])
    values["still"] = [imu.still_start(np.arange(len(part)) * 0.01, part) for part in (samples, loud, samples[:57])]
    (tmp_path / "imu.csv").write_text("#t,a\n1000000000,1,2,3,4,5,6\n1005000000,1.5,2,3,4,5,7\n")
    values["read"] = list(imu.read_imu_csv(tmp_path / "imu.csv"))
    (tmp_path / "truth.csv").write_text("#t\n5,0,0,0,0,0,0,0,3,4,0,1\n1000000005,0,0,0,0,0,0,0,0,0,2,1\n")
    values["speed"] = list(imu.read_speed(tmp_path / "truth.csv"))
    sheet = "".join(f"{name}: {k + 1}.5e-3 # x\n" for k, name in enumerate(imu._DATA_SHEET))
    (tmp_path / "sensor.yaml").write_text(sheet)
    values["sheet"] = imu.read_data_sheet(tmp_path / "sensor.yaml")
    (tmp_path / "less.yaml").write_text(sheet.partition("\n")[2])
    (tmp_path / "bad.csv").write_text("1,2,3\n")
    for read, name in ((imu.read_data_sheet, "less.yaml"), (imu.read_imu_csv, "bad.csv"), (imu.read_speed, "bad.csv")):
        values[f"refused {name} {read.__name__}"] = refusal(lambda read=read, name=name: read(tmp_path / name)).replace(
            str(tmp_path), "HERE"
        )
    check_snapshot(FILES / "inertial.txt", values, rtol=1e-8)


def test_the_euroc_section(tmp_path: Path) -> None:
    quiet, loud = noise(400), noise(200, 20.0)
    lines = [f"{10_000_000 * k}," + ",".join(f"{v:.9f}" for v in row) for k, row in enumerate(np.concatenate([quiet, loud]))]
    (tmp_path / "imu0.csv").write_text("\n".join(lines))
    for moves in (True, False):
        speeds = [f"{10_000_000 * k},0,0,0,0,0,0,0,{0.1 * (moves and k > 520)},0,0" for k in range(600)]
        (tmp_path / "groundtruth.csv").write_text("\n".join(speeds))
        (tmp_path / "imu0_sensor.yaml").write_text("".join(f"{name}: 1e-3\n" for name in imu._DATA_SHEET))
        section, curves = run.imu_section(tmp_path, {"simulated": (noise(300), 50.0)})
        values = {"section": section, "curves": {name: [curve.tau, curve.deviation] for name, curve in curves.items()}}
        check_snapshot(FILES / f"euroc_{moves}.txt", values, rtol=1e-7)


# ---- how it is shown --------------------------------------------------------------------------------------------------------


def experiment(cut: windows.LogWindows, brushless: bool) -> protocol.Experiment:
    """Two splits with errors and fits that are written here, not computed."""
    frame = protocol.BRUSHLESS if brushless else protocol.BRUSHED
    half = len(cut) // 2
    first, second = cut.select(np.arange(half)), cut.select(np.arange(half, len(cut)))
    splits = [protocol.Split("synthetic", second, first), protocol.Split("other", first, second)]
    found = protocol.Experiment("an <experiment>", "A title & more", frame, splits, brushless)
    keys = [(OURS, FITTED), (OURS, TRIMMED), *((name, PUBLISHED) for name in errors.comparators(brushless))]
    keys += [("RotorPy", REFITTED), ("RotorPy", REFITTED_TRIMMED), (protocol.HELD, "rates held")]
    for k, key in enumerate(keys):
        size = 1e-3 * (1.0 + 0.7 * k) * np.arange(1.0, 13.0).reshape(4, 3)
        parts = [size * (1.0 + 0.1 * np.cos(np.arange(n)))[:, None, None] for n in (half, len(cut) - half)]
        parts[0][0, :, 2] = np.nan
        found.samples[key] = [ErrorSamples(part * (300.0 if k == 3 else 1.0)) for part in parts]
    for k, name in enumerate(("drag", "hubs")):
        made = Structure(frame, STRUCTURES[name], 2.0e-8)
        found.fits.append(ModelFit(made, made.mean + 0.1 * made.deviation, 1.5 + k))
        found.chosen.append((name, {"drag": 1.0 + k, "hubs": 2.0}))
    return found


@pytest.fixture(scope="module")
def experiments(cut: windows.LogWindows) -> list[protocol.Experiment]:
    return [experiment(cut, True), experiment(cut, False)]


def test_tables(experiments: list[protocol.Experiment], capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    for item in experiments:
        told.run("rows", lambda item=item: plots.rows(item))
        told.run("verdict", lambda item=item: plots.verdict(item))
        told.run("counts", lambda item=item: plots.counts(item))
        for statistic in ("rms", "median"):
            told.run(statistic, lambda item=item, s=statistic: protocol.below_all(item, FITTED, (PUBLISHED,), s).tolist())
    told.run("tables", lambda: plots.print_tables(experiments[:1], experiments[1]))
    for value in (0.12345, 99.94, 100.0, 1234.5, 0.0, float("nan")):
        told.run(f"{value}", lambda value=value: plots._short(value))
    told.run("distinct", lambda: [len(part) for part in protocol.distinct(experiments[0].splits)])
    told.check(FILES / "tables.txt")


def test_our_model_is_bold_and_what_holds_its_state_dim(
    experiments: list[protocol.Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[Any] = []
    monkeypatch.setattr("rich.console.Console", lambda **_: SimpleNamespace(print=lambda *parts, **_: printed.extend(parts)))
    plots._print("title", experiments[:1])
    told = plots.rows(experiments[0])
    styles = {protocol.OURS: "bold", protocol.HELD: "dim"}
    assert set(styles) <= {name for name, *_ in told}
    for column in printed[0].columns:
        cells = list(column.cells)[1:]
        assert [cell.style for cell in cells] == [styles.get(name, "") for name, *_ in told]
    # A model's name stands in the first of its rows alone.
    names, before = [cell.plain for cell in printed[0].columns[0].cells][1:], ["", *(name for name, *_ in told)]
    assert names == ["" if name == last else name for (name, *_), last in zip(told, before, strict=False)]


@pytest.fixture
def found(log: FlightLog, experiments: list[protocol.Experiment]) -> run.Validation:
    source = windows.reference(log, TURNED)
    bench = Bench("one", *(np.array(row) for row in np.array(bench_columns())), np.array([True] * 5 + [False]))
    motor_map = MotorMap(500.0, np.array([2500.0, 2600.0, 2700.0, 2800.0]), 0.04, 0.06, 3.0, (0, 2))
    benches = dict.fromkeys(run.BENCHES, bench)
    return run.Validation(
        {"synthetic": source},
        experiments[:1],
        experiments[1],
        {"synthetic": motor_map},
        benches,
        ThrustMap(1e-6, 2e-8, 0.01, 0.02),
        (4.1, 0.05),
        {"a": 1},
        {"one": imu.allan_deviation(noise(100), 50.0)},
    )


def bench_columns() -> list[list[float]]:
    speed = [500.0, 1000.0, 1500.0, 2000.0, 1800.0, 900.0]
    thrust = [8e-8 * s**2 for s in speed]
    pwm = [0.21, 0.4, 0.6, 0.8, 0.7, 0.3]
    return [thrust, pwm, speed, [4.0 - 0.1 * p for p in pwm], [4.1] * 6, [5.0 * p for p in pwm]]


def test_summaries(found: run.Validation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "describe_machine", lambda: {"processor": "one & only"})
    made = run.summary(found)
    assert made.pop("version") == __version__
    check_snapshot(FILES / "summary.txt", made, rtol=1e-7)
    bare = run.summary(replace_all(found, thrust_map=None, sag=None))
    assert bare["bench"]["thrust_map"] is None
    assert bare["bench"]["open_circuit_voltage_and_resistance"] is None
    flown = run.flyable(found.measured[0], found.measured[0].fits[1])
    check_snapshot(FILES / "flyable.txt", {"numbers": condensed(astuple(flown)), "sources": flown.sources})
    run.save_vehicles([(item, item.fits[0]) for item in found.experiments], Path("there"))


def replace_all(found: run.Validation, **changes: Any) -> run.Validation:
    return run.Validation(**{**{name: getattr(found, name) for name in found.__dataclass_fields__}, **changes})


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_page(found: run.Validation) -> None:
    for name in ("errors", "other"):
        Path(f"{name}.png").write_bytes(b"image")
    given = {"version": "1.0", "hardware": {"processor": "one & only"}}
    path = run.write_page(Path("page.html"), found.measured, found.pwm, [Path("errors.png"), Path("other.png")], given)
    check_text(FILES / "page.txt", path.read_text().replace("</tr>", "</tr>\n"))


def test_figures(found: run.Validation, log: FlightLog, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Any] = {}

    def keep(figure: Any, path: Path) -> Path:
        # Where the layout puts the axes depends on fonts: their ends, lines and words do not.
        shown = figure_values(figure)
        values[path.stem] = [
            part if isinstance(part, list) else np.asarray(part)[:4] if is_frame(part) else part for part in shown
        ]
        return path

    monkeypatch.setattr(plots, "_save", keep)
    plots.plot_errors(Path("errors.png"), found.experiments)
    plots.plot_flight(Path("flight.png"), found.references["synthetic"], found.measured[0], 1)
    plots.plot_thrust(
        Path("thrust.png"), found.benches[run.BENCHES[0]], ThrustMap(1e-6, 2e-8, 0.01, 0.02), found.experiments[::-1]
    )
    plots.plot_motors(Path("motors.png"), [(log, found.motor_maps["synthetic"])] * 2)
    flat = replace(log, voltage=np.full_like(log.voltage, 3.0))
    plots.plot_battery(Path("battery.png"), found.benches[run.BENCHES[0]], (4.1, 0.05), [log, flat])
    plots.plot_allan(Path("allan.png"), found.allan, dict.fromkeys(imu._DATA_SHEET, 1e-3))
    check_snapshot(FILES / "figures.txt", {name: condensed(parts) for name, parts in values.items()}, rtol=1e-6, of_means=1e-6)


def is_frame(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.shape == (8,)


def test_what_is_drawn(found: run.Validation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told = Transcript(capsys)
    for name in ("plot_errors", "plot_flight", "plot_motors", "plot_thrust", "plot_battery", "plot_allan"):

        def drawn(path: Path, *given: Any, name: str = name) -> Path:
            told.fake(name)(path, len(given), *(part for part in given if isinstance(part, int)))
            return path

        monkeypatch.setattr(plots, name, drawn)
    names = (*protocol.BRUSHLESS_FLIGHTS, protocol.BRUSHED_FLIGHT, *protocol.PWM_FLIGHTS)
    whole = replace_all(
        found,
        references=dict.fromkeys(names, found.references["synthetic"]),
        motor_maps=dict.fromkeys(names, found.motor_maps["synthetic"]),
        imu={"data_sheet": {}},
    )
    told.run("all", lambda: run.draw(whole, Path("out")))
    told.run("less", lambda: run.draw(replace_all(whole, thrust_map=None, sag=None), Path("out")))
    told.run("owned", lambda: [run._owns(name) for name in ("validation.json", "report.html", "errors.png", "mine.txt")])
    told.check(FILES / "drawn.txt")


def test_experiments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    names = (*protocol.BRUSHLESS_FLIGHTS, protocol.BRUSHED_FLIGHT, *protocol.PWM_FLIGHTS)
    short_log = flight(seconds=2.2)
    references = {name: windows.reference(replace(short_log, name=name), IDEAL) for name in names}
    told = Transcript(capsys)
    short = MotorMap(500.0, np.array([2500.0] * 4), 0.04, 0.06, 3.0, (0, 2))
    monkeypatch.setattr(protocol, "fit_motor_map", lambda log: replace(short, error=float(len(log.name))))

    def shown(item: protocol.Experiment) -> list[Any]:
        parts = [
            (s.name, " ".join(sorted(set(s.train.flight))), len(s.train), " ".join(sorted(set(s.test.flight))), len(s.test))
            for s in item.splits
        ]
        return [item.name, item.title, item.brushless, item.structures, item.airframe.name, *parts, len(list(item.jobs()))]

    told.run("measured", lambda: [shown(item) for item in protocol.measured_experiments(references)])
    told.run("pwm", lambda: shown(protocol.pwm_experiment(references)[0]))
    told.run("maps", lambda: {name: item.error for name, item in protocol.pwm_experiment(references)[1].items()})
    told.check(FILES / "experiments.txt")


def test_records_flown(cut: windows.LogWindows) -> None:
    made = Structure(protocol.BRUSHLESS, STRUCTURES["drag"], 2.2e-8)
    vehicle = made.model(made.mean).vehicle
    part = cut.select(np.array([0, 7]))
    flown, said = run.fly_windows(vehicle, part), predict(part, [made.model(made.mean)])
    # The simulator, in single precision, does what the prediction says: the same equations, another integrator.
    for name, atol in (("position", 2e-4), ("velocity", 2e-3), ("rate", 2e-2)):
        np.testing.assert_allclose(getattr(flown, name)[0], getattr(said, name)[0], atol=atol)
    assert np.abs(errors.attitude_error(flown.attitude, said.attitude)).max() < 2e-3
    rotor = replace(vehicle.rotors[1], response=structure.RotorResponse((20.0, 0.0), (10.0, 0.0)))
    slow = replace(vehicle, rotors=(vehicle.rotors[0], rotor, *vehicle.rotors[2:]))
    square = replace(vehicle, rotors=(replace(rotor, response=structure.RotorResponse((20.0, 1.0), (20.0, 1.0))),) * 4)
    assert "Rotor 1 of" in refusal(lambda: run._lags(slow))
    assert "Rotor 0 of" in refusal(lambda: run._lags(square))
    np.testing.assert_allclose(run._lags(vehicle), protocol.BRUSHLESS.time_constant)
