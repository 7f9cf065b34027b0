"""Tasks that are shipped; importing this registers them."""

from airworthy.learning.environments.task import register_task
from airworthy.learning.environments.tasks.hover import HoverTask
from airworthy.learning.environments.tasks.motor_command import MotorCommand
from airworthy.learning.environments.tasks.position import PositionByAcceleration, PositionByAttitude, PositionByVelocity

__all__ = ["SHIPPED", "HoverTask", "MotorCommand", "PositionByAcceleration", "PositionByAttitude", "PositionByVelocity"]

SHIPPED = (HoverTask, MotorCommand, PositionByAttitude, PositionByVelocity, PositionByAcceleration)
"""In the order of documents."""

for _task in SHIPPED:
    register_task(_task.name, _task)
