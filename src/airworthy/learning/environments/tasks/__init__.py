"""Tasks that are shipped; importing this registers them."""

from airworthy.learning.environments.task import register_task
from airworthy.learning.environments.tasks.hover import HoverTask
from airworthy.learning.environments.tasks.motor_command import MotorCommand

__all__ = ["HoverTask", "MotorCommand"]

register_task(HoverTask.name, HoverTask)
register_task(MotorCommand.name, MotorCommand)
