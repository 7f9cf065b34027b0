"""What everything in a batch of scenes looks like, as flat arrays: materials, textures, vertices, lights, sky, baked light.

`airworthy.rendering.shading` reads them; the names and orders of columns below are the interface. All arrays are 32-bit
numbers. Textures are decoded to linear light once, when they are packed, with all their mip levels.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayFloat, ArrayLike, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lights import BakedArrays, BakedLight, baked_arrays, light_rows, sky_rows
from airworthy.scenes.record import Material, Texture
from airworthy.scenes.texels import height_to_normal, linear_pixels, mip_chain, mip_sides, octahedral, pack

__all__ = ["FACE_SIZE", "MATERIAL_MAPS", "OPEN_CHANNEL", "TEXTURE_SCALES", "VERTEX_SIZE", "Appearance", "appearance_of"]

# -----------------------------------------------------------------------------------------------------------------------------
# What shading needs of a mesh beside its geometry, packed: vertex normals, tangents, coordinates, colours, occlusion; per
# face its material and how dense its texture coordinates are.

VERTEX_SIZE = 5
"""Normal (octahedral), u, v, colour (square roots), tangent angle (15 bits), its hand (1 bit) and occlusion (16 bits)."""
FACE_SIZE = 2
"""Material of the instance, and texture repeats per metre (float bits)."""
HAS_NORMALS, HAS_UV = 1, 2
OPEN_CHANNEL = "open_share"
"""Vertex channel of meshes that know how much of the light from all sides reaches them, (V,) in [0, 1]: shade between houses
without baking, which finds it by its probes instead. Still images, which find out by themselves, take no notice."""


def mesh_flags(mesh: Mesh) -> int:
    """Return HAS_NORMALS, HAS_UV."""
    return HAS_NORMALS * (mesh.normals is not None) + HAS_UV * (mesh.uv is not None)


def packed_vertices(mesh: Mesh, occlusion: ArrayF32 | None = None) -> ArrayU32:
    """Return (V, VERTEX_SIZE) of a mesh; occlusion (V,): share of the hemisphere that the mesh leaves open, 1 everywhere if
    None."""
    count = len(mesh.vertices)
    packed = np.zeros((count, VERTEX_SIZE), np.uint32)
    # Anything of unit length: a mesh without normals is shaded flat, and these are not read.
    up = np.array([[0.0, 0.0, 1.0]], np.float32)
    normals = mesh.normals if mesh.normals is not None else np.repeat(up, count, axis=0)
    packed[:, 0] = octahedral(normals)
    if mesh.uv is not None:
        packed[:, 1:3] = np.ascontiguousarray(mesh.uv, np.float32).view(np.uint32)
    colors = np.ones((count, 4), np.float32) if mesh.colors is None else mesh.colors
    packed[:, 3] = pack(colors, True)
    packed[:, 4] = occlusion_bits(count, occlusion) | _tangent_bits(mesh, normals)
    return packed


def occlusion_bits(count: int, occlusion: ArrayF32 | None) -> ArrayU32:
    """Return the upper 16 bits of a vertex's last number."""
    open_share = np.ones(count) if occlusion is None else np.clip(np.asarray(occlusion, float), 0.0, 1.0)
    return np.asarray(np.rint(open_share * 65535.0).astype(np.uint32) << 16, np.uint32)


def basis(normals: ArrayFloat) -> tuple[Array, Array]:
    """Return two unit vectors perpendicular to each normal and to each other (Duff et al., Building an orthonormal basis,
    2017).
    """
    n = np.asarray(normals, np.float64)
    x, y, z = n[..., 0], n[..., 1], n[..., 2]
    # Without it the divisor vanishes for normals that point straight down.
    sign = np.where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return np.stack([1.0 + sign * x * x * a, sign * b, -sign * x], -1), np.stack([b, sign + y * y * a, -y], -1)


