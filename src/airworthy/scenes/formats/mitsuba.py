"""A scene and a view of it as a folder for Mitsuba 3 (https://mitsuba-renderer.org), which then judges our pictures.

Written: `scene.xml`, triangles as binary PLY, textures and the sky as PFM (linear floats). What the other renderer has no like
for is left out or replaced, and said: `write_mitsuba` returns a sentence for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, write_bytes, write_text
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.actors import posed
from airworthy.scenes.extent import seen_from_near
from airworthy.scenes.formats.export import XmlElement, numbers
from airworthy.scenes.lights import is_burning, sky_radiance
from airworthy.scenes.record import Instance, Material, PointLight, Scene, SpotLight, Sun, Texture
from airworthy.scenes.texels import linear_pixels
from airworthy.scenes.viewpoints import Viewpoint

__all__ = ["MITSUBA_VERSION", "write_mitsuba"]

MITSUBA_VERSION = "3.0.0"
"""Of the file format that is written."""
SUN_FAR = 2e4
"""Where the sun's disc is put [m]: seen from 10 m apart it stands 0.5 mrad apart, a ninth of its half angle."""
WIDTH_MIN = 1e-5
"""Least square of GGX's width: as in `rendering/native/light.h`."""
SKY_ROWS = 2048
"""Of the sky's picture: the haze at the horizon is 40 of them high."""
CONE_SIDE = 512
"""Pixels of the picture that gives a spot light its soft edge."""
CUT_FINER = 8
"""Texels of a cut-out's mask per texel of its alpha, whose bilinear value is what we cut at."""


@dataclass(eq=False)
class _Writer:
    """The folder that is being written."""

    scene: Scene
    folder: Path
    coat: bool
    specular: bool
    root: XmlElement = field(default_factory=lambda: XmlElement("scene", version=MITSUBA_VERSION))
    notes: dict[str, int] = field(default_factory=dict)
    textures: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1


def write_mitsuba(
    folder: str | Path,
    scene: Scene,
    view: Viewpoint,
    size: tuple[int, int],
    *,
    samples: int = 256,
    sun_angle: float = 0.004654,
    coat: bool = True,
    specular: bool = True,
    time: float = 0.0,
) -> list[str]:
    """Write a scene, and one camera in it, for Mitsuba 3; `mitsuba -m scalar_rgb FOLDER/scene.xml` renders it.

    Args:
        folder: Made if it is not there.
        scene: The scene; its actors stand where they are at `time`.
        view: The camera, not a parallel one.
        size: Width and height [px].
        samples: Paths per pixel.
        sun_angle: Half angle of suns [rad]; 0: hard shadows.
        coat: Whether dielectrics have gloss, which becomes `roughplastic`: near to ours, not the same; False: Lambert.
        specular: Whether metals have gloss.
        time: Of the actors [s].

    Returns:
        A sentence for each thing that is not as here, with how often.

    Raises:
        AirworthyError: The view is parallel, or the scene shows splats.
    """
    if view.parallel:
        raise AirworthyError("Mitsuba's scene needs a camera in one point; give a view other than a parallel one.")
    if scene.splats:
        raise AirworthyError(f"The scene {scene.name!r} shows splats, which Mitsuba has nothing for; drop them first.")
    path = Path(folder)
    make_folder(path)
    writer = _Writer(posed(scene, time), path, coat, specular)
    _camera(writer, view, size, samples)
    _sky(writer)
    for light in writer.scene.lights:
        if is_burning(light, writer.scene.sky):
            _light(writer, light, sun_angle)
    for instance in (*writer.scene.instances, *seen_from_near(writer.scene.looks)):
        if instance.visible:
            _instance(writer, instance)
    write_text(path / "scene.xml", writer.root.document())
    return [text if count == 1 else f"{text} ({count} times)" for text, count in writer.notes.items()]


# ---- Camera and light -------------------------------------------------------------------------------------------------------


