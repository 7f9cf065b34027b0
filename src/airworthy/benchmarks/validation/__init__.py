"""Is the model true? Real flights against open-loop prediction, benches against thrust maps, IMU noise against data sheets."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.benchmarks.validation.calibration import Calibration, calibrate
    from airworthy.benchmarks.validation.imu import AllanDeviation, allan_deviation, imu_statistics
    from airworthy.benchmarks.validation.logs import FlightLog, read_flight_log
    from airworthy.benchmarks.validation.structure import predict
    from airworthy.benchmarks.validation.windows import HORIZONS, LogReference, LogWindows, cut_windows, reference
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "HORIZONS",
    "AllanDeviation",
    "Calibration",
    "FlightLog",
    "LogReference",
    "LogWindows",
    "allan_deviation",
    "calibrate",
    "cut_windows",
    "imu_statistics",
    "predict",
    "read_flight_log",
    "reference",
]
