"""The film of a run in its report: contact sheet and, where it is small enough, the film itself, inside the one file."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes
from airworthy.evaluation.video_files import SUFFIXES

__all__ = ["EMBED_BYTES", "film_content"]

EMBED_BYTES = 8 << 20
"""Films up to this size lie inside the report; larger ones beside it."""
SHEET_WIDTH = 1600
"""Of the contact sheet inside the report [px]."""
_SHEET_BYTES = 64 << 20
_KINDS = {".mp4": "video/mp4", ".webp": "image/webp"}


def film_content(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a report shows of a film: "kind", "source", whether it lies "beside" the report, "sheet", "note"; or None.

    None where the summary tells of no film, or its files are not there.

    Raises:
        AssetError: The contact sheet is no picture.
    """
    film = summary.get("video")
    if not isinstance(film, Mapping):
        return None
    path, sheet = folder / Path(str(film.get("file"))).name, folder / Path(str(film.get("contact_sheet"))).name
    if path.suffix not in SUFFIXES or not (path.is_file() and sheet.is_file()):
        return None
    kind = _KINDS[path.suffix]
    inside = path.stat().st_size <= EMBED_BYTES
    data = f"data:{kind};base64,{base64.b64encode(read_bytes(path, EMBED_BYTES)).decode()}" if inside else quote(path.name)
    note = _note(film, path.name, inside)
    return {"kind": kind, "source": data, "beside": not inside, "sheet": _embedded(sheet), "note": note}


def _note(film: Mapping[str, Any], name: str, inside: bool) -> str:
    where = "" if inside else f" It is too large for this file: {name} must lie beside it."
    width, height = (film.get("size_px") or (0, 0))[:2]
    return f"Flight {film.get('env')}, camera {film.get('camera')}, {width}x{height} at {film.get('rate_hz'):g} Hz.{where}"


def _embedded(path: Path) -> str:
    """A picture as the page holds it: a JPEG, no wider than it is shown sharp."""
    from PIL import Image

    from airworthy.evaluation import pictures

    try:
        with Image.open(io.BytesIO(read_bytes(path, _SHEET_BYTES)), formats=["PNG"]) as image:
            return pictures.data_uri(pictures.fitted(np.asarray(image.convert("RGB")), SHEET_WIDTH))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise AssetError(f"{str(path)!r} is not a picture: {error}.") from error
