"""The pages of a tenant's rules: list, editor, form, trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from django.test import override_settings

from accounts.models import Event, Revision, Tenant
from rules.markers import NewMarker, create_marker
from rules.models import RuleDraft, Ruleset
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import StoreError
from tests.admin.logs import RULE, put_log, to
from tests.admin.reading import text_of
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from pathlib import Path

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
        answer = staff.post(to("tenant-rules", tenant), self.form(tenant), follow=True)
        shown = answer.content.decode()
        assert "Saved as revision 2. Undo What changed" in text_of(shown)
        assert f"{to('tenant-open', tenant)}?to=history%3Fkind%3Drules%26seq%3D1" in shown
        assert [rule["id"] for rule in Ruleset.objects.get(pk=tenant.pk).rules] == ["new"]
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert (revision.user, revision.summary["comment"]) == ("admin@example.org", "ticket 9")
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

    def test_a_removed_rule_with_a_marker_is_confirmed(self, staff: Client, tenant: Tenant) -> None:
        create_marker(tenant.pk, NewMarker("m", "orders", {}, {}), actor="owner@example.org")
        refused = staff.post(to("tenant-rules", tenant), self.form(tenant))
        assert refused.status_code == 400
        box = '<input type="checkbox" name="confirm_deletes" value="orders"'
        assert box in refused.content.decode()
        # It stands there only while it is needed, and stays ticked while the user types on.
        assert box not in staff.get(to("tenant-rules", tenant)).content.decode()
        sent = {"rules": "[]", "confirm_deletes": "orders"}
        checked = staff.post(f"{to('tenant-rules', tenant)}?part=check", sent).json()
        assert f"{box} checked>" in checked["html"]
        assert checked["marks"] == []
        saved = staff.post(to("tenant-rules", tenant), self.form(tenant, confirm_deletes="orders"))
        assert saved.status_code == 302

    def test_lint_marks_lines_as_one_types(self, support: Client, tenant: Tenant) -> None:
        text = '[\n  {"id": "a",\n   "conditions": {"isReadOnly": true},\n   "ttlSeconds": -1}\n]'
        answer = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": text})
        marks = answer.json()["marks"]
        assert (marks[0]["row"], marks[0]["type"]) == (3, "error")
        broken = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": "[\n1,\n,"})
        assert [(mark["row"], mark["type"]) for mark in broken.json()["marks"]] == [(1, "error")]
        said = text_of(broken.json()["html"])
        assert "json The text is not JSON. Line 2: A value is missing after ,." in said
        assert "No difference" not in said
        assert "Mend the text first" in said
        twice = '[\n{"id": "a",\n"ttlSeconds": 60,\n"ttlSeconds": 86400}\n]'
        marks = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": twice}).json()["marks"]
        said = 'json: The text is not JSON. Line 4: "ttlSeconds" is there twice, in lines 3 and 4.'
        assert marks == [{"row": 3, "type": "error", "text": said}]
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1

    def test_support_looks_but_does_not_save(self, support: Client, tenant: Tenant) -> None:
        assert 'name="reason"' not in support.get(to("tenant-rules", tenant)).content.decode()
        for more in ({}, {"draft": "yes"}):
            answer = support.post(to("tenant-rules", tenant), {**self.form(tenant), **more})
            assert answer.status_code == 403
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1
        assert not RuleDraft.objects.exists()


class TestRuleForm:
    @pytest.fixture
    def other(self, tenant: Tenant) -> None:
        """A second rule, whose conditions the form cannot show."""
        other = {
            **RULE,
            "id": "other",
            "conditions": {"any": [{"isReadOnly": True}, {"not": {"isDDL": True}}]},
        }
        write_ruleset(tenant_id=tenant.pk, document={"rules": [RULE, other]}, actor="owner@example.org")

    def form(self, tenant: Tenant, **changes: Any) -> dict[str, Any]:
        etag = read_ruleset(tenant.pk).etag
        values = {"rule_name": "Items", "enabled": "on", "tables": "sales.items, b", "reads": "on"}
        times = {"keep_for": "2", "unit": "60", "place": "1"}
        return {**values, **times, "action": "cache", "reason": "ticket 9", "etag": etag, **changes}

    @pytest.mark.usefixtures("other")
    def test_the_page_lists_the_rules_and_admins_edit_them(
        self, staff: Client, support: Client, tenant: Tenant
    ) -> None:
        listed = page_text(staff, to("tenant-rules", tenant))
        assert "1 orders cache uses sales.orders 1 min … … …" in listed
        assert "2 other cache (only reads or not (changes a schema)) 1 min … … …" in listed
        edit = f'href="{to("tenant-rule", tenant)}?rule=orders"'
        assert edit in staff.get(to("tenant-rules", tenant)).content.decode()
        assert edit not in support.get(to("tenant-rules", tenant)).content.decode()

    def test_the_list_shows_what_each_rule_did(
        self, staff: Client, tenant: Tenant, object_store: Path
    ) -> None:
        ran = {"matchedRule": "orders", "cacheStatus": "MISS"}
        put_log(
            tenant,
            {**ran, "standardizedSql": "a", "warehouseExecutionTimeMs": 1_000},
            {**ran, "standardizedSql": "b", "warehouseExecutionTimeMs": 3_000},
            {"matchedRule": "orders", "cacheStatus": "HIT", "standardizedSql": "a"},
            # What waits counts as no request.
            {"matchedRule": "orders", "cacheStatus": "HOLD"},
        )
        html = staff.get(to("tenant-rules", tenant), {"part": "list"}).content.decode()
        assert "<html" not in html
        # As on the page of savings: of the statement that was spared.
        assert "1 orders cache uses sales.orders 1 min 3 33.3% 1 s" in text_of(html)
        assert "estimated" not in html
        unread = patch("analytics.admin.savings.read_savings", side_effect=StoreError("no answer"))
        for fault in (override_settings(REPLAY_MAX_ROWS=2), unread):
            with fault:
                html = staff.get(to("tenant-rules", tenant), {"part": "list"}).content.decode()
            assert "1 orders cache uses sales.orders 1 min 3 33.3% 2 s" in text_of(html)
            assert "Savings cannot be counted now: the time saved is estimated" in text_of(html)
            assert "Warehouse time saved, about" in html
        with patch("analytics.summaries.rule_activity.rules_of", side_effect=StoreError("no answer")):
            html = staff.get(to("tenant-rules", tenant), {"part": "list"}).content.decode()
        assert "sales.orders 1 min – – –" in text_of(html)

    def test_a_rule_that_denies_shows_how_many_requests_it_refused(
        self, staff: Client, tenant: Tenant, object_store: Path
    ) -> None:
        denies = {"id": "payroll", "action": "deny", "conditions": {"tables": {"containsAny": ["hr.*"]}}}
        write_ruleset(tenant_id=tenant.pk, document={"rules": [RULE, denies]}, actor="owner@example.org")
        refused = {"matchedRule": "payroll", "cacheStatus": "BLOCKED", "standardizedSql": "a"}
        put_log(tenant, refused, refused)
        html = staff.get(to("tenant-rules", tenant), {"part": "list"}).content.decode()
        assert "2 payroll deny uses hr.* 2 refused" in text_of(html)

    def test_a_rule_is_added_at_its_place(self, staff: Client, tenant: Tenant) -> None:
        page = to("tenant-rules-add", tenant)
        for place, id_ in ((1, "items"), (3, "items-2")):
            answer = staff.post(page, self.form(tenant, place=place), follow=True)
            assert "Saved as revision" in answer.content.decode()
            assert Ruleset.objects.get(pk=tenant.pk).rules[place - 1]["id"] == id_
        first = Ruleset.objects.get(pk=tenant.pk).rules[0]
        assert first["conditions"] == {"isReadOnly": True, "tables": {"containsAny": ["sales.items", "b"]}}
        assert (first["name"], first["ttlSeconds"], first["varyBy"]) == ("Items", 120, [])
        event = Event.objects.get(kind="staff.acted", after__ruleId="items")
        assert event.reason == "ticket 9"
        assert event.after == {"act": "rules.published", "seq": 2, "ruleId": "items"}

    @pytest.mark.usefixtures("other")
    def test_a_rule_is_changed_and_moved(self, staff: Client, tenant: Tenant) -> None:
        page = f"{to('tenant-rule', tenant)}?rule=orders"
        html = staff.get(page).content.decode()
        for shown in (
            'name="tables" value="sales.orders"',
            'name="keep_for" value="1"',
            'name="place" value="1"',
        ):
            assert shown in html
        assert staff.post(page, self.form(tenant, place="2", enabled="", per_user="on")).status_code == 302
        rules = Ruleset.objects.get(pk=tenant.pk).rules
        assert [rule["id"] for rule in rules] == ["other", "orders"]
        assert (rules[1]["enabled"], rules[1]["varyBy"]) == (False, ["userName"])
        assert staff.post(page, self.form(tenant, action="bypass")).status_code == 302
        assert "varyBy" not in Ruleset.objects.get(pk=tenant.pk).rules[0]

    @pytest.mark.usefixtures("other")
    def test_conditions_that_the_form_cannot_show_stay(self, staff: Client, tenant: Tenant) -> None:
        page = f"{to('tenant-rule', tenant)}?rule=other"
        said = (
            "It also applies only if: (only reads or not (changes a schema)) . This form has no field for it"
        )
        assert said in page_text(staff, page)
        before = Ruleset.objects.get(pk=tenant.pk).rules[1]
        assert staff.post(page, self.form(tenant, place="2")).status_code == 302
        after = Ruleset.objects.get(pk=tenant.pk).rules[1]
        listed = {"isReadOnly": True, "tables": {"containsAny": ["sales.items", "b"]}}
        assert after == {
            **before,
            "name": "Items",
            "ttlSeconds": 120,
            "varyBy": [],
            "conditions": {**before["conditions"], **listed},
        }

    def test_a_rule_that_makes_others_stale(self, staff: Client, tenant: Tenant) -> None:
        loads = {
            "id": "loads",
            "name": "Loads",
            "action": "invalidate",
            "conditions": {"isDataChange": True, "tables": {"containsAny": ["sales.orders"]}},
            "invalidateRules": ["orders"],
        }
        rules = [RULE, {**RULE, "id": "items", "name": "Of items"}, loads]
        write_ruleset(tenant_id=tenant.pk, document={"rules": rules}, actor="owner@example.org")
        page = f"{to('tenant-rule', tenant)}?rule=loads"
        shown = page_text(staff, page)
        assert "It also applies only if: changes data . " in shown
        assert "Makes results of these rules stale" in shown
        assert "Of items" in shown
        assert "A result is fresh for" not in shown
        before = read_ruleset(tenant.pk).rules[2]
        values = {name: value for name, value in self.form(tenant, place="3").items() if name != "reads"}
        assert staff.post(page, values).status_code == 400
        assert staff.post(page, {**values, "targets": ["items"]}).status_code == 302
        assert read_ruleset(tenant.pk).rules[2] == {
            **before,
            "name": "Items",
            "invalidateRules": ["items"],
            "conditions": {"isDataChange": True, "tables": {"containsAny": ["sales.items", "b"]}},
        }

    def test_a_changed_rule_is_kept_as_a_draft(self, staff: Client, tenant: Tenant) -> None:
        page = f"{to('tenant-rule', tenant)}?rule=orders"
        assert "This will empty the cache." in page_text(staff, page)
        answer = staff.post(page, self.form(tenant, draft="yes"))
        draft = RuleDraft.objects.get()
        assert answer["Location"] == to("tenant-draft", tenant, draft=draft.pk)
        assert (draft.rules[0]["ttlSeconds"], draft.base_seq) == (120, 1)
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1
        assert Event.objects.filter(kind="staff.acted", after__act="draft.kept").count() == 1

    def test_what_is_refused(self, staff: Client, tenant: Tenant) -> None:
        page = f"{to('tenant-rule', tenant)}?rule=orders"
        findings = staff.post(page, self.form(tenant, tables="*" * 5000))
        assert findings.status_code == 400
        stale = self.form(tenant)
        write_ruleset(
            tenant_id=tenant.pk, document={"rules": [RULE, {**RULE, "id": "b"}]}, actor="x@example.org"
        )
        assert staff.post(page, stale).status_code == 409
        assert staff.get(f"{to('tenant-rule', tenant)}?rule=none").status_code == 404
        assert not Event.objects.filter(kind="staff.acted").exists()
