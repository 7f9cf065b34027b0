"""What the sensors promise: pixels, ranges, shadows, noise, instants and memory in closed form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple, replace
from fractions import Fraction
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import camera_attitude, from_euler, rotate_inverse
from airworthy.geometry import Box, GeometryBatch, Placement, Shape, Sphere
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole, Spherical
from airworthy.scenes import Instance, Scene, SceneBatch, scene
from airworthy.sensors import (
    BeaconCamera,
    Camera,
    Draw,
    RangeLimits,
    SampleClock,
    SensorView,
    device,
    device_names,
    disparity,
    make_sensor,
    ranger,
)
from airworthy.sensors.noise import measure
from airworthy.sensors.quality import memory, profile
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.mounted import Capture
from airworthy.vehicles import vehicle
from airworthy.verification.published import Figure, below, within, zero

# ---- What sensors make of true values and when: noise, instants of samples, memory of images --------------------------------

ODD_RATES = (7.0, 14.5, 24.0, 400.0 / 3.0, 59.94)
"""None of them divides the physics' rate."""
PHYSICS = 960.0
"""[Hz]"""


def reading_figures(draws: int) -> Iterator[Figure]:
    """Run the checks one after the other.

    Args:
        draws: Of each statistic.
    """
    yield from _noise(draws)
    yield from _stamps()
    yield _memory()


