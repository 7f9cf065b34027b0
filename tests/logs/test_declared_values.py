"""Constants, defaults, and the exact ends of what options accept, as they were when they were read through."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.declared import check_declared


def test_what_the_room_declares() -> None:
    check_declared("airworthy.logs", Path(__file__).parent / "snapshots")
