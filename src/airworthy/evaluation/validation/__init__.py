"""Is the model true? Real flights against open-loop prediction, benches against thrust maps, IMU noise against data sheets."""

from airworthy.evaluation.validation.calibration import Calibration, calibrate
from airworthy.evaluation.validation.imu import AllanDeviation, allan_deviation, imu_statistics
from airworthy.evaluation.validation.logs import FlightLog, read_flight_log
from airworthy.evaluation.validation.predict import predict
from airworthy.evaluation.validation.reference import Reference, reference
from airworthy.evaluation.validation.windows import HORIZONS, Windows, cut_windows

__all__ = [
    "HORIZONS",
    "AllanDeviation",
    "Calibration",
    "FlightLog",
    "Reference",
    "Windows",
    "allan_deviation",
    "calibrate",
    "cut_windows",
    "imu_statistics",
    "predict",
    "read_flight_log",
    "reference",
]
