#!/usr/bin/env bash
# databricks-sql-connector looks into an access token. If it is a JWT whose issuer is not the host to which it
# connects, the driver first posts it to /oidc/v1/token of that host, and asks for another one. If anything there
# answers with an access_token, all later requests carry that token; if not, it warns and goes on with the own one.
# Nobody asked for an exchange.
#
# Why it matters here: a proxy gives out JWTs of its own issuer, so each connection begins with such a request, at
# port 443 whatever the port. It belongs into the table of what a proxy must answer (404), and into no log of bodies.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check databricks-sql-connector==4.9.0 pyjwt==2.10.1
"$dir/venv/bin/python" -W ignore - <<'PYTHON'
import json
import logging
from importlib.metadata import version
from types import SimpleNamespace
from urllib.parse import parse_qs

import jwt
from databricks.sql.auth.auth import get_python_sql_connector_auth_provider

logging.disable()


class Http:
    """Stands for the driver's HTTP client: it notes requests, and opens no connection."""

    def __init__(self, answer):
        self.asked, self._answer = [], answer

    def request(self, method, url, body=None, headers=None, **_):
        self.asked.append((method.value, url, parse_qs(body)["subject_token"][0]))
        return SimpleNamespace(status=200, data=self._answer)


def connect(token, answer):
    http, headers = Http(answer), {}
    provider = get_python_sql_connector_auth_provider("127.0.0.1", http, access_token=token)
    provider.add_headers(headers)
    return http.asked, headers["Authorization"].removeprefix("Bearer ")


claims = {"sub": "ann", "exp": 4_000_000_000}
own = jwt.encode(claims | {"iss": "https://127.0.0.1"}, "k" * 32, "HS256")
other = jwt.encode(claims | {"iss": "https://127.0.0.2"}, "k" * 32, "HS256")
swapped = jwt.encode(claims | {"sub": "someone else"}, "k" * 32, "HS256")
posted = [("POST", "https://127.0.0.1/oidc/v1/token", other)]

print("databricks-sql-connector", version("databricks-sql-connector"))
print("expected: the token of connect() in Authorization, and no other request")
seen = {
    "an opaque token": connect("dapi123", b""),
    "a JWT of this host": connect(own, b""),
    "a JWT of another issuer": connect(other, b"<html>Not found"),
    "the same, and an answer": connect(other, json.dumps({"access_token": swapped}).encode()),
}
for name, (asked, used) in seen.items():
    says = {"dapi123": "the given token", own: "the given token", other: "the given token"}.get(used, "another token")
    print(f"seen: {name}: {[f'{method} {url} with the token' for method, url, _ in asked]}, then {says}")
assert list(seen.values()) == [([], "dapi123"), ([], own), (posted, other), (posted, swapped)], seen
PYTHON
