"""The machine that a result was made on, as its record tells it, where the system tells more or less."""

from __future__ import annotations

import builtins
import io
import os
import platform
from typing import Any

import pytest

from airworthy.core.jobs.block_job import describe_machine


@pytest.mark.parametrize(
    ("text", "processor", "said"),
    [
        ("processor\t: 0\nmodel name\t: A: Fast One\nmodel name\t: Another\n", "x", "A: Fast One"),
        ("processor\t: 0\n", "an ARM", "an ARM"),
        ("processor\t: 0\n", "", "riscv64"),
        (None, "an ARM", "an ARM"),
        (None, "", "riscv64"),
    ],
)
def test_the_processor_is_named_as_well_as_the_system_can(
    text: str | None, processor: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = builtins.open

    def read(path: Any, *rest: Any, **named: Any) -> Any:
        if path != "/proc/cpuinfo":
            return opened(path, *rest, **named)
        if text is None:
            raise FileNotFoundError(path)
        return io.StringIO(text)

    monkeypatch.setattr(builtins, "open", read)
    monkeypatch.setattr(platform, "processor", lambda: processor)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    found = describe_machine()
    assert (found["processor"], found["system"]) == (said, f"{platform.system()} riscv64")
    assert found["python"] == f"Python {platform.python_version()}"


def test_cores_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 5}, raising=False)
    assert describe_machine()["cores"] == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert describe_machine()["cores"] == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert describe_machine()["cores"] == 1
