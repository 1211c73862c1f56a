"""Restrict a process with the kernel's means: limits, no privileges, seccomp, landlock.

Linux only, through ctypes, without privileges. A kernel may lack seccomp or landlock; the other restrictions
work without them. docs/decisions/0007-sql-guard-and-engine.md says how a query is restricted then.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_libc.syscall.restype = ctypes.c_long

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2
_CAPABILITY_VERSION: Final = 0x20080522


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that forked it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def prefer_for_oom_kill() -> None:
    """Have the kernel kill this process before any other when the machine runs out of memory.

    Call it before `forbid_new_privileges`: afterwards, only root may write the file.
    """
    with suppress(OSError):
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(descriptor, b"1000")
        finally:
            os.close(descriptor)


def forbid_new_privileges() -> None:
    """Make set-user-id programs harmless, and this process's memory unreadable to its user's processes."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up all capabilities, which a process of root has.

    Raises:
        OSError: the kernel refused.
    """
    version, data = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
    _checked(_libc.capset(version, data))


def limit_files(*, open_files: int) -> None:
    """Forbid core files and growing files, and limit the number of open files."""
    _lower_limit(resource.RLIMIT_CORE, 0)
    _lower_limit(resource.RLIMIT_FSIZE, 0)
    _lower_limit(resource.RLIMIT_NOFILE, open_files)


def limit_processor_time(*, seconds: int) -> None:
    """Limit the processor time of all threads together."""
    _lower_limit(resource.RLIMIT_CPU, seconds)


def limit_memory(*, extra_bytes: int) -> None:
    """Limit the address space to its present size plus ``extra_bytes``."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        mapped = int(os.read(descriptor, 64).split()[0]) * resource.getpagesize()
    finally:
        os.close(descriptor)
    _lower_limit(resource.RLIMIT_AS, mapped + extra_bytes)


def _lower_limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))


# Seccomp -----------------------------------------------------------------------------------------

# What a query calls, seen in its tests (`python -m scripts.system_calls`), and what the C library calls
# in their place elsewhere. All other calls are refused, also new ones. There are none for other
# processes, sockets, names and attributes of files, privileges, and System V IPC.
# Values: (x86_64 number, aarch64 number), None if the architecture lacks the call. Frequent ones come first.
ALLOWED: Final[dict[str, tuple[int | None, int | None]]] = {
    "futex": (202, 98),
    "fstat": (5, 80),
    "pread64": (17, 67),
    # Files by name. Landlock says which; `openat` opens them for reading only.
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "newfstatat": (262, 79),
    "stat": (4, None),
    "lstat": (6, None),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    # Open files, and the socket of the service.
    "read": (0, 63),
    "readv": (19, 65),
    "preadv": (295, 69),
    "write": (1, 64),
    "writev": (20, 66),
    "lseek": (8, 62),
    "fcntl": (72, 25),
    "fadvise64": (221, 223),
    "readahead": (187, 213),
    "close": (3, 57),
    "poll": (7, None),
    "ppoll": (271, 73),
    # Memory.
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "madvise": (28, 233),
    "brk": (12, 214),
    "membarrier": (324, 283),
    # Threads, signals and time.
    "rseq": (334, 293),
    "set_robust_list": (273, 99),
    "gettid": (186, 178),
    "getpid": (39, 172),
    "getcpu": (309, 168),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "getrusage": (98, 165),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "restart_syscall": (219, 128),
    "sigaltstack": (131, 132),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "gettimeofday": (96, 169),
    "nanosleep": (35, 101),
    "setitimer": (38, 103),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # The first request comes after the filter, and brings the folder for landlock.
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
}
_OPENAT: Final = (257, 56)
_PRCTL: Final = (157, 167)
_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)
_TGKILL: Final = (234, 131)
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE_THREAD: Final = 0x0001_0000
_PR_SET_NAME: Final = 15
#: Flags of `openat` that write, create or empty a file.
_O_CHANGING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | (os.O_TMPFILE & ~os.O_DIRECTORY)

_LOAD, _JUMP_EQ, _JUMP_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_INSTRUCTION: Final = struct.Struct("=HBBI")
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARG0, _OFFSET_ARG2 = 0, 4, 16, 32


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def compile_filter() -> bytes | None:
    """Return the seccomp program for this process, or None on an architecture not supported here."""
    machine = platform.machine()
    if machine not in _AUDIT_ARCH:
        return None
    column = 0 if machine == "x86_64" else 1
    return b"".join(_filter(_AUDIT_ARCH[machine], column=column, pid=os.getpid()))


def refuse_system_calls(program: bytes) -> bool:
    """Install a compiled filter for this thread and its descendants. Return False without seccomp.

    Call `forbid_new_privileges` first. The process can make the calls of `ALLOWED`, open files for reading,
    start threads, name them, and send signals to itself (``abort``).
    """
    block = _Program(len(program) // _INSTRUCTION.size, program)
    return bool(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(block), 0, 0) == 0)


