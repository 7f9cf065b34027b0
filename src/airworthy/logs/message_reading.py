"""Messages of some types out of an MCAP file of any size, by their names of fields; streams of a whole log are `read_log`'s."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator
from pathlib import Path

from airworthy.core.errors import AssetError
from airworthy.logs.building import LogDraft
from airworthy.logs.readers.mcap import McapFile, is_mcap
from airworthy.logs.ros_types import MessageLayout, Values, decoded, message_layout

__all__ = ["mcap_messages"]


def mcap_messages(path: str | Path, kinds: Collection[str], notes: list[str] | None = None) -> Iterator[tuple[str, Values]]:
    """Yield type and values of the messages of some types, in the order of the file.

    The file is mapped and not read whole: one of gigabytes of pictures takes no memory.

    Args:
        path: Of the file.
        kinds: "package/msg/Type" of what is wanted.
        notes: Is given a sentence about what is damaged.

    Raises:
        AssetError: It is missing, or no MCAP file.
    """
    place = Path(path)
    try:
        with open(place, "rb") as opened:
            data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise AssetError(f"{str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if not is_mcap(data[:8]):
        raise AssetError(f"{str(path)!r} is no MCAP file: it begins with {data[:8].hex(' ')}.")
    draft = LogDraft(str(path), "mcap", "")
    file = McapFile(memoryview(data), draft)  # type: ignore[arg-type]
    layouts: dict[int, MessageLayout | None] = {}
    damaged = 0
    for message in file.messages():
        if message.channel not in layouts:
            channel = file.channels.get(message.channel)
            wanted = channel is not None and channel.type in kinds and channel.encoding == "cdr"
            layouts[message.channel] = message_layout(channel.type, channel.schema) if wanted and channel is not None else None
        layout = layouts[message.channel]
        if layout is None:
            continue
        try:
            yield layout.name, decoded(layout, message.data)
        except AssetError:
            damaged += 1
    if notes is not None:
        notes += [*draft.notes, *([f"{damaged:,} messages are damaged, and were left out."] if damaged else [])]
