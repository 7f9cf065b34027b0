"""Places: the scene record, readers and writers of meshes, generators, actors and lights."""

from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.casting import ActorKit, add_actor
from airworthy.scenes.catalogue import register_generator, scene, scene_generators, scene_names
from airworthy.scenes.checking import check_scene, findings
from airworthy.scenes.digest import scene_digest
from airworthy.scenes.files import read_scene, write_scene
from airworthy.scenes.people import person, walk_path
from airworthy.scenes.posing import posed
from airworthy.scenes.record import (
    DEFAULT_SEMANTICS,
    NO_HIT,
    Actor,
    Beacon,
    GateFrame,
    Instance,
    Material,
    PointLight,
    Pose,
    Region,
    Scene,
    Sky,
    SplatPlacement,
    SpotLight,
    Sun,
    Texture,
    Waypoint,
)
from airworthy.scenes.skins import skinned_actor

__all__ = [
    "DEFAULT_SEMANTICS",
    "NO_HIT",
    "Actor",
    "ActorKit",
    "Beacon",
    "GateFrame",
    "Instance",
    "Material",
    "PointLight",
    "Pose",
    "Region",
    "Scene",
    "SceneBatch",
    "Sky",
    "SplatPlacement",
    "SpotLight",
    "Sun",
    "Texture",
    "Waypoint",
    "add_actor",
    "check_scene",
    "findings",
    "person",
    "posed",
    "read_scene",
    "register_generator",
    "scene",
    "scene_digest",
    "scene_generators",
    "scene_names",
    "skinned_actor",
    "walk_path",
    "write_scene",
]
