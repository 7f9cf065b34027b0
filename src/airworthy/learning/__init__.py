"""Expert data, imitation from it, environments to learn by reward in, and export.

`synthesize_dataset` makes a data set, `train_svnet` learns from it, `export_onnx` and `export_lerobot` take both elsewhere;
`export_policy` takes motor policies to C, too.
`VectorTask` holds environments of a learning task; `GymnasiumVector`, `StableBaselinesEnv`, `RslRlEnv`, `SkrlEnv` adapt it.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.adapters import (
        GymnasiumFlight,
        GymnasiumVector,
        RslRlEnv,
        SkrlEnv,
        StableBaselinesEnv,
        register_gymnasium,
    )
    from airworthy.learning.datasets import DatasetConfig, ExpertDataset, ImageStack, Made, read_manifest, synthesize_dataset
    from airworthy.learning.datasets.lerobot import export_lerobot
    from airworthy.learning.environments import (
        Curriculum,
        FlightConditions,
        Judgement,
        StepResult,
        VectorTask,
        learning_task,
        learning_tasks,
        register_task,
    )
    from airworthy.learning.environments.tasks import (
        Gap,
        HoverTask,
        L2fPosition,
        MotorCommand,
        MotorTracking,
        PathTracking,
        PositionByAcceleration,
        PositionByAttitude,
        PositionByVelocity,
        Px4MotorCommand,
        Recovery,
    )
    from airworthy.learning.export import export_onnx
    from airworthy.learning.export_motor import export_policy
    from airworthy.learning.foundation import FoundationConfig, train_foundation
    from airworthy.learning.gradient import DifferentiableSimulator, GradientOptions, GradientTraining, write_motor_policy
    from airworthy.learning.gradient.config import HoverConfig
    from airworthy.learning.gradient.evaluation import HoverProtocol
    from airworthy.learning.gradient.run import train_hover
    from airworthy.learning.native_ppo import NativePpo, PpoOptions
    from airworthy.learning.native_ppo.config import MOTOR_COMMAND_REACH_M, MotorCommandConfig
    from airworthy.learning.off_policy import OffPolicy, SacOptions, Td3Options
    from airworthy.learning.ppo import TorchPpo, TorchPpoOptions
    from airworthy.learning.svnet import ExpertPairs, RunOptions, SvNetOptions, TrainedSvNet, train_svnet
    from airworthy.learning.svnet.adaptation import AdaptationConfig, measure_adaptation
    from airworthy.learning.synthesis import (
        NOISE_LEVELS,
        RolloutPlan,
        Rollouts,
        Stages,
        SynthesisConfig,
        flight_camera,
        noise_level,
        roll_out,
    )
    from airworthy.learning.task_training.config import TaskConfig
    from airworthy.learning.task_training.evaluation import TaskProtocol
    from airworthy.learning.task_training.jointed_options import jointed_gradient_options
    from airworthy.learning.task_training.options import TaskTrainingOptions
    from airworthy.learning.task_training.own_tasks import is_learning_task
    from airworthy.learning.task_training.run import train_task
    from airworthy.learning.task_training.shown import policy_flights
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "MOTOR_COMMAND_REACH_M", "NOISE_LEVELS", "AdaptationConfig", "Curriculum", "DatasetConfig", "DifferentiableSimulator",
    "ExpertDataset", "ExpertPairs", "FlightConditions", "FoundationConfig", "Gap", "GradientOptions", "GradientTraining",
    "GymnasiumFlight", "GymnasiumVector", "HoverConfig", "HoverProtocol", "HoverTask", "ImageStack", "Judgement",
    "L2fPosition", "Made", "MotorCommand", "MotorCommandConfig", "MotorTracking", "NativePpo", "OffPolicy", "PathTracking",
    "PositionByAcceleration", "PositionByAttitude", "PositionByVelocity", "PpoOptions", "Px4MotorCommand", "Recovery",
    "RolloutPlan", "Rollouts", "RslRlEnv", "RunOptions", "SacOptions", "SkrlEnv", "StableBaselinesEnv", "Stages", "StepResult",
    "SvNetOptions", "SynthesisConfig", "TaskConfig", "TaskProtocol", "TaskTrainingOptions", "Td3Options", "TorchPpo",
    "TorchPpoOptions", "TrainedSvNet", "VectorTask", "export_lerobot", "export_onnx", "export_policy", "flight_camera",
    "is_learning_task", "jointed_gradient_options", "learning_task", "learning_tasks", "measure_adaptation", "noise_level",
    "policy_flights", "read_manifest", "register_gymnasium", "register_task", "roll_out", "synthesize_dataset",
    "train_foundation", "train_hover", "train_svnet", "train_task", "write_motor_policy",
]  # fmt: skip
