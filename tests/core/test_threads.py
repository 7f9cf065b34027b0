"""Threads that share work: they end with what asked for them, also when it is interrupted, and a fork makes them anew."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import pytest

from airworthy.core import files, native_kernel, threads
from airworthy.core.errors import AirworthyError
from airworthy.core.threads import run_at_once, share
from airworthy.evaluation.metrics import path_distance

PATIENCE = 60.0
"""How long a child may take before it counts as hanging [s]; it needs a fraction of a second."""

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


# ---- sharing ---------------------------------------------------------------------------------------------------------


def test_all_works_are_done_and_the_first_on_the_calling_thread() -> None:
    names: dict[int, str] = {}
    barrier = threading.Barrier(4)

    def work(k: int) -> None:
        barrier.wait(PATIENCE)  # passes only where all four run at once
        names[k] = threading.current_thread().name

    run_at_once([partial(work, k) for k in range(4)], "test")
    assert names.pop(0) == threading.current_thread().name
    assert sorted(names) == [1, 2, 3]
    assert all(name.startswith("test") for name in names.values())


def test_an_error_is_raised_when_every_other_work_has_ended() -> None:
    ended: list[int] = []

    def slow(k: int) -> None:
        time.sleep(0.05)
        ended.append(k)

    def broken() -> None:
        raise ZeroDivisionError

    for works in ([broken, partial(slow, 1)], [partial(slow, 1), broken]):
        ended.clear()
        with pytest.raises(ZeroDivisionError):
            run_at_once(works)
        assert ended in ([1], [])  # what had not begun never does
        before = list(ended)
        time.sleep(0.1)
        assert ended == before


def test_items_are_shared_and_each_is_taken_once() -> None:
    taken: list[int] = []
    share(taken.append, range(1000), 3)
    assert sorted(taken) == list(range(1000))


def test_after_an_error_no_further_item_is_taken() -> None:
    taken: list[int] = []

    def work(k: int) -> None:
        taken.append(k)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        share(work, range(1000), 2)
    assert len(taken) <= 2


def test_no_thread_works_on_behind_an_interrupt() -> None:
    """Two interrupts, the second while the end of the others is waited for."""
    main = threading.main_thread().ident
    assert main is not None
    running, ended = threading.Event(), threading.Event()
    taken = threading.Semaphore(0)

    def take(*_: object) -> None:
        taken.release()
        raise KeyboardInterrupt

    def first() -> None:
        threading.Event().wait(PATIENCE)

    def interrupt() -> None:
        running.wait(PATIENCE)
        for place in (first, threads._Part.end):
            _wait_until_within(main, place.__code__)
            signal.pthread_kill(main, signal.SIGINT)
            taken.acquire(timeout=PATIENCE)

    def long() -> None:
        running.set()
        interrupter.join(PATIENCE)
        time.sleep(0.1)  # whoever does not wait is away by then
        ended.set()

    interrupter = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, take)
    try:
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            run_at_once([first, long])
        assert ended.is_set()
    finally:
        interrupter.join()
        signal.signal(signal.SIGINT, before)
    assert not taken.acquire(blocking=False)


def _wait_until_within(thread: int, code: CodeType) -> None:
    """Until a thread has called a function and blocks in what that calls.

    Seen there several times in a row: a signal that comes just before a thread blocks is only looked at when it wakes up again.
    """
    limit, idle = time.monotonic() + PATIENCE, 0
    while time.monotonic() < limit and idle < 5:
        frame = sys._current_frames()[thread].f_back
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        idle = idle + 1 if frame is not None else 0
        time.sleep(0.01)


def test_the_distances_of_many_points_use_no_more_threads_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And give the bits of one thread."""
    angle = np.linspace(0.0, 6.0, 2000)
    path = np.stack([np.cos(angle), np.sin(angle), 0.1 * angle], axis=1)
    points = np.repeat(path, 20, axis=0) + np.random.default_rng(0).normal(scale=0.1, size=(40_000, 3))
    monkeypatch.setenv("AIRWORTHY_THREADS", "1")
    alone = path_distance(points, path)
    most = _threads_while(lambda: path_distance(points, path))
    assert most == 0
    monkeypatch.setenv("AIRWORTHY_THREADS", "3")
    # In a child, which has no threads of other libraries that come and go meanwhile.
    assert forked(lambda: _threads_while(lambda: np.testing.assert_array_equal(path_distance(points, path), alone))) <= 2


def _threads_while(work: Any) -> int:
    """How many threads of this process there were besides those before."""
    before = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else pytest.skip("needs /proc")
    most, over = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.is_set():
            most = max(most, len(os.listdir("/proc/self/task")) - before - 1)  # the watching one
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return most


