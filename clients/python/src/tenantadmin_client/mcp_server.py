"""``tenantadmin-mcp``: a Model Context Protocol server. An agent looks at tenants and drafts rules with it.

It has the rights of a personal access token, and publishes nothing: rules end in drafts, which a person
publishes.
"""

from __future__ import annotations

import argparse
import hashlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from tenantadmin_client.client import Client
from tenantadmin_client.login import NoLogin, read_login
from tenantadmin_client.mcp_tools import make_server

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context
    from starlette.types import ASGIApp, Receive, Scope, Send

_MAX_CLIENTS = 32


def main() -> None:
    """Serve on standard input and output, or with ``--http`` on a port of 127.0.0.1."""
    parser = argparse.ArgumentParser(prog="tenantadmin-mcp", description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP; callers send their own tokens")
    parser.add_argument("--url", help="the address of the service, with --http")
    arguments = parser.parse_args()
    if arguments.http:
        if not arguments.url:
            parser.error("--http needs --url")
        uvicorn.run(http_app(arguments.url, port=arguments.http), host="127.0.0.1", port=arguments.http)
        return
    try:
        client = Client(*read_login())
    except NoLogin as error:
        parser.exit(1, f"{error}\n")
    make_server(lambda _: client).run("stdio")


def http_app(url: str, *, port: int) -> ASGIApp:
    """Return the server over streamable HTTP, for callers on this machine alone.

    No session outlives a request. Pages of other sites are refused by their ``Origin``.
    """
    hosts = [f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")]
    security = TransportSecuritySettings(
        allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
    )
    server = make_server(_Clients(url).of_caller)
    app = server.streamable_http_app(stateless_http=True, json_response=True, transport_security=security)
    return _BearerRequired(app, service=url, address=f"http://127.0.0.1:{port}")


class _Clients:
    """The clients of the latest callers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._lock = threading.Lock()

    def of_caller(self, ctx: Context[Any, Any]) -> Client:
        """Return the client for the bearer token of a request."""
        pat = _bearer(Headers(ctx.headers))
        key = hashlib.sha256(pat.encode()).hexdigest()
        with self._lock:
            client = self._clients.pop(key, None) or Client(self._url, pat)
            self._clients[key] = client
            if len(self._clients) > _MAX_CLIENTS:
                self._clients.popitem(last=False)
        return client


class _BearerRequired:
    """ASGI middleware: 401 for a request without a bearer token, and which token it needs (RFC 9728)."""

    _METADATA = "/.well-known/oauth-protected-resource/mcp"

    def __init__(self, app: ASGIApp, *, service: str, address: str) -> None:
        self._app = app
        self._challenge = f'Bearer resource_metadata="{address}{self._METADATA}"'
        self._metadata = {
            "resource": f"{address}/mcp",
            "resource_name": "tenantadmin",
            "authorization_servers": [service],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["config:read", "config:write", "analytics:read", "logs:query"],
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _bearer(Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif scope["path"] == self._METADATA and scope["method"] == "GET":
            await JSONResponse(self._metadata)(scope, receive, send)
        else:
            message = "Send a personal access token: Authorization: Bearer tas_pat_…"
            refusal = JSONResponse({"error": message}, 401, {"WWW-Authenticate": self._challenge})
            await refusal(scope, receive, send)


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