def _camera(writer: _Writer, view: Viewpoint, size: tuple[int, int], samples: int) -> None:
    width, height = size
    # Its plain path tracer takes cut-outs for sheets where it looks for lamps, and knows no volumes; the other one looks
    # through holes, and into water.
    cut = any(one.alpha_cutoff > 0.0 or any(one.attenuation) for one in writer.scene.materials.values())
    integrator = writer.root.add("integrator", type="volpath" if cut else "path")
    integrator.add("integer", name="max_depth", value="-1")
    sensor = writer.root.add("sensor", type="perspective")
    sensor.add("string", name="fov_axis", value="larger")
    sensor.add("float", name="fov", value=f"{math.degrees(view.fov):.9g}")
    turn = _matrix(view.attitude)
    # Its cameras look along z with x to the left.
    axes = np.stack([-turn[:, 0], -turn[:, 1], turn[:, 2], np.asarray(view.position, float)], -1)
    sensor.add("transform", name="to_world").add("matrix", value=numbers(np.vstack([axes, [0, 0, 0, 1]]).ravel()))
    sensor.add("sampler", type="independent").add("integer", name="sample_count", value=str(samples))
    film = sensor.add("film", type="hdrfilm")
    film.add("integer", name="width", value=str(width))
    film.add("integer", name="height", value=str(height))
    film.add("string", name="pixel_format", value="rgb")
    film.add("string", name="component_format", value="float32")
    film.add("rfilter", type="box")


def _sky(writer: _Writer) -> None:
    z = np.cos((np.arange(SKY_ROWS) + 0.5) / SKY_ROWS * np.pi)
    rows = sky_radiance(writer.scene.sky, np.stack([0 * z, 0 * z, z], -1))
    if not rows.any():
        return
    if np.ptp(rows, axis=0).max() == 0.0:
        _rgb(writer.root.add("emitter", type="constant"), "radiance", rows[0])
        return
    write_bytes(writer.folder / "sky.pfm", _pfm(np.repeat(rows[:, None].astype(np.float32), 16, axis=1)))
    emitter = writer.root.add("emitter", type="envmap")
    emitter.add("string", name="filename", value="sky.pfm")
    # Its skies have y up.
    emitter.add("transform", name="to_world").add("rotate", x="1", angle="90")


def _light(writer: _Writer, light: Sun | PointLight | SpotLight, sun_angle: float) -> None:
    if isinstance(light, Sun):
        return _sun(writer, light, sun_angle)
    strength = np.array(light.color) * light.intensity
    if light.range > 0.0:
        writer.note("A lamp's range, at which its light fades out, is left out")
    if light.radius > 0.0:
        writer.note("A lamp's radius, which softens its shadows, is left out")
    if isinstance(light, PointLight):
        emitter = writer.root.add("emitter", type="point")
        emitter.add("point", name="position", value=numbers(light.position))
        _rgb(emitter, "intensity", strength)
        return None
    emitter = writer.root.add("emitter", type="spot")
    angle = math.degrees(light.outer_angle)
    emitter.add("float", name="cutoff_angle", value=f"{angle:.9g}")
    # Its own falloff is linear in the angle; ours comes as a picture that the lamp projects.
    emitter.add("float", name="beam_width", value=f"{angle * (1.0 - 1e-4):.9g}")
    across = ((np.arange(CONE_SIDE) + 0.5) / CONE_SIDE * 2.0 - 1.0) * math.tan(light.outer_angle)
    x, y = np.meshgrid(across, across)
    cosine = 1.0 / np.sqrt(1.0 + x * x + y * y)
    outer, inner = math.cos(light.outer_angle), math.cos(max(min(light.inner_angle, light.outer_angle - 1e-3), 0.0))
    share = np.clip((cosine - outer) / (inner - outer), 0.0, 1.0)
    profile = (share * share * (3.0 - 2.0 * share))[..., None] * strength
    name = f"cone_{writer.count}.pfm"
    writer.count += 1
    write_bytes(writer.folder / name, _pfm(profile.astype(np.float32)))
    _bitmap(emitter, "texture", name, "clamp")
    _rgb(emitter, "intensity", np.ones(3))
    emitter.add("transform", name="to_world").add(
        "matrix", value=numbers(_along(np.array(light.position), np.array(light.direction)).ravel())
    )
    return None


