"""Acceptance figures that anyone can print: `airworthy verify`."""

from airworthy.evaluation.verification.figure import Figure
from airworthy.evaluation.verification.flightgoggles import flightgoggles_figures
from airworthy.evaluation.verification.geometry import geometry_figures
from airworthy.evaluation.verification.navigation import navigation_figures, navigation_left_out
from airworthy.evaluation.verification.promises import promise_figures
from airworthy.evaluation.verification.published import published_figures
from airworthy.evaluation.verification.scenes import scene_figures
from airworthy.evaluation.verification.sensors import sensor_figures
from airworthy.evaluation.verification.splats import splat_figures

__all__ = [
    "Figure",
    "flightgoggles_figures",
    "geometry_figures",
    "navigation_figures",
    "navigation_left_out",
    "promise_figures",
    "published_figures",
    "scene_figures",
    "sensor_figures",
    "splat_figures",
]
