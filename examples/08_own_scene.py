"""A place of one's own: shapes, surfaces and things as data, kept as TOML that people can edit, and seen by a camera.

Writes runs/08_own_scene: view.png, and the folder shed, which `airworthy fly --scene` takes too.
"""

import numpy as np
from PIL import Image

from airworthy.geometry import Box, Cylinder, Sphere
from airworthy.optics import Pinhole, to_8bit
from airworthy.rendering import render
from airworthy.scenes import Instance, Material, Scene, SceneBatch, Texture, look_at, read_scene, write_scene

tiles = np.full((64, 64, 3), 200, np.uint8)
tiles[:32, :32] = tiles[32:, 32:] = (120, 130, 150)
shapes = {"floor": Box((6.0, 4.0, 0.1)), "wall": Box((0.1, 4.0, 1.5)), "pillar": Cylinder(0.2, 1.5), "ball": Sphere(0.5)}
materials = {
    "tiles": Material(base_color_map="tiles", texture_size=1.0, roughness=0.3),  # one repeat per metre
    "brick": Material(base_color=(0.45, 0.12, 0.07, 1.0)),
    "brass": Material(base_color=(0.9, 0.6, 0.2, 1.0), metallic=1.0, roughness=0.2),
}
things = [Instance("pillar", (x, y, 1.5), semantic="pillar") for x in (-1.0, 2.0) for y in (-2.5, 2.5)]
things.append(Instance("floor", (0.0, 0.0, -0.1), materials=("tiles",), semantic="ground"))
things.append(Instance("wall", (5.0, 0.0, 1.5), materials=("brick",), semantic="wall"))
things.append(Instance("ball", (1.0, 0.3, 0.5), materials=("brass",)))
shed = Scene("shed", shapes, materials, {"tiles": Texture(tiles)}, tuple(things))

file = write_scene(shed, "runs/08_own_scene/shed")
place = read_scene(file)  # checked on reading: a scene that cannot be is refused with a reason
position = np.array([-5.0, -2.2, 2.2])
rays = Pinhole.from_fov(960, 540, horizontal=np.radians(70.0)).rays()
seen = render(SceneBatch(place), rays, position[None], look_at(position, (1.0, 0.3, 0.6))[None], channels=("rgb", "depth"))
Image.fromarray(to_8bit(seen["rgb"][0])).save("runs/08_own_scene/view.png")
print(f"{file}: {len(place.instances)} things, the nearest {seen['depth'].min():.2f} m away")
