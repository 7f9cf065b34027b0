"""Segments, yaw, limit, loss and gains beside the reference files; the controller beside the firmware (sections 3, 4, 7, 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.control import (
    BodyState,
    MellingerState,
    Reference,
    mellinger_control,
    mellinger_parameters,
    mixer_for,
    motor_commands,
    si_gains,
    speed_of_command,
)
from airworthy.core.files import read_json
from airworthy.evaluation.verification.figure import Figure, below
from airworthy.pilots.boundary.errors import loss_of
from airworthy.trajectories import TRACKING_ENVELOPE, septic, septic_through
from airworthy.trajectories.polynomial import (
    BASIS_END_SPEED,
    BASIS_START_SPEED,
    BASIS_STEP,
    differentiate,
    evaluate,
    in_seconds,
)
from airworthy.vehicles import vehicle

__all__ = ["controller_figures", "gain_figures", "vector_figures"]

SETS = ("firmware", "crazyswarm", "crazyflow")
NAMES = {"kp": "kp", "kd": "kd", "ki": "ki", "integral_max": "i_range", "attitude_gain": "kR", "rate_gain": "kw"}
"""Of gains: ours -> in the file."""
LEVEL = BodyState((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
CRAZYFLIES = ("cf2x_L250", "cf2x_P250", "rotorpy_crazyflie")
CORNERS = ((1, -1), (-1, -1), (-1, 1), (1, 1))
"""m1 front right, m2 back right, m3 back left, m4 front left: signs of x and y."""


def vector_figures(path: Path) -> Iterator[Figure]:
    """All of `reference_vectors.json`.

    Args:
        path: The file.
    """
    known = read_json(path)
    coefficients, samples = _segments(known["segments"])
    yield below("Gates 3: segments off the reference vectors, x, v, a, j, worst", samples, 1e-9)
    yield below("Gates 3: coefficients off the reference vectors, relative, worst", coefficients, 1e-9)
    basis = {"h": BASIS_STEP, "g0": BASIS_START_SPEED, "g1": BASIS_END_SPEED}
    gap = max(float(np.abs(ours - known["unit_basis"][name]).max()) for name, ours in basis.items())
    yield below("Gates 3: the basis off the reference", gap, 0.0)
    # Headings are printed with six digits.
    yield below("Gates 4: yaw ramp off the reference, worst", _yaw(known["yaw"]), 1e-6, "rad")
    assert TRACKING_ENVELOPE.envelope is not None
    most, cubic = TRACKING_ENVELOPE.envelope
    gap = max(abs(most - cubic * item["v"] ** 3 - item["a_max"]) for item in known["limit"])
    yield below("Gates 6: the limit off the reference, worst", gap, 1e-9, "m/s^2")
    gap = max(abs(float(loss_of(item["e"])) - item["value"]) for item in known["loss"])
    yield below("Gates 7: loss off the reference, worst", gap, 1e-9)


def _segments(given: Any) -> tuple[float, float]:
    """Worst errors of coefficients, relative where they are above 1, and of samples."""
    coefficients = samples = 0.0
    for item in given:
        span = float(item["T"])
        c = septic(item["b0"], item["bf"], span)
        told = np.array(item["coefficients_p7_to_p0"])
        coefficients = max(
            coefficients, float(np.max(np.abs(in_seconds(c, span)[::-1] - told) / np.maximum(1.0, np.abs(told))))
        )
        for sample in item["samples"]:
            for order, name in enumerate("xvaj"):
                value = float(evaluate(differentiate(c, order), sample["t"] / span)) / span**order
                samples = max(samples, abs(value - sample[name]))
    return coefficients, samples


def _yaw(given: Any) -> float:
    worst = 0.0
    for item in given:
        points, ahead = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]), np.tile([1.0, 0.0, 0.0], (2, 1))
        path = septic_through(points, ahead, np.zeros(2), np.array([item["T"]]), np.array([item["psi0"], item["psi1"]]))
        worst = max(worst, abs(float(path.sample(np.array([item["t"]])).yaw[0]) - item["psi"]))
    return worst


# ---- the controller -------------------------------------------------------------------------------------------------------


def gain_figures(path: Path) -> Iterator[Figure]:
    """All of `mellinger_gains.json`.

    Args:
        path: The file.
    """
    table = read_json(path)
    other = sum(_other_gains(mellinger_parameters(f"mellinger_{name}"), table[name], table) for name in SETS)
    yield Figure(f"Gates 9: gains of {len(SETS)} published sets that differ", float(other), "0", other == 0)
    si = si_gains(mellinger_parameters(), 0.12, 0.03253, 0.00735)
    pairs = (
        (si.attitude_gain[0], "kR_xy_Nm_per_rad"),
        (si.rate_gain[0], "kw_xy_Nms"),
        (si.attitude_gain[2], "kR_z_Nm_per_rad"),
        (si.rate_gain[2], "kw_z_Nms"),
    )
    worst = max(abs(value / table["si_equivalents"][name] - 1.0) for value, name in pairs)
    # Printed with three or four digits.
    yield below("Gates 9: gains in newton metres off the published ones, worst", 100.0 * worst, 0.2, "%")


def _other_gains(p: Any, published: Mapping[str, float], table: Any) -> int:
    wrong = sum(
        getattr(p, ours) != (published[f"{theirs}_xy"],) * 2 + (published[f"{theirs}_z"],) for ours, theirs in NAMES.items()
    )
    wrong += p.attitude_integral_gain[2] != published["ki_m_z"]
    wrong += p.attitude_integral_max[2] != published["i_range_m_z"]
    wrong += p.rate_derivative_gain != (published["kd_omega_rp"],) * 2 + (0.0,)
    wrong += p.thrust_scale != published["massThrust"]
    return int(wrong + (p.moment_max != (table["torque_command_limit"],) * 3))


def controller_figures() -> Iterator[Figure]:
    """The mixer as the firmware prints it, and the hover of the competition's vehicle through its chain."""
    worst = max(_mixer_gap(name) for name in CRAZYFLIES)
    yield below(f"Gates 9: mixer of {len(CRAZYFLIES)} Crazyflies off the firmware's, worst", worst, 1e-6, "of 65,535")
    body, p = vehicle("cf2x_scg_iros2022"), mellinger_parameters(gravity=9.8, mass=0.027)
    memory = MellingerState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    thrust, moment, _ = mellinger_control(LEVEL, Reference(), (0.0,) * 3, memory, 1.0, 0.002, p)
    speeds = [float(speed_of_command(c, body.voltage_chain)) for c in motor_commands(thrust, moment, mixer_for(body))]
    lift = sum(body.rotors[0].thrust[2] * speed**2 for speed in speeds) / (body.mass * 9.8)
    words = "Gates 9: lift over weight in hover, a controller of 27 g through the legacy chain, 34.54 g"
    yield Figure(words, lift, "1.06 +- 0.02", abs(lift - 1.06) <= 0.02)


def _mixer_gap(name: str) -> float:
    body, thrust, moment = vehicle(name), 30_000.0, (900.0, -2_100.0, 3_300.0)
    # As printed, in the firmware's axes: its pitch has the other sign.
    r, p, y = moment[0] / 2.0, -moment[1] / 2.0, -moment[2]
    told = (thrust - r + p + y, thrust - r - p - y, thrust + r - p + y, thrust + r + p - y)
    mine = [(int(np.sign(rotor.position[0])), int(np.sign(rotor.position[1]))) for rotor in body.rotors]
    found = motor_commands(thrust, moment, mixer_for(body))
    return max(abs(float(c) - told[CORNERS.index(at)]) for at, c in zip(mine, found, strict=True))
