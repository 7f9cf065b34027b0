"""The project's own exceptions: what a user's mistake raises.

Every message is one sentence that says what arrived, what was expected and what to do. The command line prints it and
exits with code 2; nothing here ever reaches a user as a traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AirworthyError(Exception):
    """A mistake in what the user gave; the message says how to mend it."""


class AssetError(AirworthyError):
    """A file that is missing, damaged, too large or not what its name says."""


class AssetWarning(UserWarning):
    """Something in a file that was left out, mended or replaced; the message says what."""


class UnknownNameError(AirworthyError, KeyError):
    """A name that no catalogue holds."""

    __str__ = Exception.__str__


def unknown_name(kind: str, name: str, known: Iterable[str], hint: str = "") -> UnknownNameError:
    """Build the error for a name that is not in a catalogue.

    Args:
        kind: What was looked up, in the singular ("vehicle").
        name: The name that arrived.
        known: Every name there is.
        hint: A last sentence: where the user finds or adds one.
    """
    names, name = sorted(known), str(name)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    parts = [f"Unknown {kind} {name!r}."]
    if close:
        parts.append(f"Closest: {', '.join(repr(n) for n in close)}.")
    shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
    parts.append(f"Known: {shown}.")
    if hint:
        parts.append(hint)
    return UnknownNameError(" ".join(parts))
