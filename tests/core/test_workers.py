"""Worker processes and clusters: results, threads, failures, and an early end."""

from __future__ import annotations

import operator
import os
import signal
import sys
import types
from functools import partial
from typing import Any

import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.jobs import parent_watch, workers
from airworthy.core.jobs.workers import WorkerStopped, check_wanted, in_processes, on_cluster


def test_results_come_with_their_items_and_processors_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRWORTHY_THREADS", "4")
    names = ["AIRWORTHY_THREADS", "NO_SUCH_VARIABLE"]
    assert dict(in_processes(os.getenv, names, 2, "parts")) == {"AIRWORTHY_THREADS": "2", "NO_SUCH_VARIABLE": None}
    assert os.environ["AIRWORTHY_THREADS"] == "4"


def test_a_killed_worker_and_a_failure_are_told() -> None:
    with pytest.raises(AirworthyError, match="finished parts are kept; run the same command again, with fewer --workers"):
        list(in_processes(os._exit, [3], 1, "finished parts"))
    with pytest.raises(ZeroDivisionError):
        list(in_processes(partial(operator.truediv, 1.0), [0.0, 2.0], 1, "parts"))


def test_an_early_end_does_not_wait_for_what_has_not_begun() -> None:
    finished = in_processes(abs, list(range(1000)), 1, "parts")
    next(finished)
    finished.close()
    assert list(finished) == []


def test_a_worker_whose_run_has_ended_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    check_wanted()  # no worker: nothing is asked
    ended = types.SimpleNamespace(is_set=lambda: True)
    monkeypatch.setitem(workers._STATE, "stop", ended)
    with pytest.raises(WorkerStopped):
        check_wanted()


class Ray(types.ModuleType):
    """A cluster that does everything here."""

    class exceptions:
        class RayTaskError(Exception):
            def __init__(self, cause: Exception):
                self.cause = cause

    def __init__(self) -> None:
        super().__init__("ray")
        self.calls: list[Any] = []

    def init(self, address: str | None, **_: Any) -> None:
        if address == "nowhere:1":
            raise ConnectionError("no answer.\nmore")
        if address == "silent:1":
            raise ConnectionError
        if address == "wordy:1":
            raise RuntimeError("w" * 201)
        self.calls.append(address)

    def remote(self, **asked: Any) -> Any:
        assert asked == {"num_cpus": 1, "max_retries": 3}
        return lambda function: types.SimpleNamespace(remote=lambda *arguments: (function, arguments))

    def wait(self, waiting: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return waiting[-1:], waiting[:-1]

    def get(self, reference: Any) -> Any:
        try:
            return reference[0](*reference[1])
        except AirworthyError as error:
            raise self.exceptions.RayTaskError(error) from None

    def shutdown(self) -> None:
        self.calls.append("down")


def refusing(item: int) -> int:
    raise AirworthyError(f"Not {item}.")


def test_a_cluster_is_asked_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("AIRWORTHY_THREADS", "3")  # as its machines set it, and put back afterwards
    assert list(on_cluster(abs, [-1, -2], "10.0.0.1:6379")) == [(-2, 2), (-1, 1)]
    assert ray.calls == ["10.0.0.1:6379", "down"]
    with pytest.raises(AirworthyError, match=r"^Not 7\.$"):
        list(on_cluster(refusing, [7], "local"))
    assert ray.calls[2:] == [None, "down"]
    with pytest.raises(AirworthyError, match=r"no Ray cluster at 'nowhere:1': no answer\. Give auto, local, or HOST:PORT"):
        list(on_cluster(abs, [1], "nowhere:1"))


@pytest.mark.parametrize(("address", "reason"), [("silent:1", "ConnectionError"), ("wordy:1", "w" * 200)])
def test_why_there_is_no_cluster_is_one_line(address: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", Ray())
    with pytest.raises(AirworthyError, match=f"no Ray cluster at '{address}': {reason}\\. Give auto"):
        list(on_cluster(abs, [1], address))


def test_a_worker_ends_when_its_run_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks now and then whether its parent is still the run; whoever was killed leaves it to another."""
    parents, slept, ended = iter([7, 7, 1]), list[float](), list[int]()
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(parent_watch, "time", types.SimpleNamespace(sleep=slept.append))
    parent_watch._end_with(7)
    assert (slept, ended) == ([parent_watch._WATCH] * 2, [1])


def test_a_worker_begins_deaf_to_ctrl_c_and_with_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = list[Any]()
    thread = lambda **how: types.SimpleNamespace(start=lambda: watched.append(how))  # noqa: E731
    monkeypatch.setattr(parent_watch, "threading", types.SimpleNamespace(Thread=thread))
    monkeypatch.setattr(workers, "_STATE", {})
    monkeypatch.setenv("AIRWORTHY_THREADS", "5")
    before, stop = signal.getsignal(signal.SIGINT), object()
    try:
        workers._begin(7, stop, 3)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert (os.environ["AIRWORTHY_THREADS"], workers._STATE) == ("3", {"stop": stop})
    assert watched == [{"target": parent_watch._end_with, "args": (7,), "daemon": True}]
