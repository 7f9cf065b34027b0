"""Constants, defaults, and the exact ends of what options accept, as they were when they were read through."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.declared import check_declared


def test_what_the_room_declares() -> None:
    # The catalogue's words grow with every pilot; what the command line prints holds them.
    check_declared("airworthy.pilots", Path(__file__).parent / "snapshots", ("airworthy.pilots.catalogue",))
