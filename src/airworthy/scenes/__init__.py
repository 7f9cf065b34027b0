"""Places: the scene record, readers and writers of meshes and splats, generators, actors and lights."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.actors import ActorKit, add_actor, posed
    from airworthy.scenes.batch import SceneBatch
    from airworthy.scenes.carved import CarvedSpace, is_unknown_solid, with_unknown
    from airworthy.scenes.catalogue import register_generator, scene, scene_generators, scene_names
    from airworthy.scenes.checking import check_scene, findings
    from airworthy.scenes.figures.figure import FigureForm
    from airworthy.scenes.figures.wearing import with_figure
    from airworthy.scenes.files.extras import skinned_actor
    from airworthy.scenes.files.scene_file import read_scene, write_scene
    from airworthy.scenes.files.skeleton_recording import (
        SkeletonRecording,
        read_skeletons,
        recorded_person,
        write_skeletons,
    )
    from airworthy.scenes.formats import export_scene, read_model, read_points, write_points_ply
    from airworthy.scenes.generators import GENERATORS, resample, room_batch, with_level
    from airworthy.scenes.materials.library import (
        MaterialRecipe,
        card,
        material_maps,
        material_names,
        material_recipe,
        scene_with_materials,
        with_material,
    )
    from airworthy.scenes.materials.water import water_material, water_names
    from airworthy.scenes.people import person, walk_path
    from airworthy.scenes.record import (
        DEFAULT_SEMANTICS,
        NO_HIT,
        Actor,
        Beacon,
        Decal,
        GateFrame,
        Haze,
        Instance,
        Material,
        PointLight,
        Pose,
        Rain,
        Region,
        Scene,
        Sky,
        Snow,
        SplatPlacement,
        SpotLight,
        Sun,
        Texture,
        Waypoint,
    )
    from airworthy.scenes.sky import SkyVariation, sky_at, sky_sun, under_sky, varied, weather_named
    from airworthy.scenes.splats import EditBox, Splats, brightened, cropped, merged, read_splats, transformed, write_splats
    from airworthy.scenes.splats.placing import add_splat_actor, add_splats, standing, stood, with_surface
    from airworthy.scenes.vegetation.variety import LampVariation, LookVariety, other_look
    from airworthy.scenes.viewpoints import look_at, scene_digest
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "DEFAULT_SEMANTICS", "GENERATORS", "NO_HIT", "Actor", "ActorKit", "Beacon", "CarvedSpace", "Decal", "EditBox",
    "FigureForm", "GateFrame", "Haze", "Instance", "LampVariation", "LookVariety", "Material", "MaterialRecipe",
    "PointLight", "Pose", "Rain", "Region", "Scene", "SceneBatch", "SkeletonRecording", "Sky", "SkyVariation", "Snow",
    "SplatPlacement", "Splats", "SpotLight", "Sun", "Texture", "Waypoint", "add_actor", "add_splat_actor", "add_splats",
    "brightened", "card", "check_scene", "cropped", "export_scene", "findings", "is_unknown_solid", "look_at",
    "material_maps", "material_names", "material_recipe", "merged", "other_look", "person", "posed", "read_model",
    "read_points", "read_scene", "read_skeletons", "read_splats", "recorded_person", "register_generator", "resample",
    "room_batch", "scene", "scene_digest", "scene_generators", "scene_names", "scene_with_materials", "skinned_actor",
    "sky_at", "sky_sun", "standing", "stood", "transformed", "under_sky", "varied", "walk_path", "water_material",
    "water_names", "weather_named", "with_figure", "with_level", "with_material", "with_surface", "with_unknown",
    "write_points_ply", "write_scene", "write_skeletons", "write_splats",
]  # fmt: skip
