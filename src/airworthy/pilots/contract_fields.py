"""Entries of a contract that may come from a stranger: what does not fit becomes one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError

__all__ = ["Unfit", "as_number", "as_table", "as_text", "check_kind", "refused"]

_MESSAGE_MAX = 500
"""Characters; what a stranger wrote is quoted, and may be long."""


class Unfit(Exception):
    """What does not fit, in words."""


@contextmanager
def refused(where: str, what: str) -> Iterator[None]:
    """Turn whatever is found wrong inside the block into an AssetError.

    Args:
        where: The contract's place, for messages.
        what: It should be ("a contract of SV-Net").

    Raises:
        AssetError: It is not such a contract, or cannot be used.
    """
    try:
        yield
    except AirworthyError as error:
        raise AssetError(f"{where!r} cannot be used. {error}"[:_MESSAGE_MAX]) from None
    except Unfit as error:
        raise AssetError(f"{where!r} is not {what}: {error}."[:_MESSAGE_MAX]) from None
    except KeyError as error:
        raise AssetError(f"{where!r} is not {what}: it lacks {error.args[0]!r}."[:_MESSAGE_MAX]) from None
    except (TypeError, ValueError, OverflowError):
        raise AssetError(f"{where!r} is not {what}: one of its entries is of another type.") from None


def check_kind(table: Any, kind: str, version: int) -> None:
    """Raise Unfit where a parsed contract is of another kind, or of another version of it."""
    if not isinstance(table, dict) or table.get("kind") != kind:
        raise Unfit(f"its kind is not {kind!r}")
    if table.get("version") != version:
        raise Unfit(f"its version is {table.get('version')!r}, this program reads {version}")


def as_number(value: Any) -> float:
    """An entry that must be a number; raises Unfit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"{value!r} is no number")
    return float(value)


def as_text(value: Any) -> str:
    """An entry that must be a text; raises Unfit."""
    if not isinstance(value, str):
        raise Unfit(f"{value!r} is no text")
    return value


def as_table(value: Any) -> dict[str, Any]:
    """An entry that must be a table; raises Unfit."""
    if not isinstance(value, dict):
        raise Unfit(f"{value!r} is no table")
    return value
