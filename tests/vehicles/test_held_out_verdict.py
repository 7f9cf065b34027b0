"""What a table of held-out errors says of a vehicle."""

from __future__ import annotations

import pytest

from airworthy.vehicles.identification.compared import HeldOutRow, _verdict


@pytest.mark.parametrize(
    ("off", "hold", "verdict"),
    [(2.5, 1.0, "do not trust"), (1.9, 1.0, "flyable"), (0.45, 0.1, "flyable"), (0.55, 0.1, "do not trust")],
)
def test_thrust_that_is_twice_as_wrong_as_a_held_reading_is_not_trusted(off: float, hold: float, verdict: str) -> None:
    """However well it turns; half a meter per second squared is vibration."""
    turns = {"hold": 1.0, "nearest": 1.0, "start": 1.0, "identified": 0.3, "trimmed": 0.3}
    lifts = {"hold": hold, "nearest": off, "start": off, "identified": off, "trimmed": off}
    rows = [HeldOutRow("rate", "excited", 0.25, turns, turns, 0.9), HeldOutRow("force", "all", 0.25, lifts, lifts, 0.9)]
    told, reasons = _verdict(rows, turning=True, hovers=True)
    assert told == verdict
    assert bool(reasons) is (verdict == "do not trust")
