"""Rows of the state and input arrays of the rigid family."""

from __future__ import annotations

from enum import IntFlag

from airworthy.core.layout import Layout

COMMAND_ROWS = 16
"""Widest command: a tracking reference (position, velocity, acceleration, jerk, yaw, yaw rate) has 14 numbers."""


def rigid_state_layout(rotor_count: int) -> Layout:
    """State rows of the rigid family for a padded number of rotors."""
    n = rotor_count
    return Layout(
        {
            "position": (3,),  # world [m]
            "velocity": (3,),  # world [m/s]
            "attitude": (4,),  # x, y, z, w, body to world
            "rate": (3,),  # body [rad/s]
            "rotor_speed": (n,),
            "position_residual": (3,),  # what float32 could not keep of the position [m]
            "launch_base": (3,),  # position that the displacement of an unfinished launch counts from [m]
            "launch_moved": (3,),  # that displacement; both zero between control periods
            "rotor_command": (n,),  # as followed in the last step
            "saturated": (),  # share of the last launch's steps with a rotor command beyond a limit
            "contact": (),  # steps of the last launch that touched the ground or the scene
            "impact_speed": (),  # fastest approach at such a contact in the last launch [m/s]
            "held": (),  # 1 within a launch while it waits for the exact query of scene contact
            "status": (),  # 0 flying, 1 diverged, 2 stopped by contact; a flight whose status is not 0 is frozen
            "acceleration": (3,),  # specific force, body, at the start of the last step [m/s^2]
            "wind": (3,),  # air velocity at the start of the last step, world [m/s]
            "accelerometer_bias": (3,),
            "gyroscope_bias": (3,),
            "imu": (6,),  # last sample: accelerometer [m/s^2], gyroscope [rad/s], sensor frame
            "turbulence": (5,),
            "battery_charge": (),  # used so far [A s]
            "battery_ratio": (),  # voltage over nominal
            "rate_filtered": (3,),  # rate loop: low-passed rate and its derivative
            "rate_slope": (3,),
            "rate_integral": (3,),
            "position_integral": (3,),  # Mellinger
            "moment_integral": (3,),
            "rate_error": (3,),
        }
    )


def input_layout() -> Layout:
    """Rows of the input array: commands and what acts from outside."""
    return Layout(
        {
            "command": (COMMAND_ROWS,),
            "command_previous": (COMMAND_ROWS,),
            "delay": (),  # steps of a launch that still follow the previous command
            "force": (3,),  # external, world [N]
            "moment": (3,),  # external, body [N m]
            "downwash": (),  # from the vehicles of the group, along world z [N]
            "safe_center": (3,),  # ball in which the centre of mass is free of the scene: its centre, world [m]
            "safe_square": (),  # and its squared radius [m^2]; negative: unknown
        }
    )


class Effects(IntFlag):
    """Uniform switches around the traced blocks: what a launch computes at all."""

    PLANAR = 1 << 0
    SQUARE = 1 << 1
    SHARED_PARAMETERS = 1 << 18
    DRAG = 1 << 16
    DRAG_FULL = 1 << 17
    WRENCH_NOISE = 1 << 2
    IMU = 1 << 3
    IMU_NOISE = 1 << 4
    DISTURBANCE = 1 << 5
    WIND = 1 << 6
    TURBULENCE = 1 << 7
    GROUND = 1 << 8
    GROUND_EFFECT = 1 << 9
    BATTERY = 1 << 10
    EXACT_ROTORS = 1 << 11
    DELAY = 1 << 12
    EXTERNAL = 1 << 13
    IMU_LOG = 1 << 14
    GYRO_FEEDBACK = 1 << 15
    PSEUDO_INVERSE = 1 << 19
    DOWNWASH = 1 << 20
    UNFINISHED = 1 << 21
    """A part of a launch: more of it follows."""
    CLEARANCE = 1 << 22
    """Flights are watched for leaving their safe balls."""
