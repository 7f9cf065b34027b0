"""What the room of sensors computes, number by number: devices, clocks, mounts, noise, the chain of a camera, products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.random import flight_key
from airworthy.geometry import Box
from airworthy.optics.exposure import metered
from airworthy.optics.projections import Pinhole
from airworthy.scenes import Instance, Scene, SceneBatch
from airworthy.sensors.build import projection_matrix, rig, rig_names
from airworthy.sensors.camera import beyond_second_image, depth_of, disparity, stereo_shadow
from airworthy.sensors.carried import carried_sensors, policy_cut, vehicle_camera
from airworthy.sensors.devices import device, device_names, fields_of_view, imu_device, imu_names
from airworthy.sensors.lidar import column_poses, packed_points, ranger
from airworthy.sensors.mounting import Mount, MountSpread, SampleClock, mounted_pose
from airworthy.sensors.noise import Draw, RangeLimits, RangeNoise, measured_twin, normal_of, sensor_number, uniforms_of
from airworthy.sensors.quality import profile, profile_names
from airworthy.sensors.realism import (
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    LensDirt,
    Quantization,
    Realism,
    SensorNoise,
    Vignetting,
    chain,
    realism,
)
from airworthy.sensors.realism import camera as real
from airworthy.sensors.realism.settings import REALISM
from airworthy.sensors.sampling import nearest_of_zones, strip_of, strips
from airworthy.simulation import sensor_recording as products
from airworthy.vehicles import vehicle

SNAPSHOTS = Path(__file__).parent / "snapshots"
TURN = (0.1, -0.3, 0.5, 0.8062257748)
LENS = Pinhole(12, 9, 10.0, 11.0, 6.5, 4.0)


def picture(seed: int = 0, channels: int = 3) -> np.ndarray:
    """Two images of linear light, some of it bright, some not finite."""
    image = np.random.default_rng(seed).lognormal(-1.0, 1.2, (2, 9, 12, channels)).astype(np.float32)
    image[0, 4, 5], image[1, 0, 0] = 30.0, np.nan
    return image


def test_named_devices_and_rigs() -> None:
    values: dict[str, Any] = {f"imu {name}": condensed(imu_device(name)) for name in imu_names()}
    for name in device_names():
        item = device(name)
        values[name] = [condensed(item), [str(angle) for angle in fields_of_view(item)]]
        values[f"{name} noise"], values[f"{name} mount"] = condensed(item.effective_noise), condensed(item.effective_mount)
    values |= {f"rig {name}": condensed(rig(name)) for name in rig_names()}
    values["ranger"] = [condensed(ranger()), condensed(ranger(((0.0, 0.0, -1.0), (1.0, 2.0, 0.0))))]
    check_snapshot(SNAPSHOTS / "devices.txt", values, 1e-6)


def test_what_vehicles_carry() -> None:
    values: dict[str, Any] = {}
    for name in ("carl", "cf2x_L250"):
        carried = carried_sensors(vehicle(name))
        values[name] = condensed(carried)
        if "camera" in carried:
            values[f"{name} camera"] = condensed(vehicle_camera(vehicle(name)))
            values[f"{name} side"] = condensed(vehicle_camera(vehicle(name), "camera", 64))
    for size in ((640, 480), (320, 240), (224, 224), (1280, 720), (100, 100)):
        values[str(size)] = condensed(policy_cut(*size)) if policy_cut(*size) else "none"
    check_snapshot(SNAPSHOTS / "carried.txt", values, 1e-6)


def test_clocks_and_mounts() -> None:
    steps, values = np.arange(0, 60), {}
    for rate, latency in ((500.0, 0.0), (30.0, 0.0), (30.0, 0.02), (7.0, 0.011), (120.0, 0.001)):
        clock = SampleClock(rate, 500.0, latency)
        each = [call(steps) for call in (clock.step_of, clock.taken, clock.due, clock.next_step)]
        values[f"{rate} {latency}"] = [clock.delay_steps, *each]
    spread = MountSpread((-0.01, -0.02, 0.0), (0.01, 0.02, 0.03), (-0.1, 0.0, -0.2), (0.1, 0.0, 0.3))
    keys = flight_key(3, np.arange(5), 0)
    mount = Mount((0.1, 0.0, -0.05), TURN, spread)
    values["drawn"] = list(mount.drawn(keys, 2))
    rng = np.random.default_rng(1)
    values["mounted"] = list(mounted_pose(rng.normal(size=(5, 3)), np.tile(TURN, (5, 1)), *mount.drawn(keys, 2)))
    check_snapshot(SNAPSHOTS / "mounts.txt", values, 1e-8)


def test_noise_and_limits() -> None:
    r = np.concatenate([np.linspace(0.0, 40.0, 33), [np.inf, -np.inf]]).astype(np.float32)
    values: dict[str, Any] = {}
    for k, limits in enumerate((RangeLimits(), RangeLimits.published(0.2, 35.0), RangeLimits.published(0.5, 20.0, False))):
        values[f"limits {k}"] = [condensed(limits), limits.divisor, limits.apply(r), limits.metres(r[:33] / 40.0)]
        noise = RangeNoise(1e-3, 1e-3, 1e-2, -0.05, 0.002, 0.1)
        grid = np.tile(r, (3, 1))
        values[f"measured {k}"] = measured_twin(grid, noise, limits, Draw.of(3, seed=9, sample=4, sensor="front"), 50.0)
        values[f"sigma {k}"] = noise.sigma(r[:33])
    values["numbers"] = [sensor_number(name) for name in ("front", "a", "")]
    bits = np.array([0, 1, 511, 512, 2**31, 2**32 - 1, 123456789], np.uint32)
    values["uniforms"], values["normals"] = uniforms_of(bits), normal_of(bits, bits[::-1])
    values["words"] = Draw.of(4, seed=2, sample=np.arange(4)).words(6)
    check_snapshot(SNAPSHOTS / "noise.txt", values, 1e-5, 1e-6)


def test_the_chain_of_a_camera() -> None:
    image, table = picture(), LENS.rays()
    cosine = chain.field_cosine(table)
    draw = Draw.of(2, seed=3)
    values: dict[str, Any] = {"cosine": cosine, "dirt": chain.dirt_mask(30, 40), "dirt 3": chain.dirt_mask(9, 12, 3)}
    values["noisy"] = chain.noisy(image, SensorNoise(), draw)
    values["gained"] = chain.noisy(image, SensorNoise(photons=4000.0, read_noise=9.0), draw, [1.0, 4.0])
    for bits in (4, 8, 12):
        values[f"quantized {bits}"] = chain.quantized(image, Quantization(bits))
    values["mean"] = metered(image)
    values["vignetted"] = chain.vignetted(image, cosine, 0.7)
    values["aberrated"] = chain.aberrated(np.nan_to_num(image), 1.5, (6.5, 4.0))
    for levels in (1, 2, 4):
        values[f"layer {levels}"] = chain.bloom_layer(chain.bright_part(np.nan_to_num(image), 1.0), levels)
    values["bloomed"] = chain.bloomed(np.nan_to_num(image), Bloom())
    values["dirty"] = chain.bloomed(np.nan_to_num(image), Bloom(), LensDirt())
    stops = np.array([-4.0, 0.0, 2.5, np.nan])
    for settings in (AutoExposure(), AutoExposure(time_constant=0.2, start=1.0)):
        values[f"stops {settings.time_constant}"] = chain.next_stops(stops, np.array([0.01, 0.18, 3.0, 0.5]), 0.1, settings)
        values[f"wanted {settings.time_constant}"] = chain.wanted_stops([0.0, 1e-4, 0.18, 40.0, 1e9], settings)
    values["factors"] = chain.exposure_factors([-2.0, 0.0, 1.5])
    optics = chain.Optics.of(LENS)
    pieces = {
        "vignetting": Vignetting(), "chromatic_aberration": ChromaticAberration(), "bloom": Bloom(), "noise": SensorNoise(),
        "quantization": Quantization(), "auto_exposure": AutoExposure(),
    }  # fmt: skip
    every = Realism(**pieces)  # type: ignore[arg-type]
    kept = np.full(2, np.nan)
    values["developed"] = chain.develop(np.nan_to_num(picture()), every, optics, kept, 0.05, draw)
    values["stops after"] = kept
    check_snapshot(SNAPSHOTS / "chain.txt", values, 2e-5, 1e-5)


def test_lenses_in_focus_and_moving_cameras() -> None:
    image, depth = np.nan_to_num(picture()), np.random.default_rng(4).uniform(0.3, 12.0, (2, 9, 12)).astype(np.float32)
    lens = real.ThinLens.of(DepthOfField(), 10.0, 9)
    values: dict[str, Any] = {"lens": condensed(lens), "circle": lens.circle(depth[0]), "pixels": lens.circle_pixels(depth[0])}
    for samples in (1, 4, 9, 16):
        values[f"points {samples}"] = real.aperture_points(samples)
        values[f"ages {samples}"] = real.exposure_ages(60.0, samples)
        values[f"gathered {samples}"] = real.gathered(image, depth, lens, samples)
    values["table"] = real.lens_table(LENS.rays(), lens, (0.3, -0.2)).directions
    values["rows"] = real.row_ages(9, 0.02)
    rng = np.random.default_rng(5)
    turns = rng.normal(size=(2, 3, 4))
    turns /= np.linalg.norm(turns, axis=-1, keepdims=True)
    values["poses"] = list(real.poses_at(np.array([0.0, 0.2, 0.7, 1.0]), rng.normal(size=(2, 3, 3)), turns))
    values["upright"] = real.upright({"rgb": np.swapaxes(image, 1, 2)})
    values["columns"] = real.rows_as_columns(LENS.rays()).directions
    values["averaged"] = real.averaged(lambda k: image * (k + 1.0), [0, 1, 2])
    check_snapshot(SNAPSHOTS / "lens.txt", values, 2e-5, 1e-5)


def test_stereo_products_and_profiles() -> None:
    rng = np.random.default_rng(6)
    depth = rng.uniform(0.0, 70.0, (3, 5))
    depth[0, 0], depth[1, 1], depth[2, 2] = np.inf, -1.0, np.nan
    values: dict[str, Any] = {
        "disparity": disparity(depth, 300.0, 0.05),
        "depth": depth_of(rng.uniform(0.0, 9.0, 9), 300.0, 0.05),
    }
    values["16 bit"], values["8 bit"] = products.depth_16bit(depth), products.depth_8bit(depth)
    values["metres"] = products.metres_of(np.array([0, 1, 500, 65535], np.uint16))
    values["ids"] = products.ids_16bit(np.array([-1, 0, 5, 65000]))
    values["normals"] = products.normals_8bit(rng.normal(size=(4, 3)))
    values["grey"] = products.grey(rng.integers(0, 256, (4, 5, 3)).astype(np.uint8))
    values["matrix"] = [projection_matrix(LENS), projection_matrix(LENS, 0.3)]
    values |= {f"profile {name}": [condensed(profile(name)), condensed(profile(name).options())] for name in profile_names()}
    values["strips"] = [f"{part.start} {part.stop}" for count in (1, 3, 8, 100) for part in strips(count)]
    values["strip"] = strip_of(LENS.rays(), slice(2, 5)).directions
    points = rng.normal(size=(2, 7, 3)).astype(np.float32)
    points[0, 3] = np.nan
    values["packed"] = packed_points(points)
    ages = np.linspace(1.0, 0.0, 8, endpoint=False)
    past = np.array([[1.0, 0.3, 0.0], [0.6, 0.2, 0.0]])
    values["columns"] = list(column_poses(ages, past, rng.normal(size=(2, 3, 3)), np.tile(TURN, (2, 3, 1))))
    values["realism"] = [condensed(realism(name)) for name in REALISM]
    ranges = rng.uniform(0.2, 9.0, (2, 9, 12))
    ranges[0, 3, 4] = np.inf
    values["beyond"] = [beyond_second_image(LENS, LENS.rays(), ranges, side, 8.0) for side in (0.1, -0.3)]
    values["nearest"] = nearest_of_zones({"range": ranges, "id": np.arange(216).reshape(2, 9, 12)}, 3, "range")
    place = Scene("x", {"box": Box((0.2, 0.3, 0.4))}, instances=(Instance("box", (0.1, 0.1, 2.0)),))
    geometry = SceneBatch(place).geometry
    hit = np.full((1, 9, 12), np.inf)
    hit[0, 2:7, 3:9] = 3.0
    values["shadow"] = stereo_shadow(geometry, LENS.rays(), np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), hit, 0.3, 6.0)
    check_snapshot(SNAPSHOTS / "products.txt", values, 1e-5, 1e-6)
