"""What is read is not written over, whichever command writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.vehicles import vehicle, write_vehicle


@pytest.mark.parametrize(
    "line",
    [
        "vehicles synthesize --base own.toml --mass 1 --arm 0.1 --no-fly --out own.toml",
        "vehicles synthesize --base own.toml --mass 1 --arm 0.1 --no-fly --out ./link.toml",
        "vehicles identify flight.csv --like own.toml --out own.toml",
        "vehicles identify flight.csv --geometry own.toml --out link.toml",
    ],
)
def test_a_vehicle_that_is_read_is_not_written_over(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_vehicle(vehicle("virt_05"), "own.toml")
    Path("link.toml").symlink_to("own.toml")
    before = Path("own.toml").read_bytes()
    assert main(line.split()) == 2
    assert "is the vehicle that is read, and would be written over" in capsys.readouterr().err
    assert Path("own.toml").read_bytes() == before
