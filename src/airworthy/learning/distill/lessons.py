"""Flights of a student in which its teacher says at every decision what it would have done, and now and then does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.pilots.motor_policy.contract import OBSERVED, MotorContract, check_vehicle, commanded_states
from airworthy.pilots.motor_policy.pilot import MotorPolicy, read_motor_policy
from airworthy.pilots.motor_policy.quadrotor import QuadrotorTerms
from airworthy.simulation import Simulator
from airworthy.vehicles import Vehicle, named_vehicle, vehicle_names

__all__ = ["Lesson", "Tutored", "actions_of", "lessons_of"]


@dataclass(frozen=True)
class Lesson:
    """A vehicle, and who knows how to fly it."""

    vehicle: Vehicle
    teacher: MotorPolicy

    def terms(self, band: float) -> QuadrotorTerms:
        """Return the vehicle's rotors and axes as the student has them."""
        return QuadrotorTerms.of(self.vehicle, band)


def lessons_of(folders: Sequence[str | Path]) -> list[Lesson]:
    """Return the lessons of teachers' folders, in order.

    Args:
        folders: Each of a motor policy, whose vehicle the catalogue has, or FILE.toml=FOLDER with the vehicle's file.

    Raises:
        AirworthyError: There is none, two fly one vehicle, they decide at different rates, or one has no vehicle that is known.
    """
    if not folders:
        raise AirworthyError("There is no teacher: give folders of motor policies, as `airworthy train hover` writes them.")
    found: list[Lesson] = []
    for item in folders:
        given, sign, folder = str(item).rpartition("=")
        teacher = read_motor_policy(folder if sign else item)
        if teacher.contract.family:
            raise AirworthyError(f"{str(item)!r} holds a policy for any quadrotor; a teacher flies one vehicle.")
        if not sign and teacher.contract.vehicle not in vehicle_names():
            raise AirworthyError(
                f"{str(item)!r} flies {teacher.contract.vehicle!r}, which is no vehicle of the catalogue: give its file,"
                f" too, as FILE.toml={item}."
            )
        vehicle = named_vehicle(given if sign else teacher.contract.vehicle)
        check_vehicle(teacher.contract, vehicle)
        found.append(Lesson(vehicle, teacher))
    names = [lesson.vehicle.name for lesson in found]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise AirworthyError(f"Two teachers fly {doubled[0]!r}: give one for each vehicle.")
    rates = sorted({lesson.teacher.contract.rate for lesson in found})
    if len(rates) > 1:
        said = ", ".join(f"{rate:g}" for rate in rates)
        raise AirworthyError(f"Teachers decide at {said} Hz; one student decides at one rate: train them at one.")
    return found


def actions_of(states: Array, low: Array, high: Array, law: str = "state") -> Array:
    """Return the actions that command rotor states, within -1 to 1: `commanded_states` the other way round.

    Args:
        states: Of rotors, (..., rotors).
        low: Of each rotor at -1, (rotors,).
        high: At 1, alike.
        law: Of `motor_policy.contract.ACTIONS`.
    """
    if law == "square":
        states, low, high = states**2, low**2, high**2
    return np.clip((2.0 * states - low - high) / (high - low), -1.0, 1.0)


class Tutored(LearntPolicy):
    """A student in flight beside its teacher.

    Args:
        student: As the vehicle's own (`MotorPolicy.fitted`).
        teacher: Of the same vehicle.
        by_teacher: Flights that the teacher flies, (env,).
    """

    name = "tutored student"

    def __init__(self, student: MotorPolicy, teacher: MotorPolicy, by_teacher: ArrayBool):
        own: MotorContract = student.contract
        limits = np.array(own.limits).T
        super().__init__(student.weights, own.history, np.array(own.hover), (limits[0], limits[1]), own.rate, own.action)
        self._teacher, self._by_teacher = teacher, by_teacher
        self._teachers_past = self._teachers_memory = np.zeros((0, 0), np.float32)
        self.seen: list[ArrayF32] = []
        """What the student saw, per decision (env, observed)."""
        self.wanted: list[Array] = []
        """What the teacher would have done, as actions of the student, (env, rotors)."""

    def begin(self, simulator: Simulator) -> None:
        """Begin flights: before them every vehicle was commanded to hover."""
        super().begin(simulator)
        known = self._teacher.contract
        self._teachers_past = np.tile(np.array(known.hover, np.float32), (simulator.env_count, known.history))
        self._teachers_memory = self._teacher.remembered(simulator.env_count)

    def _decided(self, seen: ArrayF32) -> ArrayFloat:
        known, limits = self._teacher.contract, np.array(self._teacher.contract.limits).T
        asked = np.concatenate([seen[:, :OBSERVED], self._teachers_past], axis=1)
        answer, self._teachers_memory = self._teacher.decide(asked, self._teachers_memory)
        wanted = actions_of(self._teacher.command(answer), self._low, self._high, self._law)
        self.seen.append(seen)
        self.wanted.append(wanted)
        acting = np.where(self._by_teacher[:, None], wanted, super()._decided(seen))
        # What it remembers of its actions is what was done, whoever did it.
        done = actions_of(commanded_states(acting, self._low, self._high, self._law), limits[0], limits[1], known.action)
        self._teachers_past = np.concatenate([done, self._teachers_past], axis=1)[:, : self._teachers_past.shape[1]]
        self._teachers_past = self._teachers_past.astype(np.float32)
        return np.asarray(acting, np.float32)
