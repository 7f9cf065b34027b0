"""Images: where the camera is, that image, state and command are of one instant, the same bytes however they are grouped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix, z_down_attitude, z_down_vector
from airworthy.geometry import Sphere
from airworthy.learning.datasets.config import IMAGES_FILE, PAIR_FIELDS, PAIRS_FILE, STATE_COLUMNS, DatasetConfig
from airworthy.learning.datasets.shard_maker import ShardMaker, ShardTask, read_columns
from airworthy.learning.synthesis import Pictures, RolloutPlan, SynthesisConfig, flight_camera
from airworthy.learning.synthesis import plan as pictures
from airworthy.optics.tone import to_8bit
from airworthy.pilots import FlightPlan, Observation, fly
from airworthy.scenes import Actor, Instance, Material, Scene, SceneBatch, Sky
from airworthy.simulation import MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

CARL = vehicle("carl")
LAMPS = np.array([[0.5 + 9.0 * np.cos(a), 9.0 * np.sin(a), z] for a in np.arange(24) * np.pi / 12 for z in (-1.5, 1.0, 3.5)])
"""Bright balls all round the course, in a black place."""

# StanfordMSL/SousVide, configs/frame/carl.json, and StanfordMSL/FiGS, configs/drone_parameters/carl.json: camera (x right, y
# up, z backward) to body (x forward, y right, z down).
MOUNTS = {
    "camera": [[0, 0, -1, 0.10], [1, 0, 0, -0.03], [0, -1, 0, -0.01]],
    "camera_calibrated": [
        [-0.00866, -0.12186, -0.99250, 0.100],
        [0.99938, -0.03463, -0.00446, -0.031],
        [-0.03383, -0.99194, 0.12209, -0.012],
    ],
}
POLICY = (185.182, 329.246, 113.230, 112.842)
"""fx, fy, cx, cy of the policy's view (specification, section 6)."""


def dark(**more: Any) -> Scene:
    """A black place with bright balls."""
    lamp = Material(base_color=(0.0, 0.0, 0.0, 1.0), emissive=(1.0, 1.0, 1.0))
    balls = tuple(
        Instance("ball", tuple(float(v) for v in p), materials=("lamp",), name=f"lamp {k}") for k, p in enumerate(LAMPS)
    )
    black = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    given: dict[str, Any] = {"instances": balls, "lights": (), "sky": black, **more}
    return Scene("dark", {"ball": Sphere(0.15)}, {"lamp": lamp}, **given)


def projected(state: Array, points: Array, camera: str) -> Array:
    """Pixels (points, 2) by the specification's formulas: T_WC = T_WB T_BC in its z-down frames; NaN behind the camera."""
    mount = np.array(MOUNTS[camera], float)
    body = to_matrix(z_down_attitude(state[6:]))
    turn, place = body @ mount[:, :3], z_down_vector(state[:3]) + body @ mount[:, 3]
    x, y, z = np.linalg.inv(turn) @ (z_down_vector(points) - place).T
    fx, fy, cx, cy = POLICY
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(z < -0.5, np.array([fx * x / -z + cx, fy * -y / -z + cy]), np.nan).T


def pixel_errors(image: ArrayU8, pixels: Array, reach: float = 16.0) -> Array:
    """Distance [px] from each lamp that should be seen, away from edges and other lamps, to the middle of the light near it."""
    light = image.astype(float).sum(axis=-1)
    v, u = np.indices(light.shape) + 0.5
    apart = np.linalg.norm(pixels[:, None] - pixels[None], axis=-1) + 1e9 * np.eye(len(pixels))
    found = []
    for k, pixel in enumerate(pixels):
        inside = np.isfinite(pixel).all() and (pixel > reach).all() and (pixel < np.array(light.shape[::-1]) - reach).all()
        if not inside or np.nanmin(apart[k]) < 2.0 * reach:
            continue
        near = np.hypot(u - pixel[0], v - pixel[1]) < reach
        total = (light * near).sum()
        found.append(
            np.hypot((light * near * u).sum() / total - pixel[0], (light * near * v).sum() / total - pixel[1])
            if total
            else reach
        )
    return np.array(found)


def made(folder: Path, place: Scene, **changes: Any) -> tuple[dict[str, ArrayAny], ArrayU8]:
    """Columns and images of the first shard of a small data set."""
    config = DatasetConfig(**{"per_second": 1.0, "repetitions": 1, "shard": 8, "length": 0.4, "keep_within": 0.0, **changes})
    list(ShardMaker(ShardTask(config, folder, "none"), place).make([0]))
    shard = folder / "shard_00000"
    return read_columns(shard / PAIRS_FILE, PAIR_FIELDS), np.load(shard / IMAGES_FILE)


@pytest.mark.parametrize("camera", ["camera", "camera_calibrated"])
def test_image_and_state_are_of_one_instant(tmp_path: Path, camera: str) -> None:
    """Lamps lie where a row's own state says, and not where the state of the next tick would have them."""
    pairs, images = made(tmp_path, dark(), camera=camera)
    states = np.stack([pairs[f"true_{name}"] for name in STATE_COLUMNS], axis=1).astype(float)
    off, late = [], []
    for k in range(len(states) - 1):
        off.append(pixel_errors(images[k], projected(states[k], LAMPS, camera)))
        if pairs["rollout"][k] == pairs["rollout"][k + 1]:
            late.append(pixel_errors(images[k], projected(states[k + 1], LAMPS, camera)))
    here, next_tick = np.concatenate(off), np.concatenate(late)
    assert len(here) > 100
    # The middle of a ball's disc is off its centre by far less than a pixel; the measured mount is printed to five digits
    # (0.002 px) and its matrix is no exact rotation (0.1 px).
    assert np.median(here) < 0.15
    assert np.quantile(here, 0.98) < 0.5
    assert np.median(next_tick) > 1.0


