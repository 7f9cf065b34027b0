"""Processes end with the one that started them, also where that is killed and can tell nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.core.process_ends import ended

STARTS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""
KEEPS_THE_LOCK = """
import ctypes, os
from airworthy.core.jobs.parent_watch import die_with_parent
die_with_parent(os.getppid())
print("ready", flush=True)
ctypes.PyDLL(None).sleep(60)
"""
"""As a library that does not give Python's lock back: no thread of the process runs."""
WATCHES = """
import os, time
from airworthy.core.jobs.parent_watch import watch_parent
watch_parent(os.getppid())
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc; the system's own signal is Linux's")
@pytest.mark.parametrize("child", [KEEPS_THE_LOCK, WATCHES])
def test_it_ends_with_its_parent(child: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", STARTS, child], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        assert not ended(pid, 0.2)
        parent.send_signal(signal.SIGKILL)
        assert ended(pid)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        if not ended(pid, 0.1):
            os.kill(pid, signal.SIGKILL)


def test_whose_parent_is_gone_already_ends_at_once() -> None:
    code = "import os; from airworthy.core.jobs.parent_watch import die_with_parent; die_with_parent(os.getpid()); print('on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
