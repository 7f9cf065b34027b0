"""Pilots of the other side of the wall by word: in a process of their own, or anybody's program that listens on a port.

servo, FILE.py:CLASS, policy:FOLDER
                            a process of its own, made for each flight
external:PORT               a program that listens on 127.0.0.1:PORT; one connection is one flight
truth:...                   any of them, given the truth
"""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import airworthy
from airworthy.bridges.wire import LinkFailure, Message, WireLink, within
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import harmless
from airworthy.core.native_kernel import kernel_cache
from airworthy.core.own_modules import own_digest
from airworthy.pilots.containment import PilotFailure
from airworthy.race.pilots.catalogue import POLICY, RATE_HZ, PilotEntry, own_policy, policy_identity, race_pilot, race_pilots
from airworthy.race.published import TRUTH
from airworthy.race.wall.records import FAILURE, HELLO, PROTOCOL
from airworthy.race.wall.seats import PILOT_ARRAYS_MAX, Opened, SocketSeat, empty_folder, told

PATIENCE_S = 120.0
"""Default of how long a pilot may take for an answer [s]; ours. A plan of a whole race takes seconds, twenty under load."""
EXTERNAL = "external:"
LOOPBACK = "127.0.0.1"
"""The only place where programs are looked for: nothing here is meant for a network."""
_KEPT = ("BLIS_", "LD_LIBRARY_PATH", "MKL_", "NPY_", "OMP_", "OPENBLAS_")
"""Beginnings of variables that a pilot's process keeps: they say where libraries lie and how they compute. Measured: with
another OPENBLAS_CORETYPE the same pilot commands other last bits."""
_SENSORS_MAX, _NAME_MAX = 10, 40


def pilot_entry(word: str, in_process: bool = False, patience_s: float = PATIENCE_S) -> PilotEntry:
    """Return a pilot by its word, behind the wall unless it shall be in this process.

    Args:
        word: See the module.
        in_process: Whether it is made and called in this process, from which Python code can reach what is true.
        patience_s: See `PATIENCE_S`.

    Raises:
        AirworthyError: There is no such pilot, it cannot be made, or nothing listens on its port.
    """
    plain = word.removeprefix(TRUTH)
    if plain.startswith(EXTERNAL):
        return _external(word, _port(plain), patience_s)
    return race_pilot(word) if in_process else _own(word, patience_s)


def is_external(word: str) -> bool:
    """Tell whether a word is that of somebody's program."""
    return word.removeprefix(TRUTH).startswith(EXTERNAL)


# ---- A process of its own ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wanted:
    """What a process is to make."""

    word: str
    digest: str
    """Of a file of one's own or a learned pilot's weights; empty for pilots of the package."""


def _own(word: str, patience_s: float) -> PilotEntry:
    if os.name != "posix":
        raise AirworthyError("Pilots in processes of their own need Linux or macOS; give --in-process, which results then say.")
    wanted, identity = _wanted(word)
    hello, _ = _hello_of(wanted, patience_s)
    return _entry(
        word,
        hello,
        SocketDoor(lambda: _started(wanted), _greeting, patience_s),
        identity,
        batched=hello.get("batched") is True,
        plans=hello.get("plans") is True,
    )


def _wanted(word: str) -> tuple[_Wanted, dict[str, Any]]:
    """Return what a process is to make, and the identity of a file of one's own; nothing of the file is run."""
    if word in race_pilots():
        # Here, for its process writes nothing: what it needs is there, and its kernels are compiled.
        race_pilot(word)
        return _Wanted(word, ""), {}
    if word.startswith(POLICY):
        folder, digest = own_policy(word)
        return _Wanted(f"{POLICY}{folder.resolve()}", digest), policy_identity(folder, digest)
    truth = TRUTH if word.startswith(TRUTH) else ""
    file, colon, name = word.removeprefix(TRUTH).rpartition(":")
    if not (colon and file.endswith(".py")):
        race_pilot(word)  # which says what there is
    path = Path(file)
    if not path.is_file():
        raise AssetError(f"There is no file {file!r} for the race pilot {name!r}.")
    digest = own_digest(path)
    return _Wanted(f"{truth}{path.resolve()}:{name}", digest), {"file": path.name, "class": name, "sha256": digest}


