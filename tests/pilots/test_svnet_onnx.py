"""Exported policies: the same decisions through onnxruntime, in one call and over flights with their history."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.pilots.svnet_cases import contract, reading, weights
from tests.pilots.test_svnet_contract import as_first_version

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.pilot import Observation
from airworthy.pilots.svnet.contract import CONTRACT_FILE, CONTRACT_KEY, write_policy
from airworthy.pilots.svnet.network import SvNetwork
from airworthy.pilots.svnet.pilot import SvNetPilot
from airworthy.pilots.svnet.variants import VARIANTS
from airworthy.simulation.sensor_state import Sample

onnx = pytest.importorskip("onnx", reason="the extra 'export' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")

PARITY = 1e-5
"""Largest absolute difference that is allowed."""


def exported(folder: Path, name: str = "sv_net", side: int = 24) -> Path:
    from airworthy.learning.export import export_onnx

    write_policy(folder, contract(name, side), weights(name))
    return export_onnx(folder, folder / "policy.onnx")


@pytest.mark.parametrize("name", VARIANTS)
def test_the_same_decisions(name: str, tmp_path: Path) -> None:
    from airworthy.pilots.svnet.onnx_runner import OnnxNetwork

    other = OnnxNetwork(exported(tmp_path, name))
    assert other.contract == contract(name, 24)
    for count in (1, 5):
        given = reading(name, count, 24)
        found, wanted = other(given), SvNetwork(contract(name, 24), weights(name))(given)
        np.testing.assert_allclose(found.command, wanted.command, atol=PARITY, rtol=0)
        if wanted.estimate is not None:
            np.testing.assert_allclose(found.estimate, wanted.estimate, atol=PARITY, rtol=0)


@pytest.mark.slow
def test_the_same_flight_over_a_thousand_ticks(tmp_path: Path) -> None:
    """Each keeps a history of its own commands: differences would grow if there were any to speak of."""
    from airworthy.pilots.svnet.onnx_runner import OnnxNetwork

    path, made = exported(tmp_path), contract(side=24)
    objective, full = reading(count=1).objective[0], np.full(2, 27.6)
    networks = SvNetwork(made, weights()), OnnxNetwork(path, threads=1)
    pilots = [SvNetPilot(made, network, objective, full) for network in networks]  # type: ignore[arg-type]
    rng, worst, commands_seen = np.random.default_rng(6), 0.0, []
    for tick in range(1000):
        observation = _observed(rng, tick)
        commands = [pilot.command(observation) for pilot in pilots]
        worst = max(worst, float(np.abs(pilots[0].raw - pilots[1].raw).max()))
        commands_seen.append(commands[0])
    assert worst <= PARITY
    assert np.ptp(commands_seen, axis=0).min() > 0.01


def _observed(rng: np.random.Generator, tick: int) -> Observation:
    turn = rng.normal(size=(2, 4)) * 0.2 + [0.0, 0.0, 0.0, 1.0]
    fields = {"height": rng.uniform(0.5, 1.5, 2), "velocity": rng.normal(size=(2, 3))}
    fields["attitude"] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    frames = rng.integers(0, 256, (2, 24, 24, 3), np.uint8)
    numbers = np.full(2, tick)
    sample = Sample(numbers / 20, numbers, numbers, np.ones(2, bool), np.zeros((2, 3)), np.zeros((2, 4)), {"rgb": frames})
    return Observation(np.full(2, tick / 20), fields, {"camera": sample})


def test_the_contract_travels_with_it(tmp_path: Path) -> None:
    path = exported(tmp_path)
    model = onnx.load(path)
    (text,) = [item.value for item in model.metadata_props if item.key == CONTRACT_KEY]
    assert text == (tmp_path / CONTRACT_FILE).read_text()
    table = json.loads(text)
    assert [port["name"] for port in table["inputs"]] == [port.name for port in model.graph.input]
    assert path.read_bytes() == exported(tmp_path).read_bytes()


def test_models_that_are_not_ours(tmp_path: Path) -> None:
    from airworthy.learning.export import export_onnx
    from airworthy.pilots.svnet.onnx_runner import OnnxNetwork

    path = exported(tmp_path, "hp_net")
    with pytest.raises(AirworthyError, match=r"\.onnx"):
        export_onnx(tmp_path, tmp_path / "policy.pt")
    (tmp_path / "x.onnx").write_bytes(b"no model")
    with pytest.raises(AssetError, match="not a usable ONNX model"):
        OnnxNetwork(tmp_path / "x.onnx")
    model = onnx.load(path)
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "x.onnx")
    with pytest.raises(AssetError, match="carries no contract"):
        OnnxNetwork(tmp_path / "x.onnx")
    table = (tmp_path / CONTRACT_FILE).read_text().replace('"hp_net"', '"no_rma"')
    onnx.helper.set_model_props(model, {CONTRACT_KEY: table})
    onnx.save(model, tmp_path / "x.onnx")
    with pytest.raises(AssetError, match="not as it was sealed"):
        OnnxNetwork(tmp_path / "x.onnx")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_policy(tmp_path, contract("hp_net"), weights("hp_net"))
    assert main(["export", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"Model: {tmp_path / 'policy.onnx'} (")
    assert "version" not in capsys.readouterr().out
    as_first_version(tmp_path)
    assert main(["export", str(tmp_path)]) == 0
    assert "contract is of version 1, which flies here as before" in capsys.readouterr().out
    assert main(["seal", str(tmp_path)]) == 0
    assert "its contract is of version 2 now" in capsys.readouterr().out
    assert main(["export", str(tmp_path / "nothing"), "--json"]) == 2
    assert "There is no file" in capsys.readouterr().err
