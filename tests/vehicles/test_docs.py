"""What docs/howto/vehicles.md shows works, and its table is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.vehicles import import_urdf, indicators, vehicle, vehicle_names

URDF = """<robot name="tandem">
<link name="hull"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.02"/></inertial></link>
<link name="propeller_front"/><link name="propeller_back"/>
<joint name="f" type="fixed"><parent link="hull"/><child link="propeller_front"/><origin xyz="0.2 0 0"/></joint>
<joint name="b" type="fixed"><parent link="hull"/><child link="propeller_back"/><origin xyz="-0.2 0 0"/></joint>
</robot>"""


@pytest.fixture
def text(repository: Path) -> str:
    return (repository / "docs" / "howto" / "vehicles.md").read_text()


@pytest.fixture
def folder(text: str, tmp_path: Path) -> Path:
    """The page's TOML blocks, saved under the names in their first lines."""
    for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
        name = block.split("\n", 1)[0].removeprefix("# ").strip()
        (tmp_path / name).write_text(block)
    return tmp_path


def test_the_walk_through_validates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vehicles", "validate", str(folder / "racer.toml")]) == 0
    assert "note:" not in capsys.readouterr().out


def test_the_python_snippets_print_what_they_say(folder: Path, text: str) -> None:
    first, hover = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    lines = printed(first, folder)
    assert f"{float(lines[0]):.1f}" in first
    assert lines[-1] == "(6, 4)"
    tilt, reason = printed(hover, folder)
    assert f"# {float(tilt):.1f}" in hover
    assert f"# {reason}" in hover


def printed(code: str, folder: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_urdf_walk_through_imports(folder: Path) -> None:
    (folder / "robot.urdf").write_text(URDF)
    airframe = import_urdf(folder / "robot.urdf", folder / "rotors.toml")
    assert [rotor.position for rotor in airframe.rotors] == [(0.2, 0.0, 0.0), (-0.2, 0.0, 0.0)]


def test_the_commands_run(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    commands = re.findall(r"^    airworthy (vehicles.*)$", text, re.MULTILINE)
    assert len(commands) == 4
    for line in reversed(commands):  # synthesize writes the file that validate reads
        assert main(re.split(r"  +", line)[0].split()) == 0


def test_the_table_is_the_catalogue(text: str) -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")]
    table = {row[0].strip("`"): row[2:] for row in rows if row[0].strip("`") in vehicle_names()}
    assert sorted([*table, *[name for name in vehicle_names() if name.startswith(("real_", "virt_"))]]) == vehicle_names()
    for name, cells in table.items():
        airframe, values = vehicle(name), indicators(vehicle(name))
        shown = [f"{airframe.mass:.4g}", str(airframe.rotor_count), f"{values.thrust_to_weight:.2f}"]
        assert cells == [*shown, f"{values.alpha_xy_max:.4g}", f"{values.alpha_z_max:.4g}"]
