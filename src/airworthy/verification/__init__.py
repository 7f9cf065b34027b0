"""Acceptance figures that anyone can print: `airworthy verify`. Each yields `Figure`s: measured, beside what must be."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.verification.articulated.figures import articulated_figures, articulated_left_out
    from airworthy.verification.capture import marker_figures
    from airworthy.verification.contact import contact_figures
    from airworthy.verification.flightgoggles import flightgoggles_figures
    from airworthy.verification.gates import gate_figures, gates_left_out
    from airworthy.verification.geometry import geometry_figures
    from airworthy.verification.identification.figures import identify_figures
    from airworthy.verification.learning import sousvide_figures, sousvide_left_out
    from airworthy.verification.learning.trainers import learning_figures, learning_left_out
    from airworthy.verification.planning.navigation import navigation_figures, navigation_left_out
    from airworthy.verification.promises import promise_figures
    from airworthy.verification.published import Figure, published_figures
    from airworthy.verification.scenes import scene_figures
    from airworthy.verification.sensors import sensor_figures
    from airworthy.verification.splats import splat_figures
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Figure", "articulated_figures", "articulated_left_out", "contact_figures", "flightgoggles_figures",
    "gate_figures", "gates_left_out", "geometry_figures", "identify_figures", "learning_figures", "learning_left_out",
    "marker_figures", "navigation_figures", "navigation_left_out", "promise_figures", "published_figures",
    "scene_figures", "sensor_figures", "sousvide_figures", "sousvide_left_out", "splat_figures",
]  # fmt: skip
