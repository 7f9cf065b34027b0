"""The clock: simulates batches of flights, records them and plays them back."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.simulation.config import Contact, Downwash, Ground, Imu, Randomization, SimulatorConfig, Wind
    from airworthy.simulation.events import ContactRecord, EventSource, Schedule
    from airworthy.simulation.flights import FlightTable, flight_columns, read_flight, read_flight_meta, write_flight
    from airworthy.simulation.mounted import DynamicVehicles, MountedSensor, MountedSensors
    from airworthy.simulation.recorder import Recorder, Replay
    from airworthy.simulation.sensor_recording import SensorRecorder
    from airworthy.simulation.simulator import Simulator
    from airworthy.simulation.start_state import Snapshot
    from airworthy.simulation.twin import SemiKinematicTwin, Twin
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Contact", "ContactRecord", "Downwash", "DynamicVehicles", "EventSource", "FlightTable", "Ground", "Imu", "MountedSensor",
    "MountedSensors", "Randomization", "Recorder", "Replay", "Schedule", "SemiKinematicTwin", "SensorRecorder", "Simulator",
    "SimulatorConfig", "Snapshot", "Twin", "Wind", "flight_columns", "read_flight", "read_flight_meta", "write_flight",
]  # fmt: skip
