"""Plant small bugs, one at a time, and count those that the tests notice: `make mutants`.

    python tools/mutants.py                                  20 bugs in every room
    python tools/mutants.py control dynamics --count 60      more, in two rooms
    python tools/mutants.py control/geometric.py --seed 3    in one file

A bug is one changed operator, comparison, sign, number, condition, result or function (min for max, a square root left out).
It is planted in a copy of the checkout and judged in two rounds. First the few test files that name its module or function,
and what its room declares, to the first failure. What they let pass goes into the second round: every test of the room with
all such bugs planted at once; each test that fails there, and not without them, is then run with each bug alone. A test that
catches a bug has to pass without it, or the outcome is `unsure`. Bugs that make the tests hang are counted apart, as not
caught. Each outcome is appended to OUT/mutants.jsonl as soon as it is known: the same command goes on where it was stopped,
and a bug whose file and tests have not changed is not planted twice.
A survivor is a missing test, dead code, or a change that means the same: read each.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "airworthy"
# Equations are traced by the simulator, whose tests hold them without naming them. The tests that name a file join its own.
ALSO = {"dynamics": ("simulation",), "control": ("simulation",)}
TOLERANCE = 1e-3
"""A number below it allows for rounding: a tenth more means the same, a thousand times as much does not."""
NEAREST = 3
"""Test files of the first round: enough for most bugs, and seconds long."""
DECLARED = "test_declared_values.py"
"""Joins them in every room: a third of a second, and it holds what no other test names."""
SKIPPED = {
    *(".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".warp-cache", "replays"),
}
# What tests import besides the package: loaded once, before the processes that judge are forked.
PRELOADED = (
    *("numpy", "scipy.optimize", "scipy.signal", "scipy.spatial", "warp", "matplotlib.pyplot", "trimesh", "pyarrow.parquet"),
    *("hypothesis", "pytest", "torch", "rich", "tyro", "jinja2", "viser", "av", "casadi"),
)

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    **{a: b for x, y in ((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)) for a, b in ((x, y), (y, x))},
    **{a: b for x, y in ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)) for a, b in ((x, y), (y, x))},
    **{a: b for x, y in ((ast.Is, ast.IsNot), (ast.In, ast.NotIn)) for a, b in ((x, y), (y, x))},
}
PAIRS = (("min", "max"), ("minimum", "maximum"), ("sin", "cos"), ("floor", "ceil"), ("any", "all"))
FUNCTIONS = {
    **{a: b for x, y in PAIRS for a, b in ((x, y), (y, x))},
    "sqrt": "",
    "abs": "",
}


@dataclass(frozen=True)
class Mutant:
    """One planted bug: a piece of a file and what stands there instead."""

    file: Path
    begin: int
    """Offset of the piece in the file's bytes."""
    end: int
    now: str
    line: int
    kind: str
    scope: tuple[str, ...] = ()
    """Names of the classes and functions around it."""
    source: bytes = field(default=b"", repr=False, compare=False)
    """The whole file without it."""

    def text(self) -> bytes:
        """Return the whole file with the bug in it."""
        return planted(self.source, [self])

    def was(self) -> str:
        return " ".join(self.source[self.begin : self.end].decode().split())

    def path(self) -> Path:
        """Its file, relative to the checkout."""
        return self.file.relative_to(REPOSITORY)

    def key(self) -> str:
        """Digest of the mutated file."""
        return hashlib.sha256(self.text() + str(self.path()).encode()).hexdigest()[:20]

    def lot(self, seed: int) -> str:
        """Its place in a draw, which changes elsewhere in the room leave as it is."""
        line = self.source[self.source.rfind(b"\n", 0, self.begin) + 1 :].split(b"\n", 1)[0].decode()
        parts = (str(seed), str(self.file.relative_to(PACKAGE)), *self.scope, line, self.kind, self.was(), self.now)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def planted(data: bytes, bugs: Sequence[Mutant]) -> bytes:
    """Return a file's bytes with bugs in them that do not overlap."""
    for bug in sorted(bugs, key=lambda bug: -bug.begin):
        data = data[: bug.begin] + bug.now.encode() + data[bug.end :]
    return data


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(kind, changed copy) of everything that can go wrong at a node of the syntax tree."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield "operator", ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)  # type: ignore[arg-type]
    elif isinstance(node, ast.BoolOp):
        yield "operator", ast.BoolOp(OPERATORS[type(node.op)](), node.values)  # type: ignore[arg-type]
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        yield "comparison", ast.Compare(node.left, [OPERATORS[type(node.ops[0])](), *node.ops[1:]], node.comparators)  # type: ignore[list-item]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "number", ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        factor = 1.1 if abs(node.value) >= TOLERANCE else 1000.0
        yield "number", ast.Constant(node.value * factor if node.value else 0.1)
    elif isinstance(node, ast.IfExp):
        yield "condition", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Call):
        yield from _changed_call(node)


