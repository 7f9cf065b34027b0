"""A contract's seal: every flipped bit is found, for each network there is; folders without one say what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots import motor_cases
from tests.pilots.svnet_cases import contract, weights

from airworthy.core.errors import AssetError
from airworthy.core.files import json_text
from airworthy.gates.planner.contract import BoundaryContract, read_network, shipped_networks, tensor_shapes, write_network
from airworthy.pilots.motor_policy.contract import read_motor_folder, write_motor_folder
from airworthy.pilots.network_files import parse_contract, sealed_text
from airworthy.pilots.svnet.contract import SHIPPED, read_contract, read_policy, shipped_policy, write_policy
from airworthy.planners.navrl.network import SHAPES, convert_weights, load_network
from airworthy.verification.sealing import seal

Case = tuple[Path, Callable[[], Any]]


def _svnet(folder: Path) -> Case:
    write_policy(folder, contract(side=24), weights())
    return folder / "contract.json", lambda: read_contract(folder)


def _boundary(folder: Path) -> Case:
    rng = np.random.default_rng(0)
    made = {name: rng.normal(size=shape).astype(np.float32) for name, shape in tensor_shapes().items()}
    write_network(folder, BoundaryContract(training={"seal": "0" * 64}, notes='a "seal": in words'), made)
    return folder / "contract.json", lambda: read_network(folder)


def _motor(folder: Path) -> Case:
    write_motor_folder(folder, motor_cases.contract(history=1), motor_cases.weights(motor_cases.contract(history=1)))
    return folder / "contract.json", lambda: read_motor_folder(folder)


def _navrl(folder: Path) -> Case:
    source = folder / "source.npz"
    folder.mkdir()
    np.savez(source, **{name: np.full(shape, 0.01, np.float32) for name, shape in SHAPES.items()})
    path = convert_weights(source, folder)
    return folder / "navrl.json", lambda: load_network(path)


NETWORKS = {"svnet": _svnet, "boundary": _boundary, "motor": _motor, "navrl": _navrl}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return NETWORKS[request.param](tmp_path / "network")


def said(call: Callable[[], Any]) -> str:
    """The one sentence with which it is refused."""
    with pytest.raises(AssetError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    return text


@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_every_flipped_bit_of_a_contract_is_refused_in_a_sentence(network: Case, bits: int) -> None:
    path, read = network
    read()
    whole = path.read_bytes()
    # Some bytes through the file itself, with a bit that goes round; of each byte that bit, or all eight, in memory.
    for place in range(0, len(whole), max(1, len(whole) // 300)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        path.write_bytes(data)
        said(read)
    for place in range(len(whole)):
        for bit in range(bits):
            data = bytearray(whole)
            data[place] ^= 1 << (place + bit) % 8
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:  # refused before it is parsed, see `read_text`
                continue
            with pytest.raises(AssetError):
                parse_contract(text, "contract.json")
    path.write_bytes(whole)
    read()


@pytest.mark.slow
def test_every_entry_is_covered_and_so_are_added_and_lost_ones(network: Case) -> None:
    path, read = network
    whole = path.read_text()
    table = json.loads(whole)
    changed = 0
    for keys in _places(table):
        if keys == ("seal",):
            continue
        other = json.loads(whole)
        at = other
        for key in keys[:-1]:
            at = at[key]
        value = at[keys[-1]]
        at[keys[-1]] = value + 1.5 if isinstance(value, float) else value + 1 if isinstance(value, int) else "other"
        path.write_text(json_text(other))
        assert "changed or damaged" in said(read), keys
        changed += 1
    assert changed > 5
    for cut in (1, 2, 70, len(whole) // 2, len(whole)):
        path.write_text(whole[:-cut])
        said(read)
    path.write_text(whole + "\n")
    said(read)
    path.write_text(json_text({**{k: v for k, v in table.items() if k != "seal"}, "more": 1, "seal": table["seal"]}))
    assert "changed or damaged" in said(read)


def _places(table: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    return [place for key, value in items for place in (_places(value, (*before, key)) or [(*before, key)])]


def test_a_scale_made_larger_does_not_load() -> None:
    # The flight that this cost: every speed 1.5 times too high, without a word.
    folder = shipped_networks()["racing"]
    text = (folder / "contract.json").read_text()
    assert text.count('"scale": 2.2222222222222223') == 1
    with pytest.raises(AssetError, match="changed or damaged"):
        parse_contract(text.replace('"scale": 2.2222222222222223', '"scale": 3.3333333333333335'), "contract.json")


def test_what_carries_no_seal_is_refused_and_sealed_once(tmp_path: Path) -> None:
    for name in ("svnet", "boundary", "motor"):
        path, read = NETWORKS[name](tmp_path / name)
        sealed = path.read_text()
        table = {key: value for key, value in json.loads(sealed).items() if key != "seal"}
        path.write_text(json.dumps(table))
        assert "airworthy seal" in said(read)
        assert seal(path.parent)
        assert path.read_text() == sealed
        assert not seal(path.parent)
        read()
        # A seal that does not fit is not renewed, nor is anything sealed that would not be read.
        version = f'"version": {table["version"]}'
        path.write_text(sealed.replace(version, '"version": 7'))
        assert "changed or damaged" in said(lambda p=path: seal(p.parent))
        path.write_text(json.dumps({**table, "version": 7}))
        assert "the one that is read here, but is 7" in said(lambda p=path: seal(p.parent))
        (path.parent / "weights.safetensors").write_bytes(b"other")
        path.write_text(json.dumps(table))
        assert "SHA-256" in said(lambda p=path: seal(p.parent))
    (tmp_path / "contract.json").write_text(json.dumps({"kind": "something"}))
    assert "kind 'something'" in said(lambda: seal(tmp_path))


def test_shipped_networks_are_sealed(tmp_path: Path) -> None:
    folders = [*shipped_networks().values(), *(shipped_policy(name) for name in SHIPPED)]
    assert len(folders) == 3
    for k, folder in enumerate(folders):
        copy = shutil.copytree(folder, tmp_path / str(k))
        assert not seal(copy)
    read_policy(shipped_policy())


def test_a_seal_is_of_the_text_that_is_written() -> None:
    table = {"kind": "x", "notes": "0" * 64, "number": 0.1}
    text = sealed_text(table)
    assert parse_contract(text, "x") == {**table, "seal": json.loads(text)["seal"]}
    assert sealed_text(parse_contract(text, "x")) == text


def test_weights_of_navrl_without_or_beside_their_contract(tmp_path: Path) -> None:
    path, read = _navrl(tmp_path / "network")
    weights_file = path.with_name("navrl.safetensors")
    data = bytearray(weights_file.read_bytes())
    data[-2] ^= 1
    weights_file.write_bytes(data)
    assert "changed or damaged" in said(read)
    path.unlink()
    assert "nothing vouches for it" in said(read)
