"""What flies: the vehicle record, its catalogue, import and synthesis."""

from airworthy.vehicles.check import check, inertia_matrix, rotor_thrust, rotor_torque
from airworthy.vehicles.files import read_vehicle, write_vehicle
from airworthy.vehicles.lookup import vehicle, vehicle_names
from airworthy.vehicles.record import (
    Battery,
    CollisionBody,
    Disturbance,
    Drag,
    Rotor,
    RotorResponse,
    SensorMount,
    Vehicle,
    VoltageChain,
    WrenchNoise,
)
from airworthy.vehicles.synthesis import synthesize
from airworthy.vehicles.urdf_import import import_urdf
from airworthy.vehicles.wrench import Indicators, control_effectiveness, hover_speed, indicators, rotor_state_for_thrust

__all__ = [
    "Battery",
    "CollisionBody",
    "Disturbance",
    "Drag",
    "Indicators",
    "Rotor",
    "RotorResponse",
    "SensorMount",
    "Vehicle",
    "VoltageChain",
    "WrenchNoise",
    "check",
    "control_effectiveness",
    "hover_speed",
    "import_urdf",
    "indicators",
    "inertia_matrix",
    "read_vehicle",
    "rotor_state_for_thrust",
    "rotor_thrust",
    "rotor_torque",
    "synthesize",
    "vehicle",
    "vehicle_names",
    "write_vehicle",
]
