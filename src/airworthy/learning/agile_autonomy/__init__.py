"""Agile-Autonomy's student: learns trajectories of the sampling expert from depth images, and flies without it."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.agile_autonomy.config import StudentOptions, StudentProtocol, StudentRunOptions
    from airworthy.learning.agile_autonomy.run import train_agile_autonomy
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["StudentOptions", "StudentProtocol", "StudentRunOptions", "train_agile_autonomy"]
