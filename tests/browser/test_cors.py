"""A page of another origin calls the service. Contract: docs/configuration.md, CORS_ALLOWED_ORIGINS."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

import pytest

from accounts.access.credentials import create_pat
from accounts.access.scopes import Scope
from tests import factories
from tests.browser.browsing import browsing

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: What the page does: it exchanges a token, reads and writes rules, and asks for Parquet.
SCRIPT: Final = """
async ([base, pat, tenant]) => {
  const send = (method, path, headers, body) => fetch(base + path, {
    method, headers: {"Content-Type": "application/json", ...headers}, body: body && JSON.stringify(body),
  });
  const exchanged = await send("POST", "/oauth/token", {}, {grant_type: "pat_exchange", pat});
  const bearer = {Authorization: "Bearer " + (await exchanged.json()).access_token};
  const rules = "/config/tenants/" + tenant + "/rules";
  const read = await send("GET", rules, bearer);
  const etag = read.headers.get("ETag");
  const again = await send("GET", rules, {...bearer, "If-None-Match": etag});
  const written = await send("PUT", rules, {...bearer, "If-Match": etag}, {rules: [{id: "orders"}]});
  const stale = await send("PUT", rules, {...bearer, "If-Match": etag}, {rules: []});
  const marker = await send(
    "POST", "/tenants/" + tenant + "/invalidation-markers", bearer, {markerId: "m1", targetRuleId: "orders"},
  );
  const parquet = await send(
    "POST", "/tenants/" + tenant + "/query",
    {...bearer, Accept: "application/vnd.apache.parquet"}, {sql: "SELECT 1 AS a"},
  );
  const bytes = new Uint8Array(await parquet.arrayBuffer());
  return {
    statuses: [exchanged, read, again, written, stale, marker, parquet].map((answer) => answer.status),
    isNewTag: written.headers.get("ETag") !== etag && etag.startsWith('"'),
    hasRequestId: /^[\\w.-]+$/.test(read.headers.get("X-Request-Id")),
    location: marker.headers.get("Location"),
    rows: parquet.headers.get("X-Row-Count"),
    truncated: parquet.headers.get("X-Truncated"),
    magic: String.fromCharCode(...bytes.slice(0, 4)),
  };
}
"""


class _BlankPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel='icon' href='data:,'><title>Dashboard</title>")

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@pytest.fixture
def other_origin(settings: Any) -> Iterator[str]:
    """The origin of a page on another port, which is allowed."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _BlankPage) as server:
        Thread(target=partial(server.serve_forever, poll_interval=0.1), daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        settings.CORS_ALLOWED_ORIGINS = [origin]
        yield origin
        server.shutdown()


def test_a_page_of_an_allowed_origin_works_with_the_service(
    chromium: str, service: str, other_origin: str
) -> None:
    world = factories.make_world()
    tenant = str(world.tenant.pk)
    scopes = [Scope.CONFIG_READ, Scope.CONFIG_WRITE, Scope.CACHE_ADMIN, Scope.LOGS_QUERY]
    _, pat = create_pat(
        owner=world.owner, name="page", scopes=scopes, tenants=[tenant], accounts=(), endpoints=()
    )
    with browsing(chromium) as page:
        page.goto(other_origin)
        seen = page.evaluate(SCRIPT, [service, pat, tenant])
    assert seen == {
        "statuses": [200, 200, 304, 200, 409, 201, 200],
        "isNewTag": True,
        "hasRequestId": True,
        "location": f"/tenants/{tenant}/invalidation-markers/m1",
        "rows": "1",
        "truncated": "false",
        "magic": "PAR1",
    }
