"""The sandbox alone, without the guard, stops a process from doing harm."""

from __future__ import annotations

import errno
import json
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from logs.sql import sandbox

_ROOT = Path(__file__).resolve().parents[3]

#: A program that restricts itself as `logs.sql.child` does, tries what is forbidden, and prints the results.
_PROGRAM = """
import ctypes, errno, json, os, resource, socket, sys, threading
sys.path.insert(0, {root!r})
from logs.sql import sandbox
own, other = {own!r}, {other!r}
def attempt(action):
    try:
        return str(action())
    except OSError as error:
        return errno.errorcode[error.errno]
    except MemoryError:
        return "MemoryError"
    except ValueError:  # `setrlimit` raises it if the call is refused
        return "EPERM"
def start_thread():
    thread = threading.Thread(target=lambda: done.append(attempt(lambda: open(other).read())))
    done = []
    thread.start()
    thread.join()
    return done[0]
def connect():
    return socket.socket()
sandbox.limit_files(open_files=64)
sandbox.forbid_new_privileges()
sandbox.drop_capabilities()
capability_sets = ("CapInh", "CapPrm", "CapEff")
capabilities = [line.split()[1] for line in open("/proc/self/status") if line.startswith(capability_sets)]
program = sandbox.compile_filter()
sandbox.limit_memory(extra_bytes=64 << 20)
landlock = sandbox.restrict_files([os.path.dirname(own)])
seccomp = sandbox.refuse_system_calls(program)
results = {{
    "landlock": landlock,
    "seccomp": seccomp,
    "capabilities": capabilities,
    "own": attempt(lambda: open(own).read()),
    "other": attempt(lambda: open(other).read()),
    "other in a thread": attempt(start_thread),
    "through a link": attempt(lambda: open(os.path.dirname(own) + "/link").read()),
    "through ..": attempt(lambda: open(os.path.dirname(own) + "/../other/secret").read()),
    "passwd": attempt(lambda: open("/etc/passwd").read()),
    "environ": attempt(lambda: open("/proc/self/environ").read()),
    "list": attempt(lambda: os.listdir(os.path.dirname(own))),
    "write": attempt(lambda: open(own, "a")),
    "create": attempt(lambda: open(os.path.dirname(own) + "/new", "w")),
    "remove": attempt(lambda: os.remove(own)),
    "rename": attempt(lambda: os.rename(own, own + "2")),
    "chmod": attempt(lambda: os.chmod(own, 0o777)),
    "socket": attempt(connect),
    "fork": attempt(os.fork),
    "exec": attempt(lambda: os.execv("/bin/true", ["true"])),
    "kill": attempt(lambda: os.kill(os.getppid(), 0)),
    "raise limits": attempt(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))),
    "memory": attempt(lambda: len(bytearray(256 << 20))),
}}
os.write(1, json.dumps(results).encode())
{last}
"""


def _run(folder: Path, *, last: str = "") -> subprocess.CompletedProcess[bytes]:
    own, other = folder / "own", folder / "other"
    own.mkdir()
    other.mkdir()
    (own / "data").write_text("mine")
    (other / "secret").write_text("theirs")
    (own / "link").symlink_to(other / "secret")
    code = _PROGRAM.format(root=str(_ROOT), own=str(own / "data"), other=str(other / "secret"), last=last)
    return subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=False, timeout=60)


def test_everything_but_reading_own_files_is_refused(tmp_path: Path) -> None:
    done = _run(tmp_path)
    results = json.loads(done.stdout)
    assert done.returncode == 0
    assert results["own"] == "mine"
    assert results["memory"] == "MemoryError"
    assert results["capabilities"] == ["0000000000000000"] * 3
    if results.pop("seccomp"):
        calls = ["remove", "rename", "chmod", "socket", "fork", "exec", "kill", "raise limits"]
        calls += ["write", "create"]
        assert {name: results[name] for name in calls} == dict.fromkeys(calls, "EPERM")
    if results.pop("landlock"):
        files = [
            "other",
            "other in a thread",
            "through a link",
            "through ..",
            "passwd",
            "environ",
            "list",
        ]
        assert {name: results[name] for name in files} == dict.fromkeys(files, "EACCES")
    assert (tmp_path / "own" / "data").read_text() == "mine"


#: Tries every call that is not allowed, with arguments that are harmless to who may make it.
_EVERY_CALL = """
import ctypes, json, sys
sys.path.insert(0, {root!r})
from logs.sql import sandbox
libc = ctypes.CDLL(None, use_errno=True)
sandbox.forbid_new_privileges()
assert sandbox.refuse_system_calls(sandbox.compile_filter())
results = {{}}
for number in json.loads({numbers!r}):
    ctypes.set_errno(0)
    outcome = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6)
    results.setdefault(ctypes.get_errno() if outcome == -1 else 0, []).append(number)
print(json.dumps(results))
"""

#: Calls that a list of refused ones once forgot, as numbers of x86_64.
_FORGOTTEN = {
    "shmget": 29,
    "semget": 64,
    "msgget": 68,
    "utime": 132,
    "utimes": 235,
    "futimesat": 261,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "removexattr": 197,
    "ftruncate": 77,
    "fallocate": 285,
    "setfsuid": 122,
    "ioctl": 16,
    "inotify_init": 253,
    "memfd_create": 319,
    "fchmodat2": 452,
    "setxattrat": 463,
}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are for x86_64")
def test_every_call_that_is_not_allowed_is_refused() -> None:
    by_argument = {"openat": 257, "clone": 56, "clone3": 435, "tgkill": 234, "prctl": 157}
    allowed = {number for number, _ in sandbox.ALLOWED.values()} | {*by_argument.values()}
    # Seccomp does not see the calls of the kernel's own probes.
    allowed |= {335, 336}
    # The last numbers do not exist: they belong to the x32 ABI, or to a later kernel.
    numbers = [*sorted({*range(475)} - allowed), 600, *(0x4000_0000 | number for number in (0, 2, 59, 322))]
    assert {*_FORGOTTEN.values()} <= {*numbers}
    code = _EVERY_CALL.format(root=str(_ROOT), numbers=json.dumps(numbers))
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {str(errno.EPERM): numbers}


def test_a_process_can_still_abort(tmp_path: Path) -> None:
    assert _run(tmp_path, last="os.abort()").returncode == -signal.SIGABRT


def test_there_is_a_filter_for_supported_architectures() -> None:
    is_supported = platform.machine() in {"x86_64", "aarch64"}
    program = sandbox.compile_filter()
    assert (program is not None) == is_supported


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sandbox.restrict_files([str(tmp_path / "absent")])
