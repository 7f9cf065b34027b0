"""The network of NavRL in NumPy: scan, goal and moving obstacles to a velocity in the goal's frame.

Source: specification of the planners, section 7.2, and the notes beside the published weights. Every product is of one flight's
rows, so the numbers of a flight do not depend on how many others there are.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import data_dir, make_folder, read_bytes, sha256, write_bytes
from airworthy.pilots.network_files import ContractTable, contract_and_weights, read_contract_table, write_sealed

__all__ = ["CONTRACT_FILE", "SHAPES", "WEIGHTS_FILE", "Network", "Output", "convert_weights", "load_network", "weights_folder"]

# Source: spec/planners 7.1: lidar 36 x 4, five obstacles of 10 numbers, state of 8.
RAYS, BEAMS, OBSTACLES, OBSTACLE_SIZE, STATE_SIZE = 36, 4, 5, 10, 8
# Source: spec/planners 7.2: velocity = 4 m - 2, so 2 m/s per axis.
SPEED = 2.0
"""Largest velocity per axis [m/s]."""
# Source: spec/planners 7.2: LeakyReLU 0.01, LayerNorm's customary 1e-5, 1 + softplus + 1e-6.
_SLOPE, _EPSILON, _LEAST = 0.01, 1e-5, 1e-6
_SCAN, _MOVING, _JOINT, _HEAD = (
    "feature_extractor.module.0.module.",
    "feature_extractor.module.1.module.1.",
    "feature_extractor.module.3.module.",
    "actor.module.0.module.",
)
SHAPES: dict[str, tuple[int, ...]] = {
    f"{_SCAN}0.weight": (4, 1, 5, 3),
    f"{_SCAN}0.bias": (4,),
    f"{_SCAN}2.weight": (16, 4, 5, 3),
    f"{_SCAN}2.bias": (16,),
    f"{_SCAN}4.weight": (16, 16, 5, 3),
    f"{_SCAN}4.bias": (16,),
    f"{_SCAN}7.weight": (128, 288),
    f"{_SCAN}7.bias": (128,),
    f"{_SCAN}8.weight": (128,),
    f"{_SCAN}8.bias": (128,),
    f"{_MOVING}0.weight": (128, 50),
    f"{_MOVING}0.bias": (128,),
    f"{_MOVING}2.weight": (128,),
    f"{_MOVING}2.bias": (128,),
    f"{_MOVING}3.weight": (64, 128),
    f"{_MOVING}3.bias": (64,),
    f"{_MOVING}5.weight": (64,),
    f"{_MOVING}5.bias": (64,),
    f"{_JOINT}0.weight": (256, 200),
    f"{_JOINT}0.bias": (256,),
    f"{_JOINT}2.weight": (256,),
    f"{_JOINT}2.bias": (256,),
    f"{_JOINT}3.weight": (256, 256),
    f"{_JOINT}3.bias": (256,),
    f"{_JOINT}5.weight": (256,),
    f"{_JOINT}5.bias": (256,),
    f"{_HEAD}alpha_layer.weight": (3, 256),
    f"{_HEAD}alpha_layer.bias": (3,),
    f"{_HEAD}beta_layer.weight": (3, 256),
    f"{_HEAD}beta_layer.bias": (3,),
    "critic.module.weight": (1, 256),
    "critic.module.bias": (1,),
}
"""Tensors of the network by the names of the published checkpoint; those of its training alone are left out."""


@dataclass(frozen=True, eq=False)
class Output:
    """Of n flights."""

    velocity: Array
    """Mean action in the goal's frame [m/s], (n, 3), within +-SPEED."""
    value: Array
    """The critic's, normalised, (n,)."""


