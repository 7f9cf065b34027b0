"""The programs in `tools/`, which keep the project: what they find, on texts that are known."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def tool(name: str) -> ModuleType:
    """A program of `tools/` as a module."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", REPOSITORY / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TEXT = '''"""Words."""
__all__ = ["f"]


def f(x: float = 1.5, y: int = 2) -> float:
    """More words, 3 of them."""
    if x < -y and not y:
        raise ValueError(f"{x + 1} is {y}, not {1 + 2}")
    return math.sqrt(min(x, y))
'''


@pytest.fixture
def planted(tmp_path: Path) -> list[tuple[str, str, str]]:
    """(kind, what stands in the line, what stands there with the bug) of all bugs in the text."""
    path = tmp_path / "some.py"
    path.write_text(TEXT)
    good = TEXT.splitlines()
    found = []
    for mutant in tool("mutants").mutants(path):
        bad = mutant.text().decode().splitlines()
        (number,) = [k for k, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b]
        assert number + 1 == mutant.line
        compile("\n".join(bad), "some.py", "exec")
        found.append((mutant.kind, good[number].strip(), bad[number].strip()))
    return found


def test_mutants_change_what_a_program_does(planted: list[tuple[str, str, str]]) -> None:
    line, test, result = "def f(x: float = 1.5, y: int = 2) -> float:", "if x < -y and not y:", "return math.sqrt(min(x, y))"
    assert set(planted) == {
        ("number", line, line.replace("1.5", "(1.6500000000000001)")),
        ("number", line, line.replace("= 2", "= (3)")),
        ("condition", test, "if (not (x < -y and (not y))):"),
        ("operator", test, "if (x < -y or not y):"),
        ("comparison", test, "if (x <= -y) and not y:"),
        ("sign", test, "if x < (y) and not y:"),
        ("sign", test, "if x < -y and (y):"),
        ("result", result, "return (None)"),
        ("function", result, "return (min(x, y))"),
        ("function", result, "return math.sqrt((max(x, y)))"),
    }


def test_mutants_leave_words_and_types_alone(planted: list[tuple[str, str, str]]) -> None:
    assert len(planted) == 10
    assert not [was for _, was, _ in planted if "raise" in was or "words" in was or "__all__" in was]


def test_mutants_are_judged_by_the_tests_of_their_room_nearest_first() -> None:
    mutants = tool("mutants")
    chosen = mutants.tests_of(mutants.PACKAGE / "control" / "geometric.py", REPOSITORY, ())
    assert chosen[0] == "tests/control/test_geometric.py"
    assert {"tests/control/test_allocation.py", "tests/simulation/test_rotors.py"} <= set(chosen)
    assert len(chosen) == len(set(chosen))


def test_mutants_are_judged_by_what_their_room_declares_besides_the_nearest() -> None:
    mutants = tool("mutants")
    bug = mutants.drawn("control/geometric.py", 1, 1)[0]
    nearest = mutants.tests_of(bug.file, REPOSITORY, bug.scope)[: mutants.NEAREST]
    assert mutants.nearest_of(bug) == [*nearest, "tests/control/test_declared_values.py"]


def test_mutants_of_a_seed_are_the_same() -> None:
    mutants = tool("mutants")
    some, more = mutants.drawn("control", 5, 1), mutants.drawn("control", 9, 1)
    assert some == more[:5]
    assert some != mutants.drawn("control", 5, 2)
    with pytest.raises(SystemExit, match=r"no room or file 'controls'.*control"):
        mutants.drawn("controls", 5, 1)


def test_numbers_change_by_a_tenth_and_tolerances_by_a_thousand(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("a, b, c = 2.0, 1e-05, 0.0\n")
    assert [mutant.now for mutant in tool("mutants").mutants(path)] == ["(2.2)", "(0.01)", "(0.1)"]


def test_a_draw_stays_when_other_lines_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutants = tool("mutants")
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)
    path = tmp_path / "some.py"
    path.write_text(TEXT)
    before = {(bug.now, bug.kind): bug.lot(0) for bug in mutants.mutants(path)}
    path.write_text('"""Other words."""\nLIMIT = 3\n' + TEXT)
    after = {(bug.now, bug.kind): bug.lot(0) for bug in mutants.mutants(path)}
    assert before.items() <= after.items()
    assert len(set(after.values())) == len(after) == len(before) + 1


