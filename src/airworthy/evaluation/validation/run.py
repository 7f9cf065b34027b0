"""`airworthy validate`: everything from the logs to table, JSON, pictures and page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import data_dir, make_folder, write_json
from airworthy.core.progress import progress
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.validation import imu as inertial
from airworthy.evaluation.validation import plots
from airworthy.evaluation.validation.bench import Bench, ThrustMap, fit_sag, fit_speed, fit_thrust, read_bench
from airworthy.evaluation.validation.calibration import calibrate
from airworthy.evaluation.validation.logs import read_flight_log
from airworthy.evaluation.validation.motors import MotorMap, fit_motor_map
from airworthy.evaluation.validation.protocol import (
    BRUSHED_FLIGHT,
    BRUSHLESS_FLIGHTS,
    PWM_FLIGHTS,
    Experiment,
    final_fit,
    measured_experiments,
    pwm_experiment,
)
from airworthy.evaluation.validation.reference import Reference, reference
from airworthy.evaluation.validation.report import write_page
from airworthy.evaluation.validation.saved import save_vehicles
from airworthy.evaluation.validation.table import as_records, counts, verdict

Array = NDArray[np.float64]

BENCHES = ("static_cf21_stock_prop", "static_cf21_brushless")


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

    references: dict[str, Reference]
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
    references = load_references(flights / "crazyflie_imrc")
    measured = measured_experiments(references)
    pwm, maps = pwm_experiment(references)
    maps = {name: fit_motor_map(references[name].log) for name in BRUSHLESS_FLIGHTS} | maps
    for job in progress([job for e in (*measured, pwm) for job in e.jobs()], "Fitting and predicting", quiet=config.json):
        job()
    benches = {name: read_bench(flights / "crazyflie_imrc" / f"{name}.csv") for name in BENCHES}
    stock = benches[BENCHES[0]]
    found = Validation(references, measured, pwm, maps, benches, fit_thrust(stock), fit_sag(stock))
    found.imu, found.allan = imu_section(flights / "euroc_v101", simulated or {})
    if config.save_vehicles is not None:
        save_vehicles([(e, final_fit(e)) for e in measured], config.save_vehicles)
    pictures = draw(found, folder)
    write_json(folder / "validation.json", summary(found))
    write_page(folder / "report.html", found.measured, found.pwm, pictures, summary(found))
    return found


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


def load_references(folder: Path) -> dict[str, Reference]:
    """The Crazyflie flights, calibrated per vehicle, by name."""
    references = {}
    for names in (BRUSHLESS_FLIGHTS, (BRUSHED_FLIGHT, *PWM_FLIGHTS)):
        logs = [read_flight_log(folder / f"{name}.npz") for name in names]
        for log, calibration in zip(logs, calibrate(logs), strict=True):
            references[log.name] = reference(log, calibration)
    return references


def imu_section(
    folder: Path, simulated: Mapping[str, tuple[Array, float]]
) -> tuple[dict[str, Any], dict[str, inertial.AllanDeviation]]:
    """Statistics and Allan deviations of the EuRoC sensor at rest and of simulated sensors, with the data sheet's numbers."""
    time, samples = inertial.read_imu_csv(folder / "imu0.csv")
    truth_time, speed = inertial.read_speed(folder / "groundtruth.csv")
    rate = (len(time) - 1) / float(time[-1] - time[0])
    takeoff = float(truth_time[np.flatnonzero(speed > 0.05)[0]]) if np.any(speed > 0.05) else float(time[-1])
    records = {
        "euroc_v101, rotors off": (samples[: inertial.still_start(time, samples)], rate),
        "euroc_v101, standing, rotors turning": (samples[(time > 0.5) & (time < takeoff - 0.2)], rate),
        **simulated,
    }
    statistics = {name: inertial.imu_statistics(*record) for name, record in records.items()}
    curves = {name: inertial.allan_deviation(*record) for name, record in records.items()}
    return {"data_sheet": inertial.read_data_sheet(folder / "imu0_sensor.yaml"), "sensors": statistics}, curves


def draw(found: Validation, folder: Path) -> list[Path]:
    """Every picture; returns their paths."""
    logs = {name: source.log for name, source in found.references.items()}
    held_out = BRUSHLESS_FLIGHTS.index("brushless_eckart17")
    pictures = [
        plots.plot_errors(folder / "errors.png", found.experiments),
        plots.plot_flight(folder / "flight.png", found.references[BRUSHLESS_FLIGHTS[held_out]], found.measured[0], held_out),
        plots.plot_motors(
            folder / "motor_lag.png", [(logs[n], found.motor_maps[n]) for n in (BRUSHLESS_FLIGHTS[2], PWM_FLIGHTS[1])]
        ),
    ]
    stock = found.benches[BENCHES[0]]
    if found.thrust_map is not None:
        pictures.append(plots.plot_thrust(folder / "thrust_map.png", stock, found.thrust_map, found.measured))
    if found.sag is not None:
        pictures.append(plots.plot_battery(folder / "battery.png", stock, found.sag, list(logs.values())))
    pictures.append(plots.plot_allan(folder / "imu_allan.png", found.allan, found.imu["data_sheet"]))
    return pictures


def summary(found: Validation) -> dict[str, Any]:
    """Everything that was measured, for validation.json."""
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


def _log(source: Reference) -> dict[str, Any]:
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
