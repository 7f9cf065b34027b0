"""The path tracer of `native/path.cpp` once more, readable and in float64: all paths of an image side by side in NumPy.

Same random numbers, same decisions, so a path of the kernel is a path here up to rounding. Rays go through `geometry.cast`,
whose own twins judge it. Scenes are of boxes and spheres without textures: what surfaces look like is judged by the tests of
shading.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, threefry4x32
from airworthy.geometry import Box, RayTable, Sphere, cast
from airworthy.optics.lenses import ray_steps
from airworthy.optics.tone import luminance
from airworthy.rendering.emitters import Emitters, emitters_of
from airworthy.rendering.scattering import Lobes, turned
from airworthy.rendering.still import BENT_DENSITY, DRAWS_PER_DEPTH, GLASS_MAX, MIRROR_DENSITY, ROULETTE_DEPTH, StillOptions
from airworthy.rendering.water import bent as bent_by
from airworthy.rendering.water import interface_mirrors, kept, wave_slopes
from airworthy.scenes.appearance import basis
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lights import is_burning, sky_irradiance, sky_radiance
from airworthy.scenes.record import PointLight, SpotLight, Sun
from airworthy.scenes.sky.haze import haze_row, with_haze
from airworthy.scenes.sky.wetness import in_rain

__all__ = ["path_twin"]

_SUN_FAR = 1e4


@dataclass(frozen=True, eq=False)
class _Met:
    """What n rays have met."""

    instance: ArrayInt
    """(n,) -1: nothing."""
    face: ArrayInt
    """(n,)"""
    range: Array
    """(n,) [m]"""
    point: Array
    """(n, 3) world."""
    normal: Array
    """(n, 3) towards the ray's origin."""
    outside: ArrayBool
    """(n,) whether the outside of the shape is seen."""


@dataclass(frozen=True, eq=False)
class _World:
    """A scene, as arrays by instance."""

    batch: SceneBatch
    albedo: Array
    emission: Array
    metallic: Array
    roughness: Array
    emitters: Emitters
    options: StillOptions
    passing: Array
    """(instance,) of glass: share of what is not mirrored that passes; 0: none."""
    ior: Array
    volume: ArrayBool
    """(instance,) whether it bounds a volume."""
    attenuation: Array
    """(instance, 3) [1/m]"""
    scattered: Array
    """(instance, 3)"""
    slope: Array
    """(instance,) of its waves."""
    thin: Array
    """(instance,) translucency."""
    tint: Array
    """(instance, 3) of what passes."""
    haze: Array | None
    """`haze_row` of the scene; None: there is none."""

    def met(self, origin: Array, direction: Array) -> _Met:
        """Nearest hits of rays."""
        table = RayTable(direction[None], origin[None])
        names = ("instance", "face", "range", "normal_world")
        pose = np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]])
        found = cast(self.batch.geometry, table, *pose, np.zeros(1, np.int32), names, max_range=self.options.max_range)
        instance, face, far, normal = (found[name][0, 0] for name in names)
        hit = instance >= 0
        far = np.where(hit, far, 0.0).astype(np.float64)
        point, normal = origin + direction * far[:, None], np.where(hit[:, None], normal, 0.0).astype(float)
        # Boxes and balls: from everywhere on them, outwards is away from their middle.
        away = point - self.batch.geometry.layout(0).position[np.maximum(instance, 0)]
        return _Met(instance, face, far, point, normal, np.sum(normal * away, -1) > 0.0)

    def waved(self, met: _Met) -> Array:
        """Return normals, (n, 3), as the wind's waves turn them on level surfaces of water."""
        which = np.maximum(met.instance, 0)
        up = np.where(met.outside, met.normal[:, 2], -met.normal[:, 2])
        moved = self.volume[which] & (self.slope[which] > 0.0) & (up > 0.5)
        slopes, _ = wave_slopes(met.point, float(self.batch.time[0]), 1.0)
        leaning = np.concatenate([-slopes * self.slope[which][:, None], np.ones((len(which), 1))], -1)
        leaning = _unit_rows(leaning) * np.where(met.normal[:, 2:] < 0.0, -1.0, 1.0)
        return np.where(moved[:, None], leaning, met.normal)

    def open(self, start: Array, direction: Array, far: Array, may_bend: bool) -> tuple[Array, ArrayBool]:
        """Share of light that comes from `far` [m], (n, 3): 0 where anything but glass stands before it, and which light has
        gone through what bounds a volume; where it may not bend there, that stands before it, too."""
        left, begun, going = np.ones((len(start), 3)), np.zeros(len(start)), np.ones(len(start), bool)
        through = np.zeros(len(start), bool)
        for _ in range(GLASS_MAX):
            met = self.met(start + direction * begun[:, None], direction)
            blocked = going & (met.instance >= 0) & (begun + met.range < far)
            which = np.maximum(met.instance, 0)
            ior, volume = self.ior[which], blocked & self.volume[which]
            glass = blocked & (self.passing[which] > 0.0) & (may_bend | ~volume)
            c = np.abs(np.sum(met.normal * direction, -1))
            way = np.where(met.outside, 0.0, met.range * c / np.sqrt(1.0 - (1.0 - c * c) / ior**2))
            part = np.where(volume, 1.0 - interface_mirrors(c, ior), 1.0 - sheet_mirrors(c, ior))[:, None]
            part = part * np.where(volume[:, None], kept(self.attenuation[which], way), 1.0)
            left = np.where(glass[:, None], left * self.albedo[which] * self.passing[which][:, None] * part, left)
            left[blocked & ~glass] = 0.0
            through |= volume & glass
            begun, going = np.where(glass, begun + met.range * 1.000002 + 2e-4, begun), glass
            if not going.any():
                break
        left[going] = 0.0
        return left, through


