"""A policy's folder: written and read back, and refused in one sentence when it is damaged, hostile or of another kind."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pilots.svnet_cases import contract, weights

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256
from airworthy.core.frames import to_matrix
from airworthy.learning.datasets.config import DatasetConfig, described_camera
from airworthy.pilots.network_files import write_sealed
from airworthy.pilots.svnet.contract import (
    CONTRACT_FILE,
    WEIGHTS_FILE,
    PolicyContract,
    PolicyImage,
    checked_tensors,
    contract_from,
    read_contract,
    read_policy,
    shipped_policy,
    tensor_bytes,
    write_policy,
)
from airworthy.pilots.svnet.features import to_objective
from airworthy.pilots.svnet.pilot import objective_of
from airworthy.pilots.svnet.setting import policy_setting
from airworthy.pilots.svnet.variants import VARIANTS
from airworthy.splats.policy_view import PolicyView
from airworthy.trajectories import course
from airworthy.vehicles import vehicle
from airworthy.verification.sealing import seal

SMALL = "hp_net"
"""Whose weights are 100 kB."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_policy(tmp_path / "policy", replace(contract(SMALL), training={"epochs": 3}, data="abc"), weights(SMALL))


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The contract of a policy that sees, as it is in its file."""
    where = write_policy(tmp_path_factory.mktemp("seeing"), contract(side=24), weights())
    return json.loads((where / CONTRACT_FILE).read_text())  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A policy's folder, and the bytes that its weights should have."""
    where = write_policy(tmp_path_factory.mktemp("whole"), contract(SMALL), weights(SMALL))
    return where, (where / WEIGHTS_FILE).read_bytes()


def refused(folder: Path) -> str:
    """The one sentence with which a folder is refused."""
    with pytest.raises(AssetError) as caught:
        read_policy(folder)
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


@pytest.mark.parametrize("name", VARIANTS)
def test_written_and_read_back(name: str, tmp_path: Path) -> None:
    given, numbers = replace(contract(name, 24), history="code", notes="a test"), weights(name)
    where = write_policy(tmp_path, given, numbers)
    found, tensors = read_policy(where)
    assert found == given == read_contract(where)
    assert tensors.keys() == numbers.keys()
    assert all(np.array_equal(tensors[key], numbers[key]) for key in numbers)
    assert (where / WEIGHTS_FILE).stat().st_size < 8e6
    bytes_before = [(where / name).read_bytes() for name in (CONTRACT_FILE, WEIGHTS_FILE)]
    write_policy(tmp_path, given, dict(reversed(numbers.items())))
    assert bytes_before == [(where / name).read_bytes() for name in (CONTRACT_FILE, WEIGHTS_FILE)]


def test_the_published_view() -> None:
    """The reference drone's camera resized to 256 x 256 and cut to 224 x 224, as the specification states it."""
    view = PolicyImage()
    numbers = view.fx, view.fy, view.cx, view.cy
    np.testing.assert_allclose(numbers, (185.182, 329.246, 113.230, 112.842), atol=5e-4)
    np.testing.assert_allclose(numbers, PolicyView().intrinsics(), rtol=1e-12)
    half = PolicyImage.of_side(112)
    assert (half.width, half.height, half.fx, half.cy) == (112, 112, view.fx / 2, view.cy / 2)


def test_every_field_is_said(tmp_path: Path) -> None:
    """Inputs in the order of the graph, with shapes, units and frames."""
    write_policy(tmp_path, contract(side=24), weights())
    table = json.loads((tmp_path / CONTRACT_FILE).read_text())
    shapes = {port["name"]: port["shape"] for port in (*table["inputs"], *table["outputs"])}
    assert shapes == {"state": [8], "objective": [18], "history": [75], "image": [24, 24, 3], "command": [4], "estimate": [2]}
    assert all(port["meaning"] for port in (*table["inputs"], *table["outputs"]))
    assert table["weights"]["sha256"] == sha256((tmp_path / WEIGHTS_FILE).read_bytes())
    assert (table["rate_hz"], table["history"]["form"], table["history"]["ticks"]) == (20.0, "paper", 5)


@given(st.integers(0, 10**9), st.integers(0, 7))
def test_a_flipped_bit_of_the_weights_is_found(whole: tuple[Path, bytes], place: int, bit: int) -> None:
    where, data = whole[0], bytearray(whole[1])
    data[place % len(data)] ^= 1 << bit
    (where / WEIGHTS_FILE).write_bytes(data)
    assert "changed or damaged" in refused(where)


