"""What a tenant may store: bytes per day, entries of cache metadata, markers. Contract: accounts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rules import cache_metadata
from rules.markers import NewMarker, create_marker, delete_marker
from rules.models import CacheMetadata, Marker, RuleDraft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db


def allow(settings: Any, **limits: int) -> None:
    plans = settings.PLAN_LIMITS
    settings.PLAN_LIMITS = {plan: {**plans[plan], **limits} for plan in plans}


@pytest.fixture
def client(world: World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


@pytest.fixture
def rules(world: World) -> str:
    return f"/config/tenants/{world.tenant.pk}/rules"


@pytest.fixture
def gateway(world: World) -> ApiClient:
    return ApiClient(factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)]))


@pytest.fixture
def entries(world: World) -> str:
    cache_metadata._at_most.clear()
    return f"/tenants/{world.tenant.pk}/cachekeys"


def large(text: str = "x") -> dict[str, Any]:
    """A ruleset of a bit more than 10,000 bytes."""
    return {"rules": [{"id": "r", "conditions": {"isReadOnly": True}, "description": text * 10_000}]}


class TestBytes:
    @pytest.fixture(autouse=True)
    def little(self, settings: Any) -> None:
        allow(settings, stored_bytes=25_000)

    def test_rules_are_refused_above_the_limit(self, world: World, client: ApiClient, rules: str) -> None:
        assert [client.put(rules, large(text)).status_code for text in "ab"] == [200, 200]
        answer = client.put(rules, large("c"))
        assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
        assert 86_000 < int(answer.headers["Retry-After"]) <= 86_400
        assert read_ruleset(world.tenant.pk).rules[0]["description"][0] == "b"
        # What was refused does not count.
        assert client.put(rules, {"rules": []}).status_code == 200

    def test_restores_and_drafts_count(self, client: ApiClient, rules: str) -> None:
        assert client.put(rules, large()).status_code == 200
        assert client.put(rules, {"rules": []}).status_code == 200
        assert client.post(f"{rules}/history/1/restore").status_code == 200
        draft = client.post(f"{rules}/drafts", {"rules": []}).json()["draftId"]
        assert client.post(f"{rules}/history/1/restore").status_code == 429
        assert client.put(f"{rules}/drafts/{draft}", large("y")).status_code == 429
        assert client.post(f"{rules}/drafts", large("z")).status_code == 429
        assert RuleDraft.objects.get().rules == []

    def test_publishing_counts(self, client: ApiClient, rules: str) -> None:
        draft = client.post(f"{rules}/drafts", large()).json()["draftId"]
        assert client.put(f"{rules}/drafts/{draft}", large("y")).status_code == 200
        assert client.post(f"{rules}/drafts/{draft}/publish").status_code == 429

    def test_configurations_count(self, world: World, client: ApiClient, settings: Any) -> None:
        tenant = f"/config/tenants/{world.tenant.pk}"
        document = client.get(f"{tenant}/config").json()
        allow(settings, stored_bytes=10)
        assert client.put(f"{tenant}/config", document).status_code == 429
        assert client.delete(tenant).status_code == 200

    def test_cache_metadata_counts(self, gateway: ApiClient, entries: str) -> None:
        body = {"ruleId": "r", "statement": "x" * 10_000}
        assert [gateway.put(f"{entries}/{key}", body).status_code for key in "aaa"] == [200, 200, 429]
        many = [{"cacheKey": key, **body} for key in "bc"]
        assert gateway.put(entries, many).status_code == 429
        assert CacheMetadata.objects.count() == 1

    def test_markers_take_effect_without_their_notes(
        self, world: World, client: ApiClient, rules: str, gateway: ApiClient
    ) -> None:
        """Their count alone was limited: a hundred thousand of 64 KiB are 6 GiB."""
        document = [{"id": "a", "conditions": {"userName": "a"}}, {"id": "b", "invalidateRules": ["a"]}]
        assert client.put(rules, {"rules": document}).status_code == 200
        tenant = f"/tenants/{world.tenant.pk}"

        def make(name: str, length: int) -> Any:
            notes = {"metadata": {"reason": "why"}, "invalidatedBy": {"statement": "x" * length}}
            body = {"markerId": name, "targetRuleId": "a", **notes}
            answer = gateway.post(f"{tenant}/invalidation-markers", body)
            assert answer.status_code == 201
            return answer.json()

        shown = [make(name, 10_000) for name in ("m0", "m1", "m2")]
        assert [len(marker["invalidatedBy"].get("statement", "")) for marker in shown] == [10_000, 10_000, 0]
        assert [marker["metadata"] for marker in shown] == [{"reason": "why"}, {"reason": "why"}, {}]
        assert shown[2]["invalidatedBy"] == {"ruleId": "a", "triggeredBy": "Manual"}
        fired = gateway.post(f"{tenant}/rules/b/invalidations", {"statement": "y" * 10_000})
        assert (fired.status_code, fired.json()["markers"][0]["invalidatedBy"]["ruleId"]) == (201, "b")
        assert "statement" not in Marker.objects.get(number=0).invalidated_by
        # What was left out does not count, other notes are refused, and documents have their own limit.
        assert make("m3", 100)["invalidatedBy"]["statement"] == "x" * 100
        notes = {"invalidatedBy": {"statement": "z" * 10_000}}
        assert gateway.put(f"{tenant}/invalidation-markers/m0", notes).status_code == 429
        assert client.put(rules, large()).status_code == 400
        assert client.put(rules, {"rules": [*document, *large()["rules"]]}).status_code == 200

    def test_tenants_and_plans_have_their_own(
        self, world: World, client: ApiClient, rules: str, settings: Any
    ) -> None:
        other = f"/config/tenants/{world.stranger_tenant.pk}/rules"
        stranger = ApiClient(factories.sign_in(world.stranger))
        assert [client.put(rules, large(text)).status_code for text in "abc"] == [200, 200, 429]
        assert stranger.put(other, large()).status_code == 200
        plan = world.tenant.account.plan
        larger = {**settings.PLAN_LIMITS[plan], "stored_bytes": 100_000}
        settings.PLAN_LIMITS = {**settings.PLAN_LIMITS, plan: larger}
        assert client.put(rules, large("c")).status_code == 200

    def test_an_import_is_not_refused(self, world: World, settings: Any) -> None:
        allow(settings, stored_bytes=1)
        write_ruleset(
            tenant_id=world.tenant.pk,
            document=large(),
            actor=world.owner.email,
            changed_at=read_ruleset(world.tenant.pk).modified_at + timedelta(seconds=1),
        )

    def test_without_redis_nothing_is_refused(self, world: World, settings: Any, tmp_path: Path) -> None:
        settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
        for text in "abc":
            write_ruleset(tenant_id=world.tenant.pk, document=large(text), actor=world.owner.email)


class TestEntries:
    @pytest.fixture(autouse=True)
    def few(self, settings: Any) -> None:
        allow(settings, cache_entries=3)

    def test_a_new_key_is_refused_above_the_limit(self, gateway: ApiClient, entries: str) -> None:
        body = {"ruleId": "r"}
        assert [gateway.put(f"{entries}/{key}", body).status_code for key in "abc"] == [200, 200, 200]
        answer = gateway.put(f"{entries}/d", body)
        assert (answer.status_code, answer.json()["error"]) == (400, "plan_limit_exceeded")
        # What is there can change, and what was deleted makes room.
        assert gateway.put(f"{entries}/a", {"ruleId": "s"}).status_code == 200
        assert gateway.delete(f"{entries}/a").status_code == 200
        assert gateway.put(f"{entries}/d", body).status_code == 200

    def test_many_at_once(self, gateway: ApiClient, entries: str) -> None:
        def put(*keys: str) -> int:
            return gateway.put(entries, [{"cacheKey": key, "ruleId": "r"} for key in keys]).status_code

        assert [put("a", "b"), put("b", "c"), put("c", "d"), put("a", "b", "c")] == [200, 200, 400, 200]
        assert CacheMetadata.objects.count() == 3

    def test_counting_is_rare_far_from_the_limit(
        self, world: World, gateway: ApiClient, entries: str, settings: Any
    ) -> None:
        allow(settings, cache_entries=1_000)
        for key in "aaa":
            gateway.put(f"{entries}/{key}", {"ruleId": "r"})
        # The first was counted. Of the others, each may be new.
        assert cache_metadata._at_most[world.tenant.pk] == 3


class TestMarkers:
    @pytest.fixture(autouse=True)
    def every_time(self, settings: Any, monkeypatch: pytest.MonkeyPatch, world: World) -> None:
        monkeypatch.setattr("rules.markers._MADE_PER_COUNT", 1)
        allow(settings, markers=3)
        rules = [{"id": name, "conditions": {"userName": name}} for name in ("a", "b")]
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": rules}, actor=world.owner.email)

    def test_the_oldest_superseded_markers_go(self, world: World) -> None:
        for number, rule in enumerate("baaaa"):
            create_marker(world.tenant.pk, NewMarker(f"m{number}", rule), actor="x@example.org")
        remaining = Marker.objects.remaining().values_list("marker_id", flat=True)
        assert sorted(remaining) == ["m0", "m3", "m4"]
        # Pollers see that they are gone, and their ids stay used.
        gone = Marker.objects.filter(removed_at__isnull=False)
        assert {(marker.marker_id, marker.changed_at == marker.removed_at) for marker in gone} == {
            ("m1", True),
            ("m2", True),
        }

    def test_a_cutoff_never_goes(self, world: World, settings: Any) -> None:
        allow(settings, markers=1)
        for number, rule in enumerate("ab"):
            create_marker(world.tenant.pk, NewMarker(f"m{number}", rule), actor="x@example.org")
        assert Marker.objects.remaining().count() == 2
        assert delete_marker(world.tenant.pk, "m0")


@pytest.mark.parametrize(
    ("statement", "status"), [("x" * 65_536, 201), ("x" * 65_537, 400), ("é" * 32_769, 400)]
)
def test_a_marker_has_a_statement_of_at_most_64_kib(
    world: World, gateway: ApiClient, statement: str, status: int
) -> None:
    document = {"rules": [{"id": "a", "conditions": {"userName": "a"}}]}
    write_ruleset(tenant_id=world.tenant.pk, document=document, actor=world.owner.email)
    body = {"markerId": "m", "targetRuleId": "a", "invalidatedBy": {"statement": statement}}
    assert gateway.post(f"/tenants/{world.tenant.pk}/invalidation-markers", body).status_code == status