def sheet_mirrors(cosine: Array, ior: Array) -> Array:
    """Return the share of light that a thin sheet mirrors, (n,).

    By Fresnel's equations for both polarisations, and what goes to and fro between its sides.

    Args:
        cosine: Between the ray and the normal, (n,), of either sign.
        ior: Index of refraction, (n,).
    """
    c = np.abs(cosine)
    t = np.sqrt(1.0 - (1.0 - c * c) / ior**2)
    s, p = (c - ior * t) / (c + ior * t), (ior * c - t) / (ior * c + t)
    r = 0.5 * (s * s + p * p)
    return np.asarray(2.0 * r / (1.0 + r))


def path_twin(batch: SceneBatch, table: RayTable, position: Array, attitude: Array, options: StillOptions) -> Array:
    """Return linear radiance (H, W, 3) of one camera in a batch's only environment.

    Args:
        batch: One scene of boxes and spheres without textures or actors.
        table: Rays in the camera's frame.
        position: (3,) world [m].
        attitude: (4,) camera to world.
        options: As of the kernel.

    Raises:
        AirworthyError: The scene holds what the twin does not know.
    """
    world = _world(batch, options)
    across, down = (part.reshape(-1, 3) for part in ray_steps(table))
    ahead = table.directions.reshape(-1, 3)
    pixel = np.arange(len(ahead))
    total = np.zeros((len(ahead), 3))
    for sample in range(options.samples):
        u = _draw(options.seed, pixel, np.full(len(pixel), sample), np.zeros(len(pixel), int), DRAWS_PER_DEPTH - 1)
        seen = ahead + across * (u[:, :1] - 0.5) + down * (u[:, 1:2] - 0.5)
        seen = frames.rotate(attitude, seen / np.linalg.norm(seen, axis=-1, keepdims=True))
        total += _followed(world, np.broadcast_to(position, seen.shape), seen, pixel, sample)
    return total.reshape(table.height, table.width, 3) / options.samples


