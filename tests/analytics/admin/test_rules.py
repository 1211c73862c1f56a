"""The pages of a tenant's rules: editor, simple rule, trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from accounts.models import Event, Revision, Tenant
from rules.models import RuleDraft, Ruleset
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tests.admin.logs import RULE, to
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from django.test import Client


class TestRules:
    def form(self, tenant: Tenant, **changes: Any) -> dict[str, Any]:
        stored = Ruleset.objects.get(pk=tenant.pk)
        return {
            "rules": '[{"id": "new", "conditions": {"isReadOnly": true}, "ttlSeconds": 60}]',
            "etag": read_ruleset(tenant.pk).etag,
            "base_seq": stored.seq,
            "confirm_deletes": "",
            "reason": "ticket 9",
            **changes,
        }

    def test_saving_writes_a_revision_and_an_event_with_the_reason(
        self, staff: Client, tenant: Tenant
    ) -> None:
        form = self.form(tenant, comment="Reports are slow")
        answer = staff.post(to("tenant-rules", tenant), form, follow=True)
        assert "Saved as revision 2." in answer.content.decode()
        assert [rule["id"] for rule in Ruleset.objects.get(pk=tenant.pk).rules] == ["new"]
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert (revision.user, revision.summary["comment"]) == ("admin@example.org", "Reports are slow")
        event = Event.objects.get(kind="staff.acted")
        assert (event.actor, event.reason, event.after) == (
            "admin@example.org",
            "ticket 9",
            {"act": "rules.published", "seq": 2},
        )

    @pytest.mark.parametrize(
        "changes", [{"reason": ""}, {"rules": "["}, {"rules": "{}"}, {"rules": '[{"id": 1}]'}]
    )
    def test_errors_are_shown_and_nothing_is_written(
        self, staff: Client, tenant: Tenant, changes: dict[str, str]
    ) -> None:
        answer = staff.post(to("tenant-rules", tenant), self.form(tenant, **changes))
        assert answer.status_code == 400
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_a_conflict_shows_both_sides(self, staff: Client, tenant: Tenant) -> None:
        form = self.form(
            tenant, rules='[{"id": "orders", "conditions": {"isReadOnly": true}, "ttlSeconds": 60}]'
        )
        write_ruleset(
            tenant_id=tenant.pk, document={"rules": [{**RULE, "ttlSeconds": 10}]}, actor="owner@example.org"
        )
        answer = staff.post(to("tenant-rules", tenant), form)
        assert answer.status_code == 409
        html = answer.content.decode()
        shown = text_of(html)
        assert "Another user saved revision 2 first" in shown
        assert "Both sides changed: orders" in shown
        assert '"ttlSeconds": 10' in shown
        assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 10
        # Having seen both, the reader may save over them.
        again = {**form, "etag": re.findall(r'name="etag" value="([^"]+)"', html)[0].replace("&quot;", '"')}
        assert staff.post(to("tenant-rules", tenant), {**again, "base_seq": 2}).status_code == 302
        assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 60

    def test_a_removed_rule_with_a_marker_is_confirmed(
        self, support: Client, staff: Client, tenant: Tenant
    ) -> None:
        support.post(to("tenant-invalidate", tenant), {"rule": "orders", "reason": "x"})
        refused = staff.post(to("tenant-rules", tenant), self.form(tenant))
        assert refused.status_code == 400
        assert "These rules have active markers" in refused.content.decode()
        saved = staff.post(to("tenant-rules", tenant), self.form(tenant, confirm_deletes="orders"))
        assert saved.status_code == 302

    def test_lint_marks_lines_as_one_types(self, support: Client, tenant: Tenant) -> None:
        text = '[\n  {"id": "a",\n   "conditions": {"isReadOnly": true},\n   "ttlSeconds": -1}\n]'
        answer = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": text})
        marks = answer.json()["marks"]
        assert (marks[0]["row"], marks[0]["type"]) == (3, "error")
        broken = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": "[\n1,\n,"})
        assert [(mark["row"], mark["type"]) for mark in broken.json()["marks"]] == [(2, "error")]
        said = text_of(broken.json()["html"])
        assert "not-json Line 3, column 1: expecting value." in said
        assert "No difference" not in said
        assert "Mend the text first" in said
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1

    def test_support_looks_but_does_not_save(self, support: Client, tenant: Tenant) -> None:
        assert 'name="reason"' not in support.get(to("tenant-rules", tenant)).content.decode()
        for more in ({}, {"draft": "yes"}):
            answer = support.post(to("tenant-rules", tenant), {**self.form(tenant), **more})
            assert answer.status_code == 403
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1
        assert not RuleDraft.objects.exists()

    def test_a_simple_rule_is_added_behind_the_others(self, staff: Client, tenant: Tenant) -> None:
        form = {"rule_id": "items", "tables": "sales.items, b", "ttl_seconds": 60, "reason": "x"}
        assert staff.post(to("tenant-rules-add", tenant), form).status_code == 302
        rules = Ruleset.objects.get(pk=tenant.pk).rules
        assert [rule["id"] for rule in rules] == ["orders", "items"]
        assert rules[1]["conditions"] == {"isReadOnly": True, "tables": {"containsAny": ["b", "sales.items"]}}
        refused = staff.post(to("tenant-rules-add", tenant), form)
        assert refused.status_code == 400
        assert "duplicate-rule-id" in refused.content.decode()

    def test_a_request_is_traced(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-rules-trace", tenant)
        sent = '{"tables": ["sales.orders"], "isReadOnly": true}'
        shown = text_of(support.post(address, {"request": sent}).content.decode())
        assert "orders decides: cache" in shown
        shown = text_of(support.post(address, {"request": '{"isReadOnly": true}'}).content.decode())
        assert "No rule decides" in shown
        for wrong in ("[", "[]", '{"isReadOnly": "perhaps"}'):
            assert support.post(address, {"request": wrong}).status_code == 400