def _changed_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in FUNCTIONS or not node.args:
        return
    other = FUNCTIONS[name]
    if not other:
        yield "function", node.args[0]
    elif isinstance(node.func, ast.Attribute):
        yield "function", ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords)
    else:
        yield "function", ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords)


def _silent(tree: ast.AST) -> set[int]:
    """Nodes whose change is a change of words or of types: annotations, what is raised or formatted, lists of names."""
    found: set[int] = set()
    for node in ast.walk(tree):
        roots: list[ast.AST | None] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
            roots.append(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            roots.append(node)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            roots.append(node)
        found |= {id(inner) for root in roots if root is not None for inner in ast.walk(root)}
    return found


def mutants(file: Path) -> list[Mutant]:
    """Every bug that can be planted in a file, in the order of its text."""
    data = file.read_bytes()
    tree = ast.parse(data)
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    silent, scopes = _silent(tree), _scopes(tree)
    found = []
    options: list[tuple[str, ast.AST]]
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.If | ast.While):  # the whole statement stays, its test is turned round
            target, options = node.test, [("condition", ast.UnaryOp(ast.Not(), node.test))]
        elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            target, options = node.value, [("result", ast.Constant(None))]
        elif isinstance(node, ast.expr):
            target, options = node, list(changes(node))
        else:
            continue
        begin = starts[target.lineno - 1] + target.col_offset
        end = starts[(target.end_lineno or target.lineno) - 1] + (target.end_col_offset or 0)
        scope = scopes.get(id(node), ())
        found += [Mutant(file, begin, end, f"({ast.unparse(new)})", target.lineno, kind, scope, data) for kind, new in options]
    return sorted(found, key=lambda m: (m.begin, m.end, m.kind))


def _scopes(tree: ast.AST, around: tuple[str, ...] = ()) -> dict[int, tuple[str, ...]]:
    """Names of the classes and functions around every node, by the node's id."""
    found = {}
    for node in ast.iter_child_nodes(tree):
        found[id(node)] = around
        named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        found |= _scopes(node, (*around, node.name) if named else around)  # type: ignore[attr-defined]
    return found


def tests_of(file: Path, root: Path, scope: tuple[str, ...]) -> list[str]:
    """Test files that judge a source file, nearest first, relative to the checkout.

    Near are those that name the module, or a class or function around the bug, or are named like the module.
    """
    module = file.relative_to(PACKAGE).with_suffix("").parts
    named = f"airworthy.{'.'.join(module)}"
    chosen = {path: path.read_text() for path in sorted((root / "tests" / module[0]).rglob("test_*.py"))}
    for room in ALSO.get(module[0], ()):
        chosen |= {path: path.read_text() for path in sorted((root / "tests" / room).rglob("test_*.py"))}
    for path in sorted((root / "tests").glob("*/**/test_*.py")):  # those above the rooms judge the checkout
        if path not in chosen and named in (text := path.read_text()):
            chosen[path] = text

    def far(path: Path) -> int:
        tokens = _tokens(chosen[path].replace(".", " ").replace("(", " ").replace(",", " ").split(), "_")
        like = len(_tokens(module[1:], "_") & _tokens(path.relative_to(root).with_suffix("").parts[2:], "_"))
        return -(2 * like + 2 * (named in chosen[path]) + sum(set(name.split("_")) - {""} <= tokens for name in scope))

    return [str(path.relative_to(root)) for path in sorted(chosen, key=far)]


