"""The published weights of NavRL: converted once from plain arrays to safetensors, in a folder of the user's, never shipped.

They are Zhefan Xu's, under the MIT licence (NavRL, `ros1/navigation_runner`); only the arrays are read, never the checkpoint.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import data_dir, make_folder, read_bytes, write_bytes
from airworthy.pilots.navrl.network import SHAPES, Network

__all__ = ["WEIGHTS_FILE", "convert_weights", "load_network", "weights_folder"]

WEIGHTS_FILE = "navrl.safetensors"
_SOURCE = Path("policies") / "navrl" / "navrl_weights.npz"
_LIMIT = 16 * 2**20
"""Bytes of a file of weights; the published ones have 0.7 million."""


def weights_folder() -> Path:
    """Where converted weights are kept: AIRWORTHY_POLICIES, else `airworthy/policies` in the user's cache folder."""
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
    write_bytes(path, save({name: np.ascontiguousarray(arrays[name], np.float32) for name in sorted(SHAPES)}))
    return path


def load_network(path: str | Path | None = None) -> Network:
    """The network with its weights.

    Args:
        path: A `.safetensors` or `.npz` file; None: the converted one, which is made where AIRWORTHY_DATA has the source.

    Raises:
        AssetError: The file is damaged or not these weights.
        AirworthyError: There are no weights.
    """
    if path is None:
        path = weights_folder() / WEIGHTS_FILE
        if not path.is_file():
            data = data_dir()
            if data is None or not (data / _SOURCE).is_file():
                raise AirworthyError(
                    f"There are no NavRL weights at {str(path)!r}: convert the published arrays with"
                    " airworthy.pilots.navrl.convert_weights('navrl_weights.npz'), or set AIRWORTHY_DATA to a folder with"
                    f" {str(_SOURCE)!r}."
                )
            path = convert_weights(data / _SOURCE)
    path = Path(path)
    arrays = _arrays(path) if path.suffix == ".npz" else _tensors(path)
    return _checked(arrays, str(path))


def _checked(arrays: dict[str, NDArray[np.float32]], where: str) -> Network:
    try:
        return Network(arrays)
    except AirworthyError as error:
        raise AssetError(f"{where!r} does not hold NavRL's weights: {error}") from None


def _tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    data = read_bytes(path, _LIMIT)
    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise AssetError(f"{str(path)!r} is not a usable safetensors file: {reason}.") from None


def _arrays(path: Path) -> dict[str, NDArray[np.float32]]:
    """Those arrays of a `.npz` that the network has; what the archive says it holds is looked at before it is unpacked."""
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
