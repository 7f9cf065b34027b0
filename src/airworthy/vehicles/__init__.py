"""What flies: the vehicle record, its catalogue, import and synthesis."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names
from airworthy.vehicles.check import check

if TYPE_CHECKING:
    from airworthy.vehicles.check import inertia_matrix, rotor_thrust, rotor_torque
    from airworthy.vehicles.files import read_vehicle, write_vehicle
    from airworthy.vehicles.identification.identify import identify
    from airworthy.vehicles.identification.known import Known, MeasuredValue, frame_vehicle
    from airworthy.vehicles.identification.result import Identified, IdentifiedValue
    from airworthy.vehicles.links import articulated, frozen
    from airworthy.vehicles.lookup import articulated_names, import_urdf, named_vehicle, vehicle, vehicle_names
    from airworthy.vehicles.record import (
        Battery,
        CollisionBody,
        Disturbance,
        Drag,
        Joint,
        Link,
        LinkShape,
        Rotor,
        RotorResponse,
        SensorMount,
        Uncertainty,
        Vehicle,
        VoltageChain,
        WrenchNoise,
    )
    from airworthy.vehicles.synthesis import synthesize
    from airworthy.vehicles.trim import (
        Indicators,
        Trim,
        control_effectiveness,
        hover_speed,
        hover_trim,
        indicators,
        linear_drag,
        pushes_sideways,
        rotor_state_for_thrust,
        thrust_limits,
        upright,
    )
    from airworthy.vehicles.uncertainty import Draws
    from airworthy.vehicles.watching.result import Drift, WatchedVehicle
    from airworthy.vehicles.watching.watch import watch
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Battery", "CollisionBody", "Disturbance", "Drag", "Draws", "Drift", "Identified", "IdentifiedValue", "Indicators",
    "Joint", "Known", "Link", "LinkShape", "MeasuredValue", "Rotor", "RotorResponse", "SensorMount", "Trim", "Uncertainty",
    "Vehicle", "VoltageChain", "WatchedVehicle", "WrenchNoise", "articulated", "articulated_names", "check",
    "control_effectiveness", "frame_vehicle", "frozen", "hover_speed", "hover_trim", "identify", "import_urdf", "indicators",
    "inertia_matrix", "linear_drag", "named_vehicle", "pushes_sideways", "read_vehicle", "rotor_state_for_thrust",
    "rotor_thrust", "rotor_torque", "synthesize", "thrust_limits", "upright", "vehicle", "vehicle_names", "watch",
    "write_vehicle",
]  # fmt: skip
