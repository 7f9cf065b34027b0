"""`airworthy validate`: prediction error of the dynamics on real flights."""

from __future__ import annotations

from airworthy.benchmarks.validation.imu import RATE, simulated_at_rest
from airworthy.benchmarks.validation.plots import print_tables
from airworthy.benchmarks.validation.run import ValidateConfig, run_validation, summary
from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Predict real Crazyflie flights open loop, 0.1 to 0.5 s ahead, with our fitted model and with published parameter sets; "
    "fit thrust maps and motor lags; measure inertial sensor noise. Needs the flight logs (AIRWORTHY_DATA or --data); takes "
    "minutes."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(ValidateConfig, argv, "airworthy validate", _DESCRIPTION)
    found = run_validation(config, {"simulated ADIS16448": (simulated_at_rest("adis16448"), RATE)})
    if config.json:
        emit_json(summary(found))
        return 0
    print_tables(found.measured, found.pwm)
    print(f"Numbers: {config.out / 'validation.json'}\nReport:  {config.out / 'report.html'}")
    if config.save_vehicles is not None:
        print(f"Vehicles: {config.save_vehicles}")
    return 0
