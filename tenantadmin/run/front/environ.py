"""From the scope of an ASGI request to the environment of a WSGI request (PEP 3333)."""

from __future__ import annotations

import io
import sys
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

#: How many header names are remembered. Clients may send any.
_MAX_NAMES: Final = 1000


class _HeaderKeys(dict[bytes, str]):
    """The key in the environment by the name of a header, lower case. Empty for a header to leave out."""

    def __missing__(self, name: bytes) -> str:
        key = name.decode("latin-1").replace("-", "_").upper()
        # X_Forwarded_For would have the key of X-Forwarded-For, which only trusted proxies set.
        key = "" if b"_" in name else key if key in {"CONTENT_TYPE", "CONTENT_LENGTH"} else f"HTTP_{key}"
        if len(self) < _MAX_NAMES:
            self[name] = key
        return key


_keys: Final = _HeaderKeys()


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
        key = _keys[name]
        text = value.decode("latin-1")
        if key in environ:
            environ[key] += ("; " if key == "HTTP_COOKIE" else ",") + text
        elif key:
            environ[key] = text
    return environ