def test_flight_sees_what_training_saw(tmp_path: Path) -> None:
    """A camera mounted in the simulator gives the same image at the same pose, to the last bit."""
    pairs, images = made(tmp_path, dark(), view="64")
    state = np.stack([pairs[f"true_{name}"] for name in STATE_COLUMNS], axis=1)[:6]
    simulator = Simulator(CARL, SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust"), env_count=6)
    mounted = MountedSensors(simulator, SceneBatch(dark(), 6), {"eye": MountedSensor(flight_camera(CARL, "camera", "64"))})
    simulator.reset(position=state[:, :3], velocity=state[:, 3:6], attitude=state[:, 6:])

    class Looking:
        name, level, observes = "looking", "rate_thrust", ("sensor:eye",)
        images: ArrayU8

        def command(self, observation: Observation) -> Array:
            if observation.time[0] == 0.0:
                self.images = to_8bit(observation.sample("eye")["rgb"])
            return np.tile([CARL.mass * 9.81, 0.0, 0.0, 0.0], (6, 1))

    pilot = Looking()
    fly(simulator, pilot, FlightPlan(0.05), mounted=mounted)
    assert images[:6].any()
    np.testing.assert_array_equal(pilot.images, images[:6])


def test_the_policy_view_has_the_published_intrinsics() -> None:
    lens = flight_camera(CARL).projection
    assert (lens.width, lens.height) == (224, 224)
    assert (lens.fx, lens.fy, lens.cx, lens.cy) == pytest.approx(POLICY, abs=6e-4)  # printed to three digits
    half = flight_camera(CARL, "camera", "112").projection
    assert (half.fx, half.fy, half.cx, half.cy) == pytest.approx(np.array(POLICY) / 2, abs=3e-4)
    whole = flight_camera(CARL, "camera", "full").projection
    assert (whole.width, whole.height, whole.fx) == (640, 360, 462.956)


def test_images_do_not_depend_on_how_they_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With people in the place, light and noise drawn per roll-out and per image."""
    plan = RolloutPlan(SynthesisConfig())
    state = plan.starts(np.arange(9)).state
    walker = Actor("walker", (Instance("ball", materials=("lamp",)),), "velocity", (2.0, -3.0, 1.0), velocity=(0.0, 1.0, 0.0))
    place = dark(actors=(walker,))
    number, tick, time = np.arange(9), np.arange(9), np.linspace(0.0, 5.0, 9)

    def images(rows: ArrayAny, together: int) -> ArrayU8:
        monkeypatch.setattr(pictures, "PIXELS_AT_ONCE", together * 32 * 32)
        eyes = Pictures(place, CARL, flight_camera(CARL, "camera", "32"), (0.4, 1.0), 8.0, seed=3)
        return np.concatenate(list(eyes.images(number[rows], tick[rows], time[rows], state[rows])))

    whole = images(np.arange(9), 9)
    np.testing.assert_array_equal(whole, images(np.arange(9), 2))
    np.testing.assert_array_equal(whole[[7, 1]], images(np.array([7, 1]), 4))


def test_light_and_noise() -> None:
    """Half of the light halves linear values; noise has its deviation where nothing is cut off."""
    grey = Sky((0.3, 0.3, 0.3), (0.3, 0.3, 0.3), (0.3, 0.3, 0.3))
    place = Scene("grey", lights=(), sky=grey)
    state = np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (40, 1))
    camera = flight_camera(CARL, "camera", "32")

    def images(**options: Any) -> ArrayU8:
        zeros = np.zeros(40, int)
        return np.concatenate(list(Pictures(place, CARL, camera, **options).images(np.arange(40), zeros, zeros, state)))

    plain = images()
    assert plain.std() == 0.0
    np.testing.assert_array_equal(images(light=(0.5, 0.5))[0, 0, 0], to_8bit(np.full(3, 0.15, np.float32)))
    spread = images(light=(0.4, 1.0))[:, 0, 0, 0].astype(int)
    low, high = (int(to_8bit(np.full(3, 0.3 * factor, np.float32))[0]) for factor in (0.4, 1.0))
    assert low <= spread.min() < spread.max() <= high
    assert len(np.unique(spread)) > 20
    off = images(noise=6.0).astype(float) - plain
    # 122,880 values: 0.2 % of the deviation; rounding adds 1/12 of a count squared, 0.1 %.
    assert off.std() == pytest.approx(6.0, rel=0.01)
    assert abs(off.mean()) < 5 * 6.0 / np.sqrt(off.size)


@pytest.mark.parametrize(
    ("camera", "view", "message"),
    [
        ("kamera", "224", "Unknown camera 'kamera'. Closest: 'camera'"),
        ("camera", "big", "Unknown view 'big'"),
        ("camera", "8", "side of 8 px"),
    ],
)
def test_cameras_that_are_not_there(camera: str, view: str, message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        flight_camera(CARL, camera, view)
