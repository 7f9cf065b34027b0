"""Reading worlds of other simulators: SDF (.sdf, .world) and URDF, as they stand at rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AssetError
from airworthy.core.files import shown
from airworthy.geometry import Box, Capsule, Cylinder, Shape, Sphere
from airworthy.scenes.formats._source import ModelSource, clean_name, unique_name
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model
from airworthy.scenes.record import Instance, Light, Material, Sun, Texture, prefixed_material

# -----------------------------------------------------------------------------------------------------------------------------
# XML of model files, read with every doorway shut: no document type, no entities, bounded depth, elements and memory.

DEPTH_MAX = 64
ELEMENTS_MAX = 50_000
_ELEMENT_BYTES = 600
"""Of Python objects for an element with some attributes."""


def parse_xml(source: ModelSource, tag: str) -> Element:
    """Return the outermost element of a model file; refuses what is not plain XML within the limits, or not of this kind."""
    builder, depth, count = TreeBuilder(), 0, 0
    source.take(3 * len(source.data), "its text")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > DEPTH_MAX or count > ELEMENTS_MAX:
            source.refuse(f"it is nested deeper than {DEPTH_MAX} levels, or has more than {ELEMENTS_MAX:,} elements")
        source.take(_ELEMENT_BYTES, "its elements")
        builder.start(name.rpartition(":")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name.rpartition(":")[2])

    def refuse(*_: object) -> NoReturn:
        source.refuse("it has a document type or entities, which are not read")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(source.data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: unknown or unsuited encodings
        source.refuse(f"it is not readable XML ({error})")
    root = builder.close()
    if root.tag != tag:
        source.refuse(f"its outermost element is {shown(root.tag)}; {tag} is expected")
    return root


def children(element: Element, tag: str) -> list[Element]:
    """Return elements of a kind directly below another."""
    return element.findall(tag)


def find(element: Element, path: str) -> Element | None:
    """Return the first element at a path below another."""
    return element.find(path)


def floats(source: ModelSource, text: str | None, count: int = 0) -> Array:
    """Return finite numbers of a text, as many as asked for; 0: any number.

    Args:
        source: Refuses.
        text: Of an attribute or element; None: missing.
        count: How many there must be; 0: any number.
    """
    tokens = (text or "").split()
    try:
        values = np.array(tokens, np.float64) if tokens else np.zeros(0)
    except ValueError:
        source.refuse(f"it holds {shown((text or '').strip())} where numbers are expected")
    if not np.isfinite(values).all() or (count and len(values) != count):
        source.refuse(f"it holds {shown((text or '').strip())} where {count or 'finite'} numbers are expected")
    return values


def whole(source: ModelSource, text: str | None, low: int, high: int) -> ArrayInt:
    """Return the whole numbers of a text within low..high - 1.

    Args:
        source: Refuses.
        text: Of an attribute or element; None: missing.
        low: Least value.
        high: One more than the largest.
    """
    tokens = (text or "").split()
    try:
        values = np.array(tokens, np.int64) if tokens else np.zeros(0, np.int64)
    except (ValueError, OverflowError):
        source.refuse(f"it holds {shown((text or '').strip())} where whole numbers are expected")
    if len(values) and not (values.min() >= low and values.max() < high):
        source.refuse(f"it holds a number outside {low}..{high - 1}")
    return values


# -----------------------------------------------------------------------------------------------------------------------------

_PLANE = 0.05
"""Half thickness of a plane, which lies under its surface [m]."""
_FILES_MAX = 256
_MESHES = (".glb", ".gltf", ".obj", ".stl", ".dae", ".ply")


def read_sdf(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of an SDF world or model: links' visuals and collisions where their poses put them, and directional
    lights.

    A visual and a collision of one pose and geometry are one instance. Includes and foreign frames are named in the warnings.

    Raises:
        AssetError: The file is damaged, hostile, too large, or holds nothing.
    """
    source = ModelSource(path, limits)
    world = _World(source)
    root = parse_xml(source, "sdf")
    for parent in (root, *children(root, "world")):
        for model in children(parent, "model"):
            world.sdf_model(model, np.eye(4), 0)
        for light in children(parent, "light"):
            world.sdf_light(light)
        if find(parent, "include") is not None:
            source.warn("models that are included by name left out", len(children(parent, "include")))
    return world.model()


