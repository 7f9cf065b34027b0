"""Nerfstudio's frame: its splats lie in the frame of its training, and its dataparser_transforms.json leads back from there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json
from airworthy.scenes.splats.loaded import SourceFrame

TRANSFORMS = "dataparser_transforms.json"
CHECKPOINTS = (".ckpt", ".pt", ".pth")
EXPORT = "ns-export gaussian-splat --load-config CONFIG.yml --output-dir FOLDER"
_BYTES_MAX = 1 << 16
_ROTATION_ERROR = 1e-3
_LARGEST = 1e9


def refuse_checkpoint(path: Path) -> None:
    """Raise the AssetError of a training checkpoint, which is a pickle: reading one runs whatever program it holds."""
    raise AssetError(
        f"{str(path)!r} is a training checkpoint, which can run any program when it is read and is therefore never opened;"
        f" export it to PLY first: {EXPORT}."
    )


def read_transforms(path: str | Path) -> SourceFrame:
    """The similarity from the frame of an exported PLY to that of the images: the inverse of what the file holds.

    Nerfstudio trains on positions s (R p + t) of the data set's positions p; the file holds the 3 x 4 matrix [R t] and s.

    Raises:
        AssetError: The file is missing, damaged, or its matrix is no rotation and translation.
    """
    value = read_json(path, _BYTES_MAX)
    try:
        matrix = np.array(value["transform"], np.float64)
        scale = float(value["scale"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise AssetError(f"{str(path)!r} cannot be used: it has no transform of numbers and no scale.") from error
    if matrix.shape not in ((3, 4), (4, 4)) or not (np.abs(matrix) < _LARGEST).all() or not 1 / _LARGEST < scale < _LARGEST:
        raise AssetError(f"{str(path)!r} cannot be used: its transform is not 3 x 4 sound numbers, or its scale none.")
    rotation = matrix[:3, :3]
    off = np.abs(rotation @ rotation.T - np.eye(3)).max()
    if not off < _ROTATION_ERROR or np.linalg.det(rotation) < 0:
        raise AssetError(f"{str(path)!r} cannot be used: its transform holds no rotation.")
    turn = frames.conjugate(frames.from_matrix(rotation))
    offset = -frames.rotate(turn, matrix[:3, 3])
    return SourceFrame("z", "", _four(turn), _three(offset), 1.0 / scale)


def followed_by(first: SourceFrame, rotation: tuple[float, float, float, float], up: str, axes: str) -> SourceFrame:
    """A similarity followed by a turn."""
    turn = np.array(rotation)
    whole = frames.multiply(turn, np.array(first.rotation))
    offset = frames.rotate(turn, np.array(first.translation))
    return SourceFrame(up, axes, _four(whole), _three(offset), first.scale)


def _four(values: np.ndarray) -> tuple[float, float, float, float]:
    x, y, z, w = (float(value) for value in values)
    return x, y, z, w


def _three(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z


def transforms_beside(path: Path, given: str | Path | bool | None) -> Path | None:
    """The file of transforms to use: the one given, or the one beside the PLY, or none where `given` is False.

    Raises:
        AirworthyError: `given` is True and there is none.
    """
    if given is False:
        return None
    if isinstance(given, str | Path):
        return Path(given)
    beside = path.parent / TRANSFORMS
    if beside.is_file():
        return beside
    if given:
        raise AirworthyError(f"There is no {TRANSFORMS} beside {str(path)!r}; give its path, or leave transforms out.")
    return None
