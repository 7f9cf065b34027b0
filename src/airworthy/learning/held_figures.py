"""What the folder of a training still holds, read back with doubt: anybody may have changed or deleted a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.network_files import CONTRACT_FILE, read_contract_table

__all__ = ["NOT_WHOLE", "learnt_steps", "refuse_several", "telling_figures"]

NOT_WHOLE = "This training was finished and is not whole any more: delete its folder, and the same command learns again."
"""Said of a finished training that lacks something."""


@contextmanager
def telling_figures(path: Path) -> Iterator[None]:
    """Let what fails on figures that were read back be told in one sentence.

    Args:
        path: Of the file that holds them.

    Raises:
        AssetError: A figure is missing, or is of another kind than a training writes.
    """
    try:
        yield
    except AirworthyError:
        # A sentence of its own; that a name is unknown is a KeyError, too.
        raise
    # All that a missing entry, a null or a text in place of a number comes to where it is computed with or printed.
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        missing = f" ({error} is missing)" if isinstance(error, KeyError) else ""
        raise AssetError(f"{str(path)!r} does not hold the figures of a training{missing}. {NOT_WHOLE}") from error


def learnt_steps(path: Path) -> int:
    """Return how many steps a folder's network has learnt by its contract; 0 where that does not say."""
    try:
        done = read_contract_table(path)["training"]["iterations"] if path.is_file() else 0
    except (AirworthyError, KeyError, TypeError):
        return 0
    return done if isinstance(done, int) else 0


def refuse_several(folder: Path, identity: str) -> None:
    """Refuse the folder above those of several seeds, which holds a summary and no training of its own.

    Args:
        folder: It.
        identity: Name of the file that every training has.

    Raises:
        AirworthyError: It is one.
    """
    seeds = sorted(path.parent.name for path in folder.glob(f"seed_*/{identity}"))
    if seeds and not (folder / CONTRACT_FILE).exists():
        named = ", ".join(seeds[:3]) + (", ..." if len(seeds) > 3 else "")
        raise AirworthyError(
            f"{str(folder)!r} holds several trainings, one per seed ({named}): name one of these folders, or choose another."
        )
