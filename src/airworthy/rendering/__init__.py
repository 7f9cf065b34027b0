"""Images of scenes: any channels of any number of cameras in one call, light baked or soft, splats over meshes by depth."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.rendering.baking import BakeSettings
    from airworthy.rendering.converting import ConvertOptions, lit_batch, splats_from_scene
    from airworthy.rendering.images import CHANNEL_NAMES, DynamicPoses, FlowMotion, optical_flow, overlaid, render
    from airworthy.rendering.light_baking import bake, baked_light, relit, use_baked, use_shade
    from airworthy.rendering.refining import depth_error, image_psnr, image_quality, image_ssim
    from airworthy.rendering.shading import Cameras, ShadingOptions, quality_options
    from airworthy.rendering.soft_light import SoftLight, soft_images, soft_views, softly_lit
    from airworthy.rendering.still import StillOptions, still_images
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CHANNEL_NAMES", "BakeSettings", "Cameras", "ConvertOptions", "DynamicPoses", "FlowMotion", "ShadingOptions", "SoftLight",
    "StillOptions",
    "bake", "baked_light", "depth_error", "image_psnr", "image_quality", "image_ssim", "lit_batch", "optical_flow",
    "overlaid", "quality_options",
    "relit", "render", "soft_images", "soft_views", "softly_lit", "splats_from_scene", "still_images", "use_baked",
    "use_shade",
]  # fmt: skip
