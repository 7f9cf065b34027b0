"""The environments of Aerial Gym: rooms with panels, objects, trees and rods, still or moving, one at a time or thousands."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.generators.rooms.batch import RoomArrays, resample, room_arrays, room_batch
    from airworthy.scenes.generators.rooms.parameters import ALIASES, ROOMS, Assets, Room
    from airworthy.scenes.generators.rooms.scene import room_scene, with_level
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ALIASES",
    "ROOMS",
    "Assets",
    "Room",
    "RoomArrays",
    "resample",
    "room_arrays",
    "room_batch",
    "room_scene",
    "with_level",
]
