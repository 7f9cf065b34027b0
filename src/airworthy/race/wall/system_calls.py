"""No further process: a filter of system calls under which a process may have threads, and neither fork nor spawn.

Linux has filters without privileges (seccomp, `man 2 seccomp`): a small program of the classic packet filter sees each call's
number and arguments (struct seccomp_data). `clone` without the flag of threads fails; `clone3`, whose flags lie in memory where
no filter looks, is said not to exist, upon which the C library takes `clone`. Numbers: asm/unistd.h of the architecture,
linux/seccomp.h, linux/audit.h, linux/bpf_common.h.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from dataclasses import dataclass

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
"""Options of prctl, and the mode."""
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Instructions: load a word, jump where it is equal, at least so much, has any of some bits, return."""
_NUMBER_AT, _MACHINE_AT, _FLAGS_AT = 0, 4, 16
"""Places in struct seccomp_data; the first argument of `clone` is its flags, on these little-endian machines the lower half."""
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_SHORT_POINTERS = 0x40000000
"""Calls of the x32 interface have these numbers and more: fork has another one there."""
_THREAD = 0x10000
"""CLONE_THREAD."""


@dataclass(frozen=True)
class _Machine:
    audit: int
    clone: int
    clone3: int
    others: tuple[int, ...]
    """Calls that begin a process whatever their arguments are: fork and vfork."""


_MACHINES = {
    "x86_64": _Machine(0xC000003E, 56, 435, (57, 58)),
    "aarch64": _Machine(0xC00000B7, 220, 435, ()),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def no_processes() -> bool:
    """Forbid this process to begin others, for good; returns whether the system does so."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return False
    code = _filter(machine)
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return bool(libc.prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0) == 0)


def _filter(machine: _Machine) -> bytes:
    """Return the program, eight bytes for an instruction: code, jumps if true and if false, constant."""
    rows: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _MACHINE_AT),
        # Calls of another architecture's numbering, as 32-bit ones, are refused whole.
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _SHORT_POINTERS),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
    ]
    for number in machine.others:
        rows += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    rows += [
        (_EQUAL, 0, 1, machine.clone3),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
        (_EQUAL, 0, 3, machine.clone),
        (_LOAD, 0, 0, _FLAGS_AT),
        (_ANY_OF, 1, 0, _THREAD),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *row) for row in rows)
