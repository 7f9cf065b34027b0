"""What a pilot's process may touch: files are read below a few folders, none is written, no program is run, nobody is called.

Linux does it without privileges by Landlock (`man 7 landlock`, kernel 5.13 and later; numbers of system calls and flags from
linux/landlock.h). No process is begun, as children could outlive it (`system_calls`). What a kernel lacks is left out and said.
Not covered: UDP, processor time, memory beyond the limit, and whatever the process learnt before.
"""

from __future__ import annotations

import ctypes
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import airworthy
from airworthy.race.wall.system_calls import no_processes

WITHHELD = ("scenes/generators/halls/alphapilot_published.json",)
"""Files of the package that say where gates stand in published courses: whoever reads them need not look."""
SYSTEM = (
    "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo",
    "/dev/null", "/dev/zero", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
)  # fmt: skip
"""Of the system, what interpreters and libraries read."""
RESULTS = "race_bench.json"
"""Marks a folder of results, which holds courses and where everybody was."""
_LOOKED_MAX = 20_000
"""Files below a pilot's folder that are looked through for results; ours, a tenth of a second."""
OPEN_FILES, MEMORY_BYTES = 256, 4 << 30
"""Limits, ours: libraries open a few dozen files, and a solver's plan takes below a gigabyte. The same on every machine: with
more than a machine has, its own end of memory would come first, and kill whatever it chose."""
_NO_NEW_PRIVILEGES = 38
"""Option of prctl (linux/prctl.h)."""
_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on all architectures."""
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
"""Interface version -> how many rights on files it knows; all are taken away, but for those that a rule gives."""
_TCP_SINCE, _TCP_RIGHTS = 4, 0b11
_SCOPES_SINCE, _SCOPES = 6, 0b11
"""Abstract Unix sockets, and signals to others."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def confined(own: Iterable[Path]) -> dict[str, str]:
    """Confine this process for good, and return what holds, in words.

    Args:
        own: Folders and files that it may read besides interpreter, libraries and package; but no results of races in them.

    Returns:
        "files", "tcp", "signals", "processes" and "limits", each empty where this system does not enforce it.
    """
    memory = _limit()
    roots, secret = [*_libraries()], [Path(airworthy.__file__).parent / name for name in WITHHELD]
    for folder in own:
        roots += own_paths(folder)
        secret += results_below(folder) or []
    version = _landlocked(roots, secret)
    return {
        "processes": "seccomp" if no_processes() else "",
        "files": f"Landlock {version}" if version else "",
        "tcp": f"Landlock {version}" if version >= _TCP_SINCE else "",
        "signals": f"Landlock {version}" if version >= _SCOPES_SINCE else "",
        # The system's own limit counts where it is lower: then a pilot has less here than elsewhere.
        "limits": f"rlimit, {memory / (1 << 30):.3g} GiB",
    }


def results_below(folder: Path) -> list[Path] | None:
    """Return folders of race benchmarks below a folder, which say where gates stood; None where there is too much to look at.

    Args:
        folder: Of the pilot.
    """
    found, looked = [], 0
    for place, folders, names in os.walk(folder):
        looked += 1 + len(names)
        if looked > _LOOKED_MAX:
            return None
        if RESULTS in names:
            found.append(Path(place))
            folders.clear()
    return found


def own_paths(folder: Path) -> list[Path]:
    """Return what a pilot may read of its own: its folder, or the files in it where what lies below cannot be looked through.

    Args:
        folder: Of the pilot.
    """
    if results_below(folder) is not None:
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_file())


def _limit() -> int:
    """Set limits; returns the bytes of memory in force."""
    # Not the number of processes: the system counts all of a user's, not this one's. `no_processes` forbids any.
    import resource

    for what, most in (
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, MEMORY_BYTES),
    ):
        hard = resource.getrlimit(what)[1]
        bounded = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (bounded, bounded))
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def _libraries() -> list[Path]:
    """Return folders of interpreter, libraries and this package."""
    named = [*sysconfig.get_paths().values(), *sys.path, sys.prefix, sys.base_prefix]
    folders = {Path(name).resolve() for name in named if name}
    # A source tree's root is on the path for its package alone.
    root = Path(airworthy.__file__).resolve().parent
    keep = {folder for folder in folders if folder != root.parent or (root.parent / "numpy").exists()}
    kernels = os.environ.get("WARP_CACHE_PATH")
    return [*sorted(keep), root, *([Path(kernels)] if kernels else []), *map(Path, SYSTEM)]


def readable(roots: Iterable[Path], withheld: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield folders and files that together are everything below some roots but what is withheld.

    Args:
        roots: Those that are not there are left out.
        withheld: Files.

    Yields:
        A path, and whether all below it is read; otherwise it is listed alone, as imports do.
    """
    secret = [path.resolve() for path in withheld]
    for root in roots:
        place = root.resolve()
        if not place.exists() or place in secret:
            continue
        if any(path.is_relative_to(place) for path in secret):
            yield place, False
            yield from readable(sorted(place.iterdir()), secret)
        else:
            yield place, True


def _landlocked(roots: Iterable[Path], withheld: Iterable[Path]) -> int:
    """Take all rights on files away but reading; returns the version of the system's interface, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    version = int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))
    if version < 1:
        return 0
    known = _FILE_RIGHTS[max(since for since in _FILE_RIGHTS if since <= version)]
    network = _TCP_RIGHTS if version >= _TCP_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    asked = _Ruleset((1 << known) - 1, network, scopes)
    # Older interfaces know fewer fields and refuse a longer record that holds anything there.
    rules = int(libc.syscall(_CREATE, ctypes.byref(asked), ctypes.c_size_t(ctypes.sizeof(asked)), ctypes.c_uint32(0)))
    if rules < 0:
        return 0
    try:
        for path, whole in readable(roots, withheld):
            rights = (_READ_FILE if whole else 0) | (_READ_FOLDER if path.is_dir() else 0)
            _allow(libc, rules, path, rights)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        done = int(libc.syscall(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0)))
    finally:
        os.close(rules)
    return version if done == 0 else 0


def _allow(libc: ctypes.CDLL, rules: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be opened now could not be read later either
    try:
        rule = _Beneath(rights, opened)
        libc.syscall(_ADD, ctypes.c_int(rules), ctypes.c_int(1), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(opened)
