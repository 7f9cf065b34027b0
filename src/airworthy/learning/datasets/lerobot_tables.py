"""Tables of a LeRobot data set; pyarrow is imported where it is used."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.learning.datasets.lerobot_values import IMAGE_KEY

__all__ = ["episode_table", "frame_table", "task_table"]

PNG_LEVEL = 3
"""Of compression: twice as fast as the default, a tenth larger."""


def frame_table(
    values: Mapping[str, NDArray[Any]], features: Mapping[str, Mapping[str, Any]], images: NDArray[np.uint8] | None
) -> Any:
    """A row per frame: vectors as lists of a fixed size, images as PNG."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, feature in features.items():
        if name == IMAGE_KEY:
            continue
        array, size = values[name], feature["shape"][0]
        flat = pa.array(np.ascontiguousarray(array).reshape(-1), pa.from_numpy_dtype(array.dtype))
        columns[name] = flat if size == 1 else pa.FixedSizeListArray.from_arrays(flat, size)
    if images is not None:
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        columns[IMAGE_KEY] = pa.array([{"bytes": _png(image), "path": None} for image in images], kind)
    table = pa.table(columns)
    return table.replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": _told(features, images is not None)}})}
    )


def episode_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A row per episode, arrays as nested lists."""
    import pyarrow as pa

    names = list(rows[0]) if rows else []
    return pa.table({name: pa.array([_plain(row[name]) for row in rows]) for name in names})


def task_table(tasks: Sequence[str]) -> Any:
    """Tasks with their numbers; pandas reads the task as the row's name."""
    import pyarrow as pa

    table = pa.table({"task_index": pa.array(np.arange(len(tasks))), "task": pa.array(list(tasks))})
    kinds = (("task_index", "int64", "int64"), ("task", "unicode", "object"))
    told = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": stored, "metadata": None}
            for name, kind, stored in kinds
        ],
        "pandas_version": "2.0.0",
    }
    return table.replace_schema_metadata({"pandas": json.dumps(told)})


def _told(features: Mapping[str, Mapping[str, Any]], pictured: bool) -> dict[str, Any]:
    """Features as the `datasets` library writes them into a file's schema."""
    found: dict[str, Any] = {}
    for name, feature in features.items():
        value = {"dtype": feature["dtype"], "_type": "Value"}
        if name == IMAGE_KEY:
            if pictured:
                found[name] = {"_type": "Image"}
        elif feature["shape"][0] == 1:
            found[name] = value
        else:
            found[name] = {"feature": value, "length": feature["shape"][0], "_type": "Sequence"}
    return found


def _png(image: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG", compress_level=PNG_LEVEL)
    return buffer.getvalue()


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value