def test_bugs_are_planted_in_a_copy_that_has_every_package() -> None:
    """Results lie in `runs` at the top of a checkout; `core/jobs` is a package."""
    mutants = tool("mutants")
    names = ["runs", "src", "__pycache__"]
    assert mutants.left_out(str(REPOSITORY), names) == {"runs", "__pycache__"}
    assert mutants.left_out(str(mutants.PACKAGE / "core"), names) == {"__pycache__"}


ROOM = """
def doubled(x):
    return 2 * x


def tripled(x):
    return x + x + x


def waited(n):
    while n > 0:
        n = n - 1
    return None
"""
NEAR = (
    "import signal\nfrom airworthy.room.some import doubled, waited\ndef test_doubled():\n"
    "    assert doubled(2) == 4 and waited(3) is None\n"
    "    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
)
FAR = "import importlib\ndef test_far():\n    assert importlib.import_module('airworthy.room.some').tripled(0) == 0\n"
WRONG = "def test_wrong():\n    assert False\n"


@pytest.mark.slow
def test_bugs_are_caught_near_or_far_survive_or_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a small checkout: what only the fourth nearest test file sees is caught in the second round."""
    mutants = tool("mutants")
    root = tmp_path / "checkout"
    for name, text in {
        "src/airworthy/__init__.py": "",
        "src/airworthy/room/__init__.py": "",
        "src/airworthy/room/some.py": ROOM,
        "tests/room/test_some.py": NEAR,
        **{
            f"tests/room/test_some_{k}.py": "def test_nothing():\n    from airworthy.room.some import tripled\n" for k in (1, 2)
        },
        "tests/room/test_zoo.py": FAR,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(mutants, "REPOSITORY", root)
    monkeypatch.setattr(mutants, "PACKAGE", root / "src" / "airworthy")
    monkeypatch.setattr(sys, "argv", ["mutants", "room", "--workers", "1", "--timeout", "40", "--out", str(tmp_path / "out")])
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the background of a shell
    try:
        assert mutants.main() == 0
    finally:
        signal.signal(signal.SIGINT, before)
    rows = [json.loads(line) for line in (tmp_path / "out" / "mutants.jsonl").read_text().splitlines()]
    found = {(row["was"], row["now"]): (row["outcome"], row["by"]) for row in rows}
    near, far = "tests/room/test_some.py::test_doubled", "tests/room/test_zoo.py::test_far"
    assert found == {
        ("2", "(3)"): ("caught", near),
        ("2 * x", "(2 / x)"): ("caught", near),
        ("2 * x", "(None)"): ("caught", near),
        ("x + x + x", "(x + x - x)"): ("survived", ""),
        ("x + x", "(x - x)"): ("survived", ""),
        ("x + x + x", "(None)"): ("caught", far),
        ("n > 0", "(not n > 0)"): ("survived", ""),
        ("n > 0", "(n >= 0)"): ("survived", ""),
        ("0", "(1)"): ("survived", ""),
        ("n - 1", "(n + 1)"): ("hung", ""),
        ("1", "(2)"): ("survived", ""),
    }
    assert "11 planted     4 caught    6 survived   1 hung" in capsys.readouterr().out
    (root / "tests/room/test_wrong.py").write_text(WRONG)
    assert mutants.main() == 0
    # A test that fails anyway judges nothing.
    said = capsys.readouterr().out
    assert "11 planted     4 caught    6 survived   1 hung" in said
    assert "unsure" not in said


def test_the_house_is_counted(tmp_path: Path) -> None:
    """A checkout of four files, counted by hand."""
    house = tool("house")
    one = "import os\n\n# because\n# ------\nx = 1  # a metre\n\n\nclass A:\n    pass\n\n\nclass _B:\n    pass\n"
    two = (
        "from airworthy.core.one import (\n    A,\n    x,\n)\n\n\nclass A(A):\n    def f(self, a, b, c):\n"
        '        """Do.\n\n        Args:\n            a: One.\n        """\n\n    def g(self, a, *, b, c):\n'
        "        turbulence = x\n\n    def h(self, a, b):\n        import os\n\n    def _i(self, a, b, c):\n        pass\n"
    )
    texts = {"__init__.py": "", "core/__init__.py": "", "core/one.py": one, "control/two.py": two}
    texts |= {"planners/navrl/planner.py": "", "cli/fly.py": "navrl = 1\n"}
    for name, text in texts.items():
        path = tmp_path / "src" / "airworthy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "docs" / "howto").mkdir(parents=True)
    (tmp_path / "docs" / "howto" / "python.md").write_text("```python\nimport airworthy\n```\n\n```python\na = 1\nb = 2\n```\n")
    found = house.House(tmp_path).figures(quick=True)
    lines = sum(text.count("\n") for text in texts.values())
    assert set(found) | {"flight_files", "batch_files"} == set(house.FIGURES)
    assert (found["files"], found["lines"], found["large_folders"]) == (6, lines, 0)
    assert found["import_share"] == round(100 * 5 / lines, 1)
    assert found["import_share_all"] == round(100 * 6 / lines, 1)  # with the one in a method
    assert found["comments"] == round(2000 / lines, 1)
    assert found["comments_of_why"] == 0.0
    assert (found["single_importer"], found["single_importer_same_folder"]) == (1, 0)
    assert found["class_doubles"] == 1
    assert found["args_coverage"] == 50.0  # of f and g
    assert found["script_lines"] == 2
    assert found["touch_effect"] == 1
    assert found["touch_planner"] == 1  # no file names it inside its folder
    (tmp_path / "src" / "airworthy" / "core" / "two.py").write_text("from airworthy.core import one\n")
    (tmp_path / "src" / "airworthy" / "control" / "two.py").unlink()
    assert house.House(tmp_path).single_importer_lines() == "core/one.py 13 <- two.py: "


def test_the_house_has_a_line_for_each_figure() -> None:
    house = tool("house")
    lines = house.table({"files": 7}).splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(house.FIGURES)
    assert lines[1].split()[2] == "7"
    assert set(house.BEFORE) <= set(house.FIGURES) >= set(house.PEERS)


def test_two_checkouts_are_compared_round_by_round() -> None:
    """Now over then of the same round: a machine that halves its speed for a round changes no ratio."""
    from benchmarks.beside import compared, slower

    now = [
        {"a": 110.0, "b": 80.0, "only now": 1.0},
        {"a": 55.0, "b": 41.0, "only now": 1.0},
        {"a": 120.0, "b": 90.0, "only now": 1.0},
    ]
    then = [{"a": 100.0, "b": 100.0}, {"a": 50.0, "b": 50.0}, {"a": 100.0, "b": 100.0}]
    table = compared(now, then)
    assert set(table) == {"a", "b"}
    assert table["a"]["ratio"] == pytest.approx(1.1)
    assert (table["a"]["least"], table["a"]["largest"]) == pytest.approx((1.1, 1.2))
    assert table["a"]["spread"] == pytest.approx(120.0 / 55.0 - 1.0)
    assert (table["b"]["now"], table["b"]["then"]) == (80.0, 100.0)
    assert slower(table, 0.05) == ["b"]
    assert slower(table, 0.2) == []
    # One round in which it reached the other makes a fall no finding.
    assert slower(compared([{"x": 0.8}, {"x": 0.9}, {"x": 1.0}], [{"x": 1.0}] * 3), 0.05) == []


def test_figures_of_the_benchmarks_are_read() -> None:
    from benchmarks.beside import mpc_figures, physics_figures, rays_figures, splats_figures

    sides = {"Airworthy": {"median": 5.0}, "Warp": {"median": 1.0}}
    assert physics_figures({"contests": [{"scenario": "bare", "env_count": 64, "sides": sides}]}) == {
        "bare, 64 environments [steps/s]": 5.0
    }
    assert rays_figures({"contests": {"camera": {"rates": {"Airworthy": [1.0, 9.0, 2.0], "Embree": [3.0]}}}}) == {
        "camera [frames/s]": 2.0
    }
    place = {"640x360": {"processor_ms": 4.0, "frames_per_second": 500.0, "stages_ms": {"raster": 1.0}}, "many": 3.0}
    assert splats_figures({"scenes": {"hall": place}}) == {
        "hall, 640x360 [frames/CPU-s]": 250.0,
        "hall, 640x360 [frames/s]": 500.0,
    }
    assert mpc_figures({"rates": {"ours": 7.0, "numpy": 1.0}}) == {"closed loop [solves/s]": 7.0}


def test_kernels_of_two_commits_are_compared_by_their_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import same_code

    listing = "0000 <run_cpu_forward>:\n   0:\tpush   %rbp\n   1:\tjmp    e <run_cpu_forward+0xe>\n\nDisassembly:\n"
    said = {"one.o": listing, "two.o": listing.replace("run_", "x_"), "three.o": listing.replace("push", "pop ")}
    monkeypatch.setattr(
        same_code.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0, said[Path(command[-1]).name])
    )
    for folder, file in (
        ("now/wp_airworthy_splats_raster_2c75cb4d_6e57981", "one.o"),
        ("then/wp_raster_kernel__locals__airworthy_splats_raster_733832d2_bcb7fea", "two.o"),
        ("other/wp_airworthy_splats_raster_2c75cb4d_6e57981", "three.o"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / file).touch()
    now, then, other = (same_code.kernels(tmp_path / side) for side in ("now", "then", "other"))
    assert now == {"airworthy_splats_raster": [["push   %rbp", "jmp    e"]]}
    assert then == now
    assert other != now


def test_rows_of_a_table_are_kept_as_they_are_flown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.row_file import RowFile, machine_line

    path = tmp_path / "below" / "rows.jsonl"
    kept = RowFile(path, ("pilot", "seed"))
    assert (kept.rows, kept.has("a", 1)) == ([], False)
    for row in ({"pilot": "a", "seed": 1, "x": 0.5}, {"pilot": "b", "seed": 1, "x": None}):
        kept.add(row)
    assert capsys.readouterr().err == path.read_text()
    again = RowFile(path, ("pilot", "seed"))
    assert again.rows == kept.rows == [{"pilot": "a", "seed": 1, "x": 0.5}, {"pilot": "b", "seed": 1, "x": None}]
    assert [again.has(*key) for key in (("a", 1), ("b", 1), ("a", 2), (1, "a"))] == [True, True, False, False]
    assert "cores_used" in machine_line()


# ---- Pictures of README and documentation -----------------------------------------------------------------------------------


def test_pictures_that_are_listed_are_shown_and_their_commands_are_understood() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").rglob("*.md"))
    for entry in tool("pictures").listed():
        assert (REPOSITORY / entry["file"]).exists()
        assert Path(entry["file"]).name in pages
        assert all(cell.startswith("scenes render ") for cell in entry["cells"])


def test_cells_stand_row_by_row() -> None:
    pictures = tool("pictures")
    cells = [pictures.Image.new("RGB", (8, 6), (value, 0, 0)) for value in (10, 20, 30)]
    whole = pictures.composed(cells, 2)
    gap = pictures.GAP
    assert whole.size == (16 + gap, 12 + gap)
    corners = [whole.getpixel(at) for at in ((0, 0), (8 + gap, 0), (0, 6 + gap), (8 + gap, 6 + gap))]
    assert corners == [(10, 0, 0), (20, 0, 0), (30, 0, 0), (255, 255, 255)]


def test_a_list_of_pictures_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text('[[pictures]]\nfile = "a.jpg"\nsize = [8, 6]\ncells = ["scenes render x"]\nrows = 2\n')
    with pytest.raises(SystemExit, match="rows"):
        tool("pictures").listed(path)


def test_long_tests_are_those_that_took_a_second(tmp_path: Path) -> None:
    printed = """
1.20s setup    tests/a/test_b.py::test_first
0.40s call     tests/a/test_b.py::test_first
0.60s call     tests/a/test_b.py::test_second[with words-1]
0.45s setup    tests/a/test_b.py::test_second[with words-1]
0.99s call     tests/a/test_b.py::test_third
9.00s teardown tests/a/test_b.py::test_fourth
9.00s call     tests/test_hygiene.py::test_every_change
"""
    long_tests = tool("long_tests").long_tests
    assert long_tests(printed) == ["tests/a/test_b.py::test_first", "tests/a/test_b.py::test_second[with words-1]"]
    with pytest.raises(ValueError, match="no durations"):
        long_tests("12 passed")


def test_every_long_test_is_there() -> None:
    """A name that no test has any longer would keep nothing out."""
    lines = (REPOSITORY / "tests" / "long_tests.txt").read_text().splitlines()
    names = [line for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))
    for name in names:
        file, _, rest = name.partition("::")
        called = rest.partition("[")[0].rpartition("::")[2]
        assert f"def {called}(" in (REPOSITORY / file).read_text(), name
