"""Which user PostgreSQL runs as.

It refuses to run as root, and `initdb` insists on a user that the system knows. So root (and a user without
a name, as containers have them) runs it in a user namespace in which it is somebody else: files stay its
own, and no directory has to be opened for others. Where namespaces are forbidden, root steps down to an
unprivileged user and gives that one the data directory.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenantadmin.embedded import keeper
from tenantadmin.embedded.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: `-I -S`: no site-packages, no environment; a keeper starts in a few milliseconds.
KEEPER = (sys.executable, "-I", "-S", keeper.__file__)


@dataclass(frozen=True)
class Identity:
    """The keeper's options for it, and who must own the server's files."""

    options: tuple[str, ...]
    uid: int
    gid: int


def choose_identity(directory: Path, *, program: Path) -> Identity:
    """Return the first identity under which `program --version` runs inside `directory`.

    Raises EmbeddedError, naming the obstacle, when there is none.
    """
    errors = []
    for identity in _candidates(directory):
        if identity.uid != os.geteuid():
            # Somebody else has to pass through, though not to look around.
            directory.chmod(directory.stat().st_mode | 0o011)
        result = subprocess.run(
            [*KEEPER, *identity.options, "--chdir", str(directory), "--", str(program), "--version"],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode == 0:
            return identity
        errors.append(result.stderr.strip().rpartition("] ")[2])
    raise EmbeddedError(
        f"PostgreSQL cannot be run by this user (id {os.geteuid()}): {'; '.join(errors)}. "
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
        stand_in = names[others[0]]
        yield Identity(("--map-to", f"{stand_in.pw_uid}:{stand_in.pw_gid}"), uid, gid)
    if uid == 0:
        invoker = int(os.environ.get("SUDO_UID") or 0)
        nobody = next((other for other in others if names[other].pw_name == "nobody"), 0)
        for other in dict.fromkeys((invoker, directory.parent.stat().st_uid, nobody)):
            if other in names and other != 0:
                entry = names[other]
                yield Identity(("--become", f"{other}:{entry.pw_gid}"), other, entry.pw_gid)
