"""Folders of what was learnt: what they say, that they come back as they were, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot
from tests.pilots.policy_cases import avoid_policy, drawn, navigation_policy, task_policy

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning.native_ppo.moments import RunningMoments
from airworthy.pilots import catalogue
from airworthy.pilots.avoid_policy import contract as avoid_files
from airworthy.pilots.avoid_policy import pilot as avoid
from airworthy.pilots.navigation_policy import contract as navigation_files
from airworthy.pilots.navigation_policy import encoder as encoder_files
from airworthy.pilots.navigation_policy import pilot as navigation
from airworthy.pilots.network_files import write_sealed
from airworthy.pilots.task_policy import contract as task_files
from airworthy.vehicles import vehicle

SNAPSHOT = Path(__file__).parent / "snapshots" / "policies.txt"

CASES: dict[str, tuple[Any, Callable[..., Path], Callable[..., Any]]] = {
    "navigation": (
        navigation_policy().contract,
        navigation_files.write_navigation_folder,
        navigation_files.read_navigation_folder,
    ),
    "lidar": (
        navigation_policy(task="lidar_navigation", image="latent", numbers=64, actions=4, recurrent=0).contract,
        navigation_files.write_navigation_folder,
        navigation_files.read_navigation_folder,
    ),
    "latent": (
        navigation_policy(image="latent", numbers=64, encoder="ab" * 32, training={"seed": 3}).contract,
        navigation_files.write_navigation_folder,
        navigation_files.read_navigation_folder,
    ),
    "avoid": (
        avoid_policy(blind=True, training={"seed": 3}).contract,
        avoid_files.write_avoid_folder,
        avoid_files.read_avoid_folder,
    ),
    "task": (task_policy(path=(0.1,), notes="one").contract, task_files.write_task_folder, task_files.read_task_folder),
}


def _weights(case: str) -> Any:
    contract = CASES[case][0]
    if case == "task":
        return list(task_policy(path=(0.1,)).weights)
    shapes = avoid_files.tensor_shapes(contract) if case == "avoid" else contract.shapes()
    return {name: np.abs(x) + np.float32(0.1) if name == "seen.deviation" else x for name, x in drawn(shapes).items()}


@pytest.mark.parametrize("case", CASES)
def test_folders_say_what_they_hold_and_come_back(case: str, tmp_path: Path) -> None:
    contract, write, read = CASES[case]
    weights = _weights(case)
    write(tmp_path, contract, weights)
    table = json.loads((tmp_path / "contract.json").read_text("utf-8"))
    check_snapshot(
        SNAPSHOT,
        {name: json.dumps(value, sort_keys=True) for name, value in table.items() if name != "weights"},
        part=f"folder {case}",
    )
    again, tensors = read(tmp_path)
    assert again == contract
    pairs = zip(tensors, weights, strict=True) if case == "task" else [(tensors[name], weights[name]) for name in weights]
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", CASES)
def test_folders_of_another_kind_are_refused(case: str, tmp_path: Path) -> None:
    """What a contract states besides what is read from it has to be what this version means by it."""
    contract, write, read = CASES[case]
    write(tmp_path, contract, _weights(case))
    place = tmp_path / "contract.json"
    good = json.loads(place.read_text("utf-8"))
    checked = {"task": ("frames", "command", "layers"), "avoid": ("rate_hz", "image", "inputs", "outputs", "command")}
    for key in (*checked.get(case, ("rate_hz", "image", "inputs", "command")), "kind", "version"):
        changed = good[key] + 1 if isinstance(good[key], int | float) else "other"
        place.write_text(json.dumps(good | {key: changed}), "utf-8")
        with pytest.raises(AssetError):
            read(tmp_path)


@pytest.mark.parametrize("case", CASES)
def test_weights_may_be_as_large_as_said_and_no_larger(case: str, tmp_path: Path) -> None:
    contract, write, read = CASES[case]
    most = 1e6 if case == "task" else 1e4
    weights = _weights(case)
    first: Any = weights[0] if case == "task" else next(iter(weights.values()))
    first.flat[0] = -most
    write(tmp_path, contract, weights)
    read(tmp_path)
    first.flat[0] = -np.nextafter(np.float32(most), np.float32(np.inf))
    with pytest.raises(AirworthyError, match="numbers beyond"):
        read(write(tmp_path, contract, weights))


@pytest.mark.parametrize("least", [0.0, -1.0, 1e-30, 9.9e-5])
def test_a_deviation_that_no_training_gives_is_refused(least: float, tmp_path: Path) -> None:
    contract, weights = CASES["navigation"][0], _weights("navigation")
    weights["seen.deviation"][3] = least
    navigation_files.write_navigation_folder(tmp_path, contract, weights)
    with pytest.raises(AssetError, match=r"'seen.deviation' has .*; no training gives less than 0\.0001"):
        navigation_files.read_navigation_folder(tmp_path)
    # The least that one gives: of an input that never changed.
    moments = RunningMoments(1)
    moments.learn(np.ones((4, 1)))
    weights["seen.deviation"][3] = moments.deviation[0]
    navigation_files.read_navigation_folder(navigation_files.write_navigation_folder(tmp_path, contract, weights))


def test_weights_of_an_encoder_may_be_as_large_as_those_of_its_policy(tmp_path: Path) -> None:
    contract = encoder_files.EncoderContract(channels=1, latent=2)
    weights = drawn(encoder_files.encoder_shapes(contract))
    weights["conv0.weight"].flat[0] = -1e4
    encoder_files.read_encoder_folder(encoder_files.write_encoder(tmp_path, contract, weights))
    for beyond in (np.nextafter(np.float32(1e4), np.float32(np.inf)), 1e30):
        weights["conv0.weight"].flat[0] = beyond
        encoder_files.write_encoder(tmp_path, contract, weights)
        with pytest.raises(AssetError, match=r"'conv0.weight' has numbers beyond 10000"):
            encoder_files.read_encoder_folder(tmp_path)


def test_a_policy_of_pooled_images_has_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"Contract\.encoder is 'abababababab'\.\.\.; a policy of pooled images has none"):
        replace(CASES["navigation"][0], encoder="ab" * 32)
    place = navigation_files.write_navigation_folder(tmp_path, CASES["navigation"][0], _weights("navigation")) / "contract.json"
    write_sealed(place, json.loads(place.read_text("utf-8")) | {"encoder": "ff" * 32})
    with pytest.raises(AssetError, match=r"contract\.json'.* of pooled images has none"):
        navigation_files.read_navigation_folder(tmp_path)


@pytest.mark.parametrize("recurrent", [0, 6])
def test_a_network_computes_as_its_contract_says(recurrent: int, tmp_path: Path) -> None:
    """By the contract's own words, in float64: whoever has only the folder can compute the same."""
    policy = navigation_policy(recurrent=recurrent)
    weights = {
        n: np.abs(x) + np.float32(0.5) if n == "seen.deviation" else x for n, x in drawn(policy.contract.shapes()).items()
    }
    navigation_files.write_navigation_folder(tmp_path, policy.contract, weights)
    said = json.loads((tmp_path / "contract.json").read_text("utf-8"))["layers"]
    assert (said["standardized"], said["activation"], said["output"]) == ("(x - seen.mean) / seen.deviation", "tanh", "tanh")
    w = {name: np.asarray(x, float) for name, x in weights.items()}
    rng = np.random.default_rng(3)
    seen, memory = rng.normal(0.0, 1.0, (4, len(w["seen.mean"]))), rng.normal(0.0, 0.5, (4, recurrent))

    def product(name: str, x: Any) -> Any:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x, kept = (seen - w["seen.mean"]) / w["seen.deviation"], memory
    for k in range(len(policy.contract.hidden)):
        x = np.tanh(product(f"layers.{k}", x))
    if recurrent:
        assert said["gates"].startswith("reset, update, new")
        (ir, iu, i_new), (hr, hu, h_new) = (np.split(product(n, v), 3, axis=1) for n, v in (("input", x), ("memory", memory)))
        reset, update = 1.0 / (1.0 + np.exp(-ir - hr)), 1.0 / (1.0 + np.exp(-iu - hu))
        x = kept = (1.0 - update) * np.tanh(i_new + reset * h_new) + update * memory
    else:
        assert not {"memory", "gates", "reset_gate"} & set(said)
    found = navigation.read_flown_policy(tmp_path).policy.act(seen.astype(np.float32), memory.astype(np.float32))
    # Of sums of some hundred numbers near 1 in float32.
    for one, other in zip(found, (np.tanh(product("action", x)), kept), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-6)