def _tangent_bits(mesh: Mesh, normals: ArrayFloat) -> ArrayU32:
    """Direction of growing u in the plane of the vertex normal, as an angle in `basis`, and on which side v grows."""
    count = len(mesh.vertices)
    if mesh.uv is None or not len(mesh.faces):
        return np.zeros(count, np.uint32)
    along_u, along_v, weight = _gradients(mesh)
    corner = mesh.faces.reshape(-1)

    def summed(value: Array) -> Array:
        # Weighted by area: slivers that a simplifier left must not turn the tangents of large faces.
        spread = np.repeat(value * weight[:, None], 3, axis=0)
        return np.stack([np.bincount(corner, spread[:, k], count) for k in range(3)], -1)

    u, v = summed(along_u), summed(along_v)
    first, second = basis(normals)
    angle = np.arctan2(np.sum(u * second, -1), np.sum(u * first, -1)) % (2.0 * np.pi)
    bits = np.minimum(np.rint(angle / (2.0 * np.pi) * 32768.0), 32767).astype(np.uint32)
    # Mirrored texture coordinates, as modellers use for symmetric halves: v grows to the other side.
    flipped = np.sum(np.cross(normals, u) * v, -1) < 0.0
    return np.asarray(bits | flipped.astype(np.uint32) << 15, np.uint32)


def _gradients(mesh: Mesh) -> tuple[Array, Array, Array]:
    """Per face: unit directions in which u and v grow, and the face's area."""
    p = mesh.vertices.astype(np.float64)[mesh.faces]
    assert mesh.uv is not None
    t = mesh.uv.astype(np.float64)[mesh.faces]
    e1, e2 = p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]
    (a, b), (c, d) = (t[:, 1] - t[:, 0]).T, (t[:, 2] - t[:, 0]).T
    det = a * d - b * c
    # Directions only: dividing by the determinant would blow up on faces whose coordinates nearly coincide.
    sign = np.where(det < 0.0, -1.0, 1.0)[:, None]
    along_u, along_v = sign * (d[:, None] * e1 - b[:, None] * e2), sign * (a[:, None] * e2 - c[:, None] * e1)
    area = 0.5 * np.linalg.norm(np.cross(e1, e2), axis=-1) * (np.abs(det) > 1e-20)

    def unit(x: Array) -> Array:
        return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-30))

    return unit(along_u), unit(along_v), area


def packed_faces(mesh: Mesh) -> ArrayU32:
    """Return (F, FACE_SIZE) of a mesh."""
    packed = np.zeros((len(mesh.faces), FACE_SIZE), np.uint32)
    if mesh.face_material is not None:
        packed[:, 0] = mesh.face_material.astype(np.uint32)
    packed[:, 1] = uv_density(mesh).astype(np.float32).view(np.uint32)
    return packed


def uv_density(mesh: Mesh) -> Array:
    """Return texture repeats per metre of every face: root of the ratio of its areas in the texture and in space."""
    if mesh.uv is None:
        return np.zeros(len(mesh.faces))
    p = mesh.vertices.astype(np.float64)[mesh.faces]
    t = mesh.uv.astype(np.float64)[mesh.faces]
    area = np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), axis=-1)
    (a, b), (c, d) = (t[:, 1] - t[:, 0]).T, (t[:, 2] - t[:, 0]).T
    return np.asarray(np.sqrt(np.abs(a * d - b * c) / np.maximum(area, 1e-20)))


# -----------------------------------------------------------------------------------------------------------------------------

MATERIAL_COLUMNS = 28
"""Base colour RGBA, metallic, roughness, emission RGB, normal scale, uv scale (2), 1 / texture size, detail repeat, cutoff,
transmission, index of refraction, attenuation RGB [1/m], scattered RGB, slope of waves, translucency, tint of what passes
so RGB."""
MATERIAL_MAPS = ("base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map", "detail_map")
"""Texture numbers of a material, -1 where there is none; padded to 8 columns."""
TEXTURE_COLUMNS = 24
"""Width, height, levels, wrap (0 repeat, 1 clamp, 2 mirror), squared, 3 spare, then where each level begins (texels)."""
TEXTURE_SCALES = {1.0: 0, 0.5: 1, 0.25: 2, 0.125: 3}
"""Largest level of textures that is kept -> levels left out."""
WRAPS = {"repeat": 0, "clamp": 1, "mirror": 2}
UNWRAPPED_SIZE = 1.0
"""Repeats of textures on shapes without coordinates whose material names no `texture_size` [m]."""
TEXEL_BYTES_MAX = 4 << 30
_LEVELS_MAX = TEXTURE_COLUMNS - 8


