"""Whether kernels of this checkout are, instruction by instruction, those of another commit.

    python benchmarks/same_code.py 3650d36 --parts splats

Where a machine's neighbours make one side's own rounds differ by more than what is asked, no clock can tell; code that is the
same is as fast. Each side runs its benchmark once with a kernel cache of its own; what was compiled is disassembled (objdump
of binutils), addresses and names of symbols are left out, and instructions are compared in their order. What Python does around
the kernels is not compared. The exit code is 1 if a kernel that both have differs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.beside import COMMANDS, REPOSITORY, checkout, measured

_NAME = re.compile(r"(?:.*__locals__)?(?:wp_)?(.+?)_[0-9a-f]{8}_[0-9a-f]{7}")
"""Of a module's folder in the cache: what it is, then two digests of its settings and text."""
_LINE = re.compile(r"^ *[0-9a-f]+:\s*(.*)$")


def kernels(cache: Path) -> dict[str, list[list[str]]]:
    """Return instructions of what a cache holds, by name of the module; several where it was compiled for several settings."""
    found: dict[str, list[list[str]]] = {}
    for file in sorted(cache.glob("**/*.o")):
        name = _NAME.fullmatch(file.parent.name)
        code = instructions(file)
        held = found.setdefault(name.group(1) if name else file.parent.name, [])
        held.extend([code] if code not in held else [])
    return {name: sorted(each) for name, each in found.items()}


def instructions(file: Path) -> list[str]:
    """Return the instructions of an object file in their order, without addresses and names."""
    text = subprocess.run(("objdump", "-d", "--no-show-raw-insn", str(file)), capture_output=True, text=True, check=True).stdout
    lines = (_LINE.match(line) for line in text.splitlines())
    return [re.sub(r"\s*<[^>]*>", "", line.group(1)) for line in lines if line]


def compiled(root: Path, part: str, folder: Path) -> dict[str, list[list[str]]]:
    """Return the kernels that a checkout's benchmark compiles."""
    cache = folder / "cache"
    cache.mkdir()
    before = os.environ.get("WARP_CACHE_PATH")
    os.environ["WARP_CACHE_PATH"] = str(cache)
    try:
        measured(root, part, folder)
        return kernels(cache)
    finally:
        os.environ.pop("WARP_CACHE_PATH")
        if before is not None:
            os.environ["WARP_CACHE_PATH"] = before


def main() -> int:
    """Compile both, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="what to compare with: a commit, branch or tag of this repository")
    parser.add_argument("--parts", nargs="+", choices=list(COMMANDS), default=["splats"])
    asked = parser.parse_args()
    if not shutil.which("objdump"):
        raise SystemExit("objdump is missing; it comes with binutils.")
    differ = 0
    with checkout(asked.commit) as then:
        for part in asked.parts:
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
                a, b = compiled(REPOSITORY, part, Path(one)), compiled(then, part, Path(other))
            for name in sorted(a.keys() | b.keys()):
                here, there = a.get(name), b.get(name)
                sizes = " and ".join(f"{sum(map(len, side)):,}" if side else "none" for side in (here, there))
                said = "the same" if here == there else "differs" if here and there else "one side only"
                differ += said == "differs"
                print(f"{part:10} {name:48} {said:14} {sizes} instructions", flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
