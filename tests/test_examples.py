"""The examples run as printed, headless, from an empty folder, and leave what they promise."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import airworthy

SOURCE = str(Path(airworthy.__file__).parents[1])
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

TRAINED = {
    "contract.json", "film.webp", "film_sheet.png", "metrics.jsonl", "report.html", "summary.json", "training.json",
    "weights.safetensors",
}  # fmt: skip
"""Folder of a trained policy with a film."""
EXPECTED: dict[str, tuple[str, set[str]]] = {
    "01_hover.py": ("mm at the end", set()),
    "02_fly_a_course.py": ("success: ", {"flight.parquet", "meta.json", "report.html", "summary.json"}),
    "03_thousand_drones.py": ("tinyprop       success ", {"errors.png"}),
    "04_own_vehicle.py": ("success: ", {"scout.toml", "flight"}),
    "05_own_pilot.py": (
        r"\{'success': 16\}",
        {"config.json", "flight.parquet", "meta.json", "record", "report.html", "summary.json"},
    ),
    "06_equation_to_kernel.py": (r"14 operations:[\s\S]*differ by [1-9]\.\de-07", set()),
    "07_imu_allan.py": (r"rad/s/sqrt\(Hz\) measured", {"allan.png"}),
    "08_own_scene.py": ("7 things, the nearest 3.17 m away", {"view.png", "shed"}),
    "09_sensors_in_flight.py": (
        r"at 15\.000 s: image 217, taken at 14\.966 s; scan of [56]\d{4} points",
        {"depth.png", "lidar.png", "cloud.ply"},
    ),
    "10_thousand_places.py": (r"4096 forests of 57 things[\s\S]*million rays per second", {"forests.png"}),
    "11_pilot_that_sees.py": (r"0 of 16 hit something; they stand 1\.\d\d to 1\.\d\d m before it", set()),
    "12_contact.py": (
        r"respond  drone 3: impacts [1-9][\s\S]*freeze   drone 3: impacts 1, last with the wall at 30.0 m/s",
        set(),
    ),
    "13_train_a_splat.py": (r"PSNR (28|29|30)\.\d dB on 12 images", {"photos", "splats", "compared.png"}),
    "14_fly_in_a_splat.py": ("9 pairs of images; 0 impacts", {"seen.png"}),
    "15_own_navigation_pilot.py": (
        "roomy: [34] of 4 flights through the forest",
        {"benchmark.json", "blocks", "report.html", "results.parquet", "summary.json"},
    ),
    "16_gates.py": (
        r"approved \(10 gates in 16\.40 s\)[\s\S]*competition: 20 of 20 flights clean",
        {"blocks", "gates_bench.json", "report.html", "summary.json"},
    ),
    "17_planner_that_looks.py": (
        "'success': 0, 'collision': 0, .*'planner_crash': 0",
        {"benchmark.json", "blocks", "results.parquet", "summary.json"},
    ),
    "18_ppo_single_file.py": (r"steps per CPU second: mean reward[\s\S]*(9\d|100)\.\d % of 1000 new flights last 3 s", set()),
    "19_gradient_in_torch.py": (r"after 100 windows of a second: [12]?\d cm off", set()),
    "21_race_pilot_of_another_program.py": (
        r"contact with Gate10, right hanger behind 30\.\d m, 0 gates",
        {"blocks", "race_bench.json", "report.html", "summary.json", "timing.json"},
    ),
    "22_captured_place.py": (
        r"60 of 60 pictures have a pose[\s\S]*expert: 20 of 20 flights[\s\S]*policy, baseline: \d+ of 20 flights",
        {"film", "room", "walk.json", "expert", "policy"},
    ),
    "23_chain_that_changes_shape.py": (r"measured: at most [0-4]\.\d cm off[\s\S]*neutral: at most [2-6]\d\.\d cm", set()),
    "24_morphy_hover.py": (r"within 10 cm after 5 s: (9[5-9]|100)\.\d % of 512 flights", TRAINED),
    "25_chain_hover.py": (r"kept for 5 s: \d+\.\d % of 512 flights", TRAINED),
    "26_gap.py": (r"through the slot without a touch: \d+\.\d % of 512 flights", TRAINED),
    "20_mass_by_gradient.py": (r"mass by gradient 1\.13\d\d of the record's, in truth 1\.1341", set()),
}
"""What each prints (a pattern), and what it leaves in its folder below runs/."""

LONG = {
    "03_thousand_drones.py",
    "05_own_pilot.py",
    "07_imu_allan.py",
    "19_gradient_in_torch.py",
    "20_mass_by_gradient.py",
    "21_race_pilot_of_another_program.py",
    "09_sensors_in_flight.py",
    "11_pilot_that_sees.py",
    "13_train_a_splat.py",
    "15_own_navigation_pilot.py",
    "10_thousand_places.py",
    "14_fly_in_a_splat.py",
    "16_gates.py",
    "17_planner_that_looks.py",
    "18_ppo_single_file.py",
    "22_captured_place.py",
    "24_morphy_hover.py",
    "25_chain_hover.py",
    "26_gap.py",
}
"""Over ten seconds each; what they show is tested by the rooms of sensors, pilots, capture and benchmarks."""


def test_every_example_is_expected_and_listed() -> None:
    found = {path.name for path in EXAMPLES.glob("*.py")}
    assert found == set(EXPECTED)
    listed = re.findall(r"\[(\S+\.py)\]\((\S+)\)", (EXAMPLES / "README.md").read_text())
    assert listed == [(name, name) for name in sorted(found)]


@pytest.mark.parametrize("name", EXPECTED)
def test_examples_are_short_and_say_what_they_show(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    assert len(text.splitlines()) < (200 if name == "18_ppo_single_file.py" else 40)
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in EXPECTED])
def test_examples_run(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "MPLBACKEND": "Agg", "PYTHONWARNINGS": "error::RuntimeWarning"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("Warp CUDA warning")] == []
    printed, left = EXPECTED[name]
    assert re.search(printed, done.stdout)
    folder = tmp_path / "runs" / Path(name).stem
    assert {path.name for path in folder.glob("*")} == left
    assert all(path.stat().st_size > 1000 for path in folder.glob("*.png"))
