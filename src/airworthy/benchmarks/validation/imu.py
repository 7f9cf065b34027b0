"""Noise of an inertial sensor: Allan deviation and its slopes, for logs and for our simulated sensor alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_text
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

# ---- Our simulated inertial sensor at rest, for the same statistics that real sensors get -----------------------------------

RATE = 200.0
"""As the EuRoC log [Hz]."""
HOURS = 0.5


def simulated_at_rest(device: str = "adis16448", seed: int = 0) -> Array:
    """Return samples of a sensor on a vehicle that stands on the ground with its rotors still.

    Args:
        device: Name of an inertial sensor.
        seed: Of its noise.

    Returns:
        Gyroscope [rad/s], then accelerometer [m/s^2], shape (samples, 6), at `RATE`.
    """
    config = SimulatorConfig(
        physics_rate=RATE, control_rate=RATE, ground=Ground(), imu=Imu.named(device), wrench_noise=False, disturbance=False
    )
    flown = vehicle("flightgoggles")
    sim = Simulator(flown, config, seed=seed)
    sim.reset(position=[0.0, 0.0, flown.body.size[0] - flown.body.center[2]], rotor_speed=np.zeros(4))
    sim.advance(int(2 * RATE), np.zeros(4))
    steps, parts = int(HOURS * 3600 * RATE), []
    while steps > 0:
        count = min(steps, 20_000)
        samples = sim.advance(count, np.zeros(4), imu_log=True)
        assert samples is not None
        parts.append(samples[:, 0].astype(np.float64))
        steps -= count
    both = np.concatenate(parts)
    return np.concatenate([both[:, 3:], both[:, :3]], axis=1)


# -----------------------------------------------------------------------------------------------------------------------------

AXES = ("gyro_x", "gyro_y", "gyro_z", "acc_x", "acc_y", "acc_z")
_SAMPLES_MIN = 32
_STILL_FACTOR = 3.5
_STILL_BLOCK = 0.1
_LIMIT_ROWS = 1 << 22
_DATA_SHEET = ("gyroscope_noise_density", "gyroscope_random_walk", "accelerometer_noise_density", "accelerometer_random_walk")


@dataclass(frozen=True)
class AllanDeviation:
    """Overlapping Allan deviation of several channels."""

    tau: Array
    """Averaging times [s], (k,)."""
    deviation: Array
    """In the unit of the samples, (k, channels)."""

    def slope(self, shortest: float, longest: float) -> Array:
        """Return the slope of log deviation over log tau between two averaging times [s], per channel; white noise -1/2, random
        walk +1/2.

        Raises:
            AirworthyError: Fewer than three averaging times lie between.
        """
        inside = (self.tau >= shortest) & (self.tau <= longest)
        if inside.sum() < 3:
            raise AirworthyError(
                f"Only {inside.sum()} averaging times lie between {shortest:g} and {longest:g} s; a slope needs three."
            )
        return np.polyfit(np.log(self.tau[inside]), np.log(self.deviation[inside]), 1)[0]

    def white_density(self, shortest: float, longest: float) -> Array:
        """Return the density of white noise [unit/sqrt(Hz)]: mean of deviation sqrt(tau) where white noise rules, per
        channel."""
        inside = (self.tau >= shortest) & (self.tau <= longest)
        return np.exp(np.mean(np.log(self.deviation[inside] * np.sqrt(self.tau[inside])[:, None]), axis=0))

    def walk_density(self, shortest: float, longest: float) -> Array:
        """Return the density of a bias random walk [unit/s/sqrt(Hz)]: mean of deviation sqrt(3 / tau), per channel."""
        inside = (self.tau >= shortest) & (self.tau <= longest)
        return np.exp(np.mean(np.log(self.deviation[inside] * np.sqrt(3.0 / self.tau[inside])[:, None]), axis=0))


def allan_deviation(samples: Array, rate: float, per_decade: int = 10) -> AllanDeviation:
    """Return the overlapping Allan deviation (IEEE 952, annex C).

    Args:
        samples: Evenly spaced samples, (n, channels), e.g. three gyro and three accelerometer axes.
        rate: Samples per second [Hz].
        per_decade: Averaging times per decade.

    Raises:
        AirworthyError: The samples are not a finite (n, channels) array of at least 32 rows, or the rate is not positive.
    """
    values = np.asarray(samples, np.float64)
    if values.ndim != 2 or len(values) < _SAMPLES_MIN or not np.all(np.isfinite(values)) or not rate > 0.0:
        raise AirworthyError(
            f"Allan deviation needs finite samples of shape (n >= {_SAMPLES_MIN}, channels) and a rate above 0 Hz; "
            f"shape {values.shape} and rate {rate:g} arrived."
        )
    longest = (len(values) - 1) // 3
    count = np.unique(np.round(np.geomspace(1, longest, max(3, round(per_decade * np.log10(longest)) + 1))).astype(int))
    # Zero mean first: the sums then stay small, and the deviation does not depend on the mean.
    total = np.vstack([np.zeros(values.shape[1]), np.cumsum(values - values.mean(axis=0), axis=0)]) / rate
    deviation = np.empty((len(count), values.shape[1]))
    for index, m in enumerate(count):
        second = total[2 * m :] - 2.0 * total[m:-m] + total[: -2 * m]
        deviation[index] = np.sqrt(0.5 * np.mean(second**2, axis=0)) / (m / rate)
    return AllanDeviation(count / rate, deviation)


def imu_statistics(samples: Array, rate: float) -> dict[str, Any]:
    """Return statistics of a still inertial sensor: mean, standard deviation, white and random-walk densities, slopes.

    Args:
        samples: Three gyro [rad/s] and three accelerometer axes [m/s^2], (n, 6).
        rate: [Hz]

    Returns:
        Per axis of `AXES`: mean, std, white_density (tau of 2 samples to a tenth of the record), slope_short (there), and
        walk_density_at_most (the deviation at the longest times read as a random walk: an upper bound on a short record).

    Raises:
        AirworthyError: The samples are not of shape (n, 6).
    """
    values = np.asarray(samples, np.float64)
    if values.ndim != 2 or values.shape[1] != len(AXES):
        raise AirworthyError(
            f"An inertial sensor's samples have shape (n, 6): gyro, then accelerometer; shape {values.shape} arrived."
        )
    allan = allan_deviation(values, rate)
    duration = len(values) / rate
    short = (2.0 / rate, max(duration / 30.0, 20.0 / rate))
    long = (duration / 6.0, duration / 3.0)
    columns = {
        "mean": values.mean(axis=0),
        "std": values.std(axis=0),
        "white_density": allan.white_density(*short),
        "slope_short": allan.slope(*short),
        "walk_density_at_most": allan.walk_density(*long),
    }
    axes = {axis: {name: float(column[i]) for name, column in columns.items()} for i, axis in enumerate(AXES)}
    return {"rate_hz": rate, "duration_s": duration, "short_tau_s": list(short), "long_tau_s": list(long), "axes": axes}


def read_imu_csv(path: Path) -> tuple[Array, Array]:
    """Return times [s] from the first sample (n,) and samples (n, 6: gyro rad/s, accelerometer m/s^2) of an EuRoC `imu0.csv`.

    Raises:
        AssetError: The file is missing or does not hold seven numbers a line.
    """
    lines = [line for line in read_text(path).splitlines() if line and not line.startswith("#")][:_LIMIT_ROWS]
    try:
        stamps = np.array([int(line.split(",", 1)[0]) for line in lines], np.int64)
        samples = np.array([line.split(",")[1:] for line in lines], np.float64)
    except ValueError as error:
        raise AssetError(f"IMU log {str(path)!r} is not a table of a time [ns] and six numbers a line: {error}.") from error
    if samples.ndim != 2 or samples.shape[1:] != (6,):
        raise AssetError(f"IMU log {str(path)!r} has shape {samples.shape}; six numbers after each time were expected.")
    return (stamps - stamps[0]) * 1e-9, samples


def read_data_sheet(path: Path) -> dict[str, float]:
    """Return the four noise numbers of an EuRoC `sensor.yaml`, read as plain `name: number` lines.

    Raises:
        AssetError: One is missing.
    """
    text = read_text(path)
    found = {name: re.search(rf"^{name}:\s*([0-9.eE+-]+)", text, re.MULTILINE) for name in _DATA_SHEET}
    missing = [name for name, match in found.items() if match is None]
    if missing:
        raise AssetError(f"Sensor description {str(path)!r} has no {missing[0]!r}.")
    return {name: float(match[1]) for name, match in found.items() if match is not None}


def read_speed(path: Path) -> tuple[Array, Array]:
    """Return times [s] from the first row and speeds [m/s] of an EuRoC ground truth (time, position, attitude, velocity,
    biases).

    Raises:
        AssetError: The file is missing or has too few columns.
    """
    rows = [line.split(",") for line in read_text(path).splitlines() if line and not line.startswith("#")][:_LIMIT_ROWS]
    try:
        stamps = np.array([int(row[0]) for row in rows], np.int64)
        velocity = np.array([row[8:11] for row in rows], np.float64)
    except ValueError as error:
        raise AssetError(f"Ground truth {str(path)!r} is not a table of numbers: {error}.") from error
    if velocity.ndim != 2 or velocity.shape[1:] != (3,):
        raise AssetError(f"Ground truth {str(path)!r} has no velocity in columns 9 to 11.")
    return (stamps - stamps[0]) * 1e-9, np.linalg.norm(velocity, axis=1)


def still_start(time: Array, samples: Array) -> int:
    """Return the number of samples before the rotors start: gyro scatter over a tenth of a second stays near that of the first
    tenth.
    """
    rate = (len(time) - 1) / (time[-1] - time[0])
    block = max(4, round(_STILL_BLOCK * rate))
    whole = len(samples) // block
    scatter = samples[: whole * block, :3].reshape(whole, block, 3).std(axis=1).max(axis=1)
    moved = np.flatnonzero(scatter > _STILL_FACTOR * scatter[0])
    return int(moved[0]) * block if moved.size else whole * block