def test_a_folder_that_does_not_say_how_its_network_computes_is_read(tmp_path: Path) -> None:
    """Those of earlier versions do not; what it says has to be so."""
    contract, weights = CASES["navigation"][0], _weights("navigation")
    place = navigation_files.write_navigation_folder(tmp_path, contract, weights) / "contract.json"
    good = json.loads(place.read_text("utf-8"))
    write_sealed(place, {name: value for name, value in good.items() if name != "layers"})
    assert navigation_files.read_navigation_folder(tmp_path)[0] == contract
    write_sealed(place, good | {"layers": good["layers"] | {"activation": "elu"}})
    with pytest.raises(AssetError, match="layers"):
        navigation_files.read_navigation_folder(tmp_path)


def test_what_does_not_fit_a_contract_is_refused() -> None:
    contract = task_policy().contract
    for changes, words in (
        ({"level": "speed"}, "expected rotor_speed or one of"),
        ({"memory": (1.0,)}, "Contract.observe does not fit"),
        ({"hover": (0.0,)}, "does not fit"),
        ({"level": "rotor_speed", "command": contract.remember}, "Contract.command does not fit"),
        ({"remember": contract.command}, "Contract.remember does not fit"),
    ):
        with pytest.raises(AirworthyError, match=words):
            replace(contract, **changes)
    with pytest.raises(AirworthyError, match="expected 6"):
        task_files.write_task_folder("nowhere", contract, [np.zeros(2)])
    lacking = dict(avoid_policy().weights)
    lacking.pop("out.bias")
    with pytest.raises(AirworthyError, match=r"lacks the tensor 'out.bias'"):
        avoid.AvoidPolicy(avoid_policy().contract, lacking)
    with pytest.raises(AirworthyError, match=r"lacks the tensor 'image.bias'"):
        avoid.AvoidPolicy(avoid_policy().contract, avoid_policy().weights | {"image.bias": np.zeros(8, np.float32)})


