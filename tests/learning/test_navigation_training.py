"""Learning to navigate by sight: stopped and gone on with to the same bits, written down, read, and judged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import airworthy as aw
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.vectors import matrix_columns
from airworthy.evaluation.paired import paired_rate_difference
from airworthy.geometry import RayTable, cast
from airworthy.learning.environments.rooms import euler_matrices
from airworthy.learning.timed_training import METRICS_FILE, hardware_found

pytest.importorskip("torch")
import torch

from airworthy.learning.machine import TrainingRunOptions
from airworthy.learning.navigation import judging, report, run
from airworthy.learning.navigation.encoder import CollisionEncoder, LatentEye, read_encoder
from airworthy.learning.navigation.encoder_options import EncoderOptions
from airworthy.learning.navigation.encoder_training import EncoderTraining
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import PooledEye
from airworthy.learning.navigation.options import NavigationOptions, RoomsProtocol
from airworthy.learning.navigation.sight import CAMERA, RoomSight
from airworthy.learning.navigation.tasks import DepthNavigation
from airworthy.learning.navigation.training import NavigationTraining
from airworthy.pilots.navigation_policy.encoder import write_encoder
from airworthy.scenes import SceneBatch
from benchmarks import navigation_rooms

SMALL = NavigationOptions(steps=4 * 16 * 8, env_count=16, rollout=8, minibatches=2, hidden=(16,), recurrent=8)
ENCODER = EncoderOptions(iterations=4, batch=4, channels=2, latent=6)


@pytest.mark.parametrize("recurrent", [0, 8])
def test_a_training_goes_on_to_the_same_bits(recurrent: int) -> None:
    options = replace(SMALL, recurrent=recurrent)
    whole, first, second = (NavigationTraining(options, PooledEye(), threads=1) for _ in range(3))
    for _ in range(4):
        whole.step()
    first.step()
    first.step()
    second.restore(first.save())
    second.step()
    second.step()
    for name, value in whole.weights.items():
        np.testing.assert_array_equal(second.weights[name], value, err_msg=name)
    assert second.env_steps == whole.env_steps == 4 * 16 * 8


def test_the_policy_that_is_written_acts_as_the_one_that_learnt() -> None:
    """NumPy against torch, over several decisions with memory."""
    training = NavigationTraining(SMALL, PooledEye(), threads=1)
    training.step()
    policy, seen = training.policy, training.environments.observation.copy()
    memory, remembered = policy.begin(16), training.ppo.model.memory(16, torch.device("cpu"))
    for _ in range(5):
        mine, memory = policy.act(seen, memory)
        np.testing.assert_allclose(mine, training.ppo.action(seen, remembered), atol=2e-6)


def test_a_folder_is_stopped_gone_on_with_judged_and_read(tmp_path: Path) -> None:
    protocol = RoomsProtocol(flights=4, levels=(15,))
    short = TrainingRunOptions("cpu", 1, 1.0, minutes=1e-9)
    first = run.train_navigation(tmp_path / "a", SMALL, protocol, short)
    assert not first.finished
    assert run.load_navigator(tmp_path / "a")[0].contract.hidden == (16,)
    done = run.train_navigation(tmp_path / "a", SMALL, protocol)
    assert done.finished
    row = done.figures["simulator"][0]
    assert row["success"] + row["crashed"] + row["late"] == 4
    rows = [json.loads(line) for line in (tmp_path / "a" / METRICS_FILE).read_text().splitlines()]
    assert [x["iteration"] for x in rows] == [1, 2, 3, 4]
    assert {"level", "success", "terms", "wall_s", "cpu_s"} <= set(rows[-1])
    assert "In unseen rooms" in (tmp_path / "a" / "report.html").read_text()
    again = run.train_navigation(tmp_path / "a", SMALL, protocol)
    assert again.figures["env_steps"] == done.figures["env_steps"]
    with pytest.raises(AirworthyError, match="another training"):
        run.train_navigation(tmp_path / "a", replace(SMALL, epochs=2), protocol)


def test_what_became_of_each_flight_is_kept_and_pairs_with_another_policy() -> None:
    def row(letters: str, policy: str) -> dict[str, object]:
        success, touched = (np.array([x == letter for x in letters]) for letter in "st")
        flights = judging.LevelFlights(success, touched, np.arange(len(letters), dtype=float), np.zeros((1, len(letters), 3)))
        told = {"policy": policy, "weights": policy, "physics": "simulator", "seed": 1, "blind": False}
        return {**told, **judging.level_row(20, flights)}

    first, second = row("ssstl", "a/run"), row("stttl", "b/run")
    assert first["outcomes"] == "ssstl"
    assert [first[key] for key in ("success", "crashed", "late", "median_distance_m")] == [3, 1, 1, 2.0]
    found = paired_rate_difference([True, True, True, False, False], [True, False, False, False, False])
    (line,) = navigation_rooms.apart([first, second, {**first, "blind": True}, {**first, "level": 25}])
    told = f"{100.0 * found.value:+.0f} ({100.0 * found.low:+.0f} to {100.0 * found.high:+.0f}) points"
    assert line == f"level 20, simulator: a/run less b/run: {told}"


def test_levels_beyond_the_curriculum_are_refused_before_anything_is_learnt(tmp_path: Path) -> None:
    last = SMALL.learnt_task().curriculum.most
    judging.check_levels(RoomsProtocol(levels=(15, last)), last)
    with pytest.raises(AirworthyError, match=rf"levels has {last + 1}; expected at most {last}, the last of the curriculum\."):
        run.train_navigation(tmp_path / "a", SMALL, RoomsProtocol(levels=(15, last + 1)))
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_an_encoder_is_learnt_stopped_and_read_by_a_policy(tmp_path: Path) -> None:
    short = TrainingRunOptions("cpu", 1, 1.0, minutes=1e-9)
    assert not run.train_encoder(tmp_path / "dce", ENCODER, short).finished
    done = run.train_encoder(tmp_path / "dce", ENCODER)
    whole = run.train_encoder(tmp_path / "whole", ENCODER)
    assert done.figures["unseen"] == whole.figures["unseen"]
    _, one, digest = read_encoder(tmp_path / "dce")
    assert read_encoder(tmp_path / "whole")[2] == digest
    options = replace(SMALL, image="latent", steps=16 * 8)
    protocol = RoomsProtocol(flights=2, levels=(15,))
    with pytest.raises(AirworthyError, match="needs an encoder"):
        run.train_navigation(tmp_path / "p", options, protocol)
    with pytest.raises(AirworthyError, match="take no encoder"):
        run.train_navigation(tmp_path / "q", SMALL, protocol, encoder=tmp_path / "dce")
    run.train_navigation(tmp_path / "r", options, protocol, encoder=tmp_path / "dce")
    policy, eye = run.load_navigator(tmp_path / "r")
    assert policy.contract.encoder == digest
    assert eye.numbers == 6
    image = np.full((1, 36, 64), 3.0, np.float32)
    np.testing.assert_array_equal(eye.see(image), LatentEye(one).see(image))
    (tmp_path / "r" / "encoder" / "weights.safetensors").write_bytes(b"")
    with pytest.raises(AssetError):
        run.load_navigator(tmp_path / "r")


def test_a_training_from_python(tmp_path: Path) -> None:
    given = {"env_count": 16, "rollout": 8, "minibatches": 2, "hidden": (8,), "recurrent": 0, "steps": 128}
    found = aw.train("depth_navigation", None, tmp_path / "p", flights=2, levels=(15,), **given)
    assert found.summary["env_steps"] == 128
    assert len(found.frame()) == 1
    with pytest.raises(AirworthyError, match="takes no option `task`"):
        aw.train("depth_navigation", None, tmp_path / "q", task="lidar_navigation")


def _swap(folder: Path) -> None:
    contract, net, _ = read_encoder(folder)
    other = {name: x.numpy() + np.float32(0.5) for name, x in net.state_dict().items()}
    write_encoder(folder, contract, other)


@pytest.mark.slow
def test_judged_again_the_encoder_of_a_policy_is_put_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, out = tmp_path / "dce", tmp_path / "r"
    for folder, seed in ((right, 0), (tmp_path / "other", 1)):
        learnt = EncoderTraining(replace(ENCODER, seed=seed))
        write_encoder(folder, learnt.contract, learnt.weights)
    options = replace(SMALL, image="latent", steps=16 * 8)
    run.train_navigation(out, options, RoomsProtocol(flights=2, levels=(15,)), encoder=right)
    held = {path.name: path.read_bytes() for path in (out / "encoder").iterdir()}
    # Of all files they are those that were given, to the byte.
    assert held == {name: (right / name).read_bytes() for name in held}
    harms: list[Callable[[Path], object]] = [
        _swap,
        lambda place: (place / "weights.safetensors").write_bytes(b""),
        lambda place: (place / "contract.json").unlink(),
        shutil.rmtree,
    ]
    for flights, harm in enumerate(harms, 3):
        harm(out / "encoder")
        again = run.train_navigation(out, options, RoomsProtocol(flights=flights, levels=(15,)), encoder=right, quiet=False)
        assert again.figures["protocol"]["flights"] == flights
        assert {path.name: path.read_bytes() for path in (out / "encoder").iterdir()} == held
        assert ("which is put back" in capsys.readouterr().err) == (harm is not shutil.rmtree)
        assert run.load_navigator(out)[0].contract.image == "latent"
    # Another one is refused, and nothing of it is left in the folder.
    shutil.rmtree(out / "encoder")
    with pytest.raises(AirworthyError, match="its encoder was another"):
        run.train_navigation(out, options, RoomsProtocol(flights=9, levels=(15,)), encoder=tmp_path / "other")
    assert not (out / "encoder").exists()


def test_an_encoder_learns_collision_images() -> None:
    """Sixty small steps halve the error of the first; what it says is within what there is to say."""
    training = EncoderTraining(EncoderOptions(iterations=60, batch=16, channels=4), 1)
    errors = []
    for _ in range(60):
        training.step()
        errors.append(training.parts["squared_error"])
    assert np.mean(errors[-5:]) < 0.5 * errors[0]


def test_a_latent_does_not_depend_on_the_batch() -> None:
    torch.manual_seed(0)
    eye = LatentEye(CollisionEncoder(2, 6))
    images = np.random.default_rng(0).uniform(0.1, 10.0, (70, *CAMERA.shape)).astype(np.float32)
    whole = eye.see(images)
    # To rounding: which place of a batch an image has may order sums otherwise.
    np.testing.assert_allclose(eye.see(images[65:66])[0], whole[65], rtol=1e-5, atol=1e-6)


def test_the_simulators_room_is_the_room_that_was_learnt_in() -> None:
    """A room's scene, cast by the rays of general geometry, looks as the kernel of this task sees it."""
    environments = NavigationEnvironments(DepthNavigation(), 3, PooledEye(), seed=3)
    poses, form = environments.flights.critic_observation.astype(float), environments.task.rooms
    batch = SceneBatch([judging.room_scene(form, pose[13:], f"room_{k}") for k, pose in enumerate(poses)], 3)
    columns = [np.stack(matrix_columns(tuple(pose[3:7])), 1) for pose in poses]
    eyes = np.stack([pose[:3] + body @ pose[7:10] for pose, body in zip(poses, columns, strict=True)])
    axes = [body @ euler_matrices(pose[10:13]) for pose, body in zip(poses, columns, strict=True)]
    attitude = np.stack([judging._quaternion(x) for x in axes])
    table = RayTable(CAMERA.directions, axis=(1.0, 0.0, 0.0))
    found = cast(batch.geometry, table, eyes, attitude, env=np.arange(3))["depth"]
    seen = RoomSight(form, CAMERA, 3).look(environments.flights.critic_observation)
    off = np.abs(np.minimum(found, CAMERA.reach) - seen) > 1e-3 + 1e-3 * seen
    # A ray that grazes an edge meets it or not by rounding.
    assert off.mean() < 2e-3


@pytest.mark.parametrize(("mine", "said"), [(1.7, True), (1.5, False)])
def test_an_encoder_that_tells_less_than_its_image_says_so(mine: float, said: bool, tmp_path: Path) -> None:
    unseen = {"images": 8, "rmse_m": mine, "mean_error_m": 0.5, "within_2_m_mean_error_m": 0.4, "said_free_percent": 22.8}
    unseen |= {f"{name}_image_{kind}": 1.6 for name in ("depth", "mean") for kind in ("rmse_m", "mean_error_m")}
    found = {"options": {"seed": 0}, "training_wall_s": 60.0, "training_cpu_s": 60.0, "images": 100, "unseen": unseen}
    found |= {"hardware": hardware_found(), "version": "", "command": "", "seed": 0}
    page = report.write_encoder_report(tmp_path / "page.html", found, []).read_text()
    assert ("tells less than the depth image itself, whose root mean square error is 1.60 m beside" in page) == said
    assert "22.8 %" in page
