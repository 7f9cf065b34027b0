"""What flies: the vehicle record, its catalogue, import and synthesis."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names
from airworthy.vehicles.check import check

if TYPE_CHECKING:
    from airworthy.vehicles.bench.fit import fit_bench
    from airworthy.vehicles.bench.motor_prior import MotorPrior, motor_prior
    from airworthy.vehicles.bench.pendulum import PendulumInertia, two_wire_inertia
    from airworthy.vehicles.bench.result import BenchFit, read_bench_fit, write_bench_fit
    from airworthy.vehicles.check import inertia_matrix, rotor_thrust, rotor_torque
    from airworthy.vehicles.files import read_vehicle, write_vehicle
    from airworthy.vehicles.identification.cad import cad_inertia
    from airworthy.vehicles.identification.identify import identify
    from airworthy.vehicles.identification.known import Known, MeasuredValue, frame_vehicle
    from airworthy.vehicles.identification.result import Identified
    from airworthy.vehicles.identification.values import IdentifiedValue
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
        ThrustDrift,
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
    "Battery", "BenchFit", "CollisionBody", "Disturbance", "Drag", "Draws", "Drift", "Identified", "IdentifiedValue",
    "Indicators", "Joint", "Known", "Link", "LinkShape", "MeasuredValue", "MotorPrior", "PendulumInertia", "Rotor",
    "RotorResponse", "SensorMount", "ThrustDrift", "Trim", "Uncertainty", "Vehicle", "VoltageChain", "WatchedVehicle",
    "WrenchNoise", "articulated", "articulated_names", "cad_inertia", "check", "control_effectiveness", "fit_bench",
    "frame_vehicle", "frozen", "hover_speed", "hover_trim", "identify", "import_urdf", "indicators", "inertia_matrix",
    "linear_drag", "motor_prior", "named_vehicle", "pushes_sideways", "read_bench_fit", "read_vehicle",
    "rotor_state_for_thrust", "rotor_thrust", "rotor_torque", "synthesize", "thrust_limits", "two_wire_inertia",
    "upright", "vehicle", "vehicle_names", "watch", "write_bench_fit", "write_vehicle",
]  # fmt: skip