def read_urdf_scene(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of a URDF with every joint in its neutral position; raises AssetError as `read_sdf`."""
    source = ModelSource(path, limits)
    world = _World(source)
    world.urdf(parse_xml(source, "robot"))
    return world.model()


class _World:
    def __init__(self, source: ModelSource) -> None:
        self.source = source
        self.shapes: dict[str, Shape] = {}
        self.materials: dict[str, Material] = {}
        self.textures: dict[str, Texture] = {}
        self.instances: list[Instance] = []
        self.lights: list[Light] = []
        self.files: dict[str, Model | None] = {}
        self.solids: dict[Shape, str] = {}
        self.paints: dict[Material, str] = {}

    def model(self) -> Model:
        if not self.instances:
            self.source.refuse("it holds no geometry that is read")
        used = {name: self.materials[name] for item in self.instances for name in item.materials}
        return Model(self.shapes, used, self.textures, tuple(self.instances), tuple(self.lights), warnings=self.source.warnings)

    # ---- SDF

    def sdf_model(self, model: Element, above: Array, depth: int) -> None:
        if depth > 16:
            self.source.refuse("its models are nested deeper than 16 levels")
        parent = above @ self._pose(model)
        name = clean_name(model.get("name") or "", "model")
        for link in children(model, "link"):
            at = parent @ self._pose(link)
            self._parts(name, list(self._sdf_parts(link, at)))
        for inner in children(model, "model"):
            self.sdf_model(inner, parent, depth + 1)
        if find(model, "include") is not None:
            self.source.warn("models that are included by name left out", len(children(model, "include")))

    def _pose(self, element: Element) -> Array:
        pose = find(element, "pose")
        if pose is None:
            return np.eye(4)
        if pose.get("relative_to"):
            self.source.warn("poses relative to a named frame are taken relative to what they stand in")
        values = floats(self.source, pose.text or "0 0 0 0 0 0", 6)
        if pose.get("degrees") == "true":
            values[3:] = np.radians(values[3:])
        return _matrix(values[:3], values[3:])

    def _sdf_parts(self, link: Element, at: Array) -> Iterator[tuple[str, Element, Array, str]]:
        for kind in ("visual", "collision"):
            for part in children(link, kind):
                geometry = find(part, "geometry")
                if geometry is not None and len(geometry):
                    yield kind, geometry[0], at @ self._pose(part), self._sdf_material(part) if kind == "visual" else ""

    def _sdf_material(self, part: Element) -> str:
        diffuse, emissive = find(part, "material/diffuse"), find(part, "material/emissive")
        if diffuse is None:
            return ""
        color = floats(self.source, diffuse.text)[:3].clip(0.0, 1.0)
        glow = np.zeros(3) if emissive is None else floats(self.source, emissive.text)[:3].clip(0.0, 1.0)
        if len(color) != 3 or len(glow) != 3:
            return ""
        return self._painted(color, glow)

    def _painted(self, color: Array, glow: Array) -> str:
        red, green, blue = (float(v) for v in color)
        made = Material((red, green, blue, 1.0), emissive=(float(glow[0]), float(glow[1]), float(glow[2])))
        # Worlds repeat their colours at every part.
        if made not in self.paints:
            self.source.at_most(len(self.materials) + 1, self.source.limits.materials, "materials")
            self.paints[made] = unique_name(self.materials, f"paint_{len(self.paints)}")
            self.materials[self.paints[made]] = made
        return self.paints[made]

    def sdf_light(self, light: Element) -> None:
        if light.get("type") != "directional":
            self.source.warn("lights that are not directional left out")
            return
        element = find(light, "direction")
        direction = floats(self.source, "0 0 -1" if element is None else element.text, 3)
        length = float(np.linalg.norm(direction))
        if length > 0.0:
            x, y, z = (float(v) for v in direction / length)
            self.lights.append(Sun((x, y, z)))

    # ---- URDF

    def urdf(self, root: Element) -> None:
        links = {link.get("name") or "": link for link in children(root, "link")}
        above: dict[str, tuple[str, Array]] = {}
        for joint in children(root, "joint"):
            ends = [getattr(find(joint, end), "attrib", {}).get("link", "") for end in ("parent", "child")]
            if ends[0] not in links or ends[1] not in links or ends[1] in above:
                self.source.refuse(f"joint {shown(joint.get('name') or '')} does not join a link to a parent of its own")
            above[ends[1]] = (ends[0], self._origin(joint))
        colors = {item.get("name") or "": item for item in children(root, "material")}
        for name, link in links.items():
            matrix, here = np.eye(4), name
            # A chain is no longer than there are links; a longer one is a ring.
            for _ in range(len(links)):
                if here not in above:
                    break
                here, step = above[here]
                matrix = step @ matrix
            else:
                self.source.refuse("its joints form a ring")
            self._parts(clean_name(name, "link"), list(self._urdf_parts(link, matrix, colors)))

    def _origin(self, element: Element) -> Array:
        origin = find(element, "origin")
        if origin is None:
            return np.eye(4)
        return _matrix(floats(self.source, origin.get("xyz", "0 0 0"), 3), floats(self.source, origin.get("rpy", "0 0 0"), 3))

    def _urdf_parts(self, link: Element, at: Array, colors: dict[str, Element]) -> Iterator[tuple[str, Element, Array, str]]:
        for kind in ("visual", "collision"):
            for part in children(link, kind):
                geometry = find(part, "geometry")
                if geometry is None or not len(geometry):
                    continue
                paint = find(part, "material")
                if paint is not None and find(paint, "color") is None:
                    paint = colors.get(paint.get("name") or "")
                color = None if paint is None else find(paint, "color")
                name = ""
                if color is not None and kind == "visual":
                    name = self._painted(floats(self.source, color.get("rgba"), 4)[:3].clip(0.0, 1.0), np.zeros(3))
                yield kind, geometry[0], at @ self._origin(part), name

    # ---- parts

    def _parts(self, name: str, parts: list[tuple[str, Element, Array, str]]) -> None:
        """Instances of a link; what is seen and what is hit are one where they are the same."""
        made: dict[str, list[Instance]] = {"visual": [], "collision": []}
        for kind, geometry, matrix, material in parts:
            made[kind] += self._placed(geometry, matrix, material, name)
            self.source.at_most(len(self.instances) + sum(map(len, made.values())), self.source.limits.nodes, "instances")
        # Most links state one shape twice, to be shown and to be hit: one instance does both.
        left = {(item.shape, *_near(item)): item for item in made["collision"]}
        for item in made["visual"]:
            twin = left.pop((item.shape, *_near(item)), None)
            self.instances.append(replace(item, collide=twin is not None))
        self.instances += [replace(item, visible=False, materials=()) for item in left.values()]

    def _placed(self, geometry: Element, matrix: Array, material: str, name: str) -> list[Instance]:
        kind, scale, offset = geometry.tag, np.ones(3), np.zeros(3)
        if kind == "mesh":
            return self._mesh(geometry, matrix, material, name)
        numbers = {
            key: floats(self.source, text)
            for key in ("size", "radius", "length", "normal")
            if (text := geometry.get(key) or getattr(find(geometry, key), "text", None)) is not None
        }
        size, radius, length = numbers.get("size", np.zeros(0)), numbers.get("radius"), numbers.get("length")
        shape: Shape | None = None
        if kind == "box" and len(size) == 3 and (size > 0.0).all():
            shape = Box((0.5 * float(size[0]), 0.5 * float(size[1]), 0.5 * float(size[2])))
        # A thin box whose upper side is the plane: things stand on it, and light does not pass.
        elif kind == "plane":
            wide = 0.5 * (size if len(size) == 2 and (size > 0.0).all() else np.array([100.0, 100.0]))
            shape, offset = Box((float(wide[0]), float(wide[1]), _PLANE)), np.array([0.0, 0.0, -_PLANE])
            matrix = matrix @ _upright(numbers.get("normal", np.array([0.0, 0.0, 1.0])))
        elif radius is not None and len(radius) == 1 and radius[0] > 0.0:
            if kind == "sphere":
                shape = Sphere(float(radius[0]))
            elif kind in ("cylinder", "capsule") and length is not None and len(length) == 1 and length[0] > 0.0:
                shape = (Cylinder if kind == "cylinder" else Capsule)(float(radius[0]), 0.5 * float(length[0]))
        if shape is None:
            self.source.warn(f"geometry of the kind {shown(kind)} left out")
            return []
        if shape not in self.solids:
            self.solids[shape] = unique_name(self.shapes, f"{kind}_{len(self.solids)}")
            self.shapes[self.solids[shape]] = shape
        return [_instance(self.solids[shape], matrix, offset, float(scale[0]), (material,) if material else (), name)]

    def _mesh(self, geometry: Element, matrix: Array, material: str, name: str) -> list[Instance]:
        uri = (geometry.get("filename") or getattr(find(geometry, "uri"), "text", "") or "").strip()
        text = geometry.get("scale") or getattr(find(geometry, "scale"), "text", None) or "1 1 1"
        scale = floats(self.source, text, 3)
        if not (scale > 0.0).all() or np.ptp(scale) > 1e-6 * scale.max():
            self.source.warn("meshes that are stretched or mirrored are scaled evenly")
            scale = np.full(3, float(np.cbrt(np.abs(np.prod(scale)))) or 1.0)
        model = self._file(uri)
        if model is None:
            return []
        made = []
        for item in model.instances:
            inner = np.eye(4)
            inner[:3, :3], inner[:3, 3] = frames.to_matrix(np.array(item.attitude)), scale[0] * np.array(item.position)
            names = (material,) if material else tuple(f"{uri}/{key}" for key in item.materials)
            made.append(_instance(f"{uri}/{item.shape}", matrix @ inner, np.zeros(3), scale[0] * item.scale, names, name))
        return made

    def _file(self, uri: str) -> Model | None:
        """Return a mesh file beside the world, read once; None, with a warning, where it cannot be."""
        if uri not in self.files:
            self.source.at_most(len(self.files) + 1, _FILES_MAX, "files")
            # Before it is tried: a file that fails is not tried, and warned of, again.
            self.files[uri] = None
            try:
                path = self.source.inside(uri, escaped=True)
                if path.suffix.lower() not in _MESHES:
                    self.source.refuse(f"meshes end in {', '.join(_MESHES)}")
                from airworthy.scenes.formats.read import read_model

                model = read_model(path, self.source.limits)
            except AssetError as error:
                reason = str(error).partition("cannot be used: ")[2] or str(error)
                self.source.warn(f"mesh {shown(uri)} left out: {reason.rstrip('.')}")
                return None
            self.files[uri] = model
            self.shapes |= {f"{uri}/{key}": shape for key, shape in model.shapes.items()}
            self.textures |= {f"{uri}/{key}": texture for key, texture in model.textures.items()}
            self.materials |= {f"{uri}/{key}": prefixed_material(item, uri) for key, item in model.materials.items()}
        return self.files[uri]


def _matrix(position: Array, angles: Array) -> Array:
    """(4, 4) of a position and roll, pitch, yaw about fixed axes."""
    matrix = np.eye(4)
    matrix[:3, :3] = frames.to_matrix(frames.from_euler(*(float(angle) for angle in angles)))
    matrix[:3, 3] = position
    return matrix


def _upright(normal: Array) -> Array:
    """(4, 4) that turns z to a normal."""
    matrix = np.eye(4)
    length = float(np.linalg.norm(normal))
    if len(normal) == 3 and length > 0.0:
        z = normal / length
        x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
        x /= np.linalg.norm(x)
        matrix[:3, :3] = np.stack([x, np.cross(z, x), z], 1)
    return matrix


def _instance(shape: str, matrix: Array, offset: Array, scale: float, materials: tuple[str, ...], name: str) -> Instance:
    # Adding 0 makes a negative zero positive, which text would show.
    x, y, z = (float(v) + 0.0 for v in matrix[:3, :3] @ offset + matrix[:3, 3])
    qx, qy, qz, qw = (float(v) for v in frames.from_matrix(matrix[:3, :3]))
    return Instance(shape, (x, y, z), (qx, qy, qz, qw), scale, materials, name=name)


def _near(item: Instance) -> tuple[float, ...]:
    # A micrometre: the two poses are often typed with different digits.
    return tuple(round(v, 6) for v in (*item.position, *item.attitude, item.scale))
