"""The user that runs PostgreSQL.

PostgreSQL refuses to run as root, and `initdb` needs a user that has a name. So for root, and for users
without a name (as in containers), PostgreSQL runs in a user namespace that shows another user id. The files
still belong to the real user, and no directory must be opened to others. If namespaces are forbidden, root
runs PostgreSQL as an unprivileged user, to whom it gives the data directory.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenantadmin.run.embedded import monitor
from tenantadmin.run.embedded.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: With `-I -S`, Python ignores site-packages and the environment. It starts in a few milliseconds.
MONITOR = (sys.executable, "-I", "-S", monitor.__file__)


@dataclass(frozen=True)
class Identity:
    """The monitor's options to run as a user, and the ids of the user and group that must own the files."""

    options: tuple[str, ...]
    uid: int
    gid: int


def choose_identity(directory: Path, *, program: Path) -> Identity:
    """Return the first identity with which `program --version` runs inside `directory`.

    Raises EmbeddedError with the reasons if there is none.
    """
    errors = []
    for identity in _candidates(directory):
        if identity.uid != os.geteuid():
            # Another user must be able to open files below the directory, but not to list it.
            directory.chmod(directory.stat().st_mode | 0o011)
        result = subprocess.run(
            [*MONITOR, *identity.options, "--chdir", str(directory), "--", str(program), "--version"],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode == 0:
            return identity
        errors.append(result.stderr.strip().rpartition("] ")[2])
    raise EmbeddedError(
        f"The user with the id {os.geteuid()} cannot run PostgreSQL: {'; '.join(errors)}. "
        "Run the command as an ordinary user, or set DATABASE_URL."
    )


def _candidates(directory: Path) -> Iterator[Identity]:
    uid, gid = os.geteuid(), os.getegid()
    names = {entry.pw_uid: entry for entry in pwd.getpwall()}
    if uid != 0 and uid in names:
        yield Identity((), uid, gid)
        return
    others = sorted(other for other in names if other != 0)
    if others:
        entry = names[others[0]]
        yield Identity(("--map-to", f"{entry.pw_uid}:{entry.pw_gid}"), uid, gid)
    if uid == 0:
        sudo_user = int(os.environ.get("SUDO_UID") or 0)
        nobody = next((other for other in others if names[other].pw_name == "nobody"), 0)
        for other in dict.fromkeys((sudo_user, directory.parent.stat().st_uid, nobody)):
            if other in names and other != 0:
                entry = names[other]
                yield Identity(("--become", f"{other}:{entry.pw_gid}"), other, entry.pw_gid)
