"""Policies that come with the package, and where a policy's word leads."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from airworthy.core.errors import AssetError, unknown_name

__all__ = ["SHIPPED", "policy_folder", "shipped_name", "shipped_policy"]

SHIPPED = {"hall": "the course robustness in the hall: through the gate, under the ladder, to the monitor"}
"""Name -> what it flies. How each was trained: docs/policies.md."""
DEFAULT = "hall"


def shipped_policy(name: str = DEFAULT) -> Path:
    """The folder of a policy that comes with the package.

    Raises:
        UnknownNameError: There is none of this name.
        AssetError: It is not where it was installed.
    """
    if name not in SHIPPED:
        raise unknown_name("shipped policy", name, SHIPPED)
    folder = Path(str(files("airworthy.pilots.svnet").joinpath("assets", name)))
    if not folder.is_dir():
        raise AssetError(f"The policy {name!r} is missing from the installation: install airworthy again.")
    return folder


def shipped_name(folder: Path) -> str:
    """The name of a shipped policy by its folder; empty where it is another folder."""
    return next((name for name in SHIPPED if folder == shipped_policy(name)), "")


def policy_folder(word: str) -> Path:
    """Where a policy lies that is named behind `svnet:`.

    Args:
        word: A folder; or, where there is no such folder, the name of a shipped policy; empty: the first of these.

    Raises:
        AssetError: There is neither a folder nor a shipped policy of this name.
    """
    if not word:
        return shipped_policy()
    folder = Path(word)
    if folder.is_dir():
        return folder
    if word in SHIPPED:
        return shipped_policy(word)
    names = ", ".join(SHIPPED)
    raise AssetError(
        f"{word!r} is no folder; svnet:FOLDER names what `airworthy train svnet` wrote, or a shipped policy: {names}."
    )