@lru_cache(maxsize=64)
def _hello_of(wanted: _Wanted, patience_s: float) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Start a process, and return what its pilot says of itself and what confines it; both are the same each time."""
    opened = _started(wanted)
    try:
        hello = _greeting(opened, within(patience_s))
    except LinkFailure as failure:
        raise AirworthyError(f"The race pilot {wanted.word!r} did not begin: {opened.ending() or failure}.") from None
    except PilotFailure as failure:
        raise AirworthyError(str(failure)) from None
    finally:
        opened.close()
    holds = hello.get("holds")
    return hello, {told(key): told(value) for key, value in holds.items()} if isinstance(holds, dict) else {}


def confinement_of(word: str, patience_s: float = PATIENCE_S) -> Mapping[str, str]:
    """Return what confines a pilot's process on this machine, as of `airworthy.race.wall.confinement.confined`.

    Args:
        word: Of a pilot with a process of its own.
        patience_s: See `PATIENCE_S`.
    """
    return _hello_of(_wanted(word)[0], patience_s)[1]


def _started(wanted: _Wanted) -> Opened:
    """Start a pilot's process, in an empty folder, with next to no environment and no open file but its socket."""
    ours, theirs = socket.socketpair()
    folder = empty_folder("airworthy_pilot_")
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "airworthy.race.wall.child", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env=_environment(folder),
            cwd=folder,
            start_new_session=True,  # Ctrl-C is the run's, which ends its pilots itself
        )
    link = WireLink(ours, PILOT_ARRAYS_MAX)
    # Where it ended at once, its greeting is waited for, and that says so.
    with suppress(LinkFailure):
        link.send(Message("make", {"word": wanted.word, "digest": wanted.digest}))
    return Opened(link, process, folder)


def _environment(folder: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    return {
        **kept,
        # Where kernels are found depends on HOME, which is another there.
        "WARP_CACHE_PATH": kernel_cache(),
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "PYTHONPATH": str(Path(airworthy.__file__).resolve().parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        # Flights are many, and each has a process: more threads would only stand in each other's way.
        "AIRWORTHY_THREADS": "1",
    }


def _greeting(opened: Opened, until: float) -> Mapping[str, Any]:
    message = opened.link.receive(until)
    if message.kind in ("refused", FAILURE):
        raise PilotFailure(told(message.fields.get("said", "it refused")))
    fields = message.fields
    if message.kind != HELLO or fields.get("protocol") != PROTOCOL:
        raise LinkFailure(f"it began with {message.kind[:40]!r}; expected a hello of protocol {PROTOCOL}")
    rate, sensors = fields.get("rate", RATE_HZ), fields.get("sensors", [])
    if type(rate) not in (int, float) or not math.isfinite(rate):
        raise LinkFailure(f"its hello has the rate {repr(rate)[:40]}; expected commands per second")
    named = isinstance(sensors, list) and len(sensors) <= _SENSORS_MAX
    if not named or not all(isinstance(name, str) and len(name) <= _NAME_MAX and name.isprintable() for name in sensors):
        raise LinkFailure("its hello has sensors that are no list of names")
    return fields


# ---- Anybody's program ------------------------------------------------------------------------------------------------------


def _port(word: str) -> int:
    text = word.removeprefix(EXTERNAL)
    port = int(text) if text.isdecimal() and len(text) <= 5 else 0
    if not 1 <= port <= 65535:
        raise AirworthyError(f"The race pilot {word!r} names no port; expected external:PORT with 1 to 65535.")
    return port


def _external(word: str, port: int, patience_s: float) -> PilotEntry:
    try:
        opened = _connected(port)
    except PilotFailure as failure:
        raise AirworthyError(f"The race pilot {word!r} cannot be reached: {failure}.") from None
    try:
        hello = _greeting(opened, within(patience_s))
    except (LinkFailure, PilotFailure) as failure:
        raise AirworthyError(f"The race pilot {word!r} did not begin: {failure}.") from None
    finally:
        opened.close()
    name = hello.get("name", "")
    said = {"name": harmless(name[:_NAME_MAX]) if isinstance(name, str) else "", "port": port}
    return _entry(word, hello, SocketDoor(lambda: _connected(port), _greeting, patience_s), said)


def _connected(port: int) -> Opened:
    try:
        return Opened(WireLink(socket.create_connection((LOOPBACK, port), timeout=5.0), PILOT_ARRAYS_MAX))
    except OSError as error:
        reason = error.strerror or str(error)
        raise PilotFailure(f"nothing answers on {LOOPBACK}:{port} ({reason}); start your program first") from None


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SocketDoor:
    """Makes seats behind connections."""

    open: Callable[[], Opened]
    greet: Callable[[Opened, float], Any]
    patience_s: float

    def __call__(self) -> SocketSeat:
        """Return a seat that is not connected yet."""
        return SocketSeat(self.open, self.greet, self.patience_s)


def _entry(
    word: str,
    hello: Mapping[str, Any],
    door: SocketDoor,
    identity: Mapping[str, Any],
    *,
    batched: bool = False,
    plans: bool = False,
) -> PilotEntry:
    return PilotEntry(
        name=word,
        make=door,
        truth=word.startswith(TRUTH),
        batched=batched,
        rate=float(hello.get("rate", RATE_HZ)),
        sensors=tuple(hello.get("sensors", ())),
        identity=identity,
        plans=plans,
        door=door,
    )
