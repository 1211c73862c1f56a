"""Make the environment of a WSGI request (PEP 3333) from the scope of an ASGI request."""

from __future__ import annotations

import io
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONSTANT: Final[Mapping[str, Any]] = {
    "SCRIPT_NAME": "",
    "wsgi.errors": sys.stderr,
    "wsgi.multiprocess": True,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}


# Clients may send any names.
@lru_cache(maxsize=1000)
def _key(name: bytes) -> str:
    """Return the key of a header (lower-case name) in the environment; empty for an ignored header."""
    if b"_" in name:
        # X_Forwarded_For would have the key of X-Forwarded-For, which only trusted proxies set.
        return ""
    key = name.decode("latin-1").replace("-", "_").upper()
    return key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"


def make_environ(scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment of a request, with an empty body."""
    path: bytes = scope["raw_path"]
    environ: dict[str, Any] = {
        **_CONSTANT,
        "REQUEST_METHOD": scope["method"],
        "PATH_INFO": (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": scope["server"][0],
        "SERVER_PORT": str(scope["server"][1]),
        "REMOTE_ADDR": scope["client"][0],
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
    }
    for name, value in scope["headers"]:
        key = _key(name)
        text = value.decode("latin-1")
        if key in environ:
            environ[key] += ("; " if key == "HTTP_COOKIE" else ",") + text
        elif key:
            environ[key] = text
    return environ