def _tokens(parts: Iterable[str], gap: str) -> set[str]:
    return {token for part in parts for token in part.split(gap)} - {"", "test"}


def left_out(folder: str, names: list[str]) -> set[str]:
    """Return what a copy of the checkout goes without: caches anywhere, `runs` at its top alone."""
    return set(names) & (SKIPPED | {"runs"} if Path(folder) == REPOSITORY else SKIPPED)


class Judge:
    """A copy of the checkout in which bugs are planted, and a process that forks one that has everything loaded per verdict."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(REPOSITORY, root, symlinks=True, ignore=left_out)
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "MPLBACKEND": "Agg", "OMP_WAIT_POLICY": "PASSIVE"}
        environment.setdefault("WARP_CACHE_PATH", str(REPOSITORY / ".warp-cache"))
        self._server = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        code, failed = self.run(["--collect-only", "tests"], 600.0, write=True)  # compiles everything once
        if code:
            raise SystemExit(f"The tests cannot be collected without any bug (pytest ends with {code}): {failed}")

    def close(self) -> None:
        self._server.communicate()

    def run(self, arguments: Sequence[str], seconds: float, write: bool = False) -> tuple[int, list[str]]:
        """Exit code of pytest, 124 where it had to be ended, and the tests that failed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps([list(arguments), seconds, write]), file=self._server.stdin, flush=True)
        code, failed = json.loads(self._server.stdout.readline())
        return int(code), list(failed)

    def verdict(self, bugs: Sequence[Mutant], arguments: Sequence[str], seconds: float) -> tuple[int, list[str]]:
        """Return what `run` gives with bugs planted."""
        good = {}
        for path in {bug.path() for bug in bugs}:
            place = self.root / path
            good[place] = place.read_bytes(), place.stat()
            place.write_bytes(planted(good[place][0], [bug for bug in bugs if bug.path() == path]))
        try:
            return self.run(arguments, seconds)
        finally:
            for place, (data, status) in good.items():
                place.write_bytes(data)
                os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))  # what was compiled of it is good again


