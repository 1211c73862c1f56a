"""The service and the token that `tenantctl login` remembers."""

from __future__ import annotations

import json
import os
from pathlib import Path


class NoLogin(Exception):
    """It is not known which service to ask. The message says what to do."""


def read_login() -> tuple[str, str]:
    """Return an address and a token: of ``TENANTADMIN_URL`` and ``TENANTADMIN_PAT``, or the remembered ones.

    Raises:
        NoLogin
    """
    url, pat = os.environ.get("TENANTADMIN_URL"), os.environ.get("TENANTADMIN_PAT")
    if url and pat:
        return url, pat
    try:
        stored = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise NoLogin(
            "Run `tenantctl login URL` first, or set TENANTADMIN_URL and TENANTADMIN_PAT."
        ) from None
    return url or stored["url"], pat or stored["pat"]


def write_login(url: str, pat: str) -> None:
    """Remember an address and a token, in a file that only its owner can read.

    Raises:
        NoLogin: there is no home directory.
    """
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"url": url, "pat": pat}, file)


def _file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        base = base or str(Path.home() / ".config")
    except RuntimeError:  # a user without HOME and without an entry in /etc/passwd, as in some containers
        raise NoLogin(
            "There is no home directory. Set XDG_CONFIG_HOME, or TENANTADMIN_URL and TENANTADMIN_PAT."
        ) from None
    return Path(base) / "tenantctl" / "config.json"
