"""Materials from recipes: albedo, normal, roughness, metallic, height and occlusion of common surfaces, and decals."""

from airworthy.scenes.materials.layers import MaterialMaps
from airworthy.scenes.materials.library import (
    MaterialRecipe,
    card,
    decorated,
    material_maps,
    material_names,
    material_recipe,
    scene_with_materials,
    with_material,
)
from airworthy.scenes.materials.water import water_material, water_names

__all__ = [
    "MaterialMaps", "MaterialRecipe", "card", "decorated", "material_maps", "material_names", "material_recipe",
    "scene_with_materials", "water_material", "water_names", "with_material",
]  # fmt: skip
