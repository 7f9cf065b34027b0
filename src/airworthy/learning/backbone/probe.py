"""What a linear map can tell of frozen features, in places in which no backbone learnt: pose of the camera, and depth.

In each place a map is fitted to the features of some images (ridge regression, its strength chosen on a part of them), and
judged on others. It is the same for every backbone, and learns nothing but the map. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayU8
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.backbone.config import HELD_OUT_SEED
from airworthy.learning.backbone.halls import drawn_hall
from airworthy.learning.backbone.pictures import CELLS, SIDE, SUBCELLS, PlacePictures, pictures_of
from airworthy.pilots.svnet.features import IMAGE_MEAN, IMAGE_STD
from airworthy.pilots.svnet.network import Backbone
from airworthy.scenes import Scene
from airworthy.scenes.catalogue import scene

__all__ = ["HELD_OUT", "ProbeOptions", "ProbePlace", "held_out_places", "probe_backbone", "ridge"]

_DRAWN = "drawn_hall:"
HELD_OUT = (
    *(f"{_DRAWN}{number}@{HELD_OUT_SEED}" for number in range(3)),
    "backroom:0@1000", "mid_gate:0@2000", "flightroom:0@2000",
)  # fmt: skip
"""Places in which backbones are judged; ours: halls of a seed that none learns, and three kinds of furnished rooms."""
ProbeRow = dict[str, float | str]
"""Name of a place, and figures of it."""
CHANNELS = 512
_RIDGES = 10.0 ** np.arange(-4.0, 2.0, 0.5)
"""That are tried, over the mean square of the features."""
_FITTED = 0.8
"""Share of the images to which a map is fitted while its ridge is chosen by the others."""
_AT_ONCE = 256


@dataclass(frozen=True)
class ProbeOptions:
    """Where a backbone is probed, and by how much.

    Raises:
        AirworthyError: A number is out of range.
    """

    probed: Annotated[tuple[str, ...], Length(1, 100)] = HELD_OUT
    """Names of scenes, or drawn_hall:NUMBER@SEED."""
    fitted_images: Annotated[int, Bound(10, 10_000)] = 768
    """Images of each to which maps are fitted."""
    judged_images: Annotated[int, Bound(1, 10_000)] = 256
    """Images of each by which they are judged."""

    def __post_init__(self) -> None:
        check_fields(self, "ProbeOptions.")


@dataclass(frozen=True)
class ProbePlace:
    """A place and its images."""

    name: str
    pictures: PlacePictures
    fitted: int
    """Images to which maps are fitted; they come first."""


def held_out_places(options: ProbeOptions, threads: int | None = None) -> list[ProbePlace]:
    """Return places with images, the same for all backbones."""
    count = options.fitted_images + options.judged_images
    found: list[ProbePlace] = []
    for name in options.probed:
        held = pictures_of(_place(name), count, [HELD_OUT_SEED, len(found), 3], threads)
        # A place with little room has fewer.
        found.append(ProbePlace(name, held, round(len(held.images) * options.fitted_images / count)))
    return found


def _place(name: str) -> Scene:
    if not name.startswith(_DRAWN):
        return scene(name)
    number, _, seed = name.removeprefix(_DRAWN).partition("@")
    return drawn_hall(int(number), int(seed or HELD_OUT_SEED))


def probe_backbone(weights: Mapping[str, ArrayF32], places: list[ProbePlace], threads: int | None = None) -> list[ProbeRow]:
    """Return a row per place: what is told by linear maps of the features of images that they were not fitted to.

    Args:
        weights: Tensors `features.*`.
        places: From `held_out_places`.
        threads: Most threads of a processor.
    """
    same = np.eye(CHANNELS, dtype=np.float32)[..., None, None]
    tensors = {**weights, "classifier.1.weight": same, "classifier.1.bias": np.zeros(CHANNELS, np.float32)}
    trunk = Backbone(tensors, (SIDE, SIDE), IMAGE_MEAN, IMAGE_STD, "cpu", threads, cells=CELLS)
    return [_row(trunk, place) for place in places]


def _row(trunk: Backbone, place: ProbePlace) -> ProbeRow:
    held, fitted = place.pictures, place.fitted
    features = _features(trunk, held.images)
    told = np.asarray(held.pose, np.float64)
    made = ridge(features.reshape(len(features), -1), told, fitted)
    wanted = told[fitted:]
    apart = np.linalg.norm(made[:, :3] - wanted[:, :3], axis=1)
    middle = np.linalg.norm(wanted[:, :3] - told[:fitted, :3].mean(axis=0), axis=1)
    turned = np.angle((made[:, 3] + 1j * made[:, 4]) * np.conj(wanted[:, 3] + 1j * wanted[:, 4]))
    tilted = np.abs(made[:, 5:] - wanted[:, 5:]).mean(axis=1)
    return {
        "place": place.name,
        "images": len(features),
        "position_m": float(np.median(apart)),
        "heading_deg": float(np.degrees(np.median(np.abs(turned)))),
        "tilt_deg": float(np.degrees(np.median(tilted))),
        "depth_percent": 100.0 * _depth_error(features, held.log_depth, fitted),
        "mean_pose_position_m": float(np.median(middle)),
    }


def _features(trunk: Backbone, images: ArrayU8) -> ArrayF32:
    """Return (n, cells^2, 512) of images."""
    parts = [trunk(images[k : k + _AT_ONCE]) for k in range(0, len(images), _AT_ONCE)]
    return np.concatenate(parts).reshape(len(images), CELLS**2, CHANNELS)


def ridge(features: ArrayF32, told: Array, fitted: int) -> Array:
    """Return what linear maps of features say of the images behind the first `fitted`, (n - fitted, numbers).

    Args:
        features: (n, channels); there are more channels than images.
        told: (n, numbers); each number has a ridge of its own.
        fitted: To so many the maps are fitted.
    """
    off = np.asarray(features - features[:fitted].mean(axis=0, dtype=np.float64), np.float32)
    gram = (off @ off[:fitted].T).astype(np.float64)
    gram /= np.trace(gram[:fitted]) / fitted
    mean = told[:fitted].mean(axis=0)
    first = max(1, int(_FITTED * fitted))
    # Of a symmetric matrix once: every ridge is then a division.
    spread, axes = np.linalg.eigh(gram[:first, :first])
    seen, target = gram[first:fitted, :first] @ axes, axes.T @ (told[:first] - mean)
    errors = [np.square(seen @ (target / (spread + k)[:, None]) - (told[first:fitted] - mean)).mean(axis=0) for k in _RIDGES]
    chosen = _RIDGES[np.argmin(errors, axis=0)]
    spread, axes = np.linalg.eigh(gram[:fitted])
    maps = axes @ ((axes.T @ (told[:fitted] - mean)) / (spread[:, None] + chosen))
    found: Array = gram[fitted:] @ maps + mean
    return found


def _depth_error(features: ArrayF32, log_depth: ArrayF32, fitted: int) -> float:
    """Return the median relative error of depth, of one map from a cell's features to its four depths."""
    n = len(features)
    cells = log_depth.reshape(n, CELLS, SUBCELLS, CELLS, SUBCELLS).swapaxes(2, 3).reshape(n, CELLS**2, SUBCELLS**2)
    known: ArrayBool = np.asarray(np.isfinite(cells).all(axis=-1))
    rows, wanted = features[:fitted][known[:fitted]], cells[:fitted][known[:fitted]].astype(np.float64)
    mean, middle = rows.mean(axis=0, dtype=np.float64), wanted.mean(axis=0)
    off = (rows - mean).astype(np.float32)
    gram = (off.T @ off).astype(np.float64)
    size = np.trace(gram) / len(gram)
    maps = np.linalg.solve(gram + _DEPTH_RIDGE * size * np.eye(len(gram)), off.T @ (wanted - middle))
    made = (features[fitted:][known[fitted:]] - mean) @ maps + middle
    return float(np.median(np.abs(np.expm1(made - cells[fitted:][known[fitted:]]))))


_DEPTH_RIDGE = 1e-3
"""Over the mean square of the features; ours: there are tens of times more cells than channels."""
