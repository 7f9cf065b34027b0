"""What headers of C have in common: names, numbers, and the templates that they are made from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.errors import AirworthyError

__all__ = ["check_name", "constants", "filled_header", "harmless"]

# Ours: C99 promises 63 significant characters of a name (5.2.4.1), and the longest ending takes ten.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_PER_LINE = 8  # ours: a line of them stays near 100 characters


def check_name(path: Path) -> None:
    """Refuse a file whose name cannot begin names of C.

    Args:
        path: Of the header.

    Raises:
        AirworthyError: It cannot.
    """
    if not _NAME.fullmatch(path.stem):
        raise AirworthyError(
            f"{path.name!r} cannot begin names of C: call the file by a letter and then up to 39 letters, digits or '_'."
        )


def filled_header(template: str, filled: Mapping[str, str]) -> str:
    """Return the text of a header.

    Args:
        template: Name of a file of `learning/native`.
        filled: What stands in it for each @WORD@.
    """
    text = files("airworthy.learning").joinpath("native", template).read_text(encoding="utf-8")
    return re.sub("@([A-Z]+)@", lambda match: filled[match[1]], text)


def harmless(text: str) -> str:
    """Return a stranger's text as it may stand in a comment.

    Args:
        text: Any.
    """
    # An end of comment in a vehicle's name would turn the rest of it into code.
    return re.sub(r"[^A-Za-z0-9 ._-]", "?", text)[:80]


def constants(values: ArrayLike) -> str:
    """Return float constants that read back to the same bits, in lines.

    Args:
        values: Of any shape; they become float32, in the order of their memory.
    """
    written = [_constant(x) for x in np.ravel(np.asarray(values, np.float32))]
    if len(written) <= _PER_LINE:
        return ", ".join(written)
    return "\n    " + ",\n    ".join(", ".join(part) for part in _parts(written))


def _parts(written: Sequence[str]) -> list[Sequence[str]]:
    return [written[k : k + _PER_LINE] for k in range(0, len(written), _PER_LINE)]


def _constant(x: np.float32) -> str:
    # NumPy's shortest text that reads back as the same float32.
    written = np.format_float_positional if x == 0.0 or 1e-3 <= abs(x) < 1e6 else np.format_float_scientific
    # With a digit behind the point: `1f` is no constant of C.
    return f"{written(x, trim='0')}f"
