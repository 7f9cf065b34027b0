"""The kernel of contact with scenes: one task, one flight, after the physics step that it just flew."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.dynamics.rigid import native_text
from airworthy.dynamics.scene_contact import SETTLED, SWEEPS
from airworthy.dynamics.scene_native import scene_source
from airworthy.geometry.native_text import BATCH_SIGNATURE, native_source
from airworthy.simulation.config import CONTACT_MODES
from airworthy.simulation.obstacles import BAND, GAP, LEAVING, SAME, SHALLOW, TILT
from airworthy.simulation.rebound import PASSES, STEP_OUT

STOPPED = 2.0
"""Status of a flight that contact stopped."""

STATE_ROWS = (
    "position",
    "position_residual",
    "launch_base",
    "launch_moved",
    "velocity",
    "attitude",
    "rate",
    "status",
    "contact",
    "impact_speed",
    "acceleration",
    "imu",
)
"""State fields that the kernel reads or writes; it is told their rows, so that one kernel serves every family."""

NUMBERS = ("count", "room", "stride", "mode", "log", "begin", "moving", "spheres", *STATE_ROWS)
"""Integers of a launch, in order.

count: flights; room: places of the batch, a multiple of 16; stride: of its rows; mode: number of the contact mode; log: step of
the IMU log that was just written, or -1; begin: 1 where nothing was flown yet; moving: 1 where movers have velocities; spheres:
per body."""


def contact_source() -> str:
    """Complete native source of the kernel."""
    constants: dict[str, float] = {
        "gap": GAP, "band": BAND, "leaving": LEAVING, "shallow": SHALLOW, "passes": PASSES, "step_out": STEP_OUT,
        "same": SAME, "tilt": TILT, "push_sweeps": SWEEPS, "settled": SETTLED, "stopped": STOPPED,
    }  # fmt: skip
    rows = ", ".join(f"R_{name}" for name in NUMBERS)
    modes = ", ".join(f"MODE_{name.upper()}" for name in CONTACT_MODES)
    geometry = native_source("distance.h", "clearance.h", "sweep.h", "convex.h")
    return "\n".join(
        [geometry, f"enum {{ {rows} }};\nenum {{ {modes} }};", scene_source(**constants), native_text("scene_flight.h")]
    )


_ARGUMENTS = """
    closed: int32[]
    state: float32[]  # rows of the batch
    keys: uint32[]
    imu_log: float32[]
    mover_velocity: float64[]  # world [m/s], (env, movers, 3)
    before: float64[]  # motion at the begin of the step, and whether it flew, (room, 14)
    bodies: float64[]  # as BODY_LAYOUT, (room, rows)
    places: int32[]  # environment of the geometry, kind of body, (room, 2)
    sphere_table: float64[]  # centre, radius, (kinds, spheres, 4)
    core_table: float64[]  # as CORE, (kinds, 9)
    settings: float64[]  # step [s], restitution, friction, rolling
    numbers: int32[]  # as NUMBERS
    record: float64[]  # impacts, as ContactRecord packs them, (room, 10)
    met: int32[]  # whether the flight met something in this step, (room,)
"""


@cache
def contact_kernel() -> Any:
    """Contact of flights with scenes, as a Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("contact", contact_source(), BATCH_SIGNATURE + _ARGUMENTS)
