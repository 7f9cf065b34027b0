"""`servo`: flies at the next gate's beacons by IMU and beacons, at a moderate speed; the first honest race pilot.

Attitude is the gyroscope's integral. A Kalman filter of the vector to the next gate's centre and of the velocity is driven by
the accelerometer and corrected by that gate's beacons alone: a beacon at bearing b says that what is across b of (vector to the
gate + corner) vanishes, which is linear. How a gate is turned within its bounds is not estimated; it counts as noise. Behind a
gate the next one is expected where it nominally stands beside it. The path goes to a point before the gate, through its centre
and to one behind it; thrust and rates follow the wanted acceleration, with the camera turned to the gate.
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import camera_attitude, from_euler, rotate, to_matrix
from airworthy.race.briefing import BeaconFrame
from airworthy.race.onboard import Onboard, OnboardFacts

# All gains are ours and first guesses, flown on published courses and on drawn ones of seeds below 1,000; beside them only a
# higher speed was tried, and lost.
SPEED = 6.0
"""Cruise [m/s]."""
SPEED_GATE = 5.0
"""Through a gate [m/s]."""
BEFORE = 7.0
"""Where the straight way through a gate begins [m before its plane]."""
BEHIND = 1.5
"""How far it goes on straight behind a gate [m]."""
VELOCITY_GAIN = 2.2
"""Wanted acceleration per velocity error [1/s]."""
ATTITUDE_GAIN = 4.5
"""Commanded rate per attitude error [1/s]; the published rate loop answers within 0.15 s."""
ACCELERATION_MAX = 7.0
"""Of the velocity loop [m/s^2]."""
YAW_GAIN = 2.0
"""[1/s]."""
_ACCELERATION_NOISE = 0.3
"""Of the model [m/s^2/sqrt(Hz)]: tilt drifts by half a degree in a minute."""
_PIXEL = 2.0
"""Standard deviation that a beacon is taken for [px]."""
_OUTLIER = 5.0
"""Beacons farther off than so many standard deviations are not used."""


class Servo:
    """See the module; one flight."""

    rate = 240.0
    sensors = ("imu", "beacons")

    def begin(self, facts: OnboardFacts) -> None:
        """Stand at the start, expecting the first gate where it nominally is."""
        self._facts = facts
        self._centers = facts.corners.mean(axis=1)
        self._attitude = np.asarray(from_euler(0.0, 0.0, facts.start_yaw), np.float64)
        self._turn = tuple(self._attitude.tolist())
        self._next, self._lined_up = 0, False
        self._mean = np.concatenate([self._centers[0] - np.asarray(facts.start_position), np.zeros(3)])
        self._spread = np.diag([*self._gate_spread(0), 0.01, 0.01, 0.01]) + 1e-6 * np.eye(6)
        self._time = 0.0
        vehicle = facts.vehicle
        self._mass, self._gravity = vehicle.mass, np.array([0.0, 0.0, -vehicle.gravity])
        self._drag = np.asarray(vehicle.drag.quadratic_norm)

    def command(self, onboard: Onboard) -> Array:
        """Return thrust [N] and rates [rad/s], (1, 4)."""
        for frame in onboard.frames:
            if frame.stamp <= 0.0:
                self._see(frame, self._attitude)
        self._move(onboard)
        for frame in onboard.frames:
            if frame.stamp > 0.0:
                self._see(frame, self._attitude)
        self._pass_gate()
        return self._steer(self._wanted_velocity())[None]

    def telemetry(self) -> dict[str, ArrayLike]:
        """Return what it believes: where it is beside the next gate, which it takes to stand where it nominally does."""
        gates, sigma = np.full((len(self._centers), 3), np.nan), np.full(len(self._centers), np.nan)
        gates[self._next] = self._centers[self._next]
        left = _cross(np.array([0.0, 0.0, 1.0]), self._facts.directions[self._next])
        sigma[self._next] = math.sqrt(left @ self._spread[:3, :3] @ left)
        return {
            "position": self._centers[self._next] - self._mean[:3],
            "gates": gates,
            "gate_sigma": sigma,
            "next": self._next,
        }

    # ---- What it believes -----------------------------------------------------------------------------------------------

    def _gate_spread(self, gate: int) -> Array:
        # Variance of a uniform in plus or minus b: b^2 / 3.
        x, y, _ = self._facts.bounds[gate]
        return np.array([x * x, y * y, 0.0]) / 3.0

    def _move(self, onboard: Onboard) -> None:
        """Take the IMU's samples: attitude, velocity, and the vector to the gate that shrinks by it."""
        dt = 1.0 / self._facts.physics_rate
        # In plain numbers: arrays of three cost ten times as much, 960 times a second.
        for ax, ay, az, wx, wy, wz in onboard.imu[:, 0].tolist():
            self._turn, force = _stepped(self._turn, (ax, ay, az), (wx, wy, wz), dt)
            acceleration = np.array(force) + self._gravity
            self._mean[:3] -= dt * (self._mean[3:] + 0.5 * dt * acceleration)
            self._mean[3:] += dt * acceleration
        self._attitude = np.array(self._turn)
        span = dt * len(onboard.imu)
        step = np.eye(6)
        step[:3, 3:] = -span * np.eye(3)
        self._spread = step @ self._spread @ step.T
        self._spread[3:, 3:] += span * _ACCELERATION_NOISE**2 * np.eye(3)

    def _see(self, frame: BeaconFrame, attitude: Array) -> None:
        """Correct by the next gate's beacons."""
        pixel = frame.pixel[0, self._next]
        seen = np.flatnonzero(np.isfinite(pixel[:, 0]))
        # One beacon tells no distance, and may be another's where identities are exchanged.
        if len(seen) < 2:
            return
        local = self._facts.camera.unproject(pixel[seen])
        bearing = rotate(camera_attitude(attitude), local / np.linalg.norm(local, axis=1, keepdims=True))
        corner = self._facts.corners[self._next][seen] - self._centers[self._next]
        turn = self._facts.bounds[self._next, 2] / math.sqrt(3.0)
        for b, c in zip(bearing, corner, strict=True):
            across = np.eye(3) - np.outer(b, b)
            off = across @ (self._mean[:3] + c)
            distance = max(float(np.linalg.norm(self._mean[:3] + c)), 0.5)
            # Pixels, the drift of attitude (0.3 degrees), and the turn of the gate that is not estimated.
            noise = (distance * _PIXEL / self._facts.camera.fx) ** 2 + (0.005 * distance) ** 2
            noise += (turn * math.hypot(c[0], c[1])) ** 2
            gain_of = np.hstack([across, np.zeros((3, 3))])
            spread = gain_of @ self._spread @ gain_of.T + noise * np.eye(3)
            inverse = np.linalg.inv(spread)
            if off @ inverse @ off > _OUTLIER**2:
                continue
            gain = self._spread @ gain_of.T @ inverse
            self._mean = self._mean - gain @ off
            keep = np.eye(6) - gain @ gain_of
            self._spread = keep @ self._spread @ keep.T + noise * gain @ gain.T

    def _pass_gate(self) -> None:
        """Go on to the next gate where this one lies behind."""
        last = len(self._centers) - 1
        if self._next == last or self._ahead() > -BEHIND or not self._lined_up:
            return
        self._mean[:3] += self._centers[self._next + 1] - self._centers[self._next]
        spread = self._gate_spread(self._next + 1)
        # Where this gate stands within its bounds was seen, but not kept: both bounds count.
        self._spread[:3, :3] += np.diag(spread + self._gate_spread(self._next))
        self._next, self._lined_up = self._next + 1, False

    # ---- What it does ---------------------------------------------------------------------------------------------------

    def _ahead(self) -> float:
        """Distance to the gate's plane along the flight; below zero behind it [m]."""
        return float(self._mean[:3] @ self._facts.directions[self._next])

    def _wanted_velocity(self) -> Array:
        way, to_gate = self._facts.directions[self._next], self._mean[:3]
        ahead = self._ahead()
        beside = to_gate - ahead * way
        off = float(np.linalg.norm(beside))
        if not self._lined_up and ahead > 1.0 and off < max(0.4, 0.45 * (ahead - 1.0)):
            self._lined_up = True
        if not self._lined_up:
            target = to_gate - BEFORE * way
            distance = float(np.linalg.norm(target))
            if distance < 1.5:
                self._lined_up = True
            # Slow enough to turn towards the gate when it gets there.
            turn = 0.5 * (1.0 + float(target @ way) / max(distance, 1e-6))
            speed = min(SPEED, max(2.5 + 3.0 * turn, math.sqrt(2.0 * 2.5 * distance)))
            return speed * target / max(distance, 1e-6)
        # Along the axis, and back to it: a lateral error fades over the way that is left.
        lead = max(0.6 * ahead, 2.5)
        wanted = lead * way + beside
        speed = SPEED_GATE + (SPEED - SPEED_GATE) * min(1.0, max(0.0, ahead / 10.0))
        return speed * wanted / float(np.linalg.norm(wanted))

    def _steer(self, velocity: Array) -> Array:
        """Return thrust and rates for a wanted velocity."""
        now = self._mean[3:]
        acceleration = VELOCITY_GAIN * (velocity - now)
        length = float(np.linalg.norm(acceleration))
        acceleration *= min(1.0, ACCELERATION_MAX / max(length, 1e-9))
        force = self._mass * (acceleration - self._gravity) + self._drag * float(np.linalg.norm(now)) * now
        matrix = to_matrix(self._attitude)
        up = force / float(np.linalg.norm(force))
        # The axis that turns the body's up into the wanted one, in the body frame; yaw is not touched by it.
        tilt = matrix.T @ _cross(matrix[:, 2], up)
        heading = math.atan2(self._mean[1], self._mean[0])
        yaw = math.atan2(matrix[1, 0], matrix[0, 0])
        error = math.remainder(heading - yaw, 2.0 * math.pi)
        turn = max(-2.5, min(2.5, YAW_GAIN * error))
        rates = ATTITUDE_GAIN * tilt + matrix.T @ np.array([0.0, 0.0, turn])
        return np.concatenate([[max(0.5, float(force @ matrix[:, 2]))], rates])