class Appearance:
    """The looks of a `SceneBatch`.

    Args:
        batch: The scenes.
        texture_scale: 1, 1/2, 1/4 or 1/8.
        texel_bytes_max: Most memory that textures may take.

    Raises:
        AirworthyError: The scale is none of these, or the textures need more memory.
    """

    def __init__(self, batch: SceneBatch, texture_scale: float = 1.0, texel_bytes_max: int = TEXEL_BYTES_MAX) -> None:
        if texture_scale not in TEXTURE_SCALES:
            raise AirworthyError(f"Textures cannot be scaled by {texture_scale}; expected 1, 0.5, 0.25 or 0.125.")
        self.texture_scale = texture_scale
        shapes = list(batch.geometry.shapes)
        self._pool = _TexturePool(TEXTURE_SCALES[texture_scale], texel_bytes_max)
        rows = range(len(batch.material_rows))
        densities = _Densities(shapes, batch)
        materials = [self._material(*batch.material(row), densities.metres(row)) for row in rows]
        self.materials = np.array([floats for floats, _ in materials], np.float32)
        """(material, MATERIAL_COLUMNS)"""
        self.material_maps = np.array([maps for _, maps in materials], np.int32)
        """(material, 8)"""
        self.textures, self.texels = self._pool.arrays()
        del self._pool
        self.shape_rows, self.vertices, self.faces = _mesh_arrays(shapes)
        self.lights, self.light_spans = light_rows(batch.scenes)
        """(light, LIGHT_COLUMNS) of all scenes one after the other, and (scene, 2): first and count."""
        scenes = batch.scenes
        hazes, lights, rains, snows = ([getattr(one, name) for one in scenes] for name in ("haze", "lights", "rain", "snow"))
        self.skies = sky_rows([one.sky for one in scenes], hazes, lights, rains, snows)
        """(scene, SKY_COLUMNS), and behind them rows of tables of daylight and of haze, to which those point."""
        self.strayed = False
        """Whether `stray` has been asked for the scenes that need it (`rendering.stray_light`)."""
        self.has_clouds = bool((self.skies[: len(scenes), 11] > 0.0).any())
        """Some sky has clouds, which move, or ground that is wet or under snow."""
        self._shapes, self._scenes = shapes, list(batch.scenes)
        sizes = [max(len(batch.geometry.layout(k)), 1) for k in range(len(batch.scenes))]
        self._slots = [0, *np.cumsum(sizes).tolist()]
        self._light: dict[int, BakedLight] = {}
        self.baked: BakedArrays = self._packed()
        """Baked light of all scenes; off where there is none."""
        self.version = 0
        """Rises when arrays are replaced."""
        self.has_holes = bool((self.materials[:, 14] > 0.0).any())
        """Some material has an alpha cutoff."""
        self.has_glass = bool((self.materials[:, 15] > 0.0).any())
        """Some material lets light pass."""
        self.has_leaves = bool((self.materials[:, 24] > 0.0).any())
        """Some material scatters light to its other side."""
        self.has_water = bool(((self.materials[:, 15] > 0.0) & (self.materials[:, 17:20] > 0.0).any(-1)).any())
        """Some material bounds a volume that bends light."""

    def _material(self, material: Material, textures: dict[str, Texture], metres: float) -> tuple[list[float], list[int]]:
        size = material.texture_size
        floats = [*material.base_color, material.metallic, material.roughness, *material.emissive, material.normal_scale]
        floats += [*material.uv_scale, 1.0 / size if size > 0.0 else 0.0, material.detail_repeat, material.alpha_cutoff]
        floats += [material.transmission, material.ior, *material.attenuation, *material.scattered, material.wave_slope]
        floats += [material.translucency, *material.translucent_tint]
        maps = [self._pool.add(textures.get(getattr(material, name))) for name in MATERIAL_MAPS]
        # A normal map of the file's own knows more than one made from heights.
        if maps[2] < 0 and material.height_map and material.height_scale:
            repeat = size if size > 0.0 else metres
            span = (repeat / max(abs(material.uv_scale[0]), 1e-6), repeat / max(abs(material.uv_scale[1]), 1e-6))
            maps[2] = self._pool.add_height(textures[material.height_map], material.height_scale, span)
        return floats, [*maps, -1, -1]

    def use(self, scene: int, light: BakedLight | None) -> None:
        """Light a scene (its index in the batch) with what was baked for it; None: with the open sky."""
        if light is None:
            self._light.pop(scene, None)
        else:
            self._light[scene] = light
            self._occlude(scene, light)
        self.baked = self._packed()
        self.version += 1

    def stray(self, scene: int, irradiance: ArrayLike) -> None:
        """Light a scene under a sky by daylight from all sides alike, beside its sky (3,), where nothing is baked."""
        self.skies[scene, :3] = irradiance
        self.version += 1

    def _packed(self) -> BakedArrays:
        return baked_arrays(len(self._scenes), self._slots, self._slots[-1], self._light)

    def _occlude(self, scene: int, light: BakedLight) -> None:
        # Scenes of a batch share shapes; occlusion belongs to the shape, whichever scene names it.
        numbers = {id(shape): index for index, shape in enumerate(self._shapes)}
        for name, value in light.occlusion.items():
            shape = self._scenes[scene].shapes.get(name)
            index = numbers.get(id(shape))
            if index is None or not isinstance(shape, Mesh) or len(value) != len(shape.vertices):
                continue
            first = self.shape_rows[index, 0]
            packed = self.vertices[first : first + len(value)]
            # The lower half is the tangent's.
            packed[:, 4] = (packed[:, 4] & np.uint32(0xFFFF)) | occlusion_bits(len(value), value)

    def memory(self) -> dict[str, int]:
        """Return bytes by part."""
        return {
            "textures": self.texels.nbytes + self.textures.nbytes,
            "vertex attributes": self.vertices.nbytes,
            "face attributes": self.faces.nbytes,
            "materials": self.materials.nbytes + self.material_maps.nbytes,
            "lights and skies": self.lights.nbytes + self.skies.nbytes,
            "baked light": self.baked.nbytes,
        }


