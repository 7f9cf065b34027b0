"""Local maps of many flights from depth images: occupancy, inflation, distance field."""

from airworthy.planners.mapping.boxes import CAMERA_OFFSET, MapBoxes, camera_pose, map_boxes, mapping_camera, read_pixels
from airworthy.planners.mapping.local import FREE, OCCUPIED, UNKNOWN, LocalMaps
from airworthy.planners.mapping.maps import CellMaps
from airworthy.planners.mapping.scene import maps_of_cells, maps_of_scene

__all__ = [
    "CAMERA_OFFSET",
    "FREE",
    "OCCUPIED",
    "UNKNOWN",
    "CellMaps",
    "LocalMaps",
    "MapBoxes",
    "camera_pose",
    "map_boxes",
    "mapping_camera",
    "maps_of_cells",
    "maps_of_scene",
    "read_pixels",
]