def _world(batch: SceneBatch, options: StillOptions) -> _World:
    if batch.env_count != 1 or batch.geometry.dynamic_count:
        raise AirworthyError("The twin of still images takes a batch of one environment without actors.")
    layout = batch.geometry.layout(0)
    rows = [batch.material(int(row))[0] for row in layout.material]
    if any(name.endswith("_map") and value for row in rows for name, value in vars(row).items()):
        raise AirworthyError("The twin of still images takes materials without textures.")
    if not all(isinstance(batch.geometry.shapes[k], Box | Sphere) for k in layout.shape):
        raise AirworthyError("The twin of still images takes boxes and spheres.")
    scene = batch.scenes[0]
    haze = in_rain(scene.haze, scene.rain)
    roughness = np.clip([row.roughness for row in rows], 0.03, 1.0)
    return _World(
        batch,
        np.array([row.base_color[:3] for row in rows]),
        np.array([row.emissive for row in rows]),
        np.array([row.metallic for row in rows]),
        roughness,
        emitters_of(batch),
        options,
        np.array([row.transmission for row in rows]),
        np.array([row.ior for row in rows]),
        np.array([row.transmission > 0.0 and any(row.attenuation) for row in rows]),
        np.array([row.attenuation for row in rows]),
        np.array([row.scattered for row in rows]),
        np.array([row.wave_slope for row in rows]),
        np.array([row.translucency for row in rows]),
        np.array([row.translucent_tint for row in rows]),
        haze_row(haze, sky_irradiance(scene.sky, 1.0), scene.lights) if haze.density > 0.0 else None,
    )


def _draw(seed: int, pixel: ArrayInt, sample: ArrayInt, depth: ArrayInt, index: int) -> Array:
    """Four uniform numbers for each path, (n, 4)."""
    blank = np.zeros_like(pixel)
    words = seed & 0xFFFFFFFFFFFFFFFF
    key = np.stack([blank + (words & 0xFFFFFFFF), blank + (words >> 32), pixel, blank], -1).astype(np.uint32)
    counter = np.stack([sample, blank + int(Stream.PATHS), depth * DRAWS_PER_DEPTH + index, blank], -1).astype(np.uint32)
    return ((threefry4x32(key, counter) >> np.uint32(9)).astype(np.float64) + 0.5) * 2.0**-23


def _share(mine: Array, other: Array) -> Array:
    """Of what two ways of sampling find (power heuristic)."""
    return np.asarray(mine**2 / np.maximum(mine**2 + other**2, 1e-30))


