"""Scene files: `scene.toml`, the models, textures and clouds beside it, and what a place may say of itself."""
