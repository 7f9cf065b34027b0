"""What a conversion may write: never over the flight it reads, never over a mapping that a user has written."""

from __future__ import annotations

from pathlib import Path

from airworthy.core.errors import AirworthyError
from airworthy.core.outputs import refuse_input

__all__ = ["refuse_input", "refuse_other_mapping"]


def refuse_other_mapping(path: Path, content: bytes) -> None:
    """Refuse to write a mapping where another one lies, which may be a user's work.

    Args:
        path: File that would be written.
        content: What would be written.

    Raises:
        AirworthyError: A file is there and holds something else.
    """
    if path.exists() and (not path.is_file() or path.read_bytes() != content):
        raise AirworthyError(
            f"{str(path)!r} is there and holds another mapping than this table needs: move or delete it, or choose another"
            " --out, whose mapping is written beside it."
        )
