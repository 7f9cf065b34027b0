"""What docs/howto/sensors.md shows is true, and `airworthy sensors` prints the catalogue."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.cli.sensors import gives
from airworthy.sensors.build import rig_names
from airworthy.sensors.devices import device, device_names, fields_of_view


def _row(name: str) -> str:
    item = device(name)
    across, up = ("" if angle is None else f"{angle:.4g}" for angle in fields_of_view(item))
    far = "" if item.limits.maximum == float("inf") else f"{item.limits.maximum:g}"
    size, noise = f"{item.height} x {item.width}", "on" if item.noise_enabled else "off"
    numbers = f"{item.limits.minimum:g} | {far} | {gives(item)} | {item.rate:g} | {noise}"
    return f"| `{name}` | {item.kind} | {size} | {across} | {up} | {numbers} |"


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "docs" / "howto" / "sensors.md").read_text()


def test_the_table_is_the_catalogue(text: str) -> None:
    rows = [line for line in text.splitlines() if re.match(r"\| `\w+` \| \w+ \| \d+ x \d+ \|", line)]
    assert rows == [_row(name) for name in device_names()]
    assert all(f"`{name}`" in text for name in rig_names())
    assert {gives(device(name)) for name in ("ouster_os0_128", "ouster_os0_128_datasheet", "d435")} == {"share", "m", ""}


def test_the_snippets_print_what_they_say(text: str) -> None:
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == code.rstrip().rsplit("# ", 1)[1]


def test_the_command_lists_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensors", "list", "--kind", "ranger", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["lightware_sf11b", "lightware_sf11b_datasheet"]
    assert main(["sensors"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in device_names())
    assert main(["sensors", "show", "ouster_os0_128", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["noise"]["a"] == 3.36239104e-05
    assert shown["projection"]["model"] == "Spherical"
    assert shown["gives"] == "share"
    assert main(["sensors", "show", "flightgoggles_stereo"]) == 0
    assert "right:" in capsys.readouterr().out


def test_mistakes_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensors", "show", "ouster"]) == 2
    assert "Unknown sensor 'ouster'" in capsys.readouterr().err
    assert main(["sensors", "list", "--kind", "sonar"]) == 2
    assert "Unknown kind of sensor 'sonar'" in capsys.readouterr().err
