"""Traces of requests, and what the editor of rules completes."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from analytics.admin.completion import rule_words
from analytics.admin.pages.trace import EXAMPLE, LABELS, SAID
from analytics.explain import LoggedRequest
from analytics.miss_reasons import MissExplanation
from logs.models import LogRead, QueryRun
from rules.conditions.keys import CONDITION_KEYS
from rules.drafts import create_draft
from rules.write import write_ruleset
from tests.admin.logs import DAY, ENTRY, RULE, START, put_log, to
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant
    from tenantadmin.lib.core.structs import JsonStruct


class TestTrace:
    def test_a_logged_request_by_the_rules_in_force(self, access: Client, tenant: Tenant) -> None:
        put_log(
            tenant,
            {**ENTRY, "cacheStatus": "MISS", "matchedRule": "other", "missReason": "no-cache-entry"},
        )
        address = to("tenant-rules-trace", tenant)
        # A link to a request leads to its explanation.
        linked = access.get(address, {"log_id": "log-0", "day": DAY.isoformat()}).content.decode()
        assert 'name="log_id" value="log-0"' in linked
        assert "orders decides: cache" in text_of(linked)
        assert QueryRun.objects.exists()
        # The answer comes first, and the read is an act.
        assert (
            linked.index('id="trace"') < linked.index("Explain another request") < linked.index('id="logged"')
        )
        assert LogRead.objects.get().key == "request log-0"
        answer = access.post(address, {"log_id": "log-0", "day": DAY.isoformat(), "seq": "1"})
        page = text_of(answer.content.decode())
        assert "orders decides: cache by revision 1" in page
        assert "The log says other , and these rules say orders ." in page
        assert "The cache had no result for this request." in page
        assert "Time 2026-03-01 00:00:00 UTC Status Miss (MISS): A rule caches this" in page
        assert "Statement SELECT <b>" in page
        runs = QueryRun.objects.values_list("email", "outcome")
        assert set(runs) == {("support@example.org", "ok")}

    def test_the_newest_misses_lead_to_their_explanations(
        self, access: Client, staff: Client, tenant: Tenant
    ) -> None:
        put_log(tenant, ENTRY, {**ENTRY, "cacheStatus": "MISS", "matchedRule": "orders"})
        address = to("tenant-rules-trace", tenant)
        assert "Reading the log…" in access.get(address).content.decode()
        assert not LogRead.objects.exists()
        listed = access.get(address, {"part": "misses"}).content.decode()
        assert "orders SELECT <b>" in text_of(listed)
        assert f'href="?log_id=log-1&amp;day={DAY.isoformat()}"' in listed
        assert "log-0" not in listed
        assert LogRead.objects.get().email == "support@example.org"
        assert "Reading the log…" not in staff.get(address).content.decode()
        assert staff.get(address, {"part": "misses"}).status_code == 403

    def test_the_evidence_for_a_miss_has_plain_names_and_times(self, access: Client, tenant: Tenant) -> None:
        stored: dict[str, Any] = {**ENTRY, "cacheStatus": "MISS", "matchedRule": "orders", "queryHash": "q"}
        stored |= {"cacheTtlSeconds": 60, "warehouseExecutionTimeMs": 3000}
        late = {"timestamp": START + 90_000, "missReason": "ttl-expired"}
        put_log(tenant, stored, {**stored, **late})
        sent = {"log_id": "log-1", "day": DAY.isoformat()}
        page = text_of(access.post(to("tenant-rules-trace", tenant), sent).content.decode())
        assert (
            "The stored result had expired: it was fresh for 1 min. It would have been a hit if the result "
            "had stayed fresh for 1.5 min. "
            "Where the reason is from what the Gateway logged of this request "
            "logId of the request that stored it last log-0 That request began 2026-03-01 00:00:00 UTC "
            "Its result was stored 2026-03-01 00:00:03 UTC The result expired 2026-03-01 00:01:03 UTC "
            "Fresh for 1 min The rules, in their order"
        ) in page

    @pytest.mark.parametrize("struct", [MissExplanation, LoggedRequest])
    def test_every_field_has_a_label(self, struct: type[JsonStruct]) -> None:
        nested = {"lastStore", "lastExecution", "nearest", "revision", "marker"}
        assert set(struct.__struct_encode_fields__) - nested - SAID <= LABELS.keys()

    def test_the_example_has_every_condition_key(self, support: Client, tenant: Tenant) -> None:
        assert list(EXAMPLE) == list(CONDITION_KEYS)
        rule = {**RULE, "conditions": {**RULE["conditions"], "hasNonDeterministicFunctions": False}}
        write_ruleset(tenant_id=tenant.pk, document={"rules": [rule]}, actor="owner@example.org")
        address = to("tenant-rules-trace", tenant)
        shown = re.search(
            r"<textarea[^>]*>(.*?)</textarea>", support.get(address).content.decode(), re.DOTALL
        )
        assert shown is not None
        answer = support.post(address, {"request": unescape(shown[1])})
        assert "orders decides: cache" in text_of(answer.content.decode())

    def test_unknown_keys_are_named(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-rules-trace", tenant)
        answer = support.post(address, {"request": '{"nokey": 1, "isReadOnly": true, "cacheStatus": "HIT"}'})
        assert answer.status_code == 400
        assert "These are neither condition keys nor columns of the log: nokey." in answer.content.decode()
        # A row of the log may be pasted as it is.
        row = {"request": '{"isReadOnly": true, "cacheStatus": "HIT"}'}
        assert support.post(address, row).status_code == 200

    def test_a_request_that_is_not_in_the_log(self, access: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY)
        address = to("tenant-rules-trace", tenant)
        for sent, status in (
            ({"log_id": "none", "day": DAY.isoformat()}, 404),
            ({"log_id": "log-0", "day": "never"}, 400),
            ({"log_id": "log-0", "day": DAY.isoformat(), "seq": "9"}, 400),
        ):
            assert access.post(address, sent).status_code == status

    def test_by_a_revision_or_a_draft(self, support: Client, tenant: Tenant) -> None:
        rules = [{**RULE, "id": "drafted", "action": "bypass"}]
        draft = create_draft(
            tenant_id=tenant.pk, document={"name": "Bypass", "rules": rules}, actor="a@b.example"
        )
        address = to("tenant-rules-trace", tenant)
        request = '{"tables": ["sales.orders"]}'
        by_draft = {"request": request, "draft": str(draft.pk)}
        page = text_of(support.post(address, by_draft).content.decode())
        assert "drafted decides: bypass by a draft of revision 1" in page
        page = text_of(support.post(address, {"request": request, "seq": "0"}).content.decode())
        assert "No rule decides: the request passes through by revision 0" in page
        both = support.post(address, {**by_draft, "seq": "1"})
        assert both.status_code == 400
        assert "Choose a revision or a draft, not both." in both.content.decode()
        assert support.post(address, {"request": request, "draft": "x"}).status_code == 400


class TestCompletion:
    def test_words_of_rules(self) -> None:
        words = {(word["value"], word["kind"]) for word in rule_words([{"id": "orders", "name": "Orders"}])}
        assert {(name, "condition key") for name in CONDITION_KEYS} <= words
        assert {
            ("containsAny", "operator"),
            ("ignoreCase", "operator"),
            ("ttlSeconds", "field"),
            ("bypass", "action"),
            ("orders", "rule id"),
            ("any", "combines conditions"),
        } <= words

    def test_values_that_the_log_holds(self, access: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY, ENTRY, {**ENTRY, "userName": "bea", "tables": "no json", "host": ""})
        answer = access.post(f"{to('tenant-rules', tenant)}?part=values", {})
        assert [(word["value"], word["kind"], word["meaning"]) for word in answer.json()["words"]] == [
            ("sales.orders", "tables in the log", "2 log entries"),
            ("ana", "userName in the log", "2 log entries"),
            ("bea", "userName in the log", "1 log entry"),
        ]
        assert QueryRun.objects.get().email == "support@example.org"
