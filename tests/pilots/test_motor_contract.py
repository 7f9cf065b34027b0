"""A motor policy's folder: written and read back, and refused in one sentence when it is damaged or of another kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pilots.motor_cases import contract, learnt, weights

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256
from airworthy.learning.gradient import write_motor_policy
from airworthy.pilots import read_motor_policy
from airworthy.pilots.motor_policy.contract import (
    MotorContract,
    check_vehicle,
    motor_contract,
    motor_tensors,
    read_motor_folder,
    vehicle_digest,
    write_motor_folder,
)
from airworthy.pilots.network_files import CONTRACT_FILE, WEIGHTS_FILE, tensor_bytes, write_sealed
from airworthy.vehicles import vehicle


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_motor_folder(tmp_path / "policy", contract(history=2), weights(contract(history=2)))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    where = tmp_path_factory.mktemp("table")
    write_motor_folder(where, contract(history=2, training={"a": [1]}), weights(contract(history=2)))
    return json.loads((where / CONTRACT_FILE).read_text())  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    where = write_motor_folder(tmp_path_factory.mktemp("whole"), contract(), weights(contract()))
    return where, (where / WEIGHTS_FILE).read_bytes()


def refused(folder: Path) -> str:
    """The one sentence with which a folder is refused."""
    with pytest.raises(AssetError) as caught:
        read_motor_policy(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    return text


def said_of(call: Callable[[], Any]) -> str:
    """With what it is refused; empty where it is taken. Anything but an AssetError is a failure."""
    try:
        call()
    except AssetError as error:
        return str(error)
    return ""


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / CONTRACT_FILE
    table = json.loads(path.read_text())
    change(table)
    write_sealed(path, table)


def test_what_was_learnt_is_read_back(tmp_path: Path) -> None:
    training = learnt()
    found = read_motor_policy(write_motor_policy(tmp_path, training, notes="a test"))
    said = found.contract
    rotors = vehicle("tinyprop").rotors
    assert said.limits == tuple((r.speed_min, r.speed_max) for r in rotors)
    assert (said.vehicle, said.digest) == ("tinyprop", vehicle_digest(vehicle("tinyprop")))
    assert (said.rate, said.history, said.hidden, said.observed, said.notes) == (100.0, 0, (16, 16), 18, "a test")
    np.testing.assert_array_equal(said.hover, training.hover)
    assert (said.training["env_steps"], said.training["iterations"]) == (1_920_000, 300)
    assert said.training["options"]["cost"]["upright"] == 0.3
    for mine, its in zip(found.weights, training.weights, strict=True):
        np.testing.assert_array_equal(mine, its)
    before = [(tmp_path / name).read_bytes() for name in (CONTRACT_FILE, WEIGHTS_FILE)]
    write_motor_policy(tmp_path, training, notes="a test")
    assert before == [(tmp_path / name).read_bytes() for name in (CONTRACT_FILE, WEIGHTS_FILE)]


def test_limits_are_those_that_were_learnt_with() -> None:
    """The record's, which the contract names, are the rows that the trainer's commands were scaled by."""
    training = learnt()
    limits = np.array([(r.speed_min, r.speed_max) for r in training.vehicle.rotors])
    np.testing.assert_allclose(np.stack([training._lower[:, 0], training._upper[:, 0]], axis=1), limits, rtol=1e-7)


def test_every_number_is_said(table: dict[str, Any]) -> None:
    """Names, shapes, units, frames and scales, in the order in which the network reads them."""
    ports = [(p["name"], p["shape"], p["unit"], p["frame"], p["scale"]) for p in table["inputs"]]
    assert ports == [
        ("position_error", [3], "m", "target", 1.0),
        ("velocity_error", [3], "m/s", "target", 0.5),
        ("rotation", [9], "1", "body to target", 1.0),
        ("rate", [3], "rad/s", "body", 0.1),
        ("past_actions", [8], "1", "rotors", 1.0),
    ]
    assert all(p["meaning"] for p in (*table["inputs"], *table["outputs"]))
    assert table["layers"] == {"widths": [26, 16, 24, 4], "activation": "tanh"}
    assert table["vehicle"]["rotor_state"] == {"is": "speed", "unit": "rad/s"}
    assert table["vehicle"]["limits"][2] == {"low": -100.0, "high": 700.0}


@given(st.integers(0, 10**9), st.integers(0, 7))
def test_a_flipped_bit_of_the_weights_is_found(whole: tuple[Path, bytes], place: int, bit: int) -> None:
    where, data = whole[0], bytearray(whole[1])
    data[place % len(data)] ^= 1 << bit
    (where / WEIGHTS_FILE).write_bytes(data)
    assert "changed or damaged" in refused(where)


@given(st.binary(max_size=200), st.integers(0, 3000), st.integers(0, 200))
def test_no_bytes_of_weights_do_more_than_be_refused(whole: tuple[Path, bytes], junk: bytes, place: int, cut: int) -> None:
    """As if their digest were right."""
    data = whole[1]
    place = place % len(data)
    for bad in (junk, data[:place] + junk + data[place + cut :], data[: -1 - cut]):
        assert "\n" not in said_of(lambda bad=bad: motor_tensors(contract(), bad, "a folder"))  # type: ignore[misc]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), JUNK)
def test_no_contract_does_more_than_be_refused(table: dict[str, Any], data: st.DataObject, junk: Any) -> None:
    """Any value anywhere in it is taken or refused in one sentence."""
    other = deepcopy(table)
    at: Any = other
    while True:
        key = data.draw(st.sampled_from(sorted(at)) if isinstance(at, dict) else st.integers(0, len(at) - 1))
        if not (isinstance(at[key], dict | list) and at[key]) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = junk
    said = said_of(lambda: motor_contract(other, "contract.json"))
    assert "\n" not in said
    assert len(said) <= 500


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.update(version=2), "version must be 1, the one that is read here, but is 2"),
        (
            lambda t: t.update(kind="airworthy-svnet"),
            "is not a contract of a motor policy: its kind must be 'motor_policy'",
        ),
        (lambda t: t.pop("hover"), "lacks 'hover'"),
        (lambda t: t["inputs"][1].update(scale=0.4), "inputs[1].scale must be 0.5, but is 0.4"),
        (lambda t: t["inputs"].reverse(), "inputs[0].name must be 'position_error', but is 'past_actions'"),
        (lambda t: t["outputs"][0].update(low=0.0), "outputs[0].low must be -1.0, but is 0.0"),
        (lambda t: t.update(history=3), "inputs[4].shape[0] must be 12, but is 8"),
        (lambda t: t.update(history=True), "history must be a whole number, but is True"),
        (lambda t: t["layers"]["widths"].__setitem__(1, 17), "has shape"),
        (lambda t: t["layers"]["widths"].__setitem__(0, 25), "layers.widths[0] must be 26, but is 25"),
        (lambda t: t["layers"].update(activation="relu"), "'tanh'"),
        (lambda t: t["vehicle"].update(rotor_count=5), "vehicle.rotor_count must be 4, but is 5"),
        (lambda t: t["vehicle"]["rotor_state"].update(unit="N"), "vehicle.rotor_state.unit must be 'rad/s', but is 'N'"),
        (
            lambda t: t["vehicle"]["rotor_state"].update({"is": "torque"}),
            "must be one of 'speed', 'thrust', but is 'torque'",
        ),
        (lambda t: t["vehicle"]["limits"][0].update(high=-1.0), "expected low below high"),
        (lambda t: t["vehicle"]["limits"].pop(), "Contract.hover is of 4 rotors; expected 3"),
        (lambda t: t["hover"].__setitem__(0, 1.5), "Contract.hover[0] is 1.5; expected -1 to 1"),
        (lambda t: t.update(rate_hz=0.0), "rate"),
        (lambda t: t["weights"].update(sha256="0"), "SHA-256"),
    ],
)
def test_a_contract_that_does_not_fit(folder: Path, change: Callable[[dict[str, Any]], None], said: str) -> None:
    """Sealed anew, so that only what it says is wrong."""
    changed(folder, change)
    assert said in refused(folder)


def test_no_folder_and_other_weights(folder: Path) -> None:
    other = contract(history=2, hidden=(16,))
    shapes = {"layers.0.weight": (16, 26), "layers.0.bias": (16,), "layers.1.weight": (4, 16), "layers.1.bias": (4,)}
    data = tensor_bytes(dict(zip(shapes, weights(other), strict=True)), shapes)
    (folder / WEIGHTS_FILE).write_bytes(data)
    changed(folder, lambda t: t["weights"].update(sha256=sha256(data)))
    assert "the tensor 'layers.2.bias' is missing" in refused(folder)
    with open(folder / WEIGHTS_FILE, "wb") as file:
        file.truncate(1 << 30)
    assert "at most" in refused(folder)
    (folder / CONTRACT_FILE).unlink()
    assert "there is no contract.json in it" in refused(folder)
    assert "There is no file" in refused(folder / "nowhere")


def test_a_folder_of_several_seeds_names_theirs(tmp_path: Path) -> None:
    for seed in range(5):
        write_motor_folder(tmp_path / "seeds" / f"seed_{seed}", contract(), weights(contract()))
        if seed in (0, 4):
            named = ", ".join(repr(str(tmp_path / "seeds" / f"seed_{k}")) for k in range(min(seed + 1, 3)))
            ending = f"; did you mean {named}?"
            if seed:
                ending = f" itself, but 5 folders in it do, one per seed or variant: name {named} ...."
            assert refused(tmp_path / "seeds") == f"{str(tmp_path / 'seeds')!r} does not hold a policy{ending}"


def test_weights_that_cannot_be_written(tmp_path: Path) -> None:
    given = contract()
    for change, said in (
        (lambda w: w.pop(), "has 5 arrays; expected 6"),
        (lambda w: w.__setitem__(0, w[0].T), "has shape"),
        (lambda w: w[2].__setitem__(0, np.nan), "not finite"),
        (lambda w: w[2].__setitem__(0, 2e6), "beyond 1e\\+06"),
    ):
        arrays = weights(given)
        change(arrays)  # type: ignore[no-untyped-call]
        with pytest.raises(AirworthyError, match=said):
            write_motor_folder(tmp_path, given, arrays)
    assert not list(tmp_path.iterdir())


def test_huge_weights_of_a_stranger(folder: Path) -> None:
    given, arrays = contract(history=2), weights(contract(history=2))
    arrays[3][1] = 1e30
    shapes = {f"layers.{k // 2}.{('weight', 'bias')[k % 2]}": w.shape for k, w in enumerate(arrays)}
    data = tensor_bytes(dict(zip(shapes, arrays, strict=True)), shapes)
    with pytest.raises(AssetError, match=r"'layers\.1\.bias' has numbers beyond"):
        motor_tensors(given, data, folder)
    assert read_motor_folder(folder)[0] == given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limits": ((0.0, 1.0),)}, "hover is of 4 rotors; expected 1, as many as"),
        ({"limits": (), "hover": ()}, "expected 1 to 16 entries"),
        ({"hidden": ()}, "expected 1 to 4 whole numbers"),
        ({"hidden": (16, 257)}, r"hidden\[1\] is 257; expected 1 to 256"),
        ({"limits": ((0.0, 1e9),) * 4}, r"limits\[0\]\[1\] is 1000000000; expected -1000000 to 1000000"),
        ({"history": 9}, "history"),
    ],
)
def test_numbers_out_of_range(given: dict[str, Any], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        contract(**given)


def test_which_vehicles_it_may_command() -> None:
    """Another mass is what robustness is about; other rotors make its actions mean something else."""
    own = vehicle("tinyprop")
    fit = MotorContract("tinyprop", tuple((r.speed_min, r.speed_max) for r in own.rotors), (0.0,) * 4)
    check_vehicle(fit, replace(own, mass=2.0 * own.mass, name="heavier"))
    with pytest.raises(AirworthyError, match=r"command 4 rotors of .* rad/s of 'tinyprop'; the vehicle 'x500' has 4"):
        check_vehicle(fit, vehicle("x500"))
    with pytest.raises(AirworthyError, match="has 8 rotors"):
        check_vehicle(fit, vehicle("base_octarotor"))
    with pytest.raises(AirworthyError, match=r"has 4 rotors of .* N: train one"):
        check_vehicle(fit, replace(own, motor_state="thrust"))


def test_a_band_of_the_rotors_states_may_end_where_theirs_do() -> None:
    """Of the vehicle that it learnt with, up to both ends; of another record only the same range is taken."""
    own = vehicle("tinyprop")
    low, high = own.rotors[0].speed_min, own.rotors[0].speed_max
    middle = 0.5 * (low + high)
    for band in ((low, high), (low, middle), (middle, high), (0.9 * low + 0.1 * high, middle)):
        fit = MotorContract("tinyprop", (band,) * 4, (0.0,) * 4, digest=vehicle_digest(own))
        check_vehicle(fit, own)
        if band != (low, high):
            with pytest.raises(AirworthyError, match="train one for it"):
                check_vehicle(fit, replace(own, mass=2.0 * own.mass))
    for band in ((low - 1.0, high), (low, high + 1.0)):
        with pytest.raises(AirworthyError, match="train one for it"):
            check_vehicle(MotorContract("tinyprop", (band,) * 4, (0.0,) * 4, digest=vehicle_digest(own)), own)
