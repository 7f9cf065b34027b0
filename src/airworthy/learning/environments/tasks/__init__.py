"""Tasks that are shipped; importing this registers them."""

from airworthy.learning.environments.task import register_task
from airworthy.learning.environments.tasks.gap import Gap
from airworthy.learning.environments.tasks.hover import HoverTask
from airworthy.learning.environments.tasks.jointed_hover import ChainHover, MorphyHover
from airworthy.learning.environments.tasks.l2f_position import L2fPosition
from airworthy.learning.environments.tasks.motor_command import MotorCommand, Px4MotorCommand
from airworthy.learning.environments.tasks.position import PositionByAcceleration, PositionByAttitude, PositionByVelocity
from airworthy.learning.environments.tasks.recovery import Recovery
from airworthy.learning.environments.tasks.track import MotorTracking, PathTracking

__all__ = [
    "SHIPPED",
    "ChainHover",
    "Gap",
    "HoverTask",
    "L2fPosition",
    "MorphyHover",
    "MotorCommand",
    "MotorTracking",
    "PathTracking",
    "PositionByAcceleration",
    "PositionByAttitude",
    "PositionByVelocity",
    "Px4MotorCommand",
    "Recovery",
]  # fmt: skip

SHIPPED = (
    HoverTask, MotorCommand, Px4MotorCommand, PositionByAttitude, PositionByVelocity, PositionByAcceleration, L2fPosition,
    Recovery, PathTracking, MotorTracking, MorphyHover, ChainHover, Gap,
)  # fmt: skip
"""In the order of documents."""

for _task in SHIPPED:
    register_task(_task.name, _task)
