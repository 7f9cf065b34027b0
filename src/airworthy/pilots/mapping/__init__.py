"""Local maps of many flights from depth images: occupancy, inflation, distance field."""

from airworthy.pilots.mapping.boxes import MapBoxes, map_boxes
from airworthy.pilots.mapping.cameras import CAMERA_OFFSET, camera_pose, mapping_camera, read_pixels
from airworthy.pilots.mapping.local import FREE, OCCUPIED, UNKNOWN, LocalMaps
from airworthy.pilots.mapping.maps import CellMaps
from airworthy.pilots.mapping.scene import maps_of_cells, maps_of_scene

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
