"""What was learnt, as a folder that flies: weights, and a contract that says what they mean."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from airworthy.pilots.motor_policy.contract import MotorContract, vehicle_digest, write_motor_folder

if TYPE_CHECKING:  # the trainers write policies: they come behind this
    from airworthy.learning.gradient.trainer import GradientOptions, GradientTraining
    from airworthy.learning.native_ppo.training import PpoTraining, PpoTrainingOptions
    from airworthy.learning.off_policy.training import OffPolicyTraining, OffPolicyTrainingOptions

    HoverTraining: TypeAlias = GradientTraining | PpoTraining | OffPolicyTraining
    HoverTrainingOptions: TypeAlias = GradientOptions | PpoTrainingOptions | OffPolicyTrainingOptions

__all__ = ["contract_of_training", "write_motor_policy"]


def contract_of_training(training: HoverTraining, notes: str = "") -> MotorContract:
    """Return the contract of the policy that a training holds now.

    Args:
        training: In whatever state; how far it came is noted.
        notes: A sentence or two for people.
    """
    vehicle, options = training.vehicle, training.options
    return MotorContract(
        vehicle=vehicle.name,
        # Besides the digest: what an action commands is to be known without the vehicle's record, too.
        limits=tuple((float(rotor.speed_min), float(rotor.speed_max)) for rotor in vehicle.rotors),
        hover=tuple(map(float, training.hover)),
        motor_state=vehicle.motor_state,
        digest=vehicle_digest(vehicle),
        rate=training.flown_rate,
        history=training.history,
        hidden=training.hidden,
        action=training.law,
        memory="gru" if getattr(training, "memory", "none") == "gru" else "",
        training={
            "trainer": training.trainer,
            "iterations": training.iteration,
            "env_steps": training.env_steps,
            "options": asdict(options),
        },
        notes=notes,
    )


def write_motor_policy(folder: str | Path, training: HoverTraining, notes: str = "") -> Path:
    """Write the policy that a training holds now; returns the folder.

    Args:
        folder: Made where it is missing; `weights.safetensors` and `contract.json` in it are replaced.
        training: In whatever state: one that was stopped leaves a policy, too.
        notes: A sentence or two for people.

    Raises:
        AirworthyError: Its weights are not finite, or the file system refused.
    """
    return write_motor_folder(folder, contract_of_training(training, notes), training.weights)
