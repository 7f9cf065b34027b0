"""What contracts of navigation say of encoders and LiDARs, against what is computed and mounted; other words are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots.policy_cases import drawn, navigation_policy

from airworthy.core.arrays import Array
from airworthy.core.errors import AssetError
from airworthy.core.frames import from_euler, to_matrix
from airworthy.learning.navigation.eyes import LidarEye
from airworthy.pilots.navigation_policy import contract as policies
from airworthy.pilots.navigation_policy import encoder as encoders
from airworthy.pilots.navigation_policy.sight import navigation_lidar, pooled_ranges
from airworthy.pilots.network_files import write_sealed

ENCODER = encoders.EncoderContract(channels=2, latent=3)


def encoder_folder(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Write an encoder; returns the place of its contract, this, and its weights."""
    shapes = encoders.encoder_shapes(ENCODER)
    # As wide as what goes in keeps numbers near 1 through all layers.
    spread = {name: 1.0 / np.sqrt(np.prod(shape[1:]) or 4.0) for name, shape in shapes.items()}
    weights = {name: (x / 0.3 * spread[name]).astype(np.float32) for name, x in drawn(shapes).items()}
    place = encoders.write_encoder(folder, ENCODER, weights) / "contract.json"
    return place, json.loads(place.read_text("utf-8")), weights


