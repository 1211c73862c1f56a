"""Check where a sign-in may redirect to. No I/O. Contract: Authentication, 10.

A target is a path of the dashboard, or an absolute address whose scheme, host and port are allowed. Anything
else is replaced by the dashboard's root. This includes everything that browsers and URL parsers may read
differently: backslashes, tabs, userinfo and look-alike dots.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from tenantadmin.lib.core.hosts import origin_of

#: Characters (contract: Limits).
MAX_REDIRECT_LENGTH: Final = 2048
#: Visible ASCII without quotes, angle brackets, backslash, caret, backtick, braces and bar.
_ALLOWED_CHARACTERS: Final = re.compile(r"[!#-;=?-\[\]_a-z~]+")
#: A router that decodes the path first would see ``//`` or ``/\`` here, which starts another host's address.
_HIDDEN_SLASHES: Final = re.compile(r"/(/|%2f|%5c|%09|%0a|%0d|%00)", re.IGNORECASE)
#: Browsers take this for a dot in the segments ``.`` and ``..``.
_ENCODED_DOT: Final = re.compile("%2e", re.IGNORECASE)


def resolve_redirect(target: str, *, dashboard_url: str, allowed: Iterable[str]) -> str:
    """Return ``target`` as an absolute address, or ``dashboard_url`` if it is not allowed.

    ``allowed`` lists origins such as ``https://app.example.org`` or ``http://localhost:3000``. The default
    scheme is ``https``. The dashboard's own origin is always allowed, and paths are paths of it.
    """
    if not target or len(target) > MAX_REDIRECT_LENGTH or not _ALLOWED_CHARACTERS.fullmatch(target):
        return dashboard_url
    home = origin_of(dashboard_url)
    if target.startswith("/"):
        resolved = urljoin(dashboard_url + "/", target)
        # Without its dot segments a path may begin with two slashes: "/.//evil".
        plain = urlsplit(urljoin(dashboard_url + "/", _ENCODED_DOT.sub(".", target)))
        if _HIDDEN_SLASHES.match(target) or _HIDDEN_SLASHES.match(plain.path):
            return dashboard_url
        return resolved if origin_of(resolved) == home else dashboard_url
    origin = origin_of(target)
    listed = {origin_of(entry if "://" in entry else f"https://{entry}") for entry in allowed}
    return target if origin is not None and origin in {home, *listed} else dashboard_url


def with_parameters(address: str, parameters: Mapping[str, str]) -> str:
    """Return ``address`` with query parameters added. They replace parameters with the same names."""
    parts = urlsplit(address)
    kept = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in parameters]
    return urlunsplit(parts._replace(query=urlencode([*kept, *parameters.items()])))