def _sun(writer: _Writer, light: Sun, angle: float) -> None:
    given = np.array(light.color) * light.irradiance
    if not angle > 0.0:
        emitter = writer.root.add("emitter", type="directional")
        emitter.add("vector", name="direction", value=numbers(light.direction))
        _rgb(emitter, "irradiance", given)
        return
    travel = np.array(light.direction, float) / np.linalg.norm(light.direction)
    place = _along(-travel * SUN_FAR, travel)
    place[:3, :2] *= SUN_FAR * math.tan(angle)
    shape = writer.root.add("shape", type="disk")
    shape.add("transform", name="to_world").add("matrix", value=numbers(place.ravel()))
    shape.add("bsdf", type="diffuse").add("rgb", name="reflectance", value="0")
    _rgb(shape.add("emitter", type="area"), "radiance", given / (np.pi * math.sin(angle) ** 2))


# ---- Things -----------------------------------------------------------------------------------------------------------------


def _instance(writer: _Writer, instance: Instance) -> None:
    shape = writer.scene.shapes[instance.shape]
    turn, where = _matrix(np.array(instance.attitude)), np.array(instance.position, float)
    materials = [writer.scene.materials.get(name, Material()) for name in instance.materials] or [Material()]
    whole = materials[0]
    if isinstance(shape, Sphere | Cylinder | Capsule) and not (whole.base_color_map or whole.emissive_map):
        _solid(writer, shape, whole, turn, where, instance.scale)
        return
    for material, corners, normals, uv in _triangles(shape, materials, writer):
        if not len(corners):
            continue
        world = (corners * instance.scale) @ turn.T + where
        turned = None if normals is None else normals @ turn.T
        _mesh(writer, material, world, turned, uv)
        if any(material.emissive) and isinstance(shape, Mesh):
            writer.note("A glowing mesh glows on both sides: its back is a second sheet 0.1 mm behind it")
            back = np.cross(world[:, 1] - world[:, 0], world[:, 2] - world[:, 0])
            back /= np.maximum(np.linalg.norm(back, axis=-1, keepdims=True), 1e-30)
            _mesh(writer, material, (world - 1e-4 * back[:, None])[:, ::-1], None, None if uv is None else uv[:, ::-1])


def _solid(
    writer: _Writer, shape: Sphere | Cylinder | Capsule, material: Material, turn: Array, where: Array, scale: float
) -> None:
    if isinstance(shape, Sphere):
        balls, length = [where], 0.0
    else:
        length = shape.half_length * scale
        ends = [where + turn[:, 2] * length * side for side in (-1.0, 1.0)]
        tube = writer.root.add("shape", type="cylinder")
        tube.add("point", name="p0", value=numbers(ends[0]))
        tube.add("point", name="p1", value=numbers(ends[1]))
        tube.add("float", name="radius", value=f"{shape.radius * scale:.9g}")
        _look(writer, tube, material, False)
        balls = ends if isinstance(shape, Capsule) else []
        for side, end in zip((-1.0, 1.0), ends if isinstance(shape, Cylinder) else [], strict=False):
            place = _along(end, turn[:, 2] * side)
            place[:3, :2] *= shape.radius * scale
            disk = writer.root.add("shape", type="disk")
            disk.add("transform", name="to_world").add("matrix", value=numbers(place.ravel()))
            _look(writer, disk, material, False)
    for centre in balls:
        ball = writer.root.add("shape", type="sphere")
        ball.add("point", name="center", value=numbers(centre))
        ball.add("float", name="radius", value=f"{shape.radius * scale:.9g}")
        _look(writer, ball, material, False)


_Part = tuple[Material, Array, Array | None, Array | None]


def _triangles(shape: Shape, materials: list[Material], writer: _Writer) -> list[_Part]:
    """Per material: corners (n, 3, 3) in the shape's frame, vertex normals (n, 3, 3) and coordinates (n, 3, 2), or None."""
    if isinstance(shape, Box):
        return [(materials[0], *_box(shape, materials[0]))]
    if not isinstance(shape, Mesh):
        raise AirworthyError("Mitsuba's scene takes textures on boxes and meshes only; give round solids one colour.")
    if shape.colors is not None and (shape.colors != 1.0).any():
        writer.note("Colours of vertices are left out")
    corners = shape.vertices.astype(np.float64)[shape.faces]
    which = np.zeros(len(corners), int) if shape.face_material is None else np.asarray(shape.face_material)
    parts: list[_Part] = []
    for number, material in enumerate(materials):
        some = which == number
        normals = None if shape.normals is None else shape.normals.astype(np.float64)[shape.faces[some]]
        if shape.uv is not None and material.texture_size == 0.0:
            uv = shape.uv.astype(np.float64)[shape.faces[some]]
        else:
            edges = corners[some]
            outward = np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0])
            uv = _laid(corners[some], outward, material)
        parts.append((material, corners[some], normals, uv * np.array(material.uv_scale)))
    return parts


