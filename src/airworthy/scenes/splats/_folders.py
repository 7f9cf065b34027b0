"""Where the images of a SOG come from: files beside its meta.json, or members of a zip archive."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import parse_json
from airworthy.core.untrusted import image_kind, shown
from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._source import Source

Fetch = Callable[[str], bytes]
"""Bytes of a file of the SOG, by the name that its meta.json gives."""
ZIP = b"PK\x03\x04"
_MEMBERS_MAX = 256
_JSON_EXPANSION = 24


def beside(source: Source, folder: str = "") -> Fetch:
    """Files in the folder of the source, or in one below it."""
    return lambda name: source.reference(f"{folder}/{name}" if folder else name, escaped=False)


def archive(source: Source) -> tuple[bytes, Fetch]:
    """meta.json of a zip archive, and its other members; names are looked up in the archive, never on the disk."""
    if source.data.count(b"PK\x01\x02") > _MEMBERS_MAX:
        source.refuse(f"it is an archive of more than {_MEMBERS_MAX} files")
    try:
        file = zipfile.ZipFile(io.BytesIO(source.data))
        members = {info.filename: info for info in file.infolist()}
    except Exception as error:  # zipfile raises whatever its parts raise, struct.error and UnicodeDecodeError among them
        raise AssetError(f"{str(source.path)!r} cannot be used: its zip directory is damaged.") from error
    metas = [name for name in members if name.rpartition("/")[2] == "meta.json"]
    if len(metas) != 1:
        source.refuse(f"it is a zip archive of {len(metas)} files meta.json; a bundled SOG has one")
    prefix = metas[0][: -len("meta.json")]

    def fetch(name: str) -> bytes:
        info = members.get(prefix + name)
        if info is None:
            source.refuse(f"it refers to {shown(name)}, which is not in the archive")
        return _member(source, file, info)

    return fetch("meta.json"), fetch


def _member(source: Source, file: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    source.take(info.file_size, f"its member {shown(info.filename)}")
    try:
        with file.open(info) as member:
            data = member.read(info.file_size + 1)
    except Exception as error:  # as above; also RuntimeError of an encrypted member, zlib.error, NotImplementedError
        raise AssetError(f"{str(source.path)!r} cannot be used: its member {shown(info.filename)} is damaged.") from error
    if len(data) > info.file_size:
        source.refuse(f"its member {shown(info.filename)} is longer than its {info.file_size:,} bytes")
    return data


def read_fields(source: Source, text: bytes, where: str) -> Fields:
    """Object of a JSON file."""
    if len(text) > source.limits.json_bytes:
        source.refuse(f"{where} has {len(text):,} bytes, and at most {source.limits.json_bytes:,} are accepted")
    source.take(_JSON_EXPANSION * len(text), where)
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        source.refuse(f"{where} is not UTF-8 text")
    value = parse_json(decoded, str(source.path))
    source.give_back(_JSON_EXPANSION * len(text))
    return Fields(source, value, where)


def pixels(source: Source, fetch: Fetch, name: str) -> NDArray[np.uint8]:
    """(height, width, 4) of an image of numbers; the size is held against the limits before it is decoded."""
    from PIL import Image

    data = fetch(name)
    kind = image_kind(data)
    if kind not in ("WEBP", "PNG"):
        source.refuse(f"its image {shown(name)} is neither WebP nor PNG")
    try:
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            source.at_most(image.width * image.height, source.limits.texture_pixels, f"pixels in {shown(name)}")
            source.take(3 * 4 * image.width * image.height, f"the image {shown(name)}")
            result = np.array(image.convert("RGBA"))
            source.give_back(2 * 4 * image.width * image.height)
    except AssetError:
        raise
    except Exception as error:  # Pillow raises whatever its many decoders raise, struct.error and SyntaxError among them
        raise AssetError(f"{str(source.path)!r} cannot be used: its image {shown(name)} is damaged.") from error
    return result
