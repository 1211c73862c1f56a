"""The service and the token that `tenantctl login` remembers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import NamedTemporaryFile


class NoLogin(Exception):
    """It is not known which service to ask. The message says what to do."""


def read_login() -> tuple[str, str]:
    """Return an address and a token: of ``TENANTADMIN_URL`` and ``TENANTADMIN_PAT``, or the remembered ones.

    Raises:
        NoLogin: one of them is missing, or the remembered token is for another address.
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
    if url and not pat and _plain(url) != _plain(stored["url"]):
        raise NoLogin(
            f"The remembered token is for {stored['url']}."
            f" Run `tenantctl login {url}`, or set TENANTADMIN_PAT."
        )
    return url or stored["url"], pat or stored["pat"]


def write_login(url: str, pat: str) -> None:
    """Remember an address and a token, in a file that only its owner can read.

    Raises:
        NoLogin: there is no home directory.
    """
    path = _file()
    path.parent.mkdir(parents=True, exist_ok=True)
    # A new file: one that is there already may be readable for others, and stays so.
    with NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        json.dump({"url": url, "pat": pat}, file)
    Path(file.name).replace(path)


def _plain(url: str) -> str:
    return url.rstrip("/").lower()


def _file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        base = base or str(Path.home() / ".config")
    except RuntimeError:  # a user without HOME and without an entry in /etc/passwd, as in some containers
        raise NoLogin(
            "There is no home directory. Set XDG_CONFIG_HOME, or TENANTADMIN_URL and TENANTADMIN_PAT."
        ) from None
    return Path(base) / "tenantctl" / "config.json"