def _filter(arch: int, *, column: int, pid: int) -> list[bytes]:
    program = [
        _instruction(_LOAD, 0, 0, _OFFSET_ARCH),
        _instruction(_JUMP_EQ, 1, 0, arch),
        _instruction(_RETURN, 0, 0, _KILL),
        _instruction(_LOAD, 0, 0, _OFFSET_NUMBER),
    ]
    # The numbers of the x32 ABI are none of these.
    for numbers in ALLOWED.values():
        if (number := numbers[column]) is not None:
            program += [_instruction(_JUMP_EQ, 0, 1, number), _instruction(_RETURN, 0, 0, _ALLOW)]
    # A filter cannot read the flags of clone3. Without clone3, the C library uses clone.
    program += [
        _instruction(_JUMP_EQ, 0, 1, _CLONE3[column]),
        _instruction(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    program += _allow_if(_OPENAT[column], _OFFSET_ARG2, _JUMP_SET, _O_CHANGING, negated=True)
    program += _allow_if(_CLONE[column], _OFFSET_ARG0, _JUMP_SET, _CLONE_THREAD)
    program += _allow_if(_TGKILL[column], _OFFSET_ARG0, _JUMP_EQ, pid)
    program += _allow_if(_PRCTL[column], _OFFSET_ARG0, _JUMP_EQ, _PR_SET_NAME)
    return [*program, _instruction(_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _allow_if(number: int, argument: int, test: int, value: int, *, negated: bool = False) -> list[bytes]:
    """Allow a call if the argument at the offset ``argument`` passes (or fails) the test, else refuse it."""
    return [
        _instruction(_JUMP_EQ, 0, 4, number),
        _instruction(_LOAD, 0, 0, argument),
        _instruction(test, *((1, 0) if negated else (0, 1)), value),
        _instruction(_RETURN, 0, 0, _ALLOW),
        _instruction(_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _instruction(code: int, jump_true: int, jump_false: int, value: int) -> bytes:
    return _INSTRUCTION.pack(code, jump_true, jump_false, value)


# Landlock ----------------------------------------------------------------------------------------

_LANDLOCK_CREATE_RULESET: Final = 444
_LANDLOCK_ADD_RULE: Final = 445
_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_CREATE_RULESET_VERSION: Final = 1
_LANDLOCK_RULE_PATH_BENEATH: Final = 1
_READ_FILE: Final = 1 << 2

#: Rights that a landlock ruleset can withhold, by the ABI version that added them: files, TCP ports, scopes.
_FILE_RIGHTS: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_NET_RIGHTS: Final = {4: 0b11}
_SCOPES: Final = {6: 0b11}


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("file_rights", ctypes.c_uint64),
        ("net_rights", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock_version() -> int:
    """Return the version of the kernel's landlock; less than 1 without it."""
    flag = ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION)
    return int(_libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), flag))


def missing_restrictions() -> list[str]:
    """Return the names of restrictions that this kernel or processor lacks: ``landlock``, ``seccomp``."""
    has = {"landlock": landlock_version() >= 1, "seccomp": compile_filter() is not None}
    return [name for name, is_there in has.items() if not is_there]


def restrict_files(readable: Iterable[str]) -> bool:
    """Let this thread and its descendants only read the files at or below ``readable``.

    All other file access, TCP and signals to other processes are refused, as far as the kernel's landlock
    supports it. Returns False without landlock. Call `forbid_new_privileges` first.

    Raises:
        OSError: a path does not exist.
    """
    version = landlock_version()
    if version < 1:
        return False
    ruleset = _Ruleset(
        _rights_of_version(_FILE_RIGHTS, version),
        _rights_of_version(_NET_RIGHTS, version),
        _rights_of_version(_SCOPES, version),
    )
    descriptor = _checked(
        _libc.syscall(
            _LANDLOCK_CREATE_RULESET,
            ctypes.byref(ruleset),
            ctypes.c_size_t(ctypes.sizeof(ruleset)),
            ctypes.c_uint32(0),
        )
    )
    try:
        for path in readable:
            _allow_reading(descriptor, path)
        _checked(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ctypes.c_int(descriptor), ctypes.c_uint32(0)))
    finally:
        os.close(descriptor)
    return True


def _allow_reading(ruleset: int, path: str) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathRule(_READ_FILE, parent)
        _checked(
            _libc.syscall(
                _LANDLOCK_ADD_RULE,
                ctypes.c_int(ruleset),
                ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH),
                ctypes.byref(rule),
                ctypes.c_uint32(0),
            )
        )
    finally:
        os.close(parent)


def _rights_of_version(rights: dict[int, int], version: int) -> int:
    return max((bits for first, bits in rights.items() if first <= version), default=0)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
