"""What navigation policies see in flight, by mounted sensors and without torch, against what they learnt to see."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.learning.navigation import judging
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import LidarEye, PooledEye
from airworthy.learning.navigation.options import RoomsProtocol
from airworthy.learning.navigation.sight import CAMERA as CAMERA_RAYS
from airworthy.learning.navigation.sight import LIDAR as LIDAR_RAYS
from airworthy.learning.navigation.sight import RoomSight
from airworthy.learning.navigation.tasks import LidarNavigation
from airworthy.pilots import FlightPlan, fly
from airworthy.pilots.catalogue import pilot_level, pilot_sensors
from airworthy.pilots.navigation_policy import pilot as flown
from airworthy.pilots.navigation_policy.contract import NavigationContract, write_navigation_folder
from airworthy.pilots.navigation_policy.encoder import EncoderContract, encode, encoder_shapes, write_encoder
from airworthy.pilots.navigation_policy.eyes import DepthSight, FlownEye, LatentSight, LidarSight
from airworthy.pilots.navigation_policy.sight import (
    LIDAR,
    LIDAR_MOUNT,
    accelerated,
    depth_image,
    known_state,
    navigation_lidar,
    pooled_image,
    pooled_ranges,
    returned,
)
from airworthy.pilots.network_files import CONTRACT_FILE
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.trajectories import Keyframe, minimum_snap
from airworthy.vehicles import vehicle

LIDAR_FIELDS: dict[str, Any] = {"task": "lidar_navigation", "numbers": 320, "actions": 4}


def drawn_encoder(seed: int = 0, channels: int = 4, latent: int = 8) -> tuple[EncoderContract, dict[str, ArrayF32]]:
    rng = np.random.default_rng(seed)
    contract = EncoderContract(channels=channels, latent=latent)
    # As wide as what goes in keeps numbers near 1 through all layers.
    weights = {
        name: (rng.normal(0.0, 1.0, shape) / np.sqrt(np.prod(shape[1:]) or 1.0)).astype(np.float32)
        for name, shape in encoder_shapes(contract).items()
    }
    return contract, weights


def drawn_folder(folder: Path, **fields: Any) -> Path:
    rng = np.random.default_rng(1)
    contract = NavigationContract(hidden=(8, 6), recurrent=5, **fields)
    weights = {name: rng.normal(0.0, 0.3, shape) for name, shape in contract.shapes().items()}
    weights["seen.deviation"] = np.abs(weights["seen.deviation"]) + 0.5
    return write_navigation_folder(folder, contract, weights)


def latent_folder(folder: Path) -> Path:
    contract, weights = drawn_encoder()
    write_encoder(folder / "encoder", contract, weights)
    digest = json.loads((folder / "encoder" / CONTRACT_FILE).read_text())["weights"]["sha256"]
    return drawn_folder(folder, image="latent", numbers=contract.latent, encoder=digest)


# ---- The encoder --------------------------------------------------------------------------------------------------------


def test_the_encoder_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    from airworthy.learning.navigation.encoder import CollisionEncoder, LatentEye

    contract, weights = drawn_encoder(channels=6, latent=10)
    net = CollisionEncoder(contract.channels, contract.latent)
    assert {name: tuple(x.shape) for name, x in net.state_dict().items()} == encoder_shapes(contract)
    net.load_state_dict({name: torch.from_numpy(x) for name, x in weights.items()})
    distance = np.random.default_rng(2).uniform(0.05, 10.0, (5, 36, 64)).astype(np.float32)
    found = encode(weights, depth_image(distance))
    assert found.shape == (5, 10)
    wanted = net.double()(torch.from_numpy(depth_image(distance)[:, None]).double())[0].detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=2e-6 * np.abs(wanted).max())
    np.testing.assert_allclose(LatentEye(net.float()).see(distance), found, atol=1e-5 * np.abs(wanted).max())


def test_a_latent_is_the_same_in_any_batch() -> None:
    _, weights = drawn_encoder()
    image = np.random.default_rng(3).uniform(0.0, 1.0, (37, 36, 64)).astype(np.float32)
    whole = encode(weights, image)
    for k in (0, 20, 36):
        np.testing.assert_array_equal(encode(weights, image[k : k + 1])[0], whole[k])


# ---- Sensors ------------------------------------------------------------------------------------------------------------


def test_the_lidar_is_that_of_the_task() -> None:
    low, high = LidarNavigation.mount
    assert low == high == (*LIDAR_MOUNT[0], *LIDAR_MOUNT[1])
    np.testing.assert_allclose(
        navigation_lidar().projection.rays().directions.reshape(48, 120, 3), LIDAR_RAYS.directions, atol=1e-12
    )
    distance = np.random.default_rng(4).uniform(0.05, 10.0, (3, 48, 120)).astype(np.float32)
    np.testing.assert_array_equal(pooled_ranges(distance), LidarEye().see(distance))
    nothing = np.array([[[np.nan, np.inf, -1.0, 99.0, 0.0, 0.1] * 20] * 48])
    assert np.unique(pooled_ranges(nothing)) == pytest.approx(0.1)


def test_what_returned_nothing_is_at_10_m() -> None:
    """Of a camera 0 m is no return either: a policy would brake for a wall that is not there."""
    odd = np.array([0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, 10.5, 1e-3, 9.5])
    np.testing.assert_array_equal(returned(odd), np.array([10.0] * 7 + [1e-3, 9.5], np.float32))
    assert np.unique(pooled_image(np.zeros((1, 36, 64)))) == pytest.approx(3.0 / 10.0 - 0.6)


def test_a_latent_is_of_an_image_whose_pixels_all_returned_something() -> None:
    _, weights = drawn_encoder()
    depth = np.random.default_rng(8).uniform(0.5, 9.5, (6, 36, 64)).astype(np.float32)
    plain = depth.copy()
    for k, odd in enumerate((np.nan, np.inf, -1.0, 0.0, 40.0)):
        depth[k, 5 : 20 + k, 10:40], plain[k, 5 : 20 + k, 10:40] = odd, 10.0
    found = LatentSight(weights).read({"depth": depth.astype(float)})
    # What the camera does not see is 1 in the image, as 10 m are: no NaN, nothing beyond 1, and no -1 of what is too near.
    np.testing.assert_array_equal(found, encode(weights, plain * np.float32(0.1)))


def test_noise_of_the_lidar_is_the_published_formula() -> None:
    """Cell by cell in float64; uniforms below, at and above the shares."""
    rng = np.random.default_rng(6)
    distance = rng.uniform(0.1, 10.0, (3, 48, 120)).astype(np.float32)
    choices = rng.choice([0.0, 0.0199, 0.02, 0.0299, 0.03, 0.5], (3, 3, 16, 20), p=[0.1, 0.1, 0.1, 0.1, 0.1, 0.5])
    much = rng.uniform(0.0, 1.0, (3, 16, 20))
    # The first row that may see something near, and the one before it, in full.
    choices[0, 2, 9:11] = 0.0
    wanted = np.zeros((3, 16, 20))
    for n, row, column in np.ndindex(3, 16, 20):
        rays = distance[n, 3 * row : 3 * row + 3, 6 * column : 6 * column + 6].astype(float)
        moved, empty, near = choices[n, :, row, column]
        metres = np.where(rays < 0.2, 10.0, rays).min()
        if moved < 0.03:
            metres += 0.2 + (10.0 - 0.2) * much[n, row, column]
        if empty < 0.02:
            metres = 10.0
        if row >= 10 and near < 0.02:
            metres = 0.2 + (1.0 - 0.2) * much[n, row, column]
        wanted[n, row, column] = 1.0 / metres
    uniforms = np.concatenate([choices, much[:, None]], 1).reshape(3, 1280)
    np.testing.assert_allclose(LidarEye().see(distance, uniforms), wanted.reshape(3, 320), rtol=1e-6)


@pytest.mark.parametrize("task", ["depth_navigation", "lidar_navigation"])
def test_mounted_sensors_see_rooms_as_training_casts_them(task: str) -> None:
    """The same vehicles in the same rooms: samples of the simulator's sensor against rays of the training's kernel."""
    eye, sight = (PooledEye(), DepthSight()) if task == "depth_navigation" else (LidarEye(), LidarSight())
    rays = CAMERA_RAYS if task == "depth_navigation" else LIDAR_RAYS
    launch, simulator, batch = judging._simulated(task, eye, RoomsProtocol(flights=6), 40)
    seen: list[ArrayF32] = []
    channel = "depth" if task == "depth_navigation" else "range"

    class Looks:
        name, level, observes = "looks", launch.task.level, (f"sensor:{sight.sensor}",)

        def command(self, observation: Any) -> Array:
            seen.append(returned(observation.sample(sight.sensor).data[channel]).copy())
            return np.zeros((6, 4))

    fly(simulator, Looks(), FlightPlan(duration=0.01), True, MountedSensors(simulator, batch, sight.sensors))
    flights = launch.flights
    # Mounts of training are drawn; here they are its middle, as in flight.
    memory = flights.memory.copy()
    low, high = (np.array(x) for x in type(launch.task).mount)
    memory[3:9] = (0.5 * (low + high))[:, None]
    parameters = flights.parameters_of_flight(
        flights.nominal.astype(float),
        tuple(np.zeros((4, 6))),
        (0.0, 0.0, 0.0, *flights.place.astype(float)),
        tuple(memory.astype(float)),
    )
    pose = launch.task.observe_critic(tuple(flights.state.astype(float)), parameters)
    poses = np.stack(np.broadcast_arrays(*pose)).T.astype(np.float32)
    wanted = RoomSight(launch.task.rooms, rays, 6).look(poses)
    # Rays that graze an edge may meet it or not; the start is off by what falls within the first step.
    assert np.mean(np.abs(seen[0] - wanted) < 2e-3) > 0.995
    assert np.std(wanted) > 0.5


def test_what_a_lidar_policy_knows_is_what_its_task_shows() -> None:
    environments = NavigationEnvironments(LidarNavigation(noise=False), 16, LidarEye(), seed=3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        action = rng.uniform(-1.0, 1.0, (16, 4)).astype(np.float32)
        environments.step(action)
    f = environments.flights
    state, memory = f.state.astype(float), f.memory.astype(float)
    before = np.where((f.age == 0)[:, None], 0.0, accelerated(action.astype(float)))
    known = known_state(state[:3].T, state[3:6].T, state[6:10].T, state[10:13].T, memory[:3].T, before, memory[9])
    np.testing.assert_allclose(known, environments.observation[:, :17], rtol=1e-5, atol=1e-5)
    assert np.abs(known[:, 6]).max() > 1.0


# ---- Flights ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["latent", "lidar"])
def test_policies_of_every_sensor_fly(kind: str, tmp_path: Path) -> None:
    folder = latent_folder(tmp_path / "p") if kind == "latent" else drawn_folder(tmp_path / "p", **LIDAR_FIELDS)
    word = f"navigation:{folder}"
    assert pilot_level(word) == ("velocity" if kind == "latent" else "acceleration")
    assert list(pilot_sensors(word, vehicle("lmf2"))) == (["navigation_depth"] if kind == "latent" else [LIDAR])
    words = ["fly", "--pilot", word, "--scene", "obstacle_room", "--vehicle", "lmf2", "--no-report", "--time-limit", "1"]
    assert main([*words, "--out", str(tmp_path / "flight")]) == 0
    assert main([*words, "--gain", "velocity_gain=3", "--out", str(tmp_path / "g")]) == (0 if kind == "latent" else 2)
    # From its record alone: a policy that sees through an encoder is nothing without it.
    shutil.rmtree(folder)
    assert main(["replay", str(tmp_path / "flight")]) == 0


def test_a_lidar_policy_has_no_cap_of_speed_and_turns_with_the_heading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = drawn_folder(tmp_path / "p", **LIDAR_FIELDS)
    words = ["fly", "--pilot", f"navigation:{folder}", "--scene", "obstacle_room", "--vehicle", "lmf2", "--speed", "1"]
    assert main([*words, "--out", str(tmp_path / "x")]) == 2
    assert "leave --speed out" in capsys.readouterr().err
    rest = (0.0, 0.0, 0.0)

    def line(length: float) -> Any:
        ends = ((0.0, 0.0), (8.0, length))
        return minimum_snap([Keyframe(t, x=(x, *rest), y=(0.0, *rest), z=(1.5, *rest), yaw=(0.0, 0.0, 0.0)) for t, x in ends])

    world = SimulatorConfig(level="acceleration", control=ControlConfig(acceleration_frame="world"))
    with pytest.raises(AirworthyError, match="acceleration_frame"):
        flown.navigation_pilot(folder, Simulator([vehicle("lmf2")], world), line(6.0))
    heads = Simulator([vehicle("lmf2")], SimulatorConfig(level="acceleration"))
    with pytest.raises(AirworthyError, match="at most 3 m/s"):
        flown.navigation_pilot(folder, heads, line(20.0))
    assert flown.navigation_pilot(folder, heads, line(6.0)).level == "acceleration"
    policy = flown.read_flown_policy(folder)
    goal_pilot = flown.NavigationGoalPilot(policy, np.zeros((1, 3)), np.ones(1))
    assert goal_pilot.configured(world).control.acceleration_frame == "vehicle"


def test_near_its_goal_a_lidar_policy_is_held_by_a_plain_law() -> None:
    rng = np.random.default_rng(5)
    contract = NavigationContract(hidden=(8,), recurrent=0, **LIDAR_FIELDS)
    weights = {name: rng.normal(0.0, 0.3, shape).astype(np.float32) for name, shape in contract.shapes().items()}
    weights["seen.deviation"] = np.ones_like(weights["seen.deviation"])
    eye: FlownEye = LidarSight()
    policy = flown.FlownPolicy(flown.NavigationPolicy(contract, weights), eye)
    pilot = flown.NavigationPilot(policy, np.array([[0.3, 0.0, 1.0]]), np.ones(1))
    _, simulator, batch = judging._simulated("lidar_navigation", LidarEye(), RoomsProtocol(flights=1), 25)
    at = np.array(simulator.position, float)
    pilot._goal = at + np.array([[0.3, -0.2, 0.1]])
    simulator.reset(position=at, attitude=np.array([[0.0, 0.0, 0.0, 1.0]]))
    fly(simulator, pilot, FlightPlan(duration=0.02), True, MountedSensors(simulator, batch, eye.sensors))
    # One critically damped pull at 1 rad/s: at rest as much acceleration as there is way, axes as the vehicle heads (+x).
    np.testing.assert_allclose(pilot._wanted[0, :3], [0.3, -0.2, 0.1], atol=0.02)
    # It turns to where the goal lay, at 0.5 rad/s at most.
    assert pilot._wanted[0, 3] == -0.5


def test_folders_that_do_not_fly_say_why(tmp_path: Path) -> None:
    odd = drawn_folder(tmp_path / "odd", **LIDAR_FIELDS, training={"options": {"as_published": True}})
    with pytest.raises(AirworthyError, match="without --as-published"):
        flown.read_flown_policy(odd)
    folder = latent_folder(tmp_path / "p")
    read = flown.read_flown_policy(folder).eye
    assert isinstance(read, LatentSight)
    contract, weights = drawn_encoder(seed=9)
    write_encoder(folder / "encoder", contract, weights)
    with pytest.raises(AirworthyError, match="not the one that its policy learnt with"):
        flown.read_flown_policy(folder)
    bare = drawn_folder(tmp_path / "bare", image="latent", numbers=8, encoder="0" * 64)
    with pytest.raises(AirworthyError, match="encoder"):
        flown.read_flown_policy(bare)
