"""Restrict a process with the kernel's means: limits, no new privileges, seccomp, landlock.

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

# Calls that a query never needs: for programs, processes, sockets, other processes' memory, privileges and
# changes to the file tree. The list names refused calls, because the harmless calls that DuckDB's libraries
# use are many and change. Values: (x86_64 number, aarch64 number), None if the architecture lacks the call.
_REFUSED_CALLS: Final[dict[str, tuple[int | None, int | None]]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "sendto": (44, 206),
    "bind": (49, 200),
    "listen": (50, 201),
    "socketpair": (53, 199),
    "accept4": (288, 242),
    "sendmmsg": (307, 269),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setgroups": (116, 159),
    "capset": (126, 91),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "acct": (163, 89),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "truncate": (76, 45),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "setpriority": (141, 140),
    "prlimit64": (302, 261),
    "setrlimit": (160, 164),
}
_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)
_TGKILL: Final = (234, 131)
_AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE_THREAD: Final = 0x0001_0000

_LOAD, _JUMP_EQ, _JUMP_SET, _JUMP_GE, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_INSTRUCTION: Final = struct.Struct("=HBBI")
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARG0 = 0, 4, 16


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

    Call `forbid_new_privileges` first. The process can still start threads, but no processes; it can send
    signals to itself (``abort``), but not to others.
    """
    block = _Program(len(program) // _INSTRUCTION.size, program)
    return bool(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(block), 0, 0) == 0)


def _filter(arch: int, *, column: int, pid: int) -> list[bytes]:
    refused = [numbers[column] for numbers in _REFUSED_CALLS.values()]
    program = [
        _instruction(_LOAD, 0, 0, _OFFSET_ARCH),
        _instruction(_JUMP_EQ, 1, 0, arch),
        _instruction(_RETURN, 0, 0, _KILL),
        _instruction(_LOAD, 0, 0, _OFFSET_NUMBER),
        # The x32 ABI has other numbers for the same calls. Refuse all of them.
        _instruction(_JUMP_GE, 0, 1, 0x4000_0000),
        _instruction(_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    for number in refused:
        if number is not None:
            program += [
                _instruction(_JUMP_EQ, 0, 1, number),
                _instruction(_RETURN, 0, 0, _ERRNO | errno.EPERM),
            ]
    # A filter cannot read the flags of clone3. Without clone3, the C library uses clone.
    program += [
        _instruction(_JUMP_EQ, 0, 1, _CLONE3[column]),
        _instruction(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    program += _allow_if(_CLONE[column], _JUMP_SET, _CLONE_THREAD)
    program += _allow_if(_TGKILL[column], _JUMP_EQ, pid)
    return [*program, _instruction(_RETURN, 0, 0, _ALLOW)]


def _allow_if(number: int, test: int, value: int) -> list[bytes]:
    """Allow a call if its first argument passes the test, else refuse it."""
    return [
        _instruction(_JUMP_EQ, 0, 4, number),
        _instruction(_LOAD, 0, 0, _OFFSET_ARG0),
        _instruction(test, 0, 1, value),
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