def _box(shape: Box, material: Material) -> tuple[Array, None, Array]:
    half = np.array(shape.half_size)
    faces, outward = [], []
    for axis in range(3):
        b, c = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1.0, 1.0):
            corner = np.zeros((4, 3))
            corner[:, axis] = side
            # Counter-clockwise seen from outside.
            corner[:, b], corner[:, c] = np.array([-1, 1, 1, -1]) * side, [-1, -1, 1, 1]
            faces += [corner[[0, 1, 2]], corner[[0, 2, 3]]]
            outward += [np.eye(3)[axis] * side] * 2
    corners = np.array(faces) * half
    return corners, None, _laid(corners, np.array(outward), material) * np.array(material.uv_scale)


def _laid(corners: Array, outward: Array, material: Material) -> Array:
    """Coordinates (n, 3, 2) along the dominant axis of each face, as `rendering/native/surface.h` lays them."""
    q = corners / (material.texture_size if material.texture_size > 0.0 else 1.0)
    size = np.abs(outward)
    along_x = (size[:, 0] >= size[:, 1]) & (size[:, 0] >= size[:, 2])
    along_y = ~along_x & (size[:, 1] >= size[:, 2])
    x, y, z = (q[..., k] for k in range(3))
    side_x, side_y = np.where(outward[:, :1] < 0.0, -1.0, 1.0), np.where(outward[:, 1:2] < 0.0, 1.0, -1.0)
    on_x, on_y = along_x[:, None], along_y[:, None]
    u = np.where(on_x, y * side_x, np.where(on_y, x * side_y, x))
    v = np.where(on_x | on_y, -z, np.where(outward[:, 2:] < 0.0, y, -y))
    return np.stack([u, v], -1)


def _mesh(writer: _Writer, material: Material, corners: Array, normals: Array | None, uv: Array | None) -> None:
    name = f"mesh_{writer.count}.ply"
    writer.count += 1
    write_bytes(writer.folder / name, _ply(corners, normals, uv))
    shape = writer.root.add("shape", type="ply")
    shape.add("string", name="filename", value=name)
    # As the PLY says, v grows downwards; so do rows of our textures.
    shape.add("boolean", name="flip_tex_coords", value="false")
    if normals is None:
        shape.add("boolean", name="face_normals", value="true")
    _look(writer, shape, material, True)


# ---- Materials --------------------------------------------------------------------------------------------------------------


def _look(writer: _Writer, shape: XmlElement, material: Material, mapped: bool) -> None:
    """Say what a shape's surface does with light; `mapped`: it has coordinates for textures."""
    for name in ("metallic_roughness_map", "normal_map", "occlusion_map", "height_map", "detail_map"):
        if getattr(material, name):
            writer.note(f"A {name.replace('_', ' ')} is left out")
    inside = shape
    if material.alpha_cutoff > 0.0 and mapped and material.base_color_map:
        inside = shape.add("bsdf", type="mask")
        texture = writer.scene.textures[material.base_color_map]
        name = _cut(writer, material, texture)
        _bitmap(inside, "opacity", name, texture.wrap, "nearest")
    if material.transmission > 0.0 and any(material.attenuation):
        _volume(writer, shape, inside, material)
        return
    if material.transmission > 0.0:
        bsdf = inside.add("bsdf", type="thindielectric")
        bsdf.add("float", name="int_ior", value=f"{material.ior:.9g}")
        if material.base_color_map:
            writer.note("A map of the colour of glass is left out")
        _rgb(bsdf, "specular_transmittance", np.array(material.base_color[:3]) * material.transmission)
        return
    if material.translucency > 0.0:
        writer.note("Light that a surface scatters to its other side is left out")
        red, green, blue, alpha = material.base_color
        back = 1.0 - material.translucency
        material = replace(material, base_color=(red * back, green * back, blue * back, alpha))
    inside = inside.add("bsdf", type="twosided")
    width = math.sqrt(max(material.roughness, 0.03) ** 4)
    width = max(width, math.sqrt(WIDTH_MIN))
    if material.metallic >= 0.5 and writer.specular:
        if material.metallic < 1.0:
            writer.note("A surface between metal and dielectric is made metal")
        _metal(inside, material, width)
    elif writer.coat and writer.specular:
        writer.note("A dielectric's gloss is Mitsuba's roughplastic, which is near to ours")
        bsdf = inside.add("bsdf", type="roughplastic")
        bsdf.add("string", name="distribution", value="ggx")
        bsdf.add("float", name="alpha", value=f"{width:.9g}")
        bsdf.add("float", name="int_ior", value="1.5")
        _albedo(writer, bsdf, "diffuse_reflectance", material, mapped)
    else:
        _albedo(writer, inside.add("bsdf", type="diffuse"), "reflectance", material, mapped)
    if any(material.emissive):
        if material.emissive_map:
            writer.note("A map of glow is left out: the surface glows evenly")
        _rgb(shape.add("emitter", type="area"), "radiance", np.array(material.emissive))