def lidar_folder(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write a policy that reads a LiDAR; returns the place of its contract, and this."""
    policy = navigation_policy(task="lidar_navigation", numbers=320, actions=4, recurrent=0)
    weights = drawn(policy.contract.shapes())
    weights["seen.deviation"] = np.abs(weights["seen.deviation"]) + np.float32(0.5)
    place = policies.write_navigation_folder(folder, policy.contract, weights) / "contract.json"
    return place, json.loads(place.read_text("utf-8"))


# ---- The encoder --------------------------------------------------------------------------------------------------------


def convolution(weight: Array, bias: Array, stride: int, border: int) -> Callable[[Array], Array]:
    """Return a convolution of (in, rows, columns), pixel by pixel."""

    def found(x: Array) -> Array:
        wide = np.zeros((x.shape[0], x.shape[1] + 2 * border, x.shape[2] + 2 * border))
        wide[:, border : border + x.shape[1], border : border + x.shape[2]] = x
        high, broad = weight.shape[2:]
        rows = range(0, wide.shape[1] - high + 1, stride)
        columns = range(0, wide.shape[2] - broad + 1, stride)
        cut = [[wide[:, i : i + high, j : j + broad] for j in columns] for i in rows]
        made = [[[np.sum(kernel * part) for part in row] for row in cut] for kernel in weight]
        return np.array(made) + bias[:, None, None]

    return found


def test_an_encoder_computes_as_its_contract_says(tmp_path: Path) -> None:
    """In float64, by nothing but the contract's own lines and numbers, in pixels that are near, far and too near."""
    _, table, weights = encoder_folder(tmp_path)
    said, w = table["layers"], {name: x.astype(float) for name, x in weights.items()}
    names: dict[str, Any] = {
        name: convolution(w[f"{name}.weight"], w[f"{name}.bias"], entry["stride"], entry["padding"])
        for name, entry in said["convolutions"].items()
    }
    assert all(list(w[f"{name}.weight"].shape[2:]) == entry["kernel"] for name, entry in said["convolutions"].items())
    assert w["wide.weight"].shape[0] == said["hidden"]
    for name in ("wide", "latent"):
        names[name] = lambda x, name=name: w[f"{name}.weight"] @ x + w[f"{name}.bias"]
    assert said["activation"].startswith("elu: x where it is positive, else exp(x) - 1")
    names["elu"] = np.vectorize(lambda x: x if x > 0.0 else np.exp(x) - 1.0)
    names |= {"flat": lambda x: x.reshape(-1), "halves": lambda x: np.split(x, 2)}
    image = np.random.default_rng(1).uniform(0.02, 1.0, (36, 64)).astype(np.float32)
    image[:4] = table["image"]["invalid"]
    names["image"] = image[None].astype(float)
    for line in said["blocks"]:
        exec(line, names)
    found = encoders.encode(weights, image[None])
    # Of sums of some hundred numbers near 1 in float32.
    np.testing.assert_allclose(found[0], names["mean"], atol=5e-6 * np.abs(names["mean"]).max())
    assert found.shape == (1, table["latent"])


def test_torch_convolves_as_the_contract_says(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from airworthy.learning.navigation.encoder import CollisionEncoder

    said = encoder_folder(tmp_path)[1]["layers"]["convolutions"]
    layers = dict(CollisionEncoder(ENCODER.channels, ENCODER.latent).named_children())
    made = {name: x for name, x in layers.items() if isinstance(x, torch.nn.Conv2d)}
    assert set(made) == set(said)
    for name, layer in made.items():
        stride, padding = ((said[name][key],) * 2 for key in ("stride", "padding"))
        assert (layer.stride, layer.padding, list(layer.kernel_size)) == (stride, padding, said[name]["kernel"]), name


def test_an_encoder_that_computes_otherwise_is_refused_and_an_older_one_read(tmp_path: Path) -> None:
    place, good, _ = encoder_folder(tmp_path)
    write_sealed(place, {name: value for name, value in good.items() if name != "layers"})
    assert encoders.read_encoder_folder(tmp_path)[0] == ENCODER
    said = good["layers"]
    conv3 = {**said["convolutions"], "conv3": {**said["convolutions"]["conv3"], "stride": 2}}
    for changed, words in (
        ({"activation": "relu"}, r"layers\.activation must be 'elu: .*', but is 'relu'\.$"),
        ({"convolutions": conv3}, r"layers\.convolutions\.conv3\.stride must be 1, but is 2\.$"),
        ({"blocks": said["blocks"][:-1]}, r"layers\.blocks"),
        ({"norm": "batch"}, r"'norm'"),
    ):
        write_sealed(place, good | {"layers": said | changed})
        with pytest.raises(AssetError, match=words) as caught:
            encoders.read_encoder_folder(tmp_path)
        assert "\n" not in str(caught.value)
    place.write_text(json.dumps(good | {"layers": said | {"activation": "relu"}}), "utf-8")
    with pytest.raises(AssetError, match="seal"):
        encoders.read_encoder_folder(tmp_path)


# ---- The LiDAR ----------------------------------------------------------------------------------------------------------


def test_the_lidar_of_a_contract_is_the_one_that_is_mounted_and_read(tmp_path: Path) -> None:
    said = lidar_folder(tmp_path)[1]["image"]
    device = navigation_lidar()
    # Directions by the contract's words alone.
    rows, columns = said["shape"]
    low, high = np.radians(said["elevation_deg"])
    right, left = np.radians(said["azimuth_deg"])
    up = high + (low - high) * np.arange(rows)[:, None] / (rows - 1)
    turn = left - (left - right) * np.arange(columns) / columns
    wanted = np.stack([np.cos(turn) * np.cos(up), np.sin(turn) * np.cos(up), np.sin(up) + 0.0 * turn], -1)
    np.testing.assert_allclose(device.projection.rays().directions.reshape(rows, columns, 3), wanted, atol=1e-12)
    np.testing.assert_array_equal(device.mount.position, said["mount_m"])
    turned = to_matrix(from_euler(*np.radians(said["mount_roll_pitch_yaw_deg"])))
    np.testing.assert_allclose(to_matrix(np.array(device.mount.attitude)), turned, atol=1e-12)
    # Cells, reach and what is too near: by the contract's numbers, ray by ray.
    ranges = np.random.default_rng(2).uniform(0.05, 14.0, (rows, columns))
    ranges[::7, ::5], ranges[3::11, ::9] = np.nan, 0.0
    high_cell, wide_cell = said["pool"]
    assert [rows // high_cell, columns // wide_cell] == said["cells"]
    assert np.prod(said["cells"]) == said["numbers"]
    gone = ~(np.isfinite(ranges) & (ranges >= said["nearest_m"]))
    metres = np.where(gone, said["reach_m"], np.minimum(ranges, said["reach_m"]))
    least = metres.reshape(said["cells"][0], high_cell, said["cells"][1], wide_cell).min((1, 3))
    np.testing.assert_allclose(pooled_ranges(ranges[None])[0], (1.0 / least).reshape(-1), rtol=1e-6)


def test_noise_of_a_contract_is_that_of_training(tmp_path: Path) -> None:
    said = lidar_folder(tmp_path)[1]["image"]
    noise, cells = said["training_noise"], said["cells"]
    rng = np.random.default_rng(3)
    uniforms = rng.uniform(0.0, 0.06, (3, *cells))  # about half of the cells are drawn for each
    much = rng.uniform(0.0, 1.0, cells)
    metres = rng.uniform(said["nearest_m"], said["reach_m"], cells)

    def between(name: str, key: str) -> Array:
        low, high = noise[name][key]
        return np.asarray(low + (high - low) * much)

    farther, empty, near = (uniforms[k] < noise[name]["share"] for k, name in enumerate(("farther", "empty", "near")))
    wanted = metres + farther * between("farther", "by_m")
    wanted = np.where(empty, noise["empty"]["reads_m"], wanted)
    below = np.arange(cells[0])[:, None] >= noise["near"]["rows_from"]
    wanted = np.where(near & below, between("near", "reads_m"), wanted)
    image = np.repeat(np.repeat(metres, said["pool"][0], 0), said["pool"][1], 1).astype(np.float32)
    found = LidarEye().see(image[None], np.concatenate([uniforms, much[None]]).reshape(1, -1))
    np.testing.assert_allclose(found[0], (1.0 / wanted).reshape(-1), rtol=1e-6)


def test_a_lidar_of_other_numbers_is_refused_and_one_of_before_is_read(tmp_path: Path) -> None:
    place, good = lidar_folder(tmp_path)
    short = {name: good["image"][name] for name in ("read_as", "numbers")}
    contract = policies.read_navigation_folder(tmp_path)[0]
    write_sealed(place, good | {"image": short})
    assert policies.read_navigation_folder(tmp_path)[0] == contract
    noise = good["image"]["training_noise"]
    for image, words in (
        (good["image"] | {"reach_m": 20.0}, r"image\.reach_m must be 10\.0, but is 20\.0\.$"),
        (good["image"] | {"elevation_deg": [0.0, 45.0]}, r"image\.elevation_deg\[1\] must be 90\.0, but is 45\.0\.$"),
        (
            good["image"] | {"training_noise": noise | {"empty": {"share": 0.5, "reads_m": 10.0}}},
            r"noise\.empty\.share must be 0\.02, but is 0\.5\.$",
        ),
        ({name: x for name, x in good["image"].items() if name != "pool"}, r"image lacks 'pool'"),
        (short | {"reach_m": 10.0}, r"image lacks"),
    ):
        write_sealed(place, good | {"image": image})
        with pytest.raises(AssetError, match=words) as caught:
            policies.read_navigation_folder(tmp_path)
        assert "\n" not in str(caught.value)
    place.write_text(json.dumps(good | {"image": good["image"] | {"reach_m": 20.0}}), "utf-8")
    with pytest.raises(AssetError, match="seal"):
        policies.read_navigation_folder(tmp_path)