def _followed(world: _World, origin: Array, direction: Array, pixel: ArrayInt, sample: int) -> Array:
    """Light of one path per pixel (n, 3)."""
    count, options = len(pixel), world.options
    light, through, density = np.zeros((count, 3)), np.ones((count, 3)), np.full(count, -1.0)
    alive, behind, within = np.arange(count), np.zeros(count), np.zeros((count, 3))
    for depth in range(options.bounces + 1):
        if not len(alive):
            break
        met = world.met(origin, direction)
        gone, there = met.instance < 0, met.instance >= 0
        if world.haze is not None:
            far = np.where(there, met.range, np.inf)
            height = np.broadcast_to(np.asarray(origin)[..., 2], far.shape)
            dark, white = (with_haze(world.haze, np.full((len(alive), 3), x), height, direction, far) for x in (0.0, 1.0))
            light[alive] += through * dark
            through = through * (white - dark)
        through = through * kept(within, np.where(there, met.range, options.max_range))
        number = np.maximum(met.instance, 0)
        begun = there & world.volume[number] & ~met.outside & (within.sum(-1) == 0.0)
        through = np.where(begun[:, None], through * kept(world.attenuation[number], met.range), through)
        light[alive[gone]] += through[gone] * _beyond(world, direction[gone], density[gone])
        light[alive[there]] += through[there] * _seen_glow(world, met, direction, density, met.range + behind)[there]
        if depth == options.bounces or not there.any():
            break
        alive, through, direction, within = alive[there], through[there], direction[there], within[there]
        before, behind = density[there], behind[there]
        met = _Met(*(part[there] for part in vars(met).values()))
        which = met.instance
        volume, front = world.volume[which], world.volume[which] & met.outside
        waved = _lifted(world.waved(met), -direction)
        lobes = Lobes.of(
            waved, met.normal, -direction, world.albedo[which], world.metallic[which],
            world.roughness[which], options.specular, options.coat, world.thin[which], world.tint[which],
        )  # fmt: skip
        start = met.point + met.normal * (4e-6 * np.abs(met.point).max(-1) + 2e-5 * met.range + 2e-4)[:, None]

        def draw(index: int, pixels: ArrayInt = pixel[alive], at: int = depth) -> Array:
            return _draw(options.seed, pixels, np.full(len(pixels), sample), np.full(len(pixels), at), index)

        glass = world.passing[which] > 0.0
        ior = world.ior[which]
        eta = np.where(front, ior, 1.0 / ior)
        facing = np.sum(waved * direction, -1)
        mirrored = np.where(volume, interface_mirrors(facing, eta), sheet_mirrors(facing, ior))
        reflected, refracted = direction - 2.0 * facing[:, None] * waved, direction
        if volume.any():
            over = np.sum(reflected * met.normal, -1)
            lifted = _unit_rows(reflected + met.normal * np.maximum(0.01 - over, 0.0)[:, None])
            reflected = np.where(volume[:, None], lifted, reflected)
            under = bent_by(direction, waved, eta)
            under = _unit_rows(under - met.normal * np.maximum(np.sum(under * met.normal, -1) + 0.01, 0.0)[:, None])
            refracted = np.where(volume[:, None], under, direction)
        below = 2.0 * met.point - start
        murky = front & (world.scattered[which].max(-1) > 0.0)
        if murky.any():
            floor = world.met(below, refracted)
            left = kept(world.attenuation[which], np.where(floor.instance >= 0, floor.range, options.max_range))
            shown = (1.0 - mirrored) / (1.0 - ((ior - 1.0) / (ior + 1.0)) ** 2)
            lobes = lobes.with_diffuse(murky, world.scattered[which] * (1.0 - left**2) * shown[:, None])
        lit = ~glass | murky
        light[alive] += np.where(lit[:, None], through * _lamps(world, lobes, met.point, start, below, draw), 0.0)
        if world.emitters.spans[0, 1]:
            light[alive] += np.where(lit[:, None], through * _glow(world, lobes, start, below, draw(1)), 0.0)
        u = draw(0)
        onward = lobes.sample(u[:, 0], u[:, 1], u[:, 2])
        sent, density = lobes.sent(onward)
        start = np.where(lobes.beneath(onward)[:, None], below, start)
        scattered = through * sent / np.maximum(density, 1e-20)[:, None]
        murk = np.where(murky, np.clip(luminance(lobes.diffuse), 0.1, 0.5), 0.0)
        mirrors = glass & (u[:, 0] < mirrored)
        stays = murky & ~mirrors & (u[:, 0] < mirrored + (1.0 - mirrored) * murk)
        passes = glass & ~mirrors & ~stays
        bends = passes & volume
        onward = np.where(mirrors[:, None], reflected, np.where(passes[:, None], refracted, onward))
        narrow = np.where(bends, 1.0 / eta**2, 1.0)
        tinted = through * world.albedo[which] * (world.passing[which] * narrow / (1.0 - murk))[:, None]
        scattered = np.where(stays[:, None], scattered / np.maximum((1.0 - mirrored) * murk, 1e-20)[:, None], scattered)
        through = np.where(mirrors[:, None], through, np.where(passes[:, None], tinted, scattered))
        after = np.where(bends & (before >= 0.0) & (before < MIRROR_DENSITY), BENT_DENSITY, before)
        density = np.where(mirrors, MIRROR_DENSITY, np.where(passes, after, density))
        start = np.where(passes[:, None], below, start)
        behind = np.where(passes & ~volume, behind + met.range, 0.0)
        sinks = (bends & front) | (mirrors & volume & ~front)
        within = np.where(sinks[:, None], world.attenuation[which], np.where(bends[:, None], 0.0, within))
        most = through.max(-1)
        odds = np.clip(most, 0.02, 0.95) if depth >= ROULETTE_DEPTH else np.ones_like(most)
        goes_on = (glass | (density > 0.0)) & (most > 0.0) & ((depth < ROULETTE_DEPTH) | (u[:, 3] < odds))
        through = (through / odds[:, None])[goes_on]
        alive, origin, direction, density = alive[goes_on], start[goes_on], onward[goes_on], density[goes_on]
        behind, within = behind[goes_on], within[goes_on]
    return light


