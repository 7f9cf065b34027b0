"""Images that `airworthy scenes` writes: refused before minutes of drawing, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, refuse_unwritable, write_atomic

_ENDINGS = (".png", ".jpg", ".jpeg", ".webp")


def check_pictures(out: Path, paths: Iterable[Path] = ()) -> None:
    """Refuse pictures that could not be written, before they are drawn.

    Args:
        out: As it was asked for.
        paths: Files that it becomes, in one folder; none: itself.

    Raises:
        AirworthyError: Its ending is that of no image, a folder is in its place or a file in that of its folder, or the file
            system refuses.
    """
    if out.suffix.lower() not in _ENDINGS:
        raise AirworthyError(f"--out is {str(out)!r}; expected an image that ends in .png, .jpg or .webp.")
    for path in paths or (out,):
        folder = path.parent
        if folder.is_dir():
            refuse_unwritable(path)
            continue
        there = next(above for above in (folder, *folder.parents) if os.path.lexists(above))
        if not there.is_dir():
            raise AirworthyError(f"Could not make the folder {str(folder)!r}: {str(there)!r} is a file; choose another name.")


def write_picture(path: Path, image: Any, **options: Any) -> Path:
    """Write a Pillow image, its folder made where it is missing.

    Args:
        path: The file; its ending names the format.
        image: The image.
        **options: Of the format, as `quality`.

    Raises:
        AirworthyError: The file system refused.
    """
    make_folder(path.parent)
    return write_atomic(path, lambda part: image.save(part, **options))
