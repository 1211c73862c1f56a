"""Cache metadata through the API. Contract: Cache metadata."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.tenants.lifecycle import delete_tenant
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db

OTHER = "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"


@pytest.fixture
def client(world: factories.World) -> ApiClient:
    tenants = [str(world.tenant.pk)]
    return ApiClient(factories.pat_token(world.owner, "cache-admin", tenants=tenants))


@pytest.fixture
def address(world: factories.World) -> str:
    return f"/tenants/{world.tenant.pk}/cachekeys/abc.DEF_1-2"


def test_a_put_notes_and_replaces(client: ApiClient, address: str, world: factories.World) -> None:
    assert client.get(address).status_code == 404
    full = {
        "tenantId": str(world.tenant.pk),
        "cacheKey": "abc.DEF_1-2",
        "ruleId": "orders",
        "queryHash": "0" * 32,
        "statement": "SELECT 1",
        "sizeBytes": 20480,
        "rowCount": 12,
        "createdAt": "2026-11-20T10:00:00.000Z",
        "expiresAt": "2026-11-21T10:00:00.000Z",
        "lastAccessedAt": "2026-11-20T11:00:00.000Z",
        "hitCount": 3,
        "tables": ["sales.orders"],
        "tags": {"team": "sales", "n": [1, None]},
    }
    answer = client.put(address, full)
    assert (answer.status_code, answer.json()) == (200, full)
    assert client.get(address).json() == full
    short = client.put(address, {"ruleId": "items"})
    assert short.status_code == 200
    assert {**short.json(), "createdAt": "…"} == {
        "tenantId": str(world.tenant.pk),
        "cacheKey": "abc.DEF_1-2",
        "ruleId": "items",
        "createdAt": "…",
    }
    assert client.get(address).json() == short.json()


def test_numbers_of_tags_are_kept_in_full(client: ApiClient, address: str) -> None:
    tags = {"a": 2**64, "b": [-(2**63) - 1], "c": 10**400, "d": 1e300, "e": "ä"}
    assert client.put(address, {"ruleId": "r", "tags": tags}).json()["tags"] == tags
    assert client.get(address).json()["tags"] == {**tags, "d": 10**300}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "/ruleId"),
        ({"ruleId": "a b"}, "/ruleId"),
        ({"ruleId": "r", "tenantId": "00000000-0000-4000-8000-000000000000"}, "/tenantId"),
        ({"ruleId": "r", "cacheKey": "other"}, "/cacheKey"),
        ({"ruleId": "r", "sizeBytes": -1}, "/sizeBytes"),
        ({"ruleId": "r", "sizeBytes": 1.5}, "/sizeBytes"),
        ({"ruleId": "r", "hitCount": 2**64}, "/hitCount"),
        ({"ruleId": "r", "createdAt": "2026-11-20"}, "/createdAt"),
        ({"ruleId": "r", "tables": ["a", 7]}, "/tables/1"),
        ({"ruleId": "r", "tags": []}, "/tags"),
        ({"ruleId": "r", "hits": 1}, "/hits"),
    ],
)
def test_an_invalid_body_is_a_400_that_names_the_place(
    client: ApiClient, address: str, body: dict[str, Any], path: str
) -> None:
    answer = client.put(address, body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert [detail["path"] for detail in answer.json()["details"]] == [path]
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("key", ["a b", "a%2Fb", "ä", "x" * 257])
def test_an_invalid_cache_key_is_a_404(client: ApiClient, world: factories.World, key: str) -> None:
    where = f"/tenants/{world.tenant.pk}/cachekeys/{key}"
    assert client.get(where).status_code == 404
    assert client.put(where, {"ruleId": "r"}).status_code == 404


def test_the_longest_cache_key_is_accepted(client: ApiClient, world: factories.World) -> None:
    where = f"/tenants/{world.tenant.pk}/cachekeys/{'x' * 256}"
    assert client.put(where, {"ruleId": "r"}).status_code == 200


def test_keys_of_tenants_are_separate(address: str, world: factories.World) -> None:
    wildcard = ApiClient(factories.pat_token(world.platform_admin, "cache-admin", tenants=["*"]))
    assert wildcard.put(address, {"ruleId": "r"}).status_code == 200
    other = address.replace(str(world.tenant.pk), str(world.stranger_tenant.pk))
    assert wildcard.get(other).status_code == 404
    assert ApiClient(factories.sign_in(world.owner)).get(address).status_code == 403


def test_after_deletion_of_the_tenant_everything_is_a_404(
    client: ApiClient, address: str, world: factories.World
) -> None:
    client.put(address, {"ruleId": "r"})
    delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
    assert client.get(address).status_code == 404
    assert client.put(address, {"ruleId": "r"}).status_code == 404


class TestMany:
    @pytest.fixture
    def keys(self, world: factories.World) -> str:
        return f"/tenants/{world.tenant.pk}/cachekeys"

    def test_many_are_written_and_read_page_by_page(self, client: ApiClient, keys: str) -> None:
        entries = [{"cacheKey": f"k{n}", "ruleId": "odd" if n % 2 else "even"} for n in range(7)]
        answer = client.put(keys, entries[::-1])
        assert answer.status_code == 200, answer.content
        assert [item["name"] for item in answer.json()["_links"]["items"]] == [
            f"k{n}" for n in range(6, -1, -1)
        ]
        first = client.get(f"{keys}?limit=3&ruleId=even").json()
        assert [entry["cacheKey"] for entry in first["cacheKeys"]] == ["k0", "k2", "k4"]
        assert first["_links"]["items"][0] == {"name": "k0", "href": f"{keys}/k0"}
        assert first["cacheKeys"][0] == client.get(f"{keys}/k0").json()
        last = client.get(first["_links"]["next"]["href"]).json()
        assert [entry["cacheKey"] for entry in last["cacheKeys"]] == ["k6"]
        assert "next" not in last["_links"]

    def test_long_statements_are_cut_in_the_list_alone(self, client: ApiClient, keys: str) -> None:
        client.put(keys, [{"cacheKey": "k1", "ruleId": "a", "statement": "é" * 1_100, "hitCount": 3}])
        (entry,) = client.get(keys).json()["cacheKeys"]
        assert (entry["statement"], entry["hitCount"]) == ("é" * 1_000, 3)
        assert client.get(f"{keys}/k1").json()["statement"] == "é" * 1_100

    def test_a_page_of_large_entries_ends_early(
        self, client: ApiClient, keys: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rules.cache_metadata._PAGE_CHARACTERS", 5_000)
        entries = [{"cacheKey": f"k{n}", "ruleId": "a", "tables": ["x" * 400] * 5} for n in range(4)]
        client.put(keys, [*entries, {"cacheKey": "k4", "ruleId": "a", "tables": ["x" * 500] * 20}])
        address, pages = f"{keys}?limit=3", []
        while address:
            body = client.get(address).json()
            pages.append([entry["cacheKey"] for entry in body["cacheKeys"]])
            address = body["_links"].get("next", {}).get("href")
        # The last one alone is larger than a page.
        assert pages == [["k0", "k1"], ["k2", "k3"], ["k4"]]

    def test_a_replaced_entry_keeps_nothing_of_the_old_one(self, client: ApiClient, keys: str) -> None:
        client.put(keys, [{"cacheKey": "k1", "ruleId": "a", "hitCount": 3}])
        client.put(keys, [{"cacheKey": "k1", "ruleId": "b"}, {"cacheKey": "k2", "ruleId": "b"}])
        assert "hitCount" not in client.get(f"{keys}/k1").json()

    @pytest.mark.parametrize(
        ("entries", "path"),
        [
            ([{"cacheKey": "k1", "ruleId": "a"}, {"ruleId": "a"}], "/1/cacheKey"),
            ([{"cacheKey": "k1", "ruleId": "a"}, {"cacheKey": "a/b", "ruleId": "a"}], "/1/cacheKey"),
            ([{"cacheKey": "k1", "ruleId": "a"}, {"cacheKey": "k1", "ruleId": "b"}], "/1/cacheKey"),
            ([{"cacheKey": "k1", "ruleId": "a", "nonsense": 1}], "/0/nonsense"),
            (
                [{"cacheKey": "k1", "ruleId": "a", "tenantId": "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"}],
                "/0/tenantId",
            ),
            ([{"cacheKey": f"k{n}", "ruleId": "a"} for n in range(1001)], ""),
            ({"cacheKey": "k1", "ruleId": "a"}, ""),
        ],
    )
    def test_one_bad_entry_refuses_all(self, client: ApiClient, keys: str, entries: Any, path: str) -> None:
        answer = client.put(keys, entries)
        assert answer.status_code == 400
        assert [detail["path"] for detail in answer.json()["details"]] == [path]
        assert client.get(keys).json()["cacheKeys"] == []

    def test_a_thousand_are_taken(self, client: ApiClient, keys: str) -> None:
        assert (
            client.put(keys, [{"cacheKey": f"k{n}", "ruleId": "a"} for n in range(1000)]).status_code == 200
        )

    def test_a_deleted_one_is_gone(self, client: ApiClient, keys: str) -> None:
        client.put(f"{keys}/k1", {"ruleId": "a"})
        assert client.delete(f"{keys}/k1").json() == {"success": True, "message": "The metadata is deleted."}
        assert client.get(f"{keys}/k1").status_code == 404
        assert client.delete(f"{keys}/k1").json() == {
            "success": False,
            "message": "There is no metadata for this cache key.",
        }

    def test_a_cursor_of_another_list_is_refused(self, client: ApiClient, keys: str) -> None:
        assert client.get(f"{keys}?cursor=WzFd").status_code == 400

    def test_keys_of_another_tenant_are_hidden(
        self, client: ApiClient, keys: str, world: factories.World
    ) -> None:
        client.put(f"{keys}/k1", {"ruleId": "a"})
        stranger = factories.pat_token(
            world.platform_admin, "cache-admin", tenants=[str(world.stranger_tenant.pk)]
        )
        others = f"/tenants/{world.stranger_tenant.pk}/cachekeys"
        assert ApiClient(stranger).get(others).json()["cacheKeys"] == []
        assert ApiClient(stranger).get(keys).status_code == 403
        assert ApiClient(stranger).delete(f"{keys}/k1").status_code == 403

    def test_a_deleted_tenant_is_a_404(self, client: ApiClient, keys: str, world: factories.World) -> None:
        delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
        assert client.get(keys).status_code == 404
        assert client.put(keys, [{"cacheKey": "k1", "ruleId": "a"}]).status_code == 404
        assert client.delete(f"{keys}/k1").status_code == 404
