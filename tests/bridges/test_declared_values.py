"""Constants, defaults, and the exact ends of what options accept are those on file."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.declared import check_declared


def test_what_the_room_declares() -> None:
    check_declared("airworthy.bridges", Path(__file__).parent / "snapshots")
