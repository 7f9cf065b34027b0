"""What the calls of `airworthy.api` give back: numbers, tables and a page of one folder; and images of a scene."""

from __future__ import annotations

import importlib.util
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, write_atomic
from airworthy.optics.tone import to_8bit
from airworthy.reports.pictures import distance_picture, flow_picture, normal_picture, number_picture

__all__ = ["Images", "Result", "frame_of"]


def frame_of(table: Any) -> Any:
    """Return a table of pyarrow as a frame of pandas where that is installed, as it is elsewhere."""
    return table.to_pandas() if importlib.util.find_spec("pandas") is not None else table


@dataclass(frozen=True)
class Result:
    """What a job left in its folder."""

    folder: Path
    """Where everything lies."""
    summary: Mapping[str, Any]
    """The job's numbers, as in its JSON file."""
    done: Any = field(repr=False)
    """What the job itself returned."""
    page: Path = field(repr=False)
    """The report, where one was written."""
    tables: Sequence[Path] = field(default=(), repr=False)
    """Parquet files, or files of one JSON record per line, which are one table."""

    def frame(self) -> Any:
        """Return all rows: a frame of pandas where that is installed, else a table of pyarrow.

        Raises:
            AirworthyError: The job left no table.
        """
        import pyarrow as pa

        there = [path for path in self.tables if path.is_file()]
        if not there:
            raise AirworthyError(f"{str(self.folder)!r} holds no table: nothing was finished there.")
        return frame_of(pa.concat_tables([_read(path) for path in there], promote_options="default"))

    def report(self) -> Path:
        """Return the path of the page that says what was done.

        Raises:
            AirworthyError: None was written.
        """
        if not self.page.is_file():
            raise AirworthyError(f"{str(self.folder)!r} holds no {self.page.name}: run it with report=True, and to its end.")
        return self.page

    def show(self) -> None:
        """Open the report in the browser."""
        webbrowser.open(self.report().resolve().as_uri())


def _read(path: Path) -> Any:
    if path.suffix == ".parquet":
        from pyarrow.parquet import read_table

        return read_table(path)
    from pyarrow.json import read_json

    return read_json(path)


@dataclass(frozen=True)
class Images(Mapping[str, ArrayAny]):
    """Rendered images by channel, (camera, height, width) or (camera, height, width, components)."""

    channels: Mapping[str, ArrayAny]
    """As `airworthy.rendering.render` gives them."""
    position: Array
    """Of the cameras, world [m], (c, 3)."""
    attitude: Array
    """Camera to world, quaternion x, y, z, w, (c, 4)."""
    out: Path
    """Where pictures are written when they are asked for."""

    def __getitem__(self, name: str) -> ArrayAny:
        return self.channels[name]

    def __iter__(self) -> Any:
        return iter(self.channels)

    def __len__(self) -> int:
        return len(self.channels)

    @property
    def summary(self) -> dict[str, Any]:
        """Shape of each channel, and how near and far its numbers are where they are finite."""
        return {name: {"shape": list(values.shape), **_range(values)} for name, values in self.channels.items()}

    def frame(self) -> Any:
        """Return one row per camera: where it stands, and the mean of every channel's finite numbers."""
        import pyarrow as pa

        columns: dict[str, Any] = {f"position_{axis}_m": self.position[:, k] for k, axis in enumerate("xyz")}
        columns |= {f"attitude_{axis}": self.attitude[:, k] for k, axis in enumerate("xyzw")}
        columns |= {f"{name}_mean": _means(values) for name, values in self.channels.items()}
        return frame_of(pa.table(columns))

    def report(self) -> Path:
        """Write one PNG of all channels side by side, a row per camera, and return its path."""
        from PIL import Image

        rows = len(self.position)
        sheet = np.vstack([np.hstack([_picture(name, v[k]) for name, v in self.channels.items()]) for k in range(rows)])
        return write_atomic(make_folder(self.out) / "images.png", Image.fromarray(sheet).save)

    def show(self) -> None:
        """Open the picture of `report` in the browser."""
        webbrowser.open(self.report().resolve().as_uri())


def _range(values: ArrayAny) -> dict[str, float]:
    found = values[np.isfinite(values)]
    return {"least": float(found.min()), "most": float(found.max())} if found.size else {}


def _means(values: ArrayAny) -> list[float | None]:
    finite = [image[np.isfinite(image)] for image in values]
    return [float(image.mean()) if image.size else None for image in finite]


def _picture(name: str, image: ArrayAny) -> ArrayU8:
    """Return one channel of one camera in colours that a person can read."""
    if name in ("rgb", "albedo"):
        return to_8bit(image)
    if name.startswith("normal"):
        return normal_picture(image)
    if name == "flow":
        return flow_picture(image)
    if np.issubdtype(image.dtype, np.integer):
        return number_picture(image)
    return distance_picture(image)
