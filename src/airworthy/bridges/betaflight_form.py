"""Which form of packets a Betaflight takes, found by turning it by hand: it must push against every turn, about each axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np

from airworthy.bridges.betaflight import BetaflightPilot, Form, Sticks
from airworthy.bridges.clock import ClockMode, LinkClock
from airworthy.bridges.vehicle_sample import VehicleSample
from airworthy.core.arrays import Array
from airworthy.core.frames import from_rotation_vector, rotate_inverse, to_wxyz
from airworthy.sensors.navigation.suite import NavigationSample
from airworthy.vehicles.check import rotor_thrust

__all__ = ["AXES", "FormVerdict", "find_form", "hand_sticks"]

AXES = ("roll", "pitch", "yaw")
FORMS: tuple[Form, ...] = get_args(Form)
# Ours: long enough for an attitude loop of some 5 rad/s, and for a firmware that arms a second after it is switched.
_SETTLE, _REST, _TURN = 3.0, 1.0, 0.2
"""Until motors run, between two turns, and a turn [s]."""
_RATE = 0.5
"""Of a turn [rad/s]: 6 degrees by its end, which no mode forbids."""
_THROTTLE, _ARM_AFTER, _THROTTLE_AFTER = 0.4, 1.0, 1.5
_HEIGHT = 1.5
"""Told above home [m]."""
_DEAD = 1e-3
"""Moments below this share of the largest are none."""


@dataclass(frozen=True)
class FormVerdict:
    """What was found."""

    opposed: dict[Form, tuple[float, float, float]]
    """By form, of roll, pitch and yaw: the moment against the turn, over the largest that the motors can give; positive where
    it opposes."""

    @property
    def form(self) -> Form | None:
        """The form in which every turn is opposed; None where there is none, or both are."""
        found = [form for form, shares in self.opposed.items() if min(shares) > _DEAD]
        return found[0] if len(found) == 1 else None

    def sentences(self) -> list[str]:
        """Return it in words."""
        lines = []
        for form, shares in self.opposed.items():
            said = [f"{axis} {'opposed' if share > _DEAD else 'pushed on' if share < -_DEAD else 'without answer'}"
                    for axis, share in zip(AXES, shares, strict=True)]  # fmt: skip
            lines.append(f"In form {form}: {', '.join(said)}")
        if self.form is not None:
            lines.append(f"The firmware takes form {self.form}")
        else:
            lines.append("No form fits: look at the order and direction of its motors, and at its modes (ANGLE on AUX2)")
        return lines


def hand_sticks(sample: VehicleSample, standing: bool) -> Sticks:
    """Return the sticks of the test: armed, in the middle, with enough throttle that motors can answer."""
    throttle = _THROTTLE if sample.time > _THROTTLE_AFTER else 0.0
    return Sticks(throttle=throttle, arm=sample.time > _ARM_AFTER)


def find_form(
    link: BetaflightPilot, say: Callable[[str], None] = lambda sentence: None, clock: ClockMode = "real"
) -> FormVerdict:
    """Turn a firmware by hand in every form, and see what its motors do.

    Args:
        link: To the firmware, with `hand_sticks`; its form is changed.
        say: Told the form that is tried.
        clock: At whose pace: the firmware's loop follows the wall clock.

    Raises:
        AutopilotFailure: The firmware does not answer.
    """
    hand = _Hand(link, clock)
    hand.hold(_SETTLE)
    opposed = {}
    for form in FORMS:
        say(f"Turning it by hand in form {form}.")
        link.take(form)
        hand.look()
        shares = []
        for axis in range(3):
            before = hand.hold(_REST)
            against = -(hand.turn(axis) - before)[axis]
            shares.append(float(against / hand.most[axis]))
        opposed[form] = (shares[0], shares[1], shares[2])
    return FormVerdict(opposed)


class _Hand:
    """Shows a firmware how it is held, and reads the moments of its motors, forward-left-up [N m]."""

    def __init__(self, link: BetaflightPilot, clock: ClockMode):
        self._link, self._step = link, 0
        self._clock = LinkClock(clock, 1.0 / link.rate)
        self._gravity = link.motors.vehicle.gravity
        self.look()

    def look(self) -> None:
        """See which rotor each of its motors is, in the link's form."""
        vehicle, link = self._link.motors.vehicle, self._link
        rotors = [vehicle.rotors[index] for index in link.motors.rotors]
        place = np.array([rotor.position for rotor in rotors])
        largest = np.array([rotor_thrust(rotor, rotor.speed_max) for rotor in rotors])
        # A rotor's reaction is along its spin; what it is worth beside its thrust does not change signs.
        spin = np.array([math.copysign(1.0, rotor.spin) for rotor in rotors])
        self._arms = np.stack([place[:, 1], -place[:, 0], spin]) * largest
        self.most = np.abs(self._arms).sum(axis=1)

    def hold(self, seconds: float) -> Array:
        """Hold it level; returns the moments of the last third."""
        return self._shown(seconds, np.zeros(3))

    def turn(self, axis: int) -> Array:
        """Turn it about an axis, forward-left-up, in the positive sense; returns the moments of the last third."""
        return self._shown(_TURN, np.eye(3)[axis] * _RATE)

    def _shown(self, seconds: float, rate: Array) -> Array:
        steps = max(round(seconds * self._link.rate), 3)
        found = []
        for k in range(steps):
            self._clock.begin(self._step / self._link.rate)
            reply = self._link.exchange(self._sample(rate, k / self._link.rate), standing=self._step < self._link.rate)
            self._step += 1
            if reply is not None and k >= 2 * steps // 3:
                # Commands are shares of the highest speed, and thrust goes by the square.
                found.append(self._arms @ np.clip(reply.commands[: self._arms.shape[1]], 0.0, 1.0) ** 2)
        return np.mean(found, axis=0) if found else np.zeros(3)

    def _sample(self, rate: Array, since: float) -> VehicleSample:
        turned = from_rotation_vector(rate * since)
        force = rotate_inverse(turned, (0.0, 0.0, self._gravity))
        down = np.array([1.0, -1.0, -1.0])
        # Level, its nose to the north: in both worlds the same turn, about axes of which two change sign.
        attitude = to_wxyz(turned * np.array([1.0, -1.0, -1.0, 1.0]))
        now, place = self._step / self._link.rate, np.array([0.0, 0.0, -_HEIGHT])
        turning, nothing = rate * down, NavigationSample(None, None, None)
        return VehicleSample(now, force * down, turning, turning, place, np.zeros(3), attitude, nothing)
