"""What the tests of this room are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.fixtures.recording import JUDGES, Transcript, judged
from tests.fixtures.snapshots import check_snapshot

from airworthy.planners.fast.windows import WindowTwin
from airworthy.planners.mapping import LocalMaps
from airworthy.planners.mapping.twin import MapTwin
from airworthy.simulation import Simulator

Compare = Callable[..., None]


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Run a check, and compare what it asks of others, what it makes of it, and its figures, with a file."""

    def run(
        file: str,
        part: str,
        modules: Iterable[ModuleType],
        check: Callable[[], Any],
        unsteady: str = "",
        leave_out: Iterable[str] = (),
    ) -> None:
        transcript = Transcript(monkeypatch)
        for module in modules:
            transcript.listen(module, leave_out=(*JUDGES, *leave_out))
        # What checks ask of objects is not seen in their modules.
        transcript.listen_to(Simulator, "reset", "advance", "step")
        transcript.listen_to(WindowTwin, "distance")
        transcript.listen_to(LocalMaps, "update")
        transcript.listen_to(MapTwin, "update")
        found = check()
        figures = list(found) if isinstance(found, Iterator) else []
        path = Path(__file__).parent / "snapshots" / file
        # What is asked is float64, or comes out of flights in float32; errors of float32 themselves are much rougher.
        check_snapshot(path, transcript.asked, rtol=1e-4, of_means=1e-4, part=f"{part}, asked")
        check_snapshot(path, transcript.answered, rtol=0.3, of_means=0.3, part=f"{part}, answered")
        if figures:
            check_snapshot(path, judged(figures, unsteady), rtol=0.3, of_means=0.3, part=f"{part}, figures")

    return run
