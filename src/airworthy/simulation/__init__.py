"""The clock: simulates batches of flights, records them and plays them back."""

from airworthy.simulation.config import Contact, Downwash, Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.contacts import ContactRecord
from airworthy.simulation.events import EventSource
from airworthy.simulation.flights import FlightTable, flight_columns, read_flight, read_flight_meta, write_flight
from airworthy.simulation.mounted import MountedSensor, MountedSensors
from airworthy.simulation.recorder import Recorder
from airworthy.simulation.replay import Replay
from airworthy.simulation.schedule import Schedule
from airworthy.simulation.semi_kinematic_twin import SemiKinematicTwin
from airworthy.simulation.sensor_movers import VehicleMovers
from airworthy.simulation.sensor_recording import SensorRecorder
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.snapshot import Snapshot
from airworthy.simulation.twin import Twin

__all__ = [
    "Contact",
    "ContactRecord",
    "Downwash",
    "EventSource",
    "FlightTable",
    "Ground",
    "Imu",
    "MountedSensor",
    "MountedSensors",
    "Randomization",
    "Recorder",
    "Replay",
    "Schedule",
    "SemiKinematicTwin",
    "SensorRecorder",
    "Simulator",
    "SimulatorConfig",
    "Snapshot",
    "Twin",
    "VehicleMovers",
    "Wind",
    "flight_columns",
    "read_flight",
    "read_flight_meta",
    "write_flight",
]