class _TexturePool:
    """Unique textures, packed one after the other."""

    def __init__(self, skip: int, bytes_max: int) -> None:
        self._skip, self._bytes_max = skip, bytes_max
        self._index: dict[Any, int] = {}
        self._kept: list[Any] = []  # whatever ids are keys must stay alive
        self._rows: list[list[int]] = []
        self._made: list[Callable[[], Texture]] = []
        self._size = 0

    def add(self, texture: Texture | None) -> int:
        """Return the number of a texture, which joins when it is new; -1 for none."""
        if texture is None:
            return -1
        return self._add((id(texture.pixels), texture.srgb, texture.wrap), texture, texture)

    def add_height(self, texture: Texture, scale: float, metres: tuple[float, float]) -> int:
        """Return the number of the normal map of a height map."""
        key = (id(texture.pixels), "height", scale, metres, texture.wrap)
        if key in self._index:
            return self._index[key]

        def normals() -> Texture:
            height = np.asarray(texture.pixels)[..., 0].astype(np.float32) / 255.0
            return Texture(height_to_normal(height, scale, metres), False, texture.wrap)

        return self._add(key, texture, texture, normals, False)

    def _add(
        self, key: Any, texture: Texture, kept: Any, made: Callable[[], Texture] | None = None, squared: bool | None = None
    ) -> int:
        found = self._index.get(key)
        if found is not None:
            return found
        height, width = texture.pixels.shape[:2]
        if (self._size + (height * width >> 2 * self._skip)) * 4 > self._bytes_max:
            raise AirworthyError(
                f"The textures need more than {self._bytes_max >> 20} MiB; choose a lower texture scale or quality profile."
            )
        sides = mip_sides(width, height, self._skip)[:_LEVELS_MAX]
        row = [*sides[0], len(sides), WRAPS[texture.wrap], int(texture.srgb if squared is None else squared), 0, 0, 0]
        for wide, high in sides:
            row.append(self._size)
            self._size += wide * high
        self._rows.append(row + [0] * (TEXTURE_COLUMNS - len(row)))
        self._kept.append(kept)
        self._made.append(made or (lambda: texture))
        self._index[key] = len(self._rows) - 1
        return len(self._rows) - 1

    def arrays(self) -> tuple[NDArray[np.int32], ArrayU32]:
        """Rows (texture, TEXTURE_COLUMNS) and texels."""
        rows = np.array(self._rows, np.int32).reshape(-1, TEXTURE_COLUMNS)
        if not len(rows):
            return np.zeros((1, TEXTURE_COLUMNS), np.int32), np.zeros(1, np.uint32)
        # One array from the start: parts that are joined are in memory twice, and what is given back of them stays in pieces.
        texels = np.empty(self._size, np.uint32)
        for row, made in zip(rows.tolist(), self._made, strict=True):
            levels = mip_chain(linear_pixels(made()), self._skip, bool(row[4]))
            for first, level in zip(row[8 : 8 + row[2]], levels, strict=False):
                texels[first : first + level.size] = level.reshape(-1)
        return rows, texels