def _noise(count: int) -> Iterator[Figure]:
    lidar = device("ouster_os0_128").noise
    for r in (5.0, 30.0):
        reading = measure(np.full((10, count // 10), r, np.float32), lidar, RangeLimits(), Draw.of(10, seed=1)).astype(float)
        sigma = 3.36239104e-05 * r * r - 0.000317199061 * r + 0.0096190386
        yield within(f"Noise of the OS0-128 at {r:g} m, standard deviation", float(reading.std()), sigma, 0.01, "m")
        off, bound = abs(float(reading.mean()) - r - 0.05), 5.0 * sigma / math.sqrt(count)
        yield below(f"Noise of the OS0-128 at {r:g} m, mean off", off, bound, "m")
    noise, limits = device("realsense_d455").noise, RangeLimits(0.2, 15.0, -15.0, 15.0)
    reading = measure(np.full((100, count // 100), 4.0, np.float32), noise, limits, Draw.of(100, seed=1))
    lost = reading == -15.0
    yield within("Noise of the D455 at 4 m, standard deviation", float(reading[~lost].astype(float).std()), 0.04, 0.01, "m")
    yield within("Noise of the D455, share of pixels lost", 100.0 * float(lost.mean()), 1.0, 0.12, "%")


def _stamps() -> Iterator[Figure]:
    """Sample k on step ceil(k f_physics / f): of clocks over a million samples, and of sensors on a vehicle in flight."""
    number = np.concatenate([np.arange(2000), np.arange(10**6, 10**6 + 2000)])
    worst = 0
    for rate in ODD_RATES:
        true = [exact_step(int(k), rate, PHYSICS) for k in number]
        worst = max(worst, int(np.abs(SampleClock(rate, PHYSICS).step_of(number) - true).max()))
    rates = f"{len(ODD_RATES)} odd rates"
    yield zero(f"Instants of samples at {rates}, up to the millionth, worst error in steps", worst)
    yield zero(f"Instants of samples in flight at {rates}, worst error in steps", _flown_stamps(200))


def exact_step(sample: int, rate: float, physics: float) -> int:
    """Return physics step of a sample, in whole numbers.

    Args:
        sample: Its number.
        rate: Of the sensor [Hz].
        physics: Steps per second [Hz].
    """
    ratio = Fraction(physics) / Fraction(rate).limit_denominator(10**6)
    return math.ceil(sample * ratio)


def _flown_stamps(steps: int) -> int:
    scene = Scene("floor", {"floor": Box((50.0, 50.0, 0.5))}, instances=(Instance("floor", (0.0, 0.0, -5.0)),))
    simulator = Simulator(vehicle("flightgoggles"), SimulatorConfig(physics_rate=PHYSICS), env_count=2)
    names = {f"down{k}": ranger(noise_enabled=False).variant(rate=rate) for k, rate in enumerate(ODD_RATES)}
    mounted = MountedSensors(simulator, SceneBatch(scene, 2), names)
    heard: dict[str, list[int]] = {name: [] for name in names}

    def listen(capture: Capture) -> None:
        heard[capture.name] += [int(step) for env, step in zip(capture.envs, capture.step, strict=True) if env == 0]

    mounted.listen(listen)
    for _ in range(steps):
        simulator.step()
    end, worst = int(simulator.flight_step[0]), 0
    for name, rate in zip(names, ODD_RATES, strict=True):
        expected = [s for s in (exact_step(k, rate, PHYSICS) for k in range(steps * 10)) if s <= end]
        if len(expected) != len(heard[name]):
            return end
        worst = max(worst, int(np.abs(np.subtract(expected, heard[name])).max()))
    return worst


def _memory() -> Figure:
    """Everything that a 1024 x 768 image of the race hall takes."""
    taken = sum(memory(SceneBatch(scene("alphapilot")), profile("VeryLow2GB")).values())
    return below("FlightGoggles 15: memory of VeryLow2GB, one camera in the race hall", taken / 1e9, 2.0, "GB")


# -----------------------------------------------------------------------------------------------------------------------------

DRAWS = 200_000
"""Of each statistic: standard errors are 0.16 % of a standard deviation and 0.32 % of a variance."""
LENSES: dict[str, Pinhole | Fisheye] = {
    "pinhole": Pinhole.from_fov(480, 270, horizontal=math.radians(87.0)),
    "plumb-bob": Pinhole(640, 480, 400.0, 410.0, 310.0, 245.0, PlumbBob(-0.28, 0.09, 4e-4, -3e-4, -0.012)),
    "fisheye": Fisheye(640, 480, 200.0, 200.0, 320.0, 240.0, AnglePolynomial(0.05, -0.01, 0.003, -2e-4)),
}
_FLOOR = (Box((100.0, 100.0, 0.5)), (0.0, 0.0, -0.5))
_FAR = (Sphere(0.1), (0.0, 0.0, -500.0))


def sensor_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other.

    Args:
        everything: Ten times as many draws.
    """
    yield from _beacons()
    yield _gate_beacons()
    yield from _ranger(10 * DRAWS if everything else DRAWS)
    yield from _focal_length()
    yield from lens_figures()
    yield from _stereo()
    yield from _lidar()
    yield from reading_figures(10 * DRAWS if everything else DRAWS)


def _scene_of(*things: tuple[Shape, tuple[float, float, float]]) -> GeometryBatch:
    placement = Placement.of(np.arange(len(things)), np.array([at for _, at in things], float))
    return GeometryBatch([shape for shape, _ in things], [placement])


def _view(position: Any = (0.0, 0.0, 0.0), count: int = 1, attitude: Any = (0.0, 0.0, 0.0, 1.0), **fields: Any) -> SensorView:
    """Sensors that look along world x, if not told otherwise, all in environment 0."""
    points, turned = np.broadcast_to(np.asarray(position, float), (count, 3)), np.tile(attitude, (count, 1))
    return SensorView(points, turned, np.zeros(count, np.int64), Draw.of(count, seed=1), **fields)


# ---- beacons (10), rangers (11), focal length (12) of the FlightGoggles specification ------------------------------------


def _beacons() -> Iterator[Figure]:
    rng, worst, wrong = np.random.default_rng(0), 0.0, 0
    focal, empty = 384.0 / math.tan(math.radians(35.0)), _scene_of(_FAR)
    for _ in range(20):
        beacons = rng.uniform((2, -8, -6), (20, 8, 6), (200, 3))
        position, attitude = rng.normal(0.0, 0.5, 3), from_euler(*rng.normal(0.0, 0.3, 3))
        found = _reported(empty, beacons, position, attitude)
        x, y, z = rotate_inverse(camera_attitude(attitude), beacons - position).T
        pixel = np.stack([focal * x / z + 512.0, focal * y / z + 384.0], -1)
        inside = (z > 0) & (pixel > 0).all(1) & (pixel < (1024, 768)).all(1)
        wrong += int(np.sum((found["beacon"][0] >= 0) != inside))
        worst = max(worst, float(np.abs(found["pixel"][0] - pixel)[inside].max()))
    yield below("FlightGoggles 10: beacons against the analytic projection, worst", worst, 1e-3, "px")
    yield zero("FlightGoggles 10: beacons of 4,000 reported outside of the image, or not inside", wrong)
    yield zero("FlightGoggles 10: of 6 beacons, hidden by the own body or seen through a wall", _hidden_wrongly())


def _reported(
    scene: GeometryBatch, beacons: Any, position: Any = (0.0, 0.0, 0.0), attitude: Any = (0, 0, 0, 1.0), **own: Any
) -> Any:
    return BeaconCamera(device("flightgoggles_beacons"), positions=beacons).capture(scene, _view(position, 1, attitude, **own))


def _hidden_wrongly() -> int:
    wall = _scene_of((Box((0.1, 1.0, 3.0)), (4.0, 1.0, 0.0)))
    found = _reported(wall, [[8.0, 1.0, 0.0], [8.0, -1.5, 0.0], [3.0, 1.0, 0.0], [3.9, 1.0, 0.0]])["beacon"][0]
    wrong = int(np.sum((found >= 0) != [False, True, True, True]))
    body = GeometryBatch([Sphere(0.3)], [Placement.empty()], [0], [Placement.of(shape=[0])])
    own = np.array([body.dynamic_start], np.int32)
    wrong += int(_reported(body, [[5.0, 0.0, 0.0]], ignore=own)["beacon"][0, 0] != 0)
    return wrong + int(_reported(body, [[5.0, 0.0, 0.0]])["beacon"][0, 0] != -1)


def _gate_beacons() -> Figure:
    """Count beacons of the race's gates, each gate alone with its posts, that are not reported where all four are in sight.

    Spec/race 4.1: on the centre line, 30 and 60 degrees aside, from before and behind; 10 to 60 m, so that the widest fits.
    """
    hall, wrong = scene("alphapilot"), 0
    for gate in hall.gates:
        own = tuple(item for item in hall.instances if item.name.startswith(f"{gate.name}, "))
        marks = tuple(beacon for beacon in hall.beacons if beacon.landmark == gate.name)
        batch = SceneBatch(replace(hall, instances=own, beacons=marks))
        ahead = math.atan2(gate.axes[0][1], gate.axes[0][0])
        for aside in np.radians((0, 30, -30, 60, -60, 120, -120, 150, -150, 180)):
            for away in (10.0, 20.0, 40.0, 60.0):
                yaw = ahead + float(aside)
                place = np.array(gate.center) - away * np.array([math.cos(yaw), math.sin(yaw), 0.0])
                camera = BeaconCamera(device("flightgoggles_beacons"))
                seen = camera.capture(batch, _view(place, 1, from_euler(0.0, 0.0, yaw)))["beacon"]
                wrong += int(np.sum(seen < 0))
    return zero("AlphaPilot: of 1,760 beacons in sight, hidden by the gate that carries them", wrong)


def _ranger(count: int) -> Iterator[Figure]:
    sensor, floor = make_sensor("lightware_sf11b"), _scene_of(_FLOOR)
    found = sensor.capture(floor, _view((0.0, 0.0, 5.0), count))["range"].astype(float)
    yield within("FlightGoggles 11: ranger at 5 m, mean", float(found.mean()), 5.0, 0.0005, "m")
    yield within("FlightGoggles 11: ranger at 5 m, variance", float(found.var()), 0.009, 0.02, "m^2")
    heights = np.linspace(19.0, 21.0, 401)
    given = sensor.capture(floor, _view(np.c_[0 * heights, 0 * heights, heights], len(heights)))["valid"][:, 0]
    clear = np.abs(heights - 20.0) > 1e-3
    wrong = int(np.sum((given != (heights < 20.0))[clear]))
    yield zero("FlightGoggles 11: returns beyond 20 m not flagged, or nearer ones flagged", wrong)


def _focal_length() -> Iterator[Figure]:
    camera = device("flightgoggles_camera").projection
    assert isinstance(camera, Pinhole)
    yield within("FlightGoggles 12: focal length of the camera", camera.fx, 548.41, 1e-5, "px")
    (left, _), (right, _) = camera.project((1.0, 0.5, 10.0)), camera.project((1.0 - 0.32, 0.5, 10.0))
    yield within("FlightGoggles 12: disparity of a point at 10 m", float(left[0] - right[0]), 17.55, 1e-4, "px")
    yield within("FlightGoggles 12: the same by formula", float(disparity(10.0, camera.fx, 0.32)), 17.55, 1e-4, "px")


# ---- lenses, stereo, LiDAR ----------------------------------------------------------------------------------------------


def lens_figures(pixels: int = 20_000) -> Iterator[Figure]:
    """Check pixels to rays and back, by the lens itself and by the equations written here."""
    rng = np.random.default_rng(1)
    for name, lens in LENSES.items():
        drawn = rng.uniform((0.5, 0.5), (lens.width - 0.5, lens.height - 0.5), (pixels, 2))
        rays = lens.unproject(drawn) * rng.uniform(0.1, 100.0, (pixels, 1))
        back, _ = lens.project(rays)
        worst = max(float(np.linalg.norm(found - drawn, axis=1).max()) for found in (back, _pixel(lens, rays)))
        yield below(f"Lens {name}: pixel to ray and back, {pixels:,} pixels, worst", worst, 1e-3, "px")


def _pixel(lens: Pinhole | Fisheye, rays: Array) -> Array:
    """Return where points are seen: Brown's model as OpenCV writes it, or the polynomial of the angle."""
    x, y, z = rays.T
    if isinstance(lens, Fisheye):
        angle, k = np.arctan2(np.hypot(x, y), z), astuple(lens.polynomial)
        radius = angle * (1.0 + sum(c * angle ** (2 * n) for n, c in enumerate(k, 1)))
        share = radius / np.maximum(np.hypot(x, y), 1e-300)
        a, b = share * x, share * y
    else:
        x, y, (k1, k2, p1, p2, k3) = x / z, y / z, astuple(lens.distortion)
        r = x * x + y * y
        radial = 1.0 + k1 * r + k2 * r**2 + k3 * r**3
        a = radial * x + 2.0 * p1 * x * y + p2 * (r + 2.0 * x * x)
        b = radial * y + p1 * (r + 2.0 * y * y) + 2.0 * p2 * x * y
    return np.stack([lens.fx * a + lens.cx, lens.fy * b + lens.cy], -1)


def _stereo() -> Iterator[Figure]:
    """Check a panel 2 m ahead that begins 0.2 m to the right, before a wall at 6 m; the second eye is 0.095 m to the right.

    As specified, the ray to the second eye starts at 0.999 of the range; the panel's rear edge is the one that hides.
    """
    lens, eye, edge, near, far = Pinhole.from_fov(2400, 4, horizontal=math.radians(87.0)), 0.095, 0.2, 2.01, 6.0
    camera = make_sensor(device("stereo_camera").variant(projection=lens, channels=("depth",)))
    panel: tuple[Shape, Any] = (Box((0.005, 5.0, 50.0)), (near - 0.005, -5.0 - edge, 0.0))
    wall: tuple[Shape, Any] = (Box((0.5, 50.0, 50.0)), (far + 0.5, 0.0, 0.0))
    shadow = camera.capture(_scene_of(panel, wall), _view())["depth"][0] == -1.0
    x, start = (np.arange(2400) + 0.5 - lens.cx) / lens.fx, 0.999 * far
    hidden = (x * near < edge) & (eye + (x * start - eye) * near / start > edge)
    met = np.where(x * near < edge, start, 0.999 * (near - 0.01))
    hidden |= x - eye / met < -lens.cx / lens.fx  # beyond the second eye's image
    off = np.abs(shadow.astype(int) - hidden).sum(1).max()
    yield below(f"Aerial Gym 5: stereo shadow on two planes, {int(hidden.sum())} columns, off by", float(off), 1.0, "columns")
    found = Camera(device("base_depth_camera").variant(limits=RangeLimits(), randomize_mount=False))
    rendered = found.capture(_scene_of(panel, wall), _view(), ("depth", "range"))
    slant = np.asarray(found.table.directions) @ np.asarray(found.table.axis)
    both = np.isfinite(rendered["depth"][0])
    gap = float(np.abs(rendered["depth"][0] - rendered["range"][0] * slant)[both].max())
    yield below("Aerial Gym 5: depth is range times cosine, off by at most", gap, 1e-5, "m")


def _lidar() -> Iterator[Figure]:
    """Ray (i, j) = (cos az cos el, sin az cos el, sin el), both angles falling; around a circle the last column is left out."""
    worst, count = 0.0, 0
    for name in device_names():
        scan = device(name).projection
        if not isinstance(scan, Spherical) or scan.elevations or scan.centres or scan.duplicate_column:
            continue
        count += 1
        columns = scan.width if scan.full_circle else scan.width - 1
        azimuth = scan.azimuth[1] - np.arange(scan.width) * (scan.azimuth[1] - scan.azimuth[0]) / columns
        elevation = np.linspace(scan.elevation[1], scan.elevation[0], scan.height)[:, None]
        ray = [np.cos(azimuth) * np.cos(elevation), np.sin(azimuth) * np.cos(elevation), np.sin(elevation) + 0.0 * azimuth]
        worst = max(worst, float(np.abs(scan.rays().directions - np.stack(ray, -1)).max()))
    yield below(f"Aerial Gym 5: ray tables of {count} scanning devices against the formula, worst", worst, 1e-12)
