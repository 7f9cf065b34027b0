"""What every test gets: kernels cached in the clone, no network, no disk to wait for, the same examples, reference files."""

from __future__ import annotations

import _socket
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parents[1]

os.environ.setdefault("WARP_CACHE_PATH", str(REPOSITORY / ".warp-cache"))
os.environ.setdefault("MPLBACKEND", "Agg")
# Several workers share the processors: threads of torch that wait by spinning would starve one another.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The same examples on every run; no deadline, since first calls compile kernels and machines are shared.
settings.register_profile(
    "airworthy",
    derandomize=True,
    deadline=None,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("airworthy")

# A shell starts what it puts into the background with Ctrl-C ignored, and every child inherits that: a command that a test
# interrupts would then fly on to its end, minutes of a processor for each. A handler, unlike "ignore", is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_NO_DATA = "AIRWORTHY_DATA is unset"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the reference files; the test is skipped, and counted, where AIRWORTHY_DATA is unset."""
    value = os.environ.get("AIRWORTHY_DATA")
    if not value:
        pytest.skip(_NO_DATA)
    return Path(value)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture
def calls_of() -> Callable[[Callable[[], object]], int]:
    """Count the function calls, of Python and of C, that a call makes: its cost, the same on a busy and on a quiet machine."""

    def count(call: Callable[[], object]) -> int:
        calls = 0

        def profile(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            call()
        finally:
            sys.setprofile(before)
        return calls

    return count


class NetworkBlockedError(RuntimeError):
    """A test tried to reach the network."""


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test cuts the power: `fsync` returns at once, and tests of when it is called count its calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Any connect, bind or name look-up outside the machine's own AF_UNIX sockets raises, loopback included."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "bind", "sendto"):
            patch.setattr(socket.socket, name, _guarded(name))
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"):
            patch.setattr(socket, name, _refused(name))
        yield


def _guarded(name: str) -> Any:
    allowed = getattr(socket.socket, name)

    def call(self: socket.socket, *arguments: Any) -> Any:
        if self.family != getattr(socket, "AF_UNIX", None):
            raise NetworkBlockedError(f"socket.{name}{arguments[-1:]}: tests run without a network")
        return allowed(self, *arguments)

    return call


def _refused(name: str) -> Any:
    def call(*arguments: Any, **_: Any) -> Any:
        raise NetworkBlockedError(f"socket.{name}{arguments[:1]}: tests run without a network")

    return call


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets reach 127.0.0.1; every other address still raises."""
    for name in ("bind", "connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, _local_only(name, getattr(socket.socket, name)))
    refused = socket.getaddrinfo

    def found(host: Any, *rest: Any, **options: Any) -> Any:
        return (_socket.getaddrinfo if host == "127.0.0.1" else refused)(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)


def _local_only(name: str, refused: Callable[..., Any]) -> Callable[..., Any]:
    allowed = getattr(_socket.socket, name)

    def call(self: socket.socket, *arguments: Any) -> Any:
        address = arguments[-1]
        local = isinstance(address, tuple) and address[0] == "127.0.0.1"
        return (allowed if local else refused)(self, *arguments)

    return call


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `long_tests.txt` names as `long`, before marks choose."""
    listed = (REPOSITORY / "tests" / "long_tests.txt").read_text().splitlines()
    names = {line for line in listed if not line.startswith("#")}
    for item in items:
        if item.nodeid in names:
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Leave what collecting made out of every later search for garbage: jobs search behind each block, 0.4 s with all tests."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `gpu` are skipped with a reason where there is no CUDA device."""
    if item.get_closest_marker("gpu") is None:
        return
    import warp as wp

    if not wp.get_cuda_devices():
        pytest.skip("no CUDA device")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how much was not tested for want of reference files."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if _NO_DATA in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests skipped for want of reference files: {_NO_DATA}.")