class Network:
    """The policy and its critic.

    Args:
        weights: Arrays by name; see `SHAPES`.

    Raises:
        AirworthyError: If one is missing, of another shape, or not finite.
    """

    def __init__(self, weights: Mapping[str, ArrayAny]):
        for name, shape in SHAPES.items():
            found = np.shape(weights[name]) if name in weights else None
            if found != shape or not np.isfinite(weights[name]).all():
                raise AirworthyError(f"The NavRL weights have {name!r} of shape {found}; expected {shape}, all finite.")
        self._w = {name: np.asarray(weights[name], np.float64) for name in SHAPES}

    def forward(self, state: Array, scan: Array, moving: Array | None = None) -> Output:
        """Return velocity and value.

        Args:
            state: (n, 8): unit vector to the goal, horizontal distance, vertical offset, velocity; in the goal's frame.
            scan: (n, 36, 4): 4 m minus the distance, rays counter-clockwise from the goal's direction, elevations rising.
            moving: (n, 5, 10) nearest moving obstacles, zeros where there are fewer; None: none.
        """
        count = len(state)
        x = _elu(self._conv(scan[:, None], f"{_SCAN}0", (1, 1), (2, 1)))
        x = _elu(self._conv(x, f"{_SCAN}2", (2, 1), (2, 1)))
        x = _elu(self._conv(x, f"{_SCAN}4", (2, 2), (2, 1)))
        scan_features = self._norm(self._linear(x.reshape(count, -1), f"{_SCAN}7"), f"{_SCAN}8")
        others = np.zeros((count, OBSTACLES * OBSTACLE_SIZE)) if moving is None else moving.reshape(count, -1)
        met = self._block(self._block(others, f"{_MOVING}0", f"{_MOVING}2"), f"{_MOVING}3", f"{_MOVING}5")
        x = np.concatenate([scan_features, np.asarray(state, float), met], axis=1)
        x = self._block(self._block(x, f"{_JOINT}0", f"{_JOINT}2"), f"{_JOINT}3", f"{_JOINT}5")
        alpha, beta = (1.0 + _softplus(self._linear(x, f"{_HEAD}{name}_layer")) + _LEAST for name in ("alpha", "beta"))
        return Output(2.0 * SPEED * alpha / (alpha + beta) - SPEED, self._linear(x, "critic.module")[:, 0])

    def _linear(self, x: Array, name: str) -> Array:
        # (n, 1, in) times (in, out): one product per flight.
        return np.matmul(x[:, None, :], self._w[f"{name}.weight"].T)[:, 0] + self._w[f"{name}.bias"]

    def _norm(self, x: Array, name: str) -> Array:
        mean = x.mean(axis=1, keepdims=True)
        spread = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        return (x - mean) / np.sqrt(spread + _EPSILON) * self._w[f"{name}.weight"] + self._w[f"{name}.bias"]

    def _block(self, x: Array, linear: str, norm: str) -> Array:
        y = self._linear(x, linear)
        return self._norm(np.where(y > 0.0, y, _SLOPE * y), norm)

    def _conv(self, x: Array, name: str, stride: tuple[int, int], pad: tuple[int, int]) -> Array:
        """Cross-correlation of (n, c, rays, beams) with zeros around."""
        kernel = self._w[f"{name}.weight"]
        padded = np.pad(x, ((0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])))
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], axis=(2, 3))
        windows = windows[:, :, :: stride[0], :: stride[1]]
        n, _, height, width = windows.shape[:4]
        rows = np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, height * width, -1)
        out = np.matmul(rows, kernel.reshape(len(kernel), -1).T) + self._w[f"{name}.bias"]
        return out.transpose(0, 2, 1).reshape(n, len(kernel), height, width)


def _elu(x: Array) -> Array:
    return np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)


# -----------------------------------------------------------------------------------------------------------------------------
# The published weights of NavRL: converted once from plain arrays to safetensors, in a folder of the user's, never
# shipped.
#
# They are Zhefan Xu's, under the MIT licence (NavRL, `ros1/navigation_runner`); only the arrays are read, never the
# checkpoint. Beside the converted file lies its sealed contract (`airworthy.pilots.network_files`): which network it is for,
# and its digest.

WEIGHTS_FILE, CONTRACT_FILE = "navrl.safetensors", "navrl.json"
KIND, VERSION = "airworthy-navrl", 1
MEANING = {
    "state": STATE_SIZE,
    "rays": RAYS,
    "beams": BEAMS,
    "obstacles": OBSTACLES,
    "speed_max_m_s": SPEED,
}
"""What this program's network reads and gives."""
_SOURCE = Path("policies") / "navrl" / "navrl_weights.npz"
_LIMIT = 16 * 2**20
"""Bytes of a file of weights; the published ones have 0.7 million."""


def weights_folder() -> Path:
    """Return where converted weights are kept: AIRWORTHY_POLICIES, else `airworthy/policies` in the user's cache folder."""
    named = os.environ.get("AIRWORTHY_POLICIES", "")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache else Path.home() / ".cache") / "airworthy" / "policies"