def _volume(writer: _Writer, shape: XmlElement, inside: XmlElement, material: Material) -> None:
    bsdf = inside.add("bsdf", type="dielectric")
    bsdf.add("float", name="int_ior", value=f"{material.ior:.9g}")
    bsdf.add("float", name="ext_ior", value="1")
    if material.base_color[:3] != (1.0, 1.0, 1.0) or material.transmission < 1.0:
        _rgb(bsdf, "specular_transmittance", np.array(material.base_color[:3]) * material.transmission)
    if any(material.scattered):
        writer.note("Light that a volume sends back is left out")
    if material.wave_slope > 0.0:
        writer.note("Waves are left out: water is smooth")
    medium = shape.add("medium", name="interior", type="homogeneous")
    _rgb(medium, "sigma_t", np.array(material.attenuation))
    medium.add("float", name="albedo", value="0")


def _metal(inside: XmlElement, material: Material, width: float) -> None:
    bsdf = inside.add("bsdf", type="roughconductor")
    bsdf.add("string", name="distribution", value="ggx")
    bsdf.add("float", name="alpha", value=f"{width:.9g}")
    color = np.array(material.base_color[:3])
    if (color >= 0.999).all():
        # Everything is reflected, whatever the angle.
        bsdf.add("string", name="material", value="none")
        return
    eta, k = np.transpose([_conductor(float(value)) for value in color])
    _rgb(bsdf, "eta", eta)
    _rgb(bsdf, "k", k)


def _conductor(f0: float) -> tuple[float, float]:
    """Return the complex index of refraction with a mirror reflectance whose angles are most like Schlick's."""
    f0 = min(max(f0, 1e-3), 0.999)
    cosine = np.linspace(0.05, 1.0, 40)
    schlick = f0 + (1.0 - f0) * (1.0 - cosine) ** 5
    low, high = (1.0 - f0) / (1.0 + f0), (1.0 + math.sqrt(f0)) / (1.0 - math.sqrt(f0))
    best = (np.inf, 1.0, 0.0)
    for eta in np.geomspace(low, high, 400):
        k = math.sqrt(max((f0 * (eta + 1.0) ** 2 - (eta - 1.0) ** 2) / (1.0 - f0), 0.0))
        # Weighted as surfaces are seen: by the cosine.
        error = float(np.sum(cosine * (_fresnel(cosine, float(eta), k) - schlick) ** 2))
        best = min(best, (error, float(eta), k))
    return best[1], best[2]


def _fresnel(cosine: Array, eta: float, k: float) -> Array:
    """Mean of both polarisations' reflectance of a conductor in air."""
    sine2, index = 1.0 - cosine**2, complex(eta, k)
    inner = np.sqrt(index**2 - sine2)
    s = np.abs((cosine - inner) / (cosine + inner)) ** 2
    p = np.abs((index**2 * cosine - inner) / (index**2 * cosine + inner)) ** 2
    return np.asarray(0.5 * (s + p))


