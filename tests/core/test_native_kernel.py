"""Launches split over threads, the number of threads, and what is left alone of the host program's configuration."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core import native_kernel
from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES, MODULE_OPTIONS, Launcher, quiet_warp, shared_source, thread_limit

BLOCKS = 37  # does not divide by the threads


class Probed:
    """The probe's kernel over 37 blocks on lanes, with a launcher."""

    def __init__(self, kernel: Any, threads: int | None):
        wp = quiet_warp()
        count = BLOCKS * CPU_LANES
        values = np.random.default_rng(0).normal(size=(3, count)).astype(np.float32)
        keys = np.arange(5 * count, dtype=np.uint32)
        self.results = np.zeros((128, count), np.float32)
        self.words = np.zeros((4, count), np.uint32)
        arrays = [wp.array(x.ravel(), device="cpu", copy=False) for x in (values, keys, self.results, self.words)]
        self.launcher = Launcher(kernel, BLOCKS, [*arrays, count, CPU_LANES], "cpu", threads)

    def run(self) -> bytes:
        """Launch on cleared results and return them."""
        self.results[...] = 0.0
        self.words[...] = 0
        self.launcher.launch()
        return self.results.tobytes() + self.words.tobytes()


class Records:
    """Stands in for recorded launches: counts them, and who ran them."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def launch(self) -> None:
        self.threads.append(threading.current_thread().name)


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_parts_give_the_bytes_of_the_whole(probe_kernel: Any, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    probed = Probed(probe_kernel, threads)
    assert len(probed.launcher._parts) == min(threads, BLOCKS)
    whole = probed.run()
    assert any(whole)
    monkeypatch.setattr(native_kernel, "SPLIT_SECONDS", 0.0)
    probed.run()
    calls = Records()
    monkeypatch.setattr(probed.launcher, "_whole", calls)
    for _ in range(20):
        assert probed.run() == whole
    assert not calls.threads  # so it was really split


def _faked(monkeypatch: pytest.MonkeyPatch, seconds: list[float]) -> tuple[Launcher, Records, Records]:
    """A launcher of two parts whose whole launches take the seconds given, one after the other."""
    whole, part = Records(), Records()
    launcher = Launcher.__new__(Launcher)
    launcher._whole, launcher._parts = whole, [part, part]
    launcher._seconds, launcher._whole_launches = float("inf"), 0
    clock = iter([t for s in seconds for t in (0.0, s)])
    monkeypatch.setattr(native_kernel, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    return launcher, whole, part


def test_long_launches_are_split_after_two_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, whole, part = _faked(monkeypatch, [5e-3, 4e-3])
    for _ in range(4):
        launcher.launch()
    assert len(whole.threads) == 2
    assert len(part.threads) == 4
    assert sum(name.startswith("airworthy") for name in part.threads) == 2  # one part of each on the caller's thread


def test_short_launches_stay_whole_also_after_one_that_was_preempted(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher, whole, part = _faked(monkeypatch, [5e-3, 5e-4, 5e-3, 5e-3])
    for _ in range(4):
        launcher.launch()
    assert len(whole.threads) == 4
    assert not part.threads


def test_one_thread_and_one_block_are_never_split(probe_kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Probed(probe_kernel, 1).launcher._parts
    monkeypatch.setenv("AIRWORTHY_THREADS", "1")
    assert not Probed(probe_kernel, None).launcher._parts
    monkeypatch.setenv("AIRWORTHY_THREADS", "2")
    assert len(Probed(probe_kernel, None).launcher._parts) == 2


def test_more_launches_at_once_share_one_kernel(probe_kernel: Any) -> None:
    """Launches release the interpreter lock; a recorded launch has no state that they could mix up."""
    expected = Probed(probe_kernel, 1).run()
    found: list[bytes] = []

    def work() -> None:
        probed = Probed(probe_kernel, 1)
        found.extend(probed.run() for _ in range(20))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 80
    assert set(found) == {expected}


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "threads"), [("1", 1), ("2", 2), (" 16 ", 16), ("007", 7)])
def test_thread_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, threads: int) -> None:
    monkeypatch.setenv("AIRWORTHY_THREADS", text)
    assert thread_limit() == threads


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "²", "1e2"])
def test_a_thread_limit_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("AIRWORTHY_THREADS", text)
    with pytest.raises(AirworthyError) as error:
        thread_limit()
    assert str(error.value) == f"AIRWORTHY_THREADS is {text!r}; expected a whole number of at least 1, or leave it unset."


@pytest.mark.parametrize("text", [None, "", " "])
def test_without_a_limit_the_processors_count(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.delenv("AIRWORTHY_THREADS", raising=False)
    if text is not None:
        monkeypatch.setenv("AIRWORTHY_THREADS", text)
    assert thread_limit() >= 1


# ---- one list of arguments ---------------------------------------------------------------------------------------------


def test_one_list_of_arguments_makes_kernel_call_and_native_function() -> None:
    """Thread k adds k + first: what is read, what is written and every number arrive where the list says."""
    wp = quiet_warp()
    kernel = native_kernel.native_kernel(
        "listed",
        "out.data[k] = (int)words.data[k] + whole + (int)half;",
        """
        words: uint32[]  # read
        # output
        out: int32[]  # (n,)
        whole: int
        half: float
        """,
        "k",
    )
    numbers, out = np.arange(6, dtype=np.uint32), np.zeros(6, np.int32)
    arrays = [wp.array(values, device="cpu", copy=False) for values in (numbers, out)]
    native_kernel.quiet_launch(kernel, 4, [*arrays, 10, 200.0, 2], "cpu")
    assert kernel.key == "airworthy_listed"
    assert out.tolist() == [0, 0, 212, 213, 214, 215]


def test_a_launch_that_is_not_cut_has_no_first_task() -> None:
    whole = native_kernel.native_kernel("whole", "out.data[task] = 1;", "out: float64[]", first=False)
    alone = native_kernel.native_kernel("alone", "out.data[0] = key;", "out: uint32[]\nkey: uint32", "", first=False)
    assert [argument.label for argument in whole.adj.args] == ["out"]
    assert "native_whole(out, wp.tid())" in whole.adj.source
    assert [argument.label for argument in alone.adj.args] == ["out", "key"]
    assert "native_alone(out, key)" in alone.adj.source


# ---- manners ---------------------------------------------------------------------------------------------------------

_HOST = """
import json
import warp as wp