def serve() -> None:
    """Load what tests need, then answer each line [arguments of pytest, seconds, write] with [exit code, failed tests]."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it, in place of this program's own folder
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        arguments, seconds, write = json.loads(line)
        with tempfile.NamedTemporaryFile("r") as failures:
            child = os.fork()
            if child == 0:
                _run_tests(arguments, write, failures.name)
            code = _waited(child, seconds)
            failed = list(dict.fromkeys(failures.read().splitlines()))
        print(json.dumps([code, failed]), file=answers, flush=True)


def _run_tests(arguments: list[str], write: bool, failures: str) -> None:
    """Run pytest in a child of its own process group and end it."""
    import pytest

    class Failures:
        def pytest_configure(self) -> None:
            from hypothesis import Phase, settings

            # The least example that fails, and why, is nobody's question here, and takes minutes to find.
            phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.target)
            settings.register_profile("mutants", settings(phases=phases))
            settings.load_profile("mutants")

        def pytest_runtest_logreport(self, report: Any) -> None:
            self._tell(report)

        def pytest_collectreport(self, report: Any) -> None:
            self._tell(report)

        def _tell(self, report: Any) -> None:
            if report.failed:
                with open(failures, "a") as stream:
                    print(report.nodeid, file=stream)

    os.setsid()
    # A shell's background job ignores interrupts, and so would all that tests start to interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    silence = os.open(os.devnull, os.O_RDWR)
    for k in (0, 1, 2):
        os.dup2(silence, k)
    sys.dont_write_bytecode = not write
    if not write:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    code = 3
    try:
        command = ["-q", "--tb=no", "-m", "not slow and not gpu", "-p", "no:cacheprovider", *arguments]
        command += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins that are loaded already
        code = int(pytest.main(command, plugins=[Failures()]))
    finally:
        os._exit(code)


def _waited(child: int, seconds: float) -> int:
    """Exit code of a child; 124 where it had to be ended. What it left running is ended as well."""
    limit = time.monotonic() + seconds
    code = None
    while code is None and time.monotonic() < limit:
        ended, status = os.waitpid(child, os.WNOHANG)
        code = os.waitstatus_to_exitcode(status) if ended else None
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if code is None:
        os.waitpid(child, 0)
        return 124
    return abs(code)


def drawn(place: str, count: int, seed: int) -> list[Mutant]:
    """Bugs of a room or file, the same for the same seed; the first n of a longer draw are the shorter draw."""
    path = PACKAGE / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if not files:
        raise SystemExit(f"There is no room or file {place!r} in src/airworthy; rooms: {', '.join(rooms())}.")
    return sorted((mutant for file in files for mutant in mutants(file)), key=lambda mutant: mutant.lot(seed))[:count]


def rooms() -> list[str]:
    """Rooms that have tests of their own."""
    return sorted(path.name for path in PACKAGE.iterdir() if (REPOSITORY / "tests" / path.name).is_dir())


class Record:
    """Outcomes on file, each with a digest of the tests that it rests on."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        self.rows = {row["key"]: row for row in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
        self._lock = threading.Lock()

    def outcome(self, mutant: Mutant) -> str | None:
        """Return what is known of a bug whose file and deciding tests have not changed; `passed` where the second round is
        due.
        """
        row = self.rows.get(mutant.key())
        return row["outcome"] if row and row["tests"] == _digest(self._deciding(mutant, row["by"])) else None

    def _deciding(self, mutant: Mutant, by: str) -> list[str]:
        """Return the test file that caught a bug; where none did, all."""
        return [by.split("::", maxsplit=1)[0]] if by else tests_of(mutant.file, REPOSITORY, mutant.scope)

    def add(self, mutant: Mutant, outcome: str, by: str, seconds: float) -> None:
        where = f"{mutant.file.relative_to(PACKAGE)}:{mutant.line}"
        row = {"key": mutant.key(), "where": where, "kind": mutant.kind, "was": mutant.was(), "now": mutant.now}
        row |= {"outcome": outcome, "by": by, "tests": _digest(self._deciding(mutant, by))}
        with self._lock:
            self.rows[mutant.key()] = row
            with self.file.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
            change = f"{mutant.kind}: {mutant.was()[:50]} -> {mutant.now[:50]}"
            print(f"{outcome:9}{where:44} {change}  ({seconds:.0f} s) {by}", flush=True)


def _digest(tests: list[str]) -> str:
    files = [REPOSITORY / test for test in sorted(tests)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files if path.is_file())).hexdigest()[:20]


def _outcome(code: int) -> str:
    """Of a round; pytest's 5 is that no test was chosen."""
    return "hung" if code == 124 else "passed" if code in (0, 5) else "caught"


def nearest_of(mutant: Mutant) -> list[str]:
    """Test files of the first round: the nearest, and what the room has on file of its constants, defaults and bounds."""
    nearest = tests_of(mutant.file, REPOSITORY, mutant.scope)[:NEAREST]
    declared = f"tests/{mutant.file.relative_to(PACKAGE).parts[0]}/{DECLARED}"
    return [*nearest, *([declared] if declared not in nearest and (REPOSITORY / declared).is_file() else [])]


def first_round(mutant: Mutant, judge: Judge, record: Record, seconds: float) -> None:
    """Run the nearest tests, to the first failure."""
    if record.outcome(mutant) is not None:
        return
    began = time.monotonic()
    code, failed = judge.verdict([mutant], ["-x", *nearest_of(mutant)], seconds)
    record.add(mutant, _outcome(code), failed[0] if failed and code != 124 else "", time.monotonic() - began)