@pytest.mark.parametrize(
    ("task", "numbers", "actions"),
    [("depth_navigation", 192, 4), ("depth_navigation", 191, 3), ("lidar_navigation", 320, 3), ("lidar_navigation", 192, 4)],
)
def test_counts_that_a_task_does_not_have_are_refused(task: Any, numbers: int, actions: int) -> None:
    """Sealed or not: flown, such a policy would fail in the air."""
    with pytest.raises(AirworthyError, match=f"a policy of {task} that reads pooled images has"):
        navigation_files.NavigationContract(task, "pooled", numbers, actions)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task": "lidar_navigation", "image": "latent", "numbers": 64, "actions": 4}, "latent of a LiDAR"),
        ({"image": "latent", "numbers": 64}, "encoder"),
    ],
)
def test_what_reads_something_else_does_not_fly(fields: dict[str, Any], words: str, tmp_path: Path) -> None:
    contract = navigation_policy(**fields).contract
    weights = {n: np.abs(x) + np.float32(0.1) if n == "seen.deviation" else x for n, x in drawn(contract.shapes()).items()}
    navigation_files.write_navigation_folder(tmp_path, contract, weights)
    with pytest.raises(AirworthyError, match=words):
        navigation.read_flown_policy(tmp_path)


# ---- which pilot a folder is flown by -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("folders")
    for case in ("navigation", "avoid", "task"):
        contract, write, _ = CASES[case]
        write(root / case, contract, _weights(case))
    (root / "svnet").mkdir()
    return {name: root / name for name in ("navigation", "avoid", "task", "svnet")}


def test_a_folder_names_its_pilot_level_rate_controller_and_camera(folders: dict[str, Path]) -> None:
    words = {name: catalogue.policy_word(folders[name]) for name in ("navigation", "avoid", "task")}
    assert words == {name: f"{'policy' if name == 'task' else name}:{folders[name]}" for name in words}
    assert [catalogue.pilot_level(word) for word in words.values()] == ["velocity", "acceleration", "velocity"]
    assert [catalogue.pilot_rate(word) for word in words.values()] == [10.0, 15.0, 50.0]
    assert [catalogue.pilot_control(word) for word in words.values()] == [None, None, CASES["task"][0].control]
    assert (catalogue.pilot_level("policy"), catalogue.pilot_rate("mpc"), catalogue.pilot_control("mpc")) == (
        "rotor_speed",
        0.0,
        None,
    )
    flyer = vehicle("carl")
    cameras = [list(catalogue.pilot_sensors(word, flyer)) for word in words.values()]
    assert cameras == [["navigation_depth"], ["policy_depth"], []]
    assert catalogue.pilot_sensors("mpc", flyer) == {}


@pytest.mark.parametrize("word", ["avoid", "navigation", "policy", "avoid:", "policy:", "mpc:", "mpc:folder", "svnet:"])
def test_folders_stand_behind_policies_and_behind_nothing_else(word: str) -> None:
    with pytest.raises(AirworthyError, match="other pilots without a colon"):
        catalogue.pilot_rate(word)


def test_a_policy_that_cannot_fly_a_vehicle_is_refused_before_anything_is_mounted(tmp_path: Path) -> None:
    policy = task_policy(level="rotor_speed", limits=((1.0, 2.0),) * 4)
    task_files.write_task_folder(tmp_path, policy.contract, list(policy.weights))
    with pytest.raises(AirworthyError, match="train one for it"):
        catalogue.pilot_sensors(f"policy:{tmp_path}", vehicle("carl"))
    assert catalogue.pilot_level(f"policy:{tmp_path}") == "rotor_speed"
