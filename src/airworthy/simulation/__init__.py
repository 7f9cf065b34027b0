"""The clock: simulates batches of flights, records them and plays them back."""

from airworthy.simulation.config import Downwash, Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.flights import FlightTable, flight_columns, read_flight, read_flight_meta, write_flight
from airworthy.simulation.recorder import Recorder
from airworthy.simulation.replay import Replay
from airworthy.simulation.semi_kinematic_twin import SemiKinematicTwin
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.snapshot import Snapshot
from airworthy.simulation.twin import Twin

__all__ = [
    "Downwash",
    "FlightTable",
    "Ground",
    "Imu",
    "Randomization",
    "Recorder",
    "Replay",
    "SemiKinematicTwin",
    "Simulator",
    "SimulatorConfig",
    "Snapshot",
    "Twin",
    "Wind",
    "flight_columns",
    "read_flight",
    "read_flight_meta",
    "write_flight",
]