wp.config.verify_fp = True  # the host program's own choices
wp.config.cpu_compiler_flags = None
def settings():
    return {k: v for k, v in vars(wp.config).items() if not k.startswith("_") and isinstance(v, (int, float, str, type(None)))}
before = settings()

import airworthy
from airworthy.core.native_kernel import Launcher, MODULE_OPTIONS, quiet_warp
import numpy as np

quiet_warp()

@wp.kernel(module="unique", module_options=MODULE_OPTIONS)
def airworthy_nothing(x: wp.array[wp.float32], first: int):
    x[first + wp.tid()] = 1.0

x = np.zeros(4, np.float32)
Launcher(airworthy_nothing, 4, [wp.array(x, device="cpu", copy=False)], "cpu").launch()
assert x.sum() == 4.0
after = settings()
after["kernel_cache_dir"] = before["kernel_cache_dir"]  # Warp fills it in itself
options = wp.get_module_options()
changed = [k for k in before if before[k] != after[k]]
print(json.dumps({"changed": changed, "fuse_fp": options["fuse_fp"], "level": options["optimization_level"]}))
"""


def test_the_host_program_keeps_its_warp_configuration(tmp_path: Path) -> None:
    """Import, start and a build in a fresh interpreter change no setting, and print nothing."""
    script = tmp_path / "host.py"
    script.write_text(_HOST)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 1, lines  # the script's own line: no banner, no note of a compilation
    assert json.loads(lines[0]) == {"changed": [], "fuse_fp": True, "level": None}


def test_our_modules_have_our_options(probe_kernel: Any) -> None:
    assert MODULE_OPTIONS["fuse_fp"] is False
    assert "fast_math" not in MODULE_OPTIONS
    options = probe_kernel.module.options
    assert {name: options[name] for name in MODULE_OPTIONS} == MODULE_OPTIONS
    assert not options["fast_math"]


def test_native_texts_are_found_in_the_package() -> None:
    assert shared_source("prelude.h", "random.h").index("struct N") < shared_source("prelude.h", "random.h").index(
        "struct Threefry"
    )
    assert shared_source() == ""


def test_results_land_in_the_arrays_given(probe_kernel: Any) -> None:
    probed = Probed(probe_kernel, 1)
    results: ArrayF32 = probed.results
    probed.run()
    assert np.count_nonzero(results[0]) == BLOCKS * CPU_LANES


def test_warp_stays_quiet_until_the_last_thread_is_through() -> None:
    """Two that overlap: the first that leaves puts back nothing."""
    from airworthy.core.native_kernel import _quiet_level, quiet_warp

    wp = quiet_warp()
    before = wp.config.log_level
    first, second = _quiet_level(wp), _quiet_level(wp)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert wp.config.log_level == wp.LOG_ERROR
    second.__exit__(None, None, None)
    assert wp.config.log_level == before
