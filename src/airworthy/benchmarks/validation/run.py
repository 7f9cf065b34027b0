"""`airworthy validate`: everything from the logs to table, JSON, pictures and page."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.benchmarks.validation import imu as inertial
from airworthy.benchmarks.validation import plots
from airworthy.benchmarks.validation.calibration import calibrate
from airworthy.benchmarks.validation.fits import ModelFit
from airworthy.benchmarks.validation.logs import flight_log
from airworthy.benchmarks.validation.motors import (
    Bench,
    MotorMap,
    ThrustMap,
    fit_motor_map,
    fit_sag,
    fit_speed,
    fit_thrust,
    read_bench,
)
from airworthy.benchmarks.validation.plots import HEADINGS, as_records, counts, rows, verdict
from airworthy.benchmarks.validation.protocol import (
    BRUSHLESS_FLIGHTS,
    CASE,
    FLOWN,
    OURS,
    Experiment,
    final_fit,
    measured_experiments,
    pwm_experiment,
)
from airworthy.benchmarks.validation.structure import SPEED_MAX, Prediction
from airworthy.benchmarks.validation.windows import (
    HORIZON_STEPS,
    HORIZONS,
    STEPS,
    TIME_STEP,
    LogReference,
    LogWindows,
    reference,
)
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import data_dir, make_folder, read_bytes, staged_folder, write_json, write_text
from airworthy.core.jobs.block_job import describe_machine
from airworthy.core.jobs.progress import progress
from airworthy.logs import read_log
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import CollisionBody, Vehicle, write_vehicle

# ---- A record flown: the same windows by the simulator, in float32, with rotors that follow the measured speeds -----------
#
# What a prediction says of a fit is worth something for the vehicle that is saved only where the simulator, given the saved
# record, does the same. So it is asked.


SUBSTEPS = 5
"""Physics steps per half step of the windows: 1,000 Hz."""
_RATE = 2.0 * SUBSTEPS / TIME_STEP


def fly_windows(vehicle: Vehicle, windows: LogWindows) -> Prediction:
    """Fly every window from its reference start, open loop, with commands that make the rotors turn as they did.

    Args:
        vehicle: The record, four rotors in the order of the log with first-order lags.
        windows: Starts and rotor speeds; between their samples speeds are linear.

    Returns:
        States at each horizon, one model.

    Raises:
        AirworthyError: A rotor's lag is not of first order, so that no command is known that makes it follow.
    """
    lag = _lags(vehicle)
    keep = np.exp(-1.0 / (_RATE * lag))
    config = SimulatorConfig(physics_rate=_RATE, control_rate=_RATE, wrench_noise=False, disturbance=False)
    simulator = Simulator(vehicle, config, env_count=len(windows))
    simulator.reset(
        position=windows.position[:, 0],
        velocity=windows.velocity[:, 0],
        attitude=windows.attitude[:, 0],
        rate=windows.rate[:, 0],
        rotor_speed=windows.rotor_speed[:, 0],
    )
    kept = []
    for step in range(2 * STEPS * SUBSTEPS):
        index, part = divmod(step + 1, SUBSTEPS)
        share = part / SUBSTEPS
        after = windows.rotor_speed[:, min(index + 1, 2 * STEPS)]
        wanted = (1.0 - share) * windows.rotor_speed[:, index] + share * after
        # A lag of first order under a constant command c: w+ = c + (w - c) keep, solved for c.
        simulator.advance(1, (wanted - simulator.rotor_speed * keep) / (1.0 - keep))
        if (step + 1) % (2 * SUBSTEPS) == 0 and (step + 1) // (2 * SUBSTEPS) in HORIZON_STEPS:
            kept.append([np.array(getattr(simulator, name), float) for name in ("position", "velocity", "attitude", "rate")])
    position, velocity, attitude, rate = (np.stack(parts, axis=1)[None] for parts in zip(*kept, strict=True))
    return Prediction(position, velocity, attitude, rate)


def _lags(vehicle: Vehicle) -> Array:
    """Time constants [s], (rotor,)."""
    for index, rotor in enumerate(vehicle.rotors):
        response = rotor.response
        if response.rise != response.fall or response.rise[1] != 0.0:
            raise AirworthyError(
                f"Rotor {index} of {vehicle.name} lags by rise {response.rise} and fall {response.fall}; to follow measured"
                " speeds it needs one time constant: RotorResponse.first_order(seconds)."
            )
    return np.array([1.0 / rotor.response.rise[0] for rotor in vehicle.rotors])


# ---------------------------------------------------------------------------------------------------------------------------

# ---- Fitted vehicles as records that can be flown ---------------------------------------------------------------------------


def save_vehicles(fits: Sequence[tuple[Experiment, ModelFit]], folder: Path) -> list[Path]:
    """Write each experiment's final fit as `<airframe>.toml`; returns the paths."""
    make_folder(folder)
    paths = []
    for experiment, fitted in fits:
        path = folder / f"{experiment.airframe.name}.toml"
        write_vehicle(flyable(experiment, fitted), path)
        paths.append(path)
    return paths


