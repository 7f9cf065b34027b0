"""Panes of what a flight's sensors recorded: colours, depths, ranges of a LiDAR, each with the time at which it was taken."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import Untrusted, read_bytes, read_json
from airworthy.reports.pictures import distance_picture
from airworthy.simulation.sensor_recording import metres_of

__all__ = ["CHANNELS", "RecordedImages", "SensorPanes", "recorded_images"]

CHANNELS = {"rgb": "colour", "depth": "depth", "range": "range"}
"""Channels that are shown, and what they are called."""
WIDTH = 420
"""Images are shown this wide, about as wide as the panel [px]."""
SHAPE_MOST = 6.0
"""A scan wider than this many heights has its rows repeated, so that it is more than a stripe."""
_BYTES = 64 << 20
_KEPT = 64


class RecordedImages:
    """One channel of a sensor, as `airworthy fly --sensors` recorded it.

    Args:
        folder: Of the flight.
        sensor: Its name.
        channel: One of `CHANNELS`.

    Raises:
        AssetError: Its files are damaged.
    """

    def __init__(self, folder: Path, sensor: str, channel: str):
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.sensor, self.channel = sensor, channel
        self._folder = folder / "sensors" / sensor
        calibration = read_json(self._folder / "calibration.json")
        index = self._folder / "index.parquet"
        try:
            rows = pq.read_table(index, columns=["env", "t", f"file_{channel}"]).to_pydict()
            self._unit = float(calibration.get("depth_unit_m", 1e-3))
            self._far = _far(calibration)
            self._rows = _by_env(rows["env"], rows["t"], rows[f"file_{channel}"])
        except (OSError, KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
            raise AssetError(f"{str(index)!r} is not an index of recorded images: {error}.") from error
        # Behind the method, so that images of one recording are kept and not of all that ever were.
        self._picture = lru_cache(_KEPT)(self._read)

    @property
    def title(self) -> str:
        """What the pane is called."""
        return f"{self.sensor}: {CHANNELS[self.channel]}"

    def at(self, env: int, time: float) -> tuple[ArrayU8, float] | None:
        """Return the newest image up to a time and when it was taken [s]; None before the first.

        Args:
            env: Number of the environment.
            time: On the flight's clock [s].
        """
        times, files = self._rows.get(env, (np.zeros(0), ()))
        k = int(np.searchsorted(times, time + 1e-9, side="right")) - 1
        return None if k < 0 else (self._picture(files[k]), float(times[k]))

    def has(self, env: int) -> bool:
        """Tell whether anything was recorded of an environment."""
        return env in self._rows

    def scale_text(self) -> str:
        """Return what the colours of distances mean; empty for colours."""
        return "" if self.channel == "rgb" else f"near red to {self._far:g} m blue, black: no return"

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> ArrayU8:
        from PIL import Image

        path = Untrusted(self._folder / "index.parquet", self._folder).inside(name)
        data = read_bytes(path, _BYTES)
        try:
            with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
                pixels = np.asarray(picture.convert("RGB") if self.channel == "rgb" else picture)
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise AssetError(f"{str(path)!r} is not an image: {error}.") from error
        if self.channel != "rgb":
            pixels = distance_picture(metres_of(pixels, self._unit), 0.0, self._far)
        return fitted(pixels)


def recorded_images(folder: Path) -> list[RecordedImages]:
    """Return every channel that can be shown of what a flight recorded; none where nothing was.

    Raises:
        AssetError: A recording is damaged.
    """
    found = []
    for path in sorted((folder / "sensors").glob("*/calibration.json")):
        kinds = read_json(path).get("files") or {}
        there = [channel for channel in CHANNELS if kinds.get(channel) == "png"]
        if (path.parent / "index.parquet").is_file():
            found += [RecordedImages(folder, path.parent.name, channel) for channel in there]
    return found


def fitted(pixels: ArrayU8) -> ArrayU8:
    """Return an image (h, w, 3) as wide as a pane, of its own pixels; a scan of a few rows becomes taller."""
    height, width = pixels.shape[:2]
    tall = max(round(WIDTH * height / width), round(WIDTH / SHAPE_MOST))
    return pixels[np.arange(tall) * height // tall][:, np.arange(WIDTH) * width // WIDTH]


class SensorPanes:
    """The panes in the panel; `show` renews those whose image is another.

    Args:
        gui: `viser.ViserServer.gui`.
        images: Channels to show, each in a pane that can be folded up.
    """

    def __init__(self, gui: Any, images: Sequence[RecordedImages]):
        self._gui, self._images = gui, images
        self._panes: dict[str, Any] = {}
        self._words: dict[str, Any] = {}
        self._shown: dict[str, tuple[int, float]] = {}
        self._folders: dict[str, Any] = {}
        for k, item in enumerate(images):
            self._folders[item.title] = gui.add_folder(item.title, expand_by_default=k < 2)
            with self._folders[item.title]:
                self._words[item.title] = gui.add_markdown("nothing yet")

    def show(self, env: int, time: float) -> None:
        """Show what was newest at a time [s] of a flight."""
        for item in self._images:
            self._show(item, env, time)

    def _show(self, item: RecordedImages, env: int, time: float) -> None:
        key, words = item.title, self._words[item.title]
        try:
            found = item.at(env, time)
        except AirworthyError as error:
            words.content = f"**{error}**"
            return
        if found is None:
            words.content = "nothing was recorded yet" if item.has(env) else "nothing was recorded of this flight"
            if key in self._panes:
                self._panes[key].visible = False
            self._shown.pop(key, None)
            return
        picture, taken = found
        if self._shown.get(key) == (env, taken):
            return
        self._shown[key] = (env, taken)
        scale = item.scale_text()
        words.content = f"taken at {taken:.3f} s" + (f"; {scale}" if scale else "")
        if key in self._panes:
            self._panes[key].image, self._panes[key].visible = picture, True
        else:
            with self._folders[key]:
                self._panes[key] = self._gui.add_image(picture, jpeg_quality=85)


def _far(calibration: Any) -> float:
    """Return the distance [m] at which colours end: the device's reach, or 20 m where it has none or a longer one."""
    limits = calibration.get("limits") or {}
    most = limits.get("maximum")
    return float(most) if isinstance(most, int | float) and 0.0 < most < 20.0 else 20.0


def _by_env(env: Sequence[int], time: Sequence[float], file: Sequence[str]) -> dict[int, tuple[ArrayAny, tuple[str, ...]]]:
    """Return times, rising, and files of each environment."""
    number, times = np.array(env), np.array(time, float)
    found = {}
    for each in np.unique(number):
        rows = np.flatnonzero(number == each)
        rows = rows[np.argsort(times[rows], kind="stable")]
        found[int(each)] = (times[rows], tuple(str(file[int(k)]) for k in rows))
    return found
