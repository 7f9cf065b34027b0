"""NavRL's network against the published check values, its layers against a plain loop, and its weights as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.planners.navrl import convert_weights, load_network, weights_folder
from airworthy.planners.navrl.network import SHAPES, Network

STATE = np.array([[1.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0, 0.0]])
CHECKS = [
    (None, (1.39, 0.49, 0.43), -7.28),
    ((3.0, 0.0), (1.70, 0.04, 0.20), -5.28),
    ((2.0, 0.0), (0.01, -1.47, -1.31), -3.94),
    ((2.0, 0.5), (1.91, -0.99, 0.42), -5.12),
    ((2.0, -0.5), (1.25, 1.02, 0.53), -6.68),
]
"""Centre of a pillar of radius 0.4 m, action, value; from the notes beside the weights."""


def pillar_scan(centre: tuple[float, float] | None) -> Array:
    """Scan of one upright pillar: 4 m minus the distance."""
    scan = np.zeros((36, 4))
    if centre is None:
        return scan
    angle = np.radians(10.0 * np.arange(36))
    along = np.cos(angle) * centre[0] + np.sin(angle) * centre[1]
    rest = along**2 - (np.dot(centre, centre) - 0.16)
    level = along - np.sqrt(np.maximum(rest, 0.0))
    ranges = level[:, None] / np.cos(np.radians([-10.0, 0.0, 10.0, 20.0]))
    return np.where(((rest > 0.0) & (along > 0.0))[:, None], 4.0 - np.minimum(4.0, ranges), 0.0)


def random_network(seed: int = 0) -> Network:
    rng = np.random.default_rng(seed)
    return Network({name: 0.1 * rng.normal(size=shape) for name, shape in SHAPES.items()})


@pytest.fixture(scope="module")
def source(data_dir: Path) -> Path:
    return data_dir / "policies" / "navrl" / "navrl_weights.npz"


def test_published_check_values(source: Path) -> None:
    network = load_network(source)
    for centre, action, value in CHECKS:
        out = network.forward(STATE, pillar_scan(centre)[None])
        assert np.abs(out.velocity[0] - action).max() < 0.01
        assert abs(out.value[0] - value) < 0.01


def test_a_flight_does_not_depend_on_the_others() -> None:
    network, rng = random_network(), np.random.default_rng(1)
    state, scan, moving = rng.normal(size=(37, 8)), rng.uniform(0, 4, (37, 36, 4)), rng.normal(size=(37, 5, 10))
    whole = network.forward(state, scan, moving)
    for k in (0, 17, 36):
        alone = network.forward(state[k : k + 1], scan[k : k + 1], moving[k : k + 1])
        assert np.array_equal(alone.velocity[0], whole.velocity[k])
        assert alone.value[0] == whole.value[k]
    assert np.abs(whole.velocity).max() < 2.0


@pytest.mark.parametrize(("stride", "pad"), [((1, 1), (2, 1)), ((2, 1), (2, 1)), ((2, 2), (2, 1))])
def test_convolution_equals_the_sum_that_defines_it(stride: tuple[int, int], pad: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    network = random_network()
    name = "feature_extractor.module.0.module.2"
    kernel, bias = network._w[f"{name}.weight"], network._w[f"{name}.bias"]
    x = rng.normal(size=(2, 4, 9, 4))
    out = network._conv(x, name, stride, pad)
    padded = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    for n, c, i, j in np.ndindex(out.shape):
        window = padded[n, :, i * stride[0] : i * stride[0] + 5, j * stride[1] : j * stride[1] + 3]
        assert abs(out[n, c, i, j] - ((window * kernel[c]).sum() + bias[c])) < 1e-12


def test_against_torch(source: Path) -> None:
    torch = pytest.importorskip("torch")
    network, rng = load_network(source), np.random.default_rng(3)
    w = {name: torch.tensor(array) for name, array in network._w.items()}
    functions = torch.nn.functional
    state, scan, moving = rng.normal(size=(6, 8)), rng.uniform(0, 4, (6, 36, 4)), rng.normal(size=(6, 5, 10))
    prefix = "feature_extractor.module.0.module."
    x = torch.tensor(scan)[:, None]
    for layer, stride in (("0", (1, 1)), ("2", (2, 1)), ("4", (2, 2))):
        x = functions.elu(functions.conv2d(x, w[f"{prefix}{layer}.weight"], w[f"{prefix}{layer}.bias"], stride, (2, 1)))
    x = functions.linear(x.flatten(1), w[f"{prefix}7.weight"], w[f"{prefix}7.bias"])
    features = functions.layer_norm(x, (128,), w[f"{prefix}8.weight"], w[f"{prefix}8.bias"])

    def block(y, where, first, second):  # type: ignore[no-untyped-def]
        y = functions.leaky_relu(functions.linear(y, w[f"{where}{first}.weight"], w[f"{where}{first}.bias"]), 0.01)
        return functions.layer_norm(y, (y.shape[1],), w[f"{where}{second}.weight"], w[f"{where}{second}.bias"])

    met = torch.tensor(moving).flatten(1)
    met = block(block(met, "feature_extractor.module.1.module.1.", 0, 2), "feature_extractor.module.1.module.1.", 3, 5)
    x = torch.cat([features, torch.tensor(state), met], 1)
    x = block(block(x, "feature_extractor.module.3.module.", 0, 2), "feature_extractor.module.3.module.", 3, 5)
    alpha, beta = (
        1 + 1e-6 + functions.softplus(functions.linear(x, w[f"{head}.weight"], w[f"{head}.bias"]))
        for head in ("actor.module.0.module.alpha_layer", "actor.module.0.module.beta_layer")
    )
    # Both are float64; only the order of sums differs.
    assert np.abs(network.forward(state, scan, moving).velocity - (4 * alpha / (alpha + beta) - 2).numpy()).max() < 1e-10


# ---- files ----------------------------------------------------------------------------------------------------------------


def test_conversion_keeps_every_bit_and_is_found_again(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = convert_weights(source, tmp_path / "kept")
    first, second = load_network(source), load_network(path)
    assert all(np.array_equal(first._w[name], second._w[name]) for name in SHAPES)
    assert path.read_bytes() == convert_weights(source, tmp_path / "again").read_bytes()
    monkeypatch.setenv("AIRWORTHY_POLICIES", str(tmp_path / "cache"))
    assert weights_folder() == tmp_path / "cache"
    assert not weights_folder().exists()
    load_network()  # converts
    monkeypatch.delenv("AIRWORTHY_DATA")
    assert (weights_folder() / "navrl.safetensors").read_bytes() == path.read_bytes()
    load_network()  # finds
    monkeypatch.setenv("AIRWORTHY_POLICIES", str(tmp_path / "none"))
    with pytest.raises(AirworthyError, match="There are no NavRL weights"):
        load_network()


def test_wrong_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    good = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    cases = {
        "less": {k: v for k, v in good.items() if not k.startswith("critic")},
        "shape": {**good, "critic.module.bias": np.zeros(2, np.float32)},
        "nan": {**good, "critic.module.bias": np.full(1, np.nan, np.float32)},
        "huge": {**good, "critic.module.bias": np.zeros(1_000_000, np.float32)},
        "object": {**good, "critic.module.bias": np.array([{}], object)},
    }
    for name, arrays in cases.items():
        np.savez_compressed(tmp_path / f"{name}.npz", **arrays)
        with pytest.raises(AssetError):
            load_network(tmp_path / f"{name}.npz")
        with pytest.raises(AssetError):
            convert_weights(tmp_path / f"{name}.npz", tmp_path)
    for name in ("text.npz", "text.safetensors"):
        (tmp_path / name).write_bytes(b"not weights")
        with pytest.raises(AssetError):
            load_network(tmp_path / name)
    with pytest.raises(AssetError):
        load_network(tmp_path / "absent.npz")
    assert not (tmp_path / "navrl.safetensors").exists()