_HUB_FIELDS = ("hub_drag", "flapping", "translational_lift")


def flyable(experiment: Experiment, fitted: ModelFit) -> Vehicle:
    """Return the fitted vehicle with a source per value: its equations are those that the predictions were judged with."""
    model = fitted.model(experiment.airframe.name)
    flights = ", ".join(dict.fromkeys(str(name) for split in experiment.splits for name in dict.fromkeys(split.test.flight)))
    source = f"fitted to {flights} by airworthy validate"
    prior = experiment.airframe.source
    fitted_names = ["inertia", "rotors.thrust", "rotors.torque", "rotors.inertia", "rotors.axis", "drag"]
    # The air at the hubs is named where it is there.
    fitted_names += [f"rotors.{name}" for name in _HUB_FIELDS if np.any(getattr(model.vehicle.rotors[0], name))]
    sources = dict.fromkeys(fitted_names, f"{source}; {prior}")
    sources |= {
        "mass": "weighed, SOURCES.md of the logs",
        "rotors.position": prior,
        "rotors.spin": "regression of angular acceleration on rotor speeds in the logs",
        "rotors.response": "PWM to rotor speed in the logs; one time constant",
        "rotors.speed_max": f"{SPEED_MAX:g} rad/s, above what the logs reach",
        "body": "cylinder of the gym-pybullet-drones cf2x.urdf",
    }
    body = CollisionBody("cylinder", (0.06, 0.06, 0.0125))
    drag = replace(model.vehicle.drag, center=model.drag_center)
    return replace(model.vehicle, drag=drag, body=body, sources=sources, extra={"family": "crazyflie"})


# ---- The validation as one page that opens offline --------------------------------------------------------------------------