# ---- forks -----------------------------------------------------------------------------------------------------------


def forked(work: Any) -> Any:
    """What a function returns in a child made by fork; fails where the child hangs or dies."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def child() -> None:
        try:
            there.send((True, work()))
        except BaseException as error:
            there.send((False, repr(error)))

    process = context.Process(target=child)
    process.start()
    try:
        assert here.poll(PATIENCE), "the forked child hangs"
        good, result = here.recv()
    finally:
        process.kill() if not here.poll(0) and process.is_alive() else None
        process.join(PATIENCE)
    assert good, result
    return result


def test_a_forked_child_steps_a_split_batch_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.simulation import Simulator
    from airworthy.vehicles import vehicle

    monkeypatch.setenv("AIRWORTHY_THREADS", "3")
    monkeypatch.setattr(native_kernel, "SPLIT_SECONDS", 0.0)
    simulator = Simulator([vehicle("cf2x_L250")] * 1500, seed=3)
    for _ in range(8):
        simulator.step()
    assert any(name == "airworthy" for name, _ in threads._POOLS)

    def on() -> bytes:
        for _ in range(5):
            simulator.step()
        return np.array(simulator.position).tobytes() + np.array(simulator.attitude).tobytes()

    there, again = forked(on), forked(on)
    assert there == again == on()
    assert any(name == "airworthy" for name, _ in threads._POOLS)


def test_a_fork_while_other_threads_hold_every_lock() -> None:
    """Of a pool, of kernels being built, of Warp's modules, and of a property that is being computed."""
    native_kernel.quiet_warp()
    run_at_once([lambda: None] * 3)
    pool = threads._POOLS["airworthy", 2]
    module = sys.modules["airworthy._slow_for_test"] = ModuleType("airworthy._slow_for_test")
    vars(module)["Slow"] = Slow
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with pool._shutdown_lock, Slow.lock():
            held.set()
            free.wait(PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(PATIENCE)
    try:

        def use() -> int:
            done: list[int] = []
            run_at_once([lambda: done.append(1)] * 3)
            return len(done) + Slow().value

        assert forked(use) == 10
    finally:
        free.set()
        holder.join()
        del sys.modules["airworthy._slow_for_test"]


class Slow:
    """With a property that takes its time."""

    @cached_property
    def value(self) -> int:
        """Seven."""
        return 7

    @classmethod
    def lock(cls) -> Any:
        """Of the property, for all objects, until Python 3.12; another one later."""
        return getattr(vars(cls)["value"], "lock", threading.RLock())


def test_a_fork_waits_for_a_kernel_that_is_being_built() -> None:
    """Half of a build is of no use to a child; Warp's lock over its modules is free in it."""
    native_kernel.quiet_warp()
    building, ended = threading.Event(), threading.Event()
    warp_lock = threads._warp_lock()
    assert warp_lock is not None

    def build() -> None:
        with threads.building(), warp_lock:
            building.set()
            time.sleep(0.2)
            ended.set()

    builder = threading.Thread(target=build)
    builder.start()
    building.wait(PATIENCE)

    def free() -> bool:
        taken: list[bool] = []

        def take() -> None:
            with threads.building():
                taken.append(warp_lock.acquire(timeout=1.0))

        other = threading.Thread(target=take)
        other.start()
        other.join(PATIENCE)
        return ended.is_set() and taken == [True]

    assert forked(free)
    builder.join()


def test_a_folder_is_free_when_its_holder_dies_though_a_child_lives(tmp_path: Path) -> None:
    """A forked child has the file of the lock open as well; the lock is not its own."""
    program = (
        "import os, sys, time; from airworthy.core import files\n"
        "with files.lock_folder(sys.argv[1]):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        print(os.getpid(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        with pytest.raises(AirworthyError, match=f"process {process.pid}"), files.lock_folder(tmp_path):
            pass
        process.kill()
        process.wait(PATIENCE)
        with files.lock_folder(tmp_path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def test_a_child_that_leaves_the_block_keeps_the_parents_lock(tmp_path: Path) -> None:
    parent = os.getpid()
    try:
        with files.lock_folder(tmp_path):
            if os.fork() == 0:
                raise InterruptedError
            os.wait()
            with pytest.raises(AirworthyError, match=f"process {parent}"), files.lock_folder(tmp_path):
                pass
    finally:
        if os.getpid() != parent:
            os._exit(0)


def test_cuda_is_refused_in_a_fork_of_a_process_with_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_kernel, "_FORKED_FROM_CUDA", [77])
    native_kernel.check_not_forked("cpu")
    with pytest.raises(AirworthyError, match=r"forked from process 77.*'cuda:0'.*spawn"):
        native_kernel.check_not_forked("cuda:0")
