"""The scene file that `airworthy scenes new` writes."""

STARTER = """\
# A scene. SI units, radians, world z up; docs/scenes.md explains every table.
# Check it with `airworthy scenes validate`, look at it with `airworthy scenes render`.
version = 1
name = "{name}"
description = "A yard with two crates, a mast and somebody who walks past"
source = "made with airworthy scenes new"

# To build on a generated scene, say base = "forest:3@7"; what follows is then added to it.

bounds = {{ lower = [-10.0, -10.0, 0.0], upper = [10.0, 10.0, 6.0] }}   # leaving it is out of bounds
start = {{ position = [-7.0, 0.0, 1.5], yaw = 0.0 }}
goal = {{ position = [7.0, 0.0, 1.5] }}

# What can be placed: box, sphere, cylinder, capsule (along z), or a mesh file beside this file:
#   [shapes.statue]
#   kind = "mesh"
#   file = "assets/statue.glb"
[shapes.ground]
kind = "box"
half_size = [10.0, 10.0, 0.1]
[shapes.crate]
kind = "box"
half_size = [0.5, 0.5, 0.5]
[shapes.mast]
kind = "cylinder"
radius = 0.06
half_length = 2.0

# Images: file = "assets/x.png", or a procedural kind.
[textures.concrete]
procedural = "concrete"

[materials.floor]
base_color = [0.9, 0.9, 0.9, 1.0]
base_color_map = "concrete"
texture_size = 2.0      # metres per repeat
[materials.wood]
base_color = [0.45, 0.28, 0.14, 1.0]
roughness = 0.7
[materials.steel]
base_color = [0.55, 0.56, 0.58, 1.0]
metallic = 1.0
roughness = 0.35

[[instances]]
shape = "ground"
position = [0.0, 0.0, -0.1]
materials = ["floor"]
semantic = "ground"
[[instances]]
name = "crate_low"
shape = "crate"
position = [1.0, 2.0, 0.5]
yaw = 0.3
materials = ["wood"]
[[instances]]
name = "crate_high"
shape = "crate"
position = [1.1, 1.9, 1.35]
yaw = 0.8
scale = 0.7
materials = ["wood"]
[[instances]]
name = "mast"
shape = "mast"
position = [0.0, -3.0, 2.0]
materials = ["steel"]
semantic = "thin"

# A whole model file with a pose:
#   [[models]]
#   file = "assets/chair.glb"
#   position = [3.0, 0.0, 0.0]
#   floor = true

# A captured object or place, as Gaussian splats with a pose:
#   [clouds.statue]
#   file = "assets/statue.spz"
#   [[splats]]
#   cloud = "statue"
#   position = [3.0, 0.0, 0.0]

[[lights]]
kind = "sun"
direction = [-0.4, 0.3, -0.866]

[[actors]]
name = "walker"
person = {{ height = 1.78 }}
animation = "walking"
motion = "scripted"
repeat = true
path = [
  {{ time = 0.0, position = [4.0, -6.0, 0.0], yaw = 1.571 }},
  {{ time = 9.0, position = [4.0, 6.0, 0.0], yaw = 1.571 }},
  {{ time = 10.0, position = [4.0, 6.0, 0.0], yaw = -1.571 }},
  {{ time = 19.0, position = [4.0, -6.0, 0.0], yaw = -1.571 }},
  {{ time = 20.0, position = [4.0, -6.0, 0.0], yaw = 1.571 }},
]
"""