@given(st.binary(max_size=200), st.integers(0, 3000), st.integers(0, 200))
def test_no_bytes_of_weights_do_more_than_be_refused(junk: bytes, place: int, cut: int) -> None:
    """As if their digest were right: headers of any bytes, in front of the true ones or instead of some."""
    data = tensor_bytes(weights(SMALL), SMALL)
    place = place % len(data)
    for bad in (junk, data[:place] + junk + data[place + cut :], data[: -1 - cut]):
        if bad != data:
            assert "\n" not in said_of(lambda bad=bad: checked_tensors(bad, SMALL, "a file"))  # type: ignore[misc]


@pytest.mark.parametrize("size", [0, 7, 2**31, 2**60])
def test_a_header_that_lies_about_its_size(size: int) -> None:
    with pytest.raises(AssetError, match="safetensors"):
        checked_tensors(struct.pack("<Q", size) + b"{}", SMALL, "a file")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


@given(st.data(), JUNK)
def test_no_contract_does_more_than_be_refused(seeing: dict[str, Any], data: st.DataObject, junk: Any) -> None:
    """Any value anywhere in it is taken or refused in one sentence."""
    table = deepcopy(seeing)
    at: Any = table
    while True:
        key = data.draw(st.sampled_from(sorted(at)) if isinstance(at, dict) else st.integers(0, len(at) - 1))
        if not (isinstance(at[key], dict | list) and at[key]) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = junk
    said = said_of(lambda: contract_from(table, "contract.json"))
    assert "\n" not in said
    assert len(said) <= 500


def test_other_kinds_and_versions(folder: Path) -> None:
    changed(folder, lambda table: table.update(version=3))
    assert "version must be 2, the one that is read here, but is 3" in refused(folder)
    changed(folder, lambda table: table.update(version=2, kind="something"))
    assert "kind" in refused(folder)
    changed(folder, lambda table: table.update(kind="airworthy-svnet", variant="sv_nett"))
    assert "Unknown variant" in refused(folder)
    changed(folder, lambda table: table.update(variant="no_rma"))
    assert "image must be a table, but is None" in refused(folder)
    (folder / CONTRACT_FILE).write_text("{")
    assert "not valid JSON" in refused(folder)
    (folder / CONTRACT_FILE).unlink()
    assert "there is no contract.json in it" in refused(folder)


def test_weights_of_another_variant_or_too_many(folder: Path) -> None:
    other = tensor_bytes(weights("no_rma"), "no_rma")
    (folder / WEIGHTS_FILE).write_bytes(other)
    changed(folder, lambda table: table["weights"].update(sha256=sha256(other)))
    assert "is missing" in refused(folder)
    with open(folder / WEIGHTS_FILE, "wb") as file:
        file.truncate(1 << 30)
    assert "at most" in refused(folder)
    (folder / WEIGHTS_FILE).unlink()
    assert "There is no file" in refused(folder)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    bad = weights(SMALL)
    bad["command.0.bias"][3] = np.inf
    with pytest.raises(AirworthyError, match="not finite"):
        write_policy(tmp_path, contract(SMALL), bad)
    with pytest.raises(AirworthyError, match="does not belong"):
        write_policy(tmp_path, contract(SMALL), {**weights(SMALL), "extra": np.zeros(1)})
    with pytest.raises(AirworthyError, match="has shape"):
        write_policy(tmp_path, contract(SMALL), {**weights(SMALL), "command.0.bias": np.zeros(3)})
    with pytest.raises(AirworthyError, match="note less"):
        write_policy(tmp_path, replace(contract(SMALL), training={"text": "x" * 300_000}), weights(SMALL))
    assert not (tmp_path / CONTRACT_FILE).exists()


def test_a_folder_of_something_else_says_where_the_policy_is(folder: Path) -> None:
    assert refused(folder.parent).endswith(f"does not hold a policy; did you mean {str(folder)!r}?")


def test_what_is_of_another_type_is_said_in_words(folder: Path) -> None:
    changed(folder, lambda table: table.update(weights=None))
    assert refused(folder).endswith("contract.json': weights must be a table, but is None.")


