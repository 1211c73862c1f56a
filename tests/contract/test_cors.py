"""Pages of allowed origins may call every operation. Contract: docs/configuration.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.conftest import ApiClient
from tests.operations import routes

pytestmark = pytest.mark.django_db

PAGE = "https://dashboard.example"
STRANGER = "https://evil.example"


@pytest.fixture(autouse=True)
def origins(settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS = [PAGE]


def test_a_page_may_ask_before_a_write(world: factories.World) -> None:
    answer = ApiClient().request(
        "OPTIONS",
        f"/config/tenants/{world.tenant.pk}/rules",
        headers={
            "Origin": PAGE,
            "Access-Control-Request-Method": "PUT",
            "Access-Control-Request-Headers": "authorization, content-type, if-match, x-reason",
        },
    )
    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert "PUT" in answer["Access-Control-Allow-Methods"]
    allowed = answer["Access-Control-Allow-Headers"].split(", ")
    assert {"authorization", "content-type", "if-match", "if-none-match", "x-reason"} <= set(allowed)
    assert "Access-Control-Allow-Credentials" not in answer


def test_a_page_reads_the_headers_of_an_answer(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    answer = client.put(f"/config/tenants/{world.tenant.pk}/rules", {"rules": []}, Origin=PAGE)
    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == PAGE
    assert "origin" in answer["Vary"].lower()
    exposed = set(answer["Access-Control-Expose-Headers"].split(", "))
    assert {
        "ETag",
        "X-Request-Id",
        "Retry-After",
        "X-Row-Count",
        "X-Truncated",
        "X-Result-Cache",
        "X-Engine",
        "X-Tos-Hash",
        "Location",
    } <= exposed


@pytest.mark.parametrize(
    ("path", "status"), [("/users", 401), ("/nowhere", 404), ("/health", 200), ("/", 200)]
)
def test_refusals_reach_the_page_too(path: str, status: int) -> None:
    answer = ApiClient().get(path, Origin=PAGE)
    assert answer.status_code == status
    assert answer["Access-Control-Allow-Origin"] == PAGE


def test_other_pages_get_nothing(world: factories.World) -> None:
    client = ApiClient(factories.sign_in(world.owner))
    answer = client.get(f"/config/tenants/{world.tenant.pk}/rules", Origin=STRANGER)
    assert "Access-Control-Allow-Origin" not in answer


def test_the_admin_site_is_for_no_page() -> None:
    assert "Access-Control-Allow-Origin" not in ApiClient().get("/admin/login/", Origin=PAGE)


def test_every_method_of_the_contract_is_allowed() -> None:
    answer = ApiClient().request(
        "OPTIONS", "/", headers={"Origin": PAGE, "Access-Control-Request-Method": "GET"}
    )
    methods = set(answer["Access-Control-Allow-Methods"].split(", "))
    assert {route.method for route in routes()} <= methods
