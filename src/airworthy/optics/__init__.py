"""Cameras as geometry: which ray belongs to which pixel and back, distortion, and tone from radiance to 8 bits."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.optics.distortion import AnglePolynomial, PlumbBob
    from airworthy.optics.exposure import LINEAR_EV, ev100, exposure_factor, metered
    from airworthy.optics.projections import Fisheye, Pinhole, Projection, Spherical, UserRays, focal_length, pixel_centres
    from airworthy.optics.tone import (
        display_from_linear,
        encode_8bit,
        filmic,
        grey_8bit,
        linear_from_display,
        linear_from_srgb,
        luminance,
        srgb_from_linear,
        to_8bit,
    )
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "LINEAR_EV", "AnglePolynomial", "Fisheye", "Pinhole", "PlumbBob", "Projection", "Spherical", "UserRays",
    "display_from_linear", "encode_8bit", "ev100", "exposure_factor", "filmic", "focal_length", "grey_8bit",
    "linear_from_display", "linear_from_srgb", "luminance", "metered", "pixel_centres", "srgb_from_linear", "to_8bit",
]  # fmt: skip
