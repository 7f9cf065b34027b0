"""Files from elsewhere, which may be hostile: what they name is only read in their own folder, and quoted harmlessly."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

from airworthy.core.errors import AssetError

__all__ = ["NAME_MAX", "UNPRINTABLE", "Untrusted", "image_kind", "shown"]

NAME_MAX = 1024
"""Characters of a name that a file may use for another."""
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What disturbs a terminal or no file system keeps: control characters, lone surrogates, line ends, changes of direction."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


class Untrusted:
    """A file or folder from elsewhere, and the folder that nothing it names may leave.

    Args:
        path: What messages call it.
        folder: Where everything that it names has to lie, or below.
        name_max: Characters of a name.
    """

    def __init__(self, path: Path, folder: Path, name_max: int = NAME_MAX) -> None:
        self.path = path
        self._root = os.path.realpath(folder)
        self._name_max = name_max

    def refuse(self, reason: str) -> NoReturn:
        """Raise its AssetError, for a reason that completes "... cannot be used:"."""
        raise AssetError(f"{str(self.path)!r} cannot be used: {reason}.")

    def at_most(self, count: int, limit: int, what: str) -> None:
        """Refuse more of something than the limits allow."""
        if count > limit:
            self.refuse(f"it has {count:,} {what}, and at most {limit:,} are accepted")

    def inside(self, name: str, *, escaped: bool = False) -> Path:
        """Path, free of links, of a file that it names; whether there is one is not looked at.

        Args:
            name: As it stands in the file; a backslash separates folders, too.
            escaped: Whether it is a URI, in which %20 is a space. It is decoded once, and what comes out is looked at.

        Raises:
            AssetError: The name is empty, too long, unprintable, remote, absolute, or leads out of the folder, also by a link.
        """
        if len(name) > self._name_max:
            self.refuse(f"it refers to a file by a name of {len(name):,} characters")
        plain = unquote(name) if escaped else name
        if not plain or UNPRINTABLE.search(plain):
            self.refuse(f"it refers to a file by the name {shown(plain)}")
        plain = plain.replace("\\", "/")
        if _SCHEME.match(plain) or plain.startswith("/"):
            self.refuse(f"it refers to {shown(name)}; only files in its own folder are read, no remote or absolute ones")
        try:
            path = os.path.realpath(os.path.join(self._root, plain))
            within = os.path.commonpath([path, self._root]) == self._root
        except (OSError, ValueError):
            within = False
        if not within:
            self.refuse(f"it refers to {shown(name)}, which is outside its own folder")
        return Path(path)


def shown(text: str) -> str:
    """A string of a file as a message quotes it: short, and without what would disturb a terminal."""
    text = UNPRINTABLE.sub("?", text)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def image_kind(data: bytes) -> str:
    """Format of an image by its first bytes, as Pillow calls it: PNG, JPEG, WEBP; empty where it is none of these."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    return "WEBP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""
