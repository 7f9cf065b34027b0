"""Options of `airworthy scenes` that change nothing beside the others, in a format, or for a scene."""

from __future__ import annotations

from airworthy.core.idle_options import IdleRule

EXPORT_RULES = (
    IdleRule(
        ("spacing", "ground", "inside"),
        lambda config, ending: ending not in ("pcd", "cloud.ply"),
        "in a file that is no cloud of points",
        "write a .pcd or .cloud.ply",
    ),
    IdleRule(("time",), lambda config, ending: ending == "toml", "in a scene's folder, which keeps the motion of actors"),
)
"""Options of `airworthy scenes export` that change nothing in a format."""
RENDER_RULES = (
    IdleRule(("view",), lambda config: config.eye is not None, "with --eye, which says where from", "drop that"),
    IdleRule(
        ("samples", "bake"),
        lambda config: "rgb" not in config.channels,
        "without the channel rgb, which alone has light",
        "add it to --channels",
    ),
)
"""Options of `airworthy scenes render` that change nothing beside the others."""
ACTOR_RULES = (IdleRule(("time",), lambda config, scene: not scene.actors, "in a scene where nothing moves"),)
"""Of both, by the scene."""