def second_round(bugs: list[Mutant], judge: Judge, record: Record, seconds: float) -> None:
    """Every test of the room on bugs that the nearest tests let pass, all at once."""
    began = time.monotonic()
    apart = [bug for bug in bugs if not any(_overlap(bug, other) for other in bugs[: bugs.index(bug)])]
    tests = sorted({test for bug in apart for test in tests_of(bug.file, REPOSITORY, bug.scope)})
    code, failed = judge.verdict(apart, tests, seconds)
    if code == 5:
        code = 0
    if (code and not failed) or code == 124:  # hangs, or does not even start: which of them?
        if len(apart) == 1:
            record.add(apart[0], _outcome(code), "", time.monotonic() - began)
        else:
            second_round(apart[: len(apart) // 2], judge, record, seconds)
            second_round(apart[len(apart) // 2 :], judge, record, seconds)
    else:
        # What fails without any bug would stop each verdict before a test that catches its bug.
        _, anyway = judge.run(failed, seconds) if failed else (0, [])
        telling = [test for test in failed if test not in anyway]
        for bug in apart:
            code, by = judge.verdict([bug], ["-x", *telling], seconds) if telling else (0, [])
            record.add(bug, "survived" if code in (0, 5) else _outcome(code), by[0] if by and code != 124 else "", 0.0)
    if len(apart) < len(bugs):
        second_round([bug for bug in bugs if bug not in apart], judge, record, seconds)


def _overlap(one: Mutant, other: Mutant) -> bool:
    return one.file == other.file and one.begin < other.end and other.begin < one.end


def survey(place: str, judges: list[Judge], arguments: argparse.Namespace, record: Record) -> list[str]:
    """Outcomes of a room's bugs; new ones are written down at once."""
    chosen = drawn(place, arguments.count, arguments.seed)
    fresh = [mutant for mutant in chosen if record.outcome(mutant) is None]
    free = list(judges)

    def one(mutant: Mutant) -> None:
        judge = free.pop()
        try:
            first_round(mutant, judge, record, arguments.timeout / 4)
        finally:
            free.append(judge)

    with ThreadPoolExecutor(len(judges)) as pool:
        list(pool.map(one, fresh))
    passed = [mutant for mutant in chosen if record.outcome(mutant) == "passed"]
    if passed and not arguments.nearest:
        second_round(passed, judges[0], record, arguments.timeout)
    caught = [mutant for mutant in chosen if record.rows[mutant.key()]["by"]]
    if fresh and caught:
        tests = sorted({record.rows[mutant.key()]["by"] for mutant in caught})
        _, failed = judges[0].run(tests, arguments.timeout)
        for mutant in caught:
            if (by := record.rows[mutant.key()]["by"]) in failed:
                record.add(mutant, "unsure", by, 0.0)
    return [record.rows[mutant.key()]["outcome"] for mutant in chosen]


def main() -> int:
    """Plant, judge, print a table; exit 1 where fewer than the asked share were caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", help="rooms, or files below src/airworthy; where none is named, all rooms")
    parser.add_argument("--count", type=int, default=20, help="bugs per room or file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="copies of the checkout in which tests run side by side")
    parser.add_argument(
        "--timeout", type=float, default=900.0, help="of the tests of a room; a quarter of it for the nearest [s]"
    )
    parser.add_argument("--nearest", action="store_true", help="leave out the second round; what it would judge is `passed`")
    parser.add_argument("--least", type=float, default=0.0, help="share that has to be caught [%%]")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "runs" / "mutants")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return 0
    record = Record(arguments.out / "mutants.jsonl")
    table: list[tuple[str, list[str]]] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        judges = [Judge(Path(folder) / str(k)) for k in range(arguments.workers)]
        try:
            for place in arguments.places or rooms():
                table.append((place, survey(place, judges, arguments, record)))
        finally:
            for judge in judges:
                judge.close()
    return report(table, arguments.least)


def report(table: list[tuple[str, list[str]]], least: float) -> int:
    """Print the table; 1 where fewer than the asked share were caught."""
    total = [outcome for _, outcomes in table for outcome in outcomes]
    for place, outcomes in [*table, ("all", total)]:
        caught, hung = outcomes.count("caught"), outcomes.count("hung")
        share = 100.0 * caught / max(1, len(outcomes))
        left = len(outcomes) - caught - hung
        print(f"{place:28} {len(outcomes):5} planted {caught:5} caught {left:4} survived {hung:3} hung  {share:5.1f} %")
        for outcome in ("unsure", "passed"):
            if outcome in outcomes:
                print(f"{'':28} of them {outcomes.count(outcome)} {outcome}")
    return int(100.0 * total.count("caught") / max(1, len(total)) < least)


if __name__ == "__main__":
    sys.exit(main())