def test_contracts_that_nobody_can_mean() -> None:
    for options, said in (
        ({"view": None}, "no view"),
        ({"rate": 0.0}, "rate"),
        ({"history": "other"}, "Contract.history"),
        ({"image_std": (0.0, 1.0, 1.0)}, "image_std"),
        ({"image_mean": (0.0, 1.0)}, "image_mean"),
    ):
        with pytest.raises(AirworthyError, match=said):
            PolicyContract(**options)  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match=r"View\.width is 16 px; expected 17 to 1024"):
        PolicyImage(16, 16)
    for focal in (-1.0, 1e-300):
        with pytest.raises(AirworthyError, match=r"View\.fx is .* px; expected at least 1"):
            PolicyImage(fx=focal)
    with pytest.raises(AirworthyError, match=r"image_std\[0\] is 1000000000; expected at least 0\.001"):
        PolicyContract(image_std=(1e9, 1.0, 1.0))


# ---- versions ---------------------------------------------------------------------------------------------------------------

_SECOND = ("frames", "tick", "objective", "command", "resize", "setting", "network", "example")
"""What version 2 says that version 1 did not."""


def as_first_version(folder: Path) -> None:
    """Rewrite a contract as version 1 was."""

    def stripped(table: dict[str, Any]) -> None:
        for name in _SECOND:
            del table[name]
        table["version"] = 1
        table["history"] = {name: table["history"][name] for name in ("form", "ticks")}
        if table["image"] is not None:
            table["image"] = {name: table["image"][name] for name in ("mean", "std")}

    changed(folder, stripped)


@pytest.mark.parametrize("name", ["hp_net", "sv_net"])
def test_a_contract_of_version_1_is_read_and_says_what_to_do(name: str, tmp_path: Path) -> None:
    given = replace(contract(name, 24), training={"epochs": 3}, data="abc", notes="a test")
    write_policy(tmp_path, given, weights(name))
    second = (tmp_path / CONTRACT_FILE).read_bytes()
    as_first_version(tmp_path)
    found, tensors = read_policy(tmp_path)
    assert found == replace(given, version=1)
    assert found.migration.startswith("Its contract is of version 1")
    assert given.migration == ""
    assert all(np.array_equal(tensors[key], value) for key, value in weights(name).items())
    assert seal(tmp_path) == "rewritten"
    assert (tmp_path / CONTRACT_FILE).read_bytes() == second
    assert seal(tmp_path) == ""


def test_what_it_learnt_from_is_told(tmp_path: Path) -> None:
    carl, path = vehicle("carl"), course("robustness").trajectory()
    camera = described_camera(DatasetConfig(view="112"))
    made = policy_setting(carl, camera, {"robustness": objective_of(path, carl.gravity)}, (0.3, 0.2), 0.02)
    given = replace(contract(side=24), setting=made)
    write_policy(tmp_path, given, weights())
    assert read_contract(tmp_path) == given
    table = json.loads((tmp_path / CONTRACT_FILE).read_text())["setting"]
    assert (table["full_thrust_n"], table["mass_kg"], table["command_delay_s"]) == (27.6, 1.144, 0.02)
    # A camera that looks ahead: its x is the body's right, its y down, its z forward.
    turn = to_matrix(table["camera"]["attitude"])
    np.testing.assert_allclose(turn, [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], atol=1e-12)
    np.testing.assert_allclose(made.objective("robustness"), to_objective(objective_of(path)), atol=1e-12)
    with pytest.raises(AirworthyError, match="tells no objective of a course 'extended'; it tells those of robustness"):
        made.objective("extended")


def test_the_shipped_policy_tells_everything() -> None:
    found = read_contract(shipped_policy())
    assert found.migration == ""
    assert found.setting is not None
    assert found.setting.camera is not None
    path = course("robustness").trajectory()
    np.testing.assert_allclose(found.setting.objective("robustness"), to_objective(objective_of(path)), atol=1e-6)


@pytest.mark.parametrize(
    ("entry", "value", "said"),
    [
        (("command", "high"), [0.0, 9.0, 5.0, 5.0], "command.high[1]"),
        (("tick", "early"), 0.5, "tick.early"),
        (("resize", "corner"), [0, 0], "resize.corner"),
        (("setting",), {"vehicle": "carl"}, "setting lacks 'camera'"),
    ],
)
def test_rules_by_which_this_program_does_not_fly_are_refused(
    entry: tuple[str, ...], value: Any, said: str, tmp_path: Path
) -> None:
    write_policy(tmp_path, contract(side=56), weights())

    def change(table: dict[str, Any]) -> None:
        for name in entry[:-1]:
            table = table[name]
        table[entry[-1]] = value

    changed(tmp_path, change)
    assert said in refused(tmp_path)