Quaternion = tuple[float, float, float, float]
Triple = tuple[float, float, float]


def _stepped(q: Quaternion, force: Triple, rate: Triple, dt: float) -> tuple[Quaternion, Triple]:
    """Return the attitude behind a sample and the sample's specific force in the world, at the attitude before it.

    Args:
        q: x, y, z, w, body to world.
        force: Body frame [m/s^2].
        rate: Body frame [rad/s].
        dt: [s].
    """
    x, y, z, w = q
    fx, fy, fz = force
    # v + 2 w (u x v) + 2 u x (u x v), u the vector part.
    cx, cy, cz = 2.0 * (y * fz - z * fy), 2.0 * (z * fx - x * fz), 2.0 * (x * fy - y * fx)
    turned = (fx + w * cx + y * cz - z * cy, fy + w * cy + z * cx - x * cz, fz + w * cz + x * cy - y * cx)
    rx, ry, rz = rate
    size = math.sqrt(rx * rx + ry * ry + rz * rz)
    share = math.sin(0.5 * dt * size) / size if size > 1e-12 else 0.5 * dt
    a, b, c, d = rx * share, ry * share, rz * share, math.cos(0.5 * dt * size)
    new = (
        w * a + x * d + y * c - z * b,
        w * b - x * c + y * d + z * a,
        w * c + x * b - y * a + z * d,
        w * d - x * a - y * b - z * c,
    )
    length = math.sqrt(sum(part * part for part in new))
    return (new[0] / length, new[1] / length, new[2] / length, new[3] / length), turned


def _cross(a: Array, b: Array) -> Array:
    # Ten times as fast as numpy's for two vectors.
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