CAPTIONS = {
    "errors": "RMS prediction error over the horizon. Dotted: as published; solid: refitted or fitted; dashed: ours with trim.",
    "flight": "A flight that the model was not fitted to, and predictions that start every 0.2 s.",
    "motor_lag": "Rotor speed from PWM: map and lag.",
    "thrust_map": "Thrust per rotor: load cell, fits to flights, published maps. Dotted line: hover.",
    "battery": "Battery: sag over current, voltage in flight.",
    "imu_allan": "Allan deviation of the inertial sensor, three axes each.",
}
_NOTE = "Cells are RMS/median over windows that the model was not fitted to. Made by <code>airworthy validate</code>."
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1250px; padding: 0 1rem; color: #222; background:
#fff } table { border-collapse: collapse; font-size: 12px; font-variant-numeric: tabular-nums; margin: 1rem 0 } th, td {
padding: 2px 7px; text-align: right; white-space: nowrap } th { border-bottom: 1px solid #999 } td:nth-child(-n+2),
th:nth-child(-n+2) { text-align: left } tr.ours { font-weight: 600; background: #fbeaea } figure { margin: 2rem 0 } img {
max-width: 100% } .wide { overflow-x: auto } figcaption, .note { color: #555 }
"""


def write_page(
    path: Path, measured: Sequence[Experiment], pwm: Experiment, pictures: Sequence[Path], summary: dict[str, Any]
) -> Path:
    """Write the page: tables, verdicts, pictures inline.

    Args:
        path: Of the page.
        measured: Experiments by measured rotor speeds.
        pwm: The one by commands.
        pictures: PNG files, shown inside the page.
        summary: With "version" and "hardware".
    """
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Airworthy: validation</title>",
        f"<style>{_STYLE}</style><h1>Prediction error on real flights</h1>",
        f"<p class='note'>airworthy {escape(summary['version'])}, {escape(str(summary['hardware']['processor']))}. {_NOTE}</p>",
    ]
    for experiment in (*measured, pwm):
        windows = "/".join(map(str, counts(experiment)))
        parts.append(f"<h2>{escape(experiment.title)}</h2><p>{escape(verdict(experiment))} Windows per horizon: {windows}.</p>")
        parts.append(_table(experiment))
    for picture in pictures:
        data = base64.b64encode(read_bytes(picture)).decode()
        caption = escape(CAPTIONS.get(picture.stem, picture.stem))
        parts.append(
            f"<figure><img alt='{caption}' src='data:image/png;base64,{data}'><figcaption>{caption}</figcaption></figure>"
        )
    return write_text(path, "\n".join(parts) + "</html>\n")


def _table(experiment: Experiment) -> str:
    head = "".join(f"<th>{escape(q)}<br>{h:g} s</th>" for q in HEADINGS for h in HORIZONS)
    lines = []
    for name, variant, values in rows(experiment):
        mark = " class='ours'" if name == OURS else ""
        lines.append(
            f"<tr{mark}><td>{escape(name)}</td><td>{escape(variant)}</td>{''.join(f'<td>{v}</td>' for v in values)}</tr>"
        )
    return f"<div class='wide'><table><tr><th>model</th><th>parameters</th>{head}</tr>{''.join(lines)}</table></div>"


# -----------------------------------------------------------------------------------------------------------------------------

BENCHES = CASE.benches
SUMMARY, PAGE = "validation.json", "report.html"
PICTURES = ("errors.png", "flight.png", "motor_lag.png", "thrust_map.png", "battery.png", "imu_allan.png")


@dataclass(frozen=True)
class ValidateConfig:
    """Predict real flights and compare."""

    data: Path | None = None
    """Folder of the reference files (holds flights/); by default the environment variable AIRWORTHY_DATA."""
    out: Path = Path("runs/validate")
    """Folder for validation.json, report.html and the pictures."""
    save_vehicles: Path | None = None
    """Folder for the fitted vehicles as TOML, to be flown; not written by default."""
    json: bool = False
    """Print validation.json instead of the tables."""


@dataclass
class Validation:
    """What a run found."""

    references: dict[str, LogReference]
    measured: list[Experiment]
    pwm: Experiment
    motor_maps: dict[str, MotorMap]
    benches: dict[str, Bench]
    thrust_map: ThrustMap | None
    sag: tuple[float, float] | None
    imu: dict[str, Any] = field(default_factory=dict)
    allan: dict[str, inertial.AllanDeviation] = field(default_factory=dict)

    @property
    def experiments(self) -> list[Experiment]:
        """All of them, the one fed with PWM last."""
        return [*self.measured, self.pwm]


def run_validation(config: ValidateConfig, simulated: Mapping[str, tuple[Array, float]] | None = None) -> Validation:
    """Run the validation and write its folder.

    Args:
        config: What to read and where to write.
        simulated: Our own sensors at rest, name -> (samples (n, 6: gyro rad/s, accelerometer m/s^2), rate [Hz]).

    Raises:
        AirworthyError: There is no data, or a file is damaged.
    """
    flights = _flights_folder(config.data)
    folder = make_folder(config.out)
    references = load_references(flights / CASE.folder)
    measured = measured_experiments(references)
    pwm, maps = pwm_experiment(references)
    maps = {name: fit_motor_map(references[name].log) for name in BRUSHLESS_FLIGHTS} | maps
    for job in progress([job for e in (*measured, pwm) for job in e.jobs()], "Fitting and predicting", quiet=config.json):
        job()
    fly_fits(measured)
    benches = {name: read_bench(flights / CASE.folder / f"{name}.csv") for name in BENCHES}
    stock = benches[BENCHES[0]]
    found = Validation(references, measured, pwm, maps, benches, fit_thrust(stock), fit_sag(stock))
    found.imu, found.allan = imu_section(flights / CASE.inertial, simulated or {})
    if config.save_vehicles is not None:
        save_vehicles([(e, final_fit(e)) for e in measured], config.save_vehicles)
    with staged_folder(folder, _owns, SUMMARY) as staged:
        pictures = draw(found, staged.path)
        write_page(staged.path / PAGE, found.measured, found.pwm, pictures, summary(found))
        write_json(staged.path / SUMMARY, summary(found))
    return found


def fly_fits(experiments: Sequence[Experiment]) -> None:
    """Let the simulator fly what each fit is saved as, over the windows that it was not fitted to."""
    for experiment in experiments:
        for split, fitted in zip(experiment.splits, experiment.fits, strict=True):
            experiment.evaluate((OURS, FLOWN), fly_windows(flyable(experiment, fitted), split.test), split)


def _owns(name: str) -> bool:
    """Tell whether an entry of the folder is a validation's; others are the user's."""
    return name in {SUMMARY, PAGE, *PICTURES}


def _flights_folder(given: Path | None) -> Path:
    root = given or data_dir()
    if root is None:
        raise AirworthyError(
            "Validation needs the flight logs, and AIRWORTHY_DATA is unset: set it to the folder of the reference files, "
            "or say --data DIR."
        )
    if not (root / "flights").is_dir():
        raise AirworthyError(
            f"{str(root)!r} holds no folder 'flights': --data or AIRWORTHY_DATA must name the folder of the reference files."
        )
    return root / "flights"


def load_references(folder: Path) -> dict[str, LogReference]:
    """Return the case's flights, calibrated per vehicle, by name.

    Args:
        folder: Of the logs.
    """
    references = {}
    for _, names in CASE.vehicles.values():
        logs = [flight_log(read_log(folder / f"{name}.npz"), CASE.pose_rate) for name in names]
        for log, calibration in zip(logs, calibrate(logs), strict=True):
            references[log.name] = reference(log, calibration)
    return references


def imu_section(
    folder: Path, simulated: Mapping[str, tuple[Array, float]]
) -> tuple[dict[str, Any], dict[str, inertial.AllanDeviation]]:
    """Return statistics and Allan deviations of the EuRoC sensor at rest and of simulated sensors, with the data sheet's
    numbers."""
    time, samples = inertial.read_imu_csv(folder / "imu0.csv")
    truth_time, speed = inertial.read_speed(folder / "groundtruth.csv")
    rate = (len(time) - 1) / float(time[-1] - time[0])
    takeoff = float(truth_time[np.flatnonzero(speed > 0.05)[0]]) if np.any(speed > 0.05) else float(time[-1])
    records = {
        f"{CASE.inertial}, rotors off": (samples[: inertial.still_start(time, samples)], rate),
        f"{CASE.inertial}, standing, rotors turning": (samples[(time > 0.5) & (time < takeoff - 0.2)], rate),
        **simulated,
    }
    statistics = {name: inertial.imu_statistics(*record) for name, record in records.items()}
    curves = {name: inertial.allan_deviation(*record) for name, record in records.items()}
    return {"data_sheet": inertial.read_data_sheet(folder / "imu0_sensor.yaml"), "sensors": statistics}, curves


def draw(found: Validation, folder: Path) -> list[Path]:
    """Draw every picture; return their paths."""
    logs = {name: source.log for name, source in found.references.items()}
    held_out = BRUSHLESS_FLIGHTS.index(CASE.drawn["flight"])
    pictures = [
        plots.plot_errors(folder / "errors.png", found.experiments),
        plots.plot_flight(folder / "flight.png", found.references[BRUSHLESS_FLIGHTS[held_out]], found.measured[0], held_out),
        plots.plot_motors(folder / "motor_lag.png", [(logs[n], found.motor_maps[n]) for n in CASE.drawn["motors"]]),
    ]
    stock = found.benches[BENCHES[0]]
    if found.thrust_map is not None:
        pictures.append(plots.plot_thrust(folder / "thrust_map.png", stock, found.thrust_map, found.measured))
    if found.sag is not None:
        pictures.append(plots.plot_battery(folder / "battery.png", stock, found.sag, list(logs.values())))
    pictures.append(plots.plot_allan(folder / "imu_allan.png", found.allan, found.imu["data_sheet"]))
    return pictures


def summary(found: Validation) -> dict[str, Any]:
    """Return everything that was measured, for validation.json."""
    return {
        "version": __version__,
        "hardware": describe_machine(),
        "experiments": [_experiment(e) for e in found.experiments],
        "logs": {name: _log(source) for name, source in found.references.items()},
        "motors": {name: _motor(m) for name, m in found.motor_maps.items()},
        "bench": {
            "thrust_map": dataclasses.asdict(found.thrust_map) if found.thrust_map else None,
            "open_circuit_voltage_and_resistance": list(found.sag) if found.sag else None,
            "speed_offset_and_slope_per_volt": {name: list(fit_speed(b)) for name, b in found.benches.items()},
            "rows_with_agreeing_speeds": {name: float(np.mean(b.good)) for name, b in found.benches.items()},
        },
        "imu": found.imu,
    }


def _experiment(experiment: Experiment) -> dict[str, Any]:
    splits = [
        {
            "judged_on": split.name,
            "windows_fitted": len(split.train),
            "windows_judged": len(split.test),
            "structure": chosen[0],
            "cross_validated_cost": chosen[1],
            "parameters": fitted.values(),
            "thrust_hover": fitted.structure.thrust_hover,
        }
        for split, chosen, fitted in zip(experiment.splits, experiment.chosen, experiment.fits, strict=True)
    ]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "verdict": verdict(experiment),
        "windows_per_horizon": counts(experiment),
        "rows": as_records(experiment),
        "splits": splits,
    }


def _log(source: LogReference) -> dict[str, Any]:
    calibration = source.calibration
    return {
        "clock_scale": source.log.clock_scale,
        "capture_latency_s": calibration.latency,
        "marker_rotation_xyzw": calibration.rotation.tolist(),
        "marker_lever_m": calibration.lever.tolist(),
        "gyro_bias_rad_s": calibration.gyro_bias.tolist(),
        "poses": len(source.log.pose_time),
        "poses_rejected": source.rejected,
    }


def _motor(motor_map: MotorMap) -> dict[str, Any]:
    return {
        "rise_s": motor_map.rise,
        "fall_s": motor_map.fall,
        "offset_rad_s": motor_map.offset,
        "slope_rad_s": motor_map.slope.tolist(),
        "error_rms_rad_s": motor_map.error,
        "recorded_motors": [m + 1 for m in motor_map.measured],
    }