def _unit_rows(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def _lifted(normal: Array, towards: Array) -> Array:
    """Return normals brought to where a surface is just seen, as `native/surface.h` does."""
    bent = normal + towards * np.maximum(0.02 - np.sum(normal * towards, -1), 0.0)[:, None]
    return np.asarray(bent / np.linalg.norm(bent, axis=-1, keepdims=True))


def _beyond(world: _World, direction: Array, density: Array) -> Array:
    """Return what sky and suns send along rays."""
    scene, angle = world.batch.scenes[0], world.options.sun_angle
    out = sky_radiance(scene.sky, direction)
    for light in scene.lights:
        if not isinstance(light, Sun) or angle <= 0.0:
            continue
        off = direction + _unit(light.direction)
        square = np.sum(off * off, -1)
        of_light = 1.0 / (np.pi * np.tan(angle) ** 2 * (1.0 - 0.5 * square) ** 3)
        part = np.where(density < 0.0, float(world.options.sun_disc), _share(density, of_light))
        part = np.where(density == BENT_DENSITY, 0.0, part)
        part = np.where(square < (2.0 * np.sin(0.5 * angle)) ** 2, part / (np.pi * np.sin(angle) ** 2), 0.0)
        out = out + part[:, None] * np.array(light.color) * light.irradiance
    return out


def _lamps(world: _World, lobes: Lobes, point: Array, start: Array, below: Array, draw: object) -> Array:
    """Light of lamps and suns, sent on."""
    light, angle = np.zeros_like(point), world.options.sun_angle
    scene = world.batch.scenes[0]
    for number, lamp in enumerate(lamp for lamp in scene.lights if is_burning(lamp, scene.sky)):
        part = np.ones(len(point))
        if isinstance(lamp, Sun):
            to_light, given = np.broadcast_to(-_unit(lamp.direction), point.shape), np.ones(len(point))
            of_light = None
            if angle > 0.0:
                u = draw(2 + number)  # type: ignore[operator]
                cosine, sine = turned(u[:, 0])
                a, b = basis(to_light)
                reach = np.sqrt(u[:, 1]) * np.tan(angle)
                slant = 1.0 / np.sqrt(1.0 + reach**2)
                to_light = (to_light + a * (reach * cosine)[:, None] + b * (reach * sine)[:, None]) * slant[:, None]
                of_light = 1.0 / (np.pi * np.tan(angle) ** 2 * slant**3)
                given = slant**3 * (np.tan(angle) / np.sin(angle)) ** 2
            color, far = np.array(lamp.color) * lamp.irradiance, np.full(len(point), _SUN_FAR)
            along = to_light
        else:
            of_light, color = None, np.array(lamp.color) * lamp.intensity
            to_light, given = _arriving(lamp, point)
            place = np.broadcast_to(np.array(lamp.position), point.shape)
            if lamp.radius > 0.0:
                u = draw(2 + number)  # type: ignore[operator]
                cosine, sine = turned(u[:, 0])
                a, b = basis(to_light)
                reach = np.sqrt(u[:, 1]) * lamp.radius
                place = place + a * (reach * cosine)[:, None] + b * (reach * sine)[:, None]
                to_light = (place - point) / np.linalg.norm(place - point, axis=-1)[:, None]
            way = place - np.where(lobes.beneath(to_light)[:, None], below, start)
            far = np.linalg.norm(way, axis=-1)
            along = way / np.maximum(far, 1e-6)[:, None]
        sent, density = lobes.sent(to_light)
        begun = np.where(lobes.beneath(to_light)[:, None], below, start)
        seen, through = world.open(begun, along, far, True)
        if of_light is not None:
            part = np.where(through, 1.0, _share(of_light, density))
        light += seen * sent * color * (given * part)[:, None]
    return light


def _arriving(lamp: PointLight | SpotLight, point: Array) -> tuple[Array, Array]:
    """Directions to a lamp, and what of its intensity arrives."""
    offset = np.array(lamp.position) - point
    square = np.maximum(np.sum(offset * offset, -1), 1e-4)
    to_light, given = offset / np.sqrt(square)[:, None], 1.0 / square
    if lamp.range > 0.0:
        given = given * np.clip(1.0 - (square / lamp.range**2) ** 2, 0.0, 1.0) ** 2
    if isinstance(lamp, SpotLight):
        inner = np.cos(max(min(lamp.inner_angle, lamp.outer_angle - 1e-3), 0.0))
        outer = np.cos(lamp.outer_angle)
        x = np.clip((-(to_light @ _unit(lamp.direction)) - outer) / (inner - outer), 0.0, 1.0)
        given = given * x * x * (3.0 - 2.0 * x)
    return to_light, given


def _glow(world: _World, lobes: Lobes, start: Array, below: Array, u: Array) -> Array:
    """Light of one glowing place for each point, sent on."""
    emitters, layout = world.emitters, world.batch.geometry.layout(0)
    row = np.minimum(np.searchsorted(emitters.sums[: emitters.spans[0, 1]], u[:, 0], side="right"), emitters.spans[0, 1] - 1)
    number, face = emitters.places[row].T
    local, outward = _points(world, number, face, u)
    turn = layout.attitude[number]
    point = frames.rotate(turn, local * layout.scale[number][:, None]) + layout.position[number]
    start = np.where(lobes.beneath(point - start)[:, None], below, start)
    way = point - start
    square = np.sum(way * way, -1)
    far = np.sqrt(square)
    to_light = way / far[:, None]
    cosine = np.abs(np.sum(frames.rotate(turn, outward) * to_light, -1))
    of_light = emitters.densities[row] * square / np.maximum(cosine, 1e-6)
    sent, density = lobes.sent(to_light)
    left, _ = world.open(start, to_light, far * (1.0 - 2e-5) - 2e-4, False)
    part = np.where((cosine > 1e-6) & (of_light > 0.0), _share(of_light, density) / np.maximum(of_light, 1e-20), 0.0)
    return np.asarray(sent * left * world.emission[number] * part[:, None])


def _points(world: _World, number: ArrayInt, face: ArrayInt, u: Array) -> tuple[Array, Array]:
    """Points of emitters and the normals there, in their instances' frames."""
    layout, shapes = world.batch.geometry.layout(0), world.batch.geometry.shapes
    local, outward = np.zeros((len(number), 3)), np.zeros((len(number), 3))
    cosine, sine = turned(u[:, 1])
    z = 1.0 - 2.0 * u[:, 2]
    ball = np.stack([np.sqrt(1.0 - z * z) * cosine, np.sqrt(1.0 - z * z) * sine, z], -1)
    for one in np.unique(number):
        shape, some = shapes[layout.shape[one]], number == one
        if isinstance(shape, Sphere):
            local[some], outward[some] = ball[some] * shape.radius, ball[some]
            continue
        assert isinstance(shape, Box)
        for side in np.unique(face[some]):
            which, axis = some & (face == side), side >> 1
            b, c = (1 if axis == 0 else 0), (1 if axis == 2 else 2)
            outward[which, axis] = 1.0 if side & 1 else -1.0
            local[which, axis] = outward[which, axis] * shape.half_size[axis]
            local[which, b] = shape.half_size[b] * (2.0 * u[which, 1] - 1.0)
            local[which, c] = shape.half_size[c] * (2.0 * u[which, 2] - 1.0)
    return local, outward


def _seen_glow(world: _World, met: _Met, direction: Array, density: Array, far: Array) -> Array:
    """Light of the surfaces that rays have met, less what `_glow` finds of it."""
    which = np.maximum(met.instance, 0)
    emission = np.where((met.instance >= 0)[:, None], world.emission[which], 0.0)
    if not world.emitters.spans[0, 1]:
        return emission
    slot = world.emitters.slots[which]
    ball = np.array([isinstance(shape, Sphere) for shape in world.batch.geometry.shapes])
    row = np.maximum(slot, 0) + np.where(ball[world.batch.geometry.layout(0).shape[which]], 0, np.maximum(met.face, 0))
    by_area = np.where(slot >= 0, world.emitters.densities[np.minimum(row, len(world.emitters.densities) - 1)], 0.0)
    of_light = by_area * far**2 / np.maximum(np.abs(np.sum(met.normal * direction, -1)), 1e-6)
    part = np.where((density < 0.0) | (of_light == 0.0), 1.0, _share(density, of_light))
    return np.asarray(emission * part[:, None])


def _unit(v: tuple[float, float, float]) -> Array:
    return np.asarray(np.array(v) / np.linalg.norm(v))
