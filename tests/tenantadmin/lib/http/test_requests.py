"""What clients send in good faith: byte order marks, other names of JSON, null, tracking parameters, gzip."""

from __future__ import annotations

import gzip
import re
from types import SimpleNamespace
from typing import Any

import pytest

from tenantadmin.lib.http.bodies import accepts_gzip
from tests import factories
from tests.conftest import ApiClient
from tests.operations import routes


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("br, GZIP ; q=0.1", True),
        ("gzip;q=1.0", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("br", False),
        ("xgzip", False),
        ("", False),
    ],
)
def test_gzip_is_used_if_the_client_accepts_it(accepted: str, *, takes: bool) -> None:
    request: Any = SimpleNamespace(headers={"Accept-Encoding": accepted})
    assert accepts_gzip(request) is takes


@pytest.mark.parametrize("media_type", ["application/json", "application/merge-patch+json; charset=utf-8"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_json_has_other_names_and_may_have_a_byte_order_mark(
    world: factories.World, media_type: str, mark: bytes
) -> None:
    answer = ApiClient(factories.sign_in(world.owner)).request(
        "POST", "/config/rules/validate", mark + b'{"rules": []}', headers={"Content-Type": media_type}
    )
    assert (answer.status_code, answer.json()) == (200, {"valid": True, "errors": [], "warnings": []})


def test_other_types_are_no_json(world: factories.World) -> None:
    answer = ApiClient(factories.sign_in(world.owner)).request(
        "POST", "/config/rules/validate", b'{"rules": []}', headers={"Content-Type": "text/x+json"}
    )
    assert answer.status_code == 400


def test_null_is_refused_with_the_cure(world: factories.World) -> None:
    path = f"/users/{world.owner.email}"
    answer = ApiClient(factories.sign_in(world.owner)).put(path, {"displayName": None})
    assert answer.status_code == 400
    assert answer.json()["details"] == [
        {
            "path": "/displayName",
            "code": "null",
            "message": "Null is not allowed here: give a value, or leave the member out if it is optional.",
        }
    ]


@pytest.mark.django_db
def test_pages_for_people_ignore_tracking_parameters(anonymous: ApiClient) -> None:
    page = anonymous.get("/auth/magic-link/verify?t=abc&utm_source=mail&utm_source=more")
    assert page.status_code == 200
    assert b"abc" in page.content
    assert anonymous.get("/auth/magic-link/verify?t=a&t=b").status_code == 400
    assert anonymous.get("/tos?utm_source=mail").status_code == 400


@pytest.mark.parametrize("accepted", ["application/json", "text/csv", "application/vnd.apache.parquet"])
def test_query_answers_are_compressed_but_for_parquet(world: factories.World, accepted: str) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    body = {"sql": "SELECT range AS n FROM range(1000)"}

    def ask(**headers: str) -> Any:
        path = f"/tenants/{world.tenant.pk}/query"
        return client.request("POST", path, body, headers={"Accept": accepted, **headers})

    plain, answer = ask(), ask(**{"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain
    assert "Accept-Encoding" in answer["Vary"]
    whole, sent = b"".join(plain), b"".join(answer)
    if accepted.endswith("parquet"):
        assert "Content-Encoding" not in answer
        assert sent == whole
    else:
        assert answer["Content-Encoding"] == "gzip"
        assert len(sent) < len(whole) / 2
        assert gzip.decompress(sent) == whole


def test_an_answer_with_a_strong_etag_is_not_compressed(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    answer = client.get(f"/config/tenants/{world.tenant.pk}/rules", **{"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in answer
    assert answer["ETag"].startswith('"')


@pytest.mark.parametrize("path", ["summaries/2026", "users"])
def test_a_missing_analytics_scope_says_how_to_get_one(world: factories.World, path: str) -> None:
    answer = ApiClient(factories.sign_in(world.owner)).get(f"/tenants/{world.tenant.pk}/{path}")
    assert answer.status_code == 403
    assert answer.json()["message"].endswith(
        "on the tenant. Only personal access tokens have this scope: POST /users/me/tokens makes one, and "
        "POST /oauth/token exchanges it for an access token."
    )


def test_a_query_that_is_not_utf8_is_refused(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.platform_admin))
    answer = client.get("/users?userid=%FF")
    assert (answer.status_code, answer.json()["message"]) == (400, "The query is not UTF-8.")
    # A page that a mail's link opens ignores what others add to the link.
    assert client.get("/auth/magic-link/verify?t=x&utm_source=%FF").status_code == 200


def test_a_path_with_a_nul_byte_names_nothing(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.platform_admin))
    tenant = f"/tenants/{world.tenant.pk}"
    paths = {re.sub(r"<[^>]*>", "a%00b", f"/{route.pattern}") for route in routes() if "<" in route.pattern}
    assert len(paths) > 50
    paths |= {f"{tenant}/invalidation-markers/%00", f"{tenant}/cachekeys/a%00", "/users/%00@example.org"}
    for path in sorted(paths):
        assert client.request("GET", path).status_code == 404, path