class _Densities:
    """How many metres one repeat of a texture covers, for height maps of materials that are laid by coordinates."""

    def __init__(self, shapes: list[Shape], batch: SceneBatch) -> None:
        self._wanted = {row for row in range(len(batch.material_rows)) if batch.material(row)[0].height_map}
        self._metres: dict[int, float] = {}
        if not self._wanted:
            return
        for scene in batch.scenes:
            for item in (*scene.instances, *scene.looks, *(part for actor in scene.actors for part in actor.parts)):
                shape = scene.shapes[item.shape]
                if isinstance(shape, Mesh) and shape.uv is not None:
                    self._note(batch, scene.name, item.materials, shape, item.scale)

    def _note(self, batch: SceneBatch, _: str, names: Iterable[str], mesh: Mesh, scale: float) -> None:
        for row in self._wanted:
            if batch.material_rows[row][1] in names and row not in self._metres:
                density = float(np.median(uv_density(mesh))) if len(mesh.faces) else 0.0
                self._metres[row] = scale / density if density > 0.0 else UNWRAPPED_SIZE

    def metres(self, row: int) -> float:
        return self._metres.get(row, UNWRAPPED_SIZE)


def _mesh_arrays(shapes: list[Shape]) -> tuple[NDArray[np.int32], ArrayU32, ArrayU32]:
    """Rows (shape, 4): first vertex, first face, flags, spare; and the packed numbers of vertices and faces."""
    rows = np.zeros((max(len(shapes), 1), 4), np.int32)
    vertices, faces, vertex, face = [], [], 0, 0
    for index, shape in enumerate(shapes):
        if not isinstance(shape, Mesh):
            continue
        rows[index] = vertex, face, mesh_flags(shape), 0
        vertices.append(packed_vertices(shape, shape.channels.get(OPEN_CHANNEL)))
        faces.append(packed_faces(shape))
        vertex, face = vertex + len(vertices[-1]), face + len(faces[-1])
    blank = np.zeros((1, 1), np.uint32)
    return (
        rows,
        np.concatenate(vertices) if vertex else np.repeat(blank, VERTEX_SIZE, 1),
        np.concatenate(faces) if face else np.repeat(blank, FACE_SIZE, 1),
    )


_CACHE: weakref.WeakKeyDictionary[SceneBatch, dict[float, tuple[tuple[int, int], Appearance]]] = weakref.WeakKeyDictionary()


def appearance_of(batch: SceneBatch, texture_scale: float = 1.0) -> Appearance:
    """Return the batch's appearance, packed once per texture scale and again when scenes have joined."""
    if not batch.has_looks:
        batch = batch.origin  # what colours see of a batch looks as the batch does, but for looks
    state = (len(batch.scenes), id(batch.geometry))
    kept = _CACHE.setdefault(batch, {})
    found = kept.get(texture_scale)
    if found is None or found[0] != state:
        found = kept[texture_scale] = (state, Appearance(batch, texture_scale))
    return found[1]
