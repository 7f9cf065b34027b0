"""Planners for many flights at once - EGO, Fast-Planner, PGO, NavRL, Agile-Autonomy, an oracle - and the maps they plan on.

A planner becomes a pilot by `PlannerPilot`, which brings its maps and a controller that follows its set-points.
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.planners.agile_autonomy import AgileAutonomy, AgileAutonomySettings
    from airworthy.planners.common.depth_input import ComputeModel, OdometryErrors
    from airworthy.planners.common.interface import Airframes, Maps, MapSettings, MapView, Mission, Motion, Planner, Setpoints
    from airworthy.planners.common.tracking import PlannerPilot, TakeOff
    from airworthy.planners.common.tracking_backends import backend_names, register_backend
    from airworthy.planners.ego import EgoConfig, EgoPlanner
    from airworthy.planners.fast import FastPlanner, FastSettings, KinoSettings
    from airworthy.planners.known_free import KnownFreePlanner, KnownFreeSettings
    from airworthy.planners.mapping import (
        CellMaps,
        LocalMaps,
        MapBoxes,
        camera_pose,
        map_boxes,
        mapping_camera,
        maps_of_cells,
        maps_of_scene,
        read_pixels,
    )
    from airworthy.planners.navrl import NavRL, NavRLSettings, convert_weights
    from airworthy.planners.oracle import Oracle
    from airworthy.planners.pgo import PgoPlanner, PgoSettings, RoadmapSettings
    from airworthy.planners.sampling_expert import SamplingExpert, SamplingSettings
    from airworthy.planners.straight import StraightFlight
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "AgileAutonomy", "AgileAutonomySettings", "Airframes", "CellMaps", "ComputeModel", "EgoConfig", "EgoPlanner", "FastPlanner",
    "FastSettings", "KinoSettings", "KnownFreePlanner", "KnownFreeSettings", "LocalMaps", "MapBoxes", "MapSettings", "MapView",
    "Maps", "Mission", "Motion", "NavRL", "NavRLSettings", "OdometryErrors",
    "Oracle", "PgoPlanner", "PgoSettings", "Planner", "PlannerPilot", "RoadmapSettings", "SamplingExpert", "SamplingSettings",
    "Setpoints", "StraightFlight", "TakeOff", "backend_names", "camera_pose", "convert_weights", "map_boxes", "mapping_camera",
    "maps_of_cells", "maps_of_scene", "read_pixels", "register_backend",
]  # fmt: skip