def convert_weights(source: str | Path, folder: str | Path | None = None) -> Path:
    """Write the arrays of a `.npz` as safetensors; returns the file.

    Args:
        source: The `.npz` with arrays named as in `network.SHAPES`; others in it are left out.
        folder: Where to; None: `weights_folder()`.

    Raises:
        AssetError: The source is missing, damaged, or not these weights.
    """
    from safetensors.numpy import save

    arrays = _arrays(Path(source))
    _checked(arrays, str(source))
    target = weights_folder() if folder is None else Path(folder)
    make_folder(target)
    path = target / WEIGHTS_FILE
    data = save({name: np.ascontiguousarray(arrays[name], np.float32) for name in sorted(SHAPES)})
    (target / CONTRACT_FILE).unlink(missing_ok=True)
    write_bytes(path, data)
    contract_table = {
        "kind": KIND,
        "version": VERSION,
        "meaning": MEANING,
        "weights": {"file": WEIGHTS_FILE, "sha256": sha256(data)},
    }
    write_sealed(target / CONTRACT_FILE, contract_table)
    return path


def load_network(path: str | Path | None = None) -> Network:
    """Return the network with its weights.

    Args:
        path: A `.npz` of the published arrays, or what `convert_weights` wrote; None: the converted one, which is made where
            AIRWORTHY_DATA has the source.

    Raises:
        AssetError: The file is damaged, not these weights, or not those that the contract beside it vouches for.
        AirworthyError: There are no weights.
    """
    if path is None:
        path = weights_folder() / WEIGHTS_FILE
        if not (path.is_file() and path.with_name(CONTRACT_FILE).is_file()):
            data = data_dir()
            if data is None or not (data / _SOURCE).is_file():
                raise AirworthyError(
                    f"There are no NavRL weights with their contract at {str(path)!r}: convert the published arrays with"
                    " airworthy.planners.navrl.convert_weights('navrl_weights.npz'), or set AIRWORTHY_DATA to a folder with"
                    f" {str(_SOURCE)!r}."
                )
            path = convert_weights(data / _SOURCE)
    path = Path(path)
    arrays = _arrays(path) if path.suffix == ".npz" else _tensors(path)
    return _checked(arrays, str(path))


def _checked(arrays: dict[str, ArrayF32], where: str) -> Network:
    try:
        return Network(arrays)
    except AirworthyError as error:
        raise AssetError(f"{where!r} does not hold NavRL's weights: {error}") from None


def _tensors(path: Path) -> dict[str, ArrayF32]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_bytes(path, _LIMIT)
    contract = path.with_name(CONTRACT_FILE)
    if not contract.is_file():
        raise AssetError(
            f"{str(path)!r} has no {CONTRACT_FILE} beside it, so that nothing vouches for it: convert the published arrays"
            " again with airworthy.planners.navrl.convert_weights('navrl_weights.npz')."
        )
    if sha256(data) != _digest(read_contract_table(contract), str(contract)):
        raise AssetError(f"{str(path)!r} is not the file that its contract names: it was changed or damaged.")
    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{str(path)!r} is not a usable safetensors file: {reason}.") from None


def _digest(table: Any, where: str) -> str:
    """Of the weights that a contract vouches for."""

    def meant(contract: ContractTable) -> None:
        contract.must_be("meaning", MEANING)

    return contract_and_weights(table, where, "a contract of NavRL", (KIND, VERSION), meant)[1]


def _arrays(path: Path) -> dict[str, ArrayF32]:
    """Return those arrays of a `.npz` that the network has; what the archive says it holds is looked at before it is
    unpacked.
    """
    data = read_bytes(path, _LIMIT)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = {item.filename.removesuffix(".npy"): item.file_size for item in archive.infolist()}
            too_large = [name for name in SHAPES if sizes.get(name, 0) > 4096 + 8 * int(np.prod(SHAPES[name]))]
            if too_large:
                raise AssetError(f"{str(path)!r} does not hold NavRL's weights: {too_large[0]!r} is too large.")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: np.asarray(archive[name], np.float32) for name in SHAPES if name in archive.files}
    except (zipfile.BadZipFile, ValueError, KeyError, OSError, EOFError, NotImplementedError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{str(path)!r} is not a usable .npz file: {reason}.") from None
