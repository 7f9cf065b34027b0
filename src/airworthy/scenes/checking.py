"""What a scene must satisfy before anything flies in it, and what is worth knowing about it."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.catalogue import scene_generators
from airworthy.scenes.extent import LOOK_GAP_MAX, instance_box, look_gap, triangle_count
from airworthy.scenes.instance_tables import MAPS
from airworthy.scenes.record import Instance, Pose, Scene, SpotLight, Sun

__all__ = ["CLEARANCE", "TRIANGLES_MAX", "Finding", "check_scene", "description", "findings", "point_clearance"]

# ---- One line on every generator, for lists: a scene itself is only made when it is asked for -------------------------------

_LINES: dict[str, str] = {
    "forest": "49 trees; 1 to 10, harder to get through",
    "woodland": "grown trees on hills, undergrowth, dead wood; any number, seen and hit as it looks",
    "lakeside": "a lake among wooded hills, waves, sedges; any number, seen and hit as it looks",
    "warehouse": "a hall with racks, goods, machines, docks; any number, seen and hit as it looks",
    "street": "two rows of houses, a road, lamps, cars, trees; any number, seen and hit as it looks",
    "urban": "buildings and street furniture; 1 to 10",
    "random_cylinder": "cylinders leaning every way; 1 to 10",
    "narrow_gap": "walls with one slit each; 1 to 10",
    "sudden_drop": "hanging slabs to dive under; 1 to 10",
    "sudden_drop_plus": "the same, with low walls between; 1 to 10",
    "maze": "a maze with loops; 1 to 10",
    "perlin": "thresholded noise in three dimensions; 1 to 10",
    "mid_gate": "furnished flight hall: gate, ladder, monitor (course robustness)",
    "flightroom": "furnished flight hall: pillars, gate, ladder (course extended)",
    "backroom": "cluttered workshop around a row of benches (course cluttered)",
    "hall": "the hall of mid_gate as Gaussian splats, converted from its rendering (robustness)",
    "hall_statues": "hall, with captured statues and a sign as a gate (needs AIRWORTHY_DATA)",
    "alphapilot": "race hall with the eleven gates of the AlphaPilot qualifier",
    "empty_room": "a floor, nothing else",
    "obstacle_room": "panels, walls and objects between start and goal",
    "thin_room": "thin rods and wires",
    "gym_forest": "a tree and objects on a plain",
    "lidar_room": "a walled room full of panels and objects",
    "dynamic_room": "objects that move",
    "empty_env": "as empty_room, by its published name",
    "env_with_obstacles": "as obstacle_room, by its published name",
    "forest_env": "as gym_forest, by its published name",
    "env_with_lidar_nav_obstacles": "as lidar_room, by its published name",
    "dynamic_environment": "as dynamic_room, by its published name",
}


def description(name: str) -> str:
    """Return one line on a generator; of one that was registered, the first line of its docstring.

    Raises:
        KeyError: There is no such generator.
    """
    make: Any = scene_generators()[name]
    if name in _LINES:
        return _LINES[name]
    while hasattr(make, "func"):  # a partial's own docstring is that of partial
        make = make.func
    return (inspect.getdoc(make) or "no description").split("\n")[0].rstrip(".")


# -----------------------------------------------------------------------------------------------------------------------------

CLEARANCE = 0.3
"""Around start and goal [m]."""
TRIANGLES_MAX = 5_000_000
"""Unique triangles beyond which a scene is noted as heavy."""


class Finding(str):
    """One sentence about a scene; `fatal` where the scene cannot be used as it is."""

    fatal: bool = True

    @classmethod
    def note(cls, text: str) -> Finding:
        """Return a remark that stops nothing."""
        made = cls(text)
        made.fatal = False
        return made


def check_scene(scene: Scene) -> list[str]:
    """Return problems of a scene, one sentence each, and notes, which begin with "note: "; empty where there is nothing to
    say."""
    # Plain text, as files and command lines pass it on.
    return [str(item) if item.fatal else f"note: {item}" for item in findings(scene)]


def findings(scene: Scene) -> list[Finding]:
    """Return problems and notes; what only makes sense for a sound scene (clearances) is asked only of one."""
    found = [Finding(text) for text in _problems(scene)]
    # Clearances of a broken scene would raise, or mislead.
    if found:
        return found
    found += [Finding(text) for text in _blocked(scene)]
    return found + [Finding.note(text) for text in _notes(scene)]


def _problems(scene: Scene) -> Iterator[str]:
    for where, value in _numbers(scene):
        if not math.isfinite(value):
            yield f"{where} is {value}, but must be a finite number"
            return  # what follows compares numbers
    yield from _references(scene)
    for where, item in _instances(scene):
        yield from _pose_problems(where, item.attitude)
        if not item.scale > 0.0:
            yield f"{where}.scale is {item.scale}, but must be above 0"
    for index, splat in enumerate(scene.splats):
        yield from _pose_problems(f"splats[{index}]", splat.attitude)
        if not splat.scale > 0.0:
            yield f"splats[{index}].scale is {splat.scale}, but must be above 0"
    yield from _shape_problems(scene.shapes)
    yield from _light_problems(scene)
    yield from _bounds_problems(scene)
    yield from _gate_problems(scene)
    yield from _actor_problems(scene)
    yield from _number_problems(scene)


def _instances(scene: Scene) -> Iterator[tuple[str, Instance]]:
    for index, item in enumerate(scene.instances):
        yield f"instances[{index}]" + (f" ({item.name})" if item.name else ""), item
    for index, item in enumerate(scene.looks):
        yield f"looks[{index}]" + (f" ({item.name})" if item.name else ""), item
    for actor in scene.actors:
        for index, part in enumerate(actor.parts):
            yield f"actor {actor.name!r} part {index}", part


def _numbers(scene: Scene) -> Iterator[tuple[str, float]]:
    """Yield every number of the records, with its place."""
    for item in fields(scene):
        if item.name not in ("shapes", "textures", "skeletons", "clouds"):
            yield from _walk(getattr(scene, item.name), item.name)
    for name, shape in scene.shapes.items():
        if not isinstance(shape, Mesh):
            yield from _walk(shape, f"shapes.{name}")


def _walk(value: Any, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, str | bool) or value is None:
        return
    if isinstance(value, int | float | np.number):
        yield where, float(value)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _walk(getattr(value, item.name), f"{where}.{item.name}")
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from _walk(part, f"{where}[{index}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _walk(part, f"{where}.{key}")


def _references(scene: Scene) -> Iterator[str]:
    landmarks = {beacon.landmark for beacon in scene.beacons}
    for where, item in _instances(scene):
        if item.carries and item.carries not in landmarks:
            yield f"{where} carries the beacons of {item.carries!r}, of which the scene has none"
        if item.shape not in scene.shapes:
            yield f"{where} names the shape {item.shape!r}, which the scene does not hold"
        for name in item.materials:
            if name not in scene.materials:
                yield f"{where} names the material {name!r}, which the scene does not hold"
    for name, material in scene.materials.items():
        for kind in MAPS:
            texture = getattr(material, kind)
            if texture and texture not in scene.textures:
                yield f"materials.{name}.{kind} names the texture {texture!r}, which the scene does not hold"
    for index, splat in enumerate(scene.splats):
        if splat.cloud not in scene.clouds:
            yield f"splats[{index}] names the cloud {splat.cloud!r}, which the scene does not hold"
    actors = {actor.name for actor in scene.actors}
    for kind, items in (("lights", scene.lights), ("beacons", scene.beacons), ("splats", scene.splats), ("looks", scene.looks)):
        for index, thing in enumerate(items):
            attached = getattr(thing, "attached", "")
            if attached and attached not in actors:
                yield f"{kind}[{index}] is attached to the actor {attached!r}, which the scene does not hold"
    for where, item in _instances(scene):
        if item.attached and not where.startswith("looks"):
            yield f"{where} is attached to the actor {item.attached!r}, but only looks, lights, beacons and splats can be"


def _pose_problems(where: str, attitude: tuple[float, ...]) -> Iterator[str]:
    length = math.sqrt(sum(q * q for q in attitude))
    if abs(length - 1.0) > 1e-4:
        yield f"{where}.attitude has length {length:.6g}, but a rotation has length 1"


def _shape_problems(shapes: dict[str, Shape]) -> Iterator[str]:
    for name, shape in shapes.items():
        if isinstance(shape, Mesh):
            for channel in ("normals", "uv", "colors"):
                values = getattr(shape, channel)
                if values is not None and not np.isfinite(values).all():
                    yield f"shapes.{name}.{channel} holds a number that is not finite"
            continue
        # The first is a radius or a half side; a capsule's half length may be 0, which makes it a sphere.
        sizes = [value for _, value in _walk(shape, "")]
        if min(sizes) < 0.0 or sizes[0] <= 0.0:
            yield f"shapes.{name} has the size {min(sizes):g} m, but sizes are positive"


def _light_problems(scene: Scene) -> Iterator[str]:
    for index, light in enumerate(scene.lights):
        where = f"lights[{index}]"
        if isinstance(light, Sun | SpotLight):
            length = math.sqrt(sum(v * v for v in light.direction))
            # Wider than for attitudes: directions are typed by hand, and shading normalises them.
            if abs(length - 1.0) > 1e-2:
                yield f"{where}.direction has length {length:.4g}, but a direction has length 1"
        strength = light.irradiance if isinstance(light, Sun) else light.intensity
        if strength < 0.0 or min(light.color) < 0.0:
            yield f"{where} has a negative strength or colour"
        if isinstance(light, SpotLight) and not 0.0 <= light.inner_angle <= light.outer_angle <= math.pi:
            yield f"{where} has the angles {light.inner_angle:g} and {light.outer_angle:g} rad, but inner <= outer <= pi"


def _bounds_problems(scene: Scene) -> Iterator[str]:
    lower, upper = scene.bounds.lower, scene.bounds.upper
    if not all(low < high for low, high in zip(lower, upper, strict=True)):
        yield f"bounds reach from {list(lower)} to {list(upper)}, but the lower corner must be below the upper one"
        return
    for kind in ("start", "goal"):
        pose: Pose | None = getattr(scene, kind)
        if pose is not None and not _inside(scene, pose.position):
            yield f"{kind} is at {list(pose.position)}, outside the bounds {list(lower)} to {list(upper)}"
    for index, region in enumerate(scene.spawn):
        if not (
            all(a <= b for a, b in zip(region.lower, region.upper, strict=True))
            and _inside(scene, region.lower)
            and _inside(scene, region.upper)
        ):
            yield f"spawn[{index}] is not a box inside the bounds"


def _gate_problems(scene: Scene) -> Iterator[str]:
    for index, gate in enumerate(scene.gates):
        if gate.direction is None:
            continue
        length = math.sqrt(sum(v * v for v in gate.direction))
        if abs(length - 1.0) > 1e-3:
            yield f"gates[{index}].direction has length {length:.4g}, but a direction has length 1"
            continue
        normal = replace(gate, direction=None).axes[0]
        aslant = math.degrees(math.acos(min(abs(sum(a * b for a, b in zip(normal, gate.direction, strict=True))), 1.0)))
        # Corners are listed to millimetres: a normal of their plane is known to a fraction of a degree.
        if aslant > 2.0:
            yield f"gates[{index}].direction is {aslant:.1f} degrees off the normal of its opening, but must be that normal"


def _inside(scene: Scene, point: tuple[float, ...]) -> bool:
    return all(low <= v <= high for low, v, high in zip(scene.bounds.lower, point, scene.bounds.upper, strict=True))


def _actor_problems(scene: Scene) -> Iterator[str]:
    from airworthy.scenes.actors import PathTable, actor_table
    from airworthy.scenes.instance_tables import InstanceTable, actor_instances
    from airworthy.scenes.skeletons import part_joints

    # A missing shape is said already, and would be said again here in other words.
    if not scene.actors or any(True for _ in _references(scene)):
        return
    try:
        actor_table(scene, PathTable())
        rows: InstanceTable = actor_instances(scene, 0, *_tables())
        part_joints(scene, rows)
    except AirworthyError as error:
        yield str(error).rstrip(".")


def _tables() -> tuple[Any, Any]:
    from airworthy.scenes.instance_tables import MaterialTable, ShapeTable

    return ShapeTable(), MaterialTable()


def _parts(instances: Iterable[Instance]) -> Counter[int]:
    """Count further parts of things by number: unlike instances in one place, as trunk and crowns of a tree."""
    groups: dict[int, list[Instance]] = {}
    for item in instances:
        groups.setdefault(item.instance_id, []).append(item)
    places = {
        number: {(item.position, item.attitude, item.scale, item.semantic) for item in group}
        for number, group in groups.items()
    }
    unlike = {number: len({(item.shape, item.shadow, item.footprint) for item in group}) for number, group in groups.items()}
    return Counter({n: len(group) - 1 for n, group in groups.items() if len(places[n]) == 1 and unlike[n] == len(group)})


def _number_problems(scene: Scene) -> Iterator[str]:
    given = Counter(item.instance_id for item in scene.instances if item.instance_id)
    given.subtract(_parts(item for item in scene.instances if given[item.instance_id] > 1))
    for actor in scene.actors:
        given.update({part.instance_id for part in actor.parts if part.instance_id})
    for number, count in given.items():
        if count > 1:
            yield f"{count} instances have the number {number}, but each needs its own"
        if number < 0:
            yield f"an instance has the number {number}, but numbers are positive"
    numbers = Counter(scene.semantics.values())
    for number, count in numbers.items():
        if count > 1:
            yield f"semantics gives the number {number} to {count} classes, but each needs its own"
        if number < 0:
            yield f"semantics gives a class the number {number}, but numbers are not negative"


def _blocked(scene: Scene) -> Iterator[str]:
    """Start and goal that are too near to something."""
    asked = [(kind, getattr(scene, kind)) for kind in ("start", "goal") if getattr(scene, kind) is not None]
    if not asked or not scene.instances:
        return
    distances = point_clearance(scene, np.array([pose.position for _, pose in asked], float))
    for (kind, pose), distance in zip(asked, distances, strict=True):
        if distance < CLEARANCE:
            yield f"{kind} at {list(pose.position)} has {distance:.3g} m of clearance, but needs {CLEARANCE:g} m"


def point_clearance(scene: Scene, points: np.ndarray) -> np.ndarray:
    """Return the distance from points (n, 3) to the nearest thing that can be hit [m], (n,), actors at their beginning
    included."""
    from airworthy.geometry.distance import clearance
    from airworthy.scenes.batch import SceneBatch

    batch = SceneBatch(scene)
    return clearance(batch.geometry, points).distance


def _water_notes(scene: Scene) -> Iterator[str]:
    """Numbers of volumes that change nothing, since the material bounds none."""
    for name, material in scene.materials.items():
        if any(material.attenuation) and material.transmission == 0.0:
            yield f"material {name!r} has an attenuation that nothing shows: nothing passes it (transmission is 0)"
        elif (any(material.scattered) or material.wave_slope > 0.0) and not any(material.attenuation):
            yield f"material {name!r} has scattered light or waves that nothing shows: it bounds no volume (attenuation is 0)"


def _notes(scene: Scene) -> Iterator[str]:
    # Unique ones take the memory; instances of a mesh share it.
    unique, _ = triangle_count(scene)
    if unique > TRIANGLES_MAX:
        yield f"it holds {unique:,} triangles, more than {TRIANGLES_MAX:,}: expect slow loading and large memory"
    if not scene.instances and not scene.actors and not scene.splats:
        yield "it is empty"
    yield from _splat_notes(scene)
    used = {item.shape for _, item in _instances(scene)}
    spare = [name for name in scene.shapes if name not in used]
    if spare:
        yield f"{len(spare)} shapes are not used ({', '.join(spare[:3])}{', ...' if len(spare) > 3 else ''})"
    if not scene.lights:
        yield "it has no light but the sky"
    yield from _sky_notes(scene)
    yield from _look_notes(scene)
    yield from _water_notes(scene)
    if scene.start is None:
        yield "no start is given"
    if not scene.source:
        yield "no source is given"
    outside = [item.name or item.shape for item in scene.instances if _outside(scene, item)]
    if outside:
        yield f"{len(outside)} instances lie outside the bounds ({', '.join(outside[:3])}{', ...' if len(outside) > 3 else ''})"


def _look_notes(scene: Scene) -> Iterator[str]:
    """How far what is seen lies from what is hit, where the two are apart."""
    if not scene.looks:
        return
    gap = look_gap(scene)
    for what, other, distances in (
        ("Surfaces that are hit and not shown", "what is shown", gap.hidden),
        ("The looks", "what is hit", gap.shown),
    ):
        if len(distances):
            yield (
                f"{what} lie within {np.quantile(distances, 0.95):.2g} m of {other} at 95 % of points within the bounds"
                f" ({distances.max():.2g} m at most, {(distances > LOOK_GAP_MAX).mean():.1%} beyond {LOOK_GAP_MAX:g} m)"
            )


def _sky_notes(scene: Scene) -> Iterator[str]:
    suns = [light for light in scene.lights if isinstance(light, Sun)]
    if scene.sky.model != "daylight" or not suns:
        return
    from airworthy.scenes.sky.stars import moonlight
    from airworthy.scenes.sky.tables import sky_sun, towards_sun

    if suns[0] == moonlight(scene.sky):
        return
    if sky_sun(scene.sky) is None:
        yield "its sky by daylight has no sun (it has set, or is behind cloud), but the scene's lights have one"
        return
    off = -sum(a * b for a, b in zip(towards_sun(scene.sky), suns[0].direction, strict=True))
    if off < 0.999:
        yield f"its sun stands {math.degrees(math.acos(max(off, -1.0))):.0f} degrees from where its sky by daylight has it"


def _splat_notes(scene: Scene) -> Iterator[str]:
    spare = sorted(scene.clouds.keys() - {splat.cloud for splat in scene.splats})
    if spare:
        yield f"{len(spare)} clouds are not used ({', '.join(spare[:3])}{', ...' if len(spare) > 3 else ''})"
    if scene.splats and not any(item.covered for _, item in _instances(scene)):
        yield (
            "nothing that can be hit lies under its splats"
            " (solid = true in [[splats]], or `scenes.splats.placing.with_surface`, puts it there)"
        )


def _outside(scene: Scene, item: Instance) -> bool:
    low, high = instance_box(scene.shapes[item.shape], item.position, item.attitude, item.scale)
    return bool((low > scene.bounds.upper).any() or (high < scene.bounds.lower).any())