def _albedo(writer: _Writer, bsdf: XmlElement, name: str, material: Material, mapped: bool) -> None:
    color = np.array(material.base_color[:3])
    if not (material.base_color_map and mapped):
        _rgb(bsdf, name, color)
        return
    texture = writer.scene.textures[material.base_color_map]
    key = f"{material.base_color_map}|{material.base_color}"
    if key not in writer.textures:
        writer.textures[key] = f"texture_{len(writer.textures)}.pfm"
        write_bytes(writer.folder / writer.textures[key], _pfm((_linear(texture)[..., :3] * color).astype(np.float32)))
    _bitmap(bsdf, name, writer.textures[key], texture.wrap)


def _cut(writer: _Writer, material: Material, texture: Texture) -> str:
    """Name of the mask of a cut-out: where bilinear alpha, on a finer grid, is at the cutoff or above."""
    key = f"{material.base_color_map}|{material.base_color[3]}|{material.alpha_cutoff}"
    if key not in writer.textures:
        writer.textures[key] = f"texture_{len(writer.textures)}.pfm"
        alpha = _linear(texture)[..., 3] * material.base_color[3]
        for axis in (0, 1):
            count = alpha.shape[axis]
            at = (np.arange(count * CUT_FINER) + 0.5) / CUT_FINER - 0.5
            low = np.floor(at).astype(int)
            rest = (at - low).reshape(-1, *[1] * (1 - axis))
            ends = [k % count if texture.wrap == "repeat" else np.clip(k, 0, count - 1) for k in (low, low + 1)]
            alpha = np.take(alpha, ends[0], axis) * (1.0 - rest) + np.take(alpha, ends[1], axis) * rest
        solid = (alpha >= material.alpha_cutoff).astype(np.float32)
        write_bytes(writer.folder / writer.textures[key], _pfm(np.repeat(solid[..., None], 3, -1)))
    return writer.textures[key]


def _linear(texture: Texture) -> Array:
    """(h, w, 4) linear."""
    return np.asarray(linear_pixels(texture), np.float64)


# ---- Numbers and files ------------------------------------------------------------------------------------------------------


def _rgb(element: XmlElement, name: str, value: ArrayFloat) -> None:
    element.add("rgb", name=name, value=numbers(np.asarray(value, float)))


def _bitmap(element: XmlElement, name: str, file: str, wrap: str, filter_type: str = "bilinear") -> None:
    texture = element.add("texture", type="bitmap", name=name)
    texture.add("string", name="filename", value=file)
    texture.add("boolean", name="raw", value="true")
    texture.add("string", name="filter_type", value=filter_type)
    texture.add("string", name="wrap_mode", value=wrap)


def _matrix(attitude: ArrayFloat) -> Array:
    """(3, 3) of a quaternion."""
    return np.stack([frames.rotate(np.asarray(attitude, float), axis) for axis in np.eye(3)], -1)


def _along(position: ArrayFloat, direction: ArrayFloat) -> Array:
    """(4, 4) of a frame at a position whose z is along a direction."""
    z = np.asarray(direction, float) / np.linalg.norm(direction)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.vstack([np.stack([x, np.cross(z, x), z, np.asarray(position, float)], -1), [0.0, 0.0, 0.0, 1.0]])


def _pfm(image: ArrayF32) -> bytes:
    """Return a portable float map (h, w, 3); the format's rows go upwards."""
    height, width = image.shape[:2]
    rows = np.ascontiguousarray(image[::-1, :, :3], "<f4")
    return f"PF\n{width} {height}\n-1.0\n".encode() + rows.tobytes()


def _ply(corners: Array, normals: Array | None, uv: Array | None) -> bytes:
    """Return triangles as binary PLY, no vertex shared."""
    columns, names = [corners.reshape(-1, 3)], ["x", "y", "z"]
    if normals is not None:
        columns.append(normals.reshape(-1, 3))
        names += ["nx", "ny", "nz"]
    if uv is not None:
        columns.append(uv.reshape(-1, 2))
        names += ["u", "v"]
    vertices = np.concatenate(columns, -1).astype("<f4")
    faces = np.zeros(len(corners), [("count", "u1"), ("corner", "<i4", 3)])
    faces["count"], faces["corner"] = 3, np.arange(3 * len(corners)).reshape(-1, 3)
    head = ["ply", "format binary_little_endian 1.0", f"element vertex {len(vertices)}"]
    head += [f"property float {name}" for name in names]
    head += [f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header\n"]
    return "\n".join(head).encode() + vertices.tobytes() + faces.tobytes()
