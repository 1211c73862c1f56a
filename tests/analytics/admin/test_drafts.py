"""Drafts of rules on the staff's pages: edit, rebase, replay, publish, delete."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Event
from accounts.tenants.lifecycle import delete_tenant
from analytics.models import ReplayRun
from analytics.replay import outdated
from analytics.replay.execution import run_next
from rules.admin.rules import rebase_rules
from rules.drafts import create_draft
from rules.markers import NewMarker, create_marker
from rules.models import RuleDraft, Ruleset
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.backoffice.templatetags.backoffice import between
from tenantadmin.lib.objectstore import default_store
from tests.admin.logs import ENTRY, RULE, START, put_log, to
from tests.admin.reading import text_of
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant

ADS: dict[str, Any] = {
    "id": "ads",
    "name": "Advertising",
    "varyBy": [],
    "conditions": {"tables": {"containsAny": ["m.ads"]}},
    "ttlSeconds": 60,
}
LONGER: dict[str, Any] = {**RULE, "ttlSeconds": 90}


def draft_of(tenant: Tenant, *rules: dict[str, Any], name: str = "Try") -> RuleDraft:
    return create_draft(
        tenant_id=tenant.pk, document={"name": name, "rules": list(rules)}, actor="x@example.org"
    )


def write(tenant: Tenant, *rules: dict[str, Any]) -> None:
    write_ruleset(tenant_id=tenant.pk, document={"rules": list(rules)}, actor="owner@example.org")


def page_of(draft: RuleDraft, act: str = "") -> str:
    return to(f"tenant-draft{act}", draft.tenant, draft=draft.pk)


def fields_of(client: Client, address: str) -> dict[str, str]:
    """Return the values of the form as a page shows it."""
    html = client.get(address).content.decode()
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
    if text := re.search(r'<textarea[^>]*name="rules"[^>]*>(.*?)</textarea>', html, re.DOTALL):
        fields["rules"] = text[1]
    return {"draft_name": "Try", **{name: unescape(value) for name, value in fields.items()}}


def test_the_editor_keeps_the_order_of_the_writer(staff: Client, tenant: Tenant) -> None:
    text = json.dumps([dict(reversed(RULE.items()))], indent=2)
    draft = draft_of(tenant, *json.loads(text))
    assert fields_of(staff, page_of(draft))["rules"].strip() == text


def send(client: Client, address: str, **changes: Any) -> Any:
    return client.post(address, {**fields_of(client, address), "reason": "ticket 4", **changes})


def ids_of(tenant: Tenant) -> list[str]:
    return [rule["id"] for rule in Ruleset.objects.get(pk=tenant.pk).rules]


def acts() -> list[tuple[str, Any]]:
    return [(event.reason, event.after) for event in Event.objects.filter(kind="staff.acted").order_by("id")]


class TestKeeping:
    def keep(self, staff: Client, tenant: Tenant, **changes: Any) -> Any:
        return send(staff, to("tenant-rules", tenant), draft="yes", confirm_deletes="", **changes)

    def test_a_draft_asks_for_a_reason_and_leaves_an_event(self, staff: Client, tenant: Tenant) -> None:
        assert self.keep(staff, tenant, reason="").status_code == 400
        assert not RuleDraft.objects.exists()
        answer = self.keep(staff, tenant)
        draft = RuleDraft.objects.get()
        assert answer["Location"] == page_of(draft)
        assert acts() == [("ticket 4", {"act": "draft.kept", "draftId": str(draft.pk)})]
        assert (draft.name == "ticket 4", draft.base_seq) == (False, 1)

    def test_a_text_that_is_not_json_stays(self, staff: Client, tenant: Tenant) -> None:
        answer = self.keep(staff, tenant, rules='[{"id": "half')
        assert answer.status_code == 400
        assert "[{&quot;id&quot;: &quot;half" in answer.content.decode()
        # Above the editor and in the list of lint.
        assert answer.content.decode().count("The text is not JSON") == 2

    def test_it_begins_from_the_shown_revision(self, staff: Client, tenant: Tenant) -> None:
        fields = {**fields_of(staff, to("tenant-rules", tenant)), "draft": "yes", "reason": "x"}
        write(tenant, RULE, ADS)
        staff.post(to("tenant-rules", tenant), fields)
        assert RuleDraft.objects.get().base_seq == 1

    def test_a_draft_without_a_name_is_called_by_its_time(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE, name="")
        made = f"{draft.created_at:%Y-%m-%d %H:%M}"
        assert draft.title == f"Unnamed draft of {made} UTC"
        assert draft.title in page_text(staff, page_of(draft))
        assert f"Open the draft of {made}" in page_text(staff, to("tenant-rules", tenant))

    def test_the_rules_of_a_deleted_tenant(self, staff: Client, tenant: Tenant) -> None:
        delete_tenant(tenant_id=tenant.pk, actor="owner@example.org")
        assert "The tenant is deleted. Its history keeps the rules." in page_text(
            staff, to("tenant-rules", tenant)
        )


class TestEditing:
    def test_saving(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE, ADS)
        assert "What it changes in the live rules Adds Advertising" in page_text(staff, page_of(draft))
        answer = send(staff, page_of(draft), rules=json.dumps([RULE]), draft_name="Less")
        assert answer["Location"] == page_of(draft)
        draft.refresh_from_db()
        assert (draft.name, [rule["id"] for rule in draft.rules], draft.modified_by) == (
            "Less",
            ["orders"],
            "admin@example.org",
        )
        assert acts() == [("ticket 4", {"act": "draft.saved", "draftId": str(draft.pk)})]
        assert Event.objects.get(kind="draft.changed").reason == "ticket 4"
        # Two events of one request are one act.
        assert page_text(staff, to("tenant-people", tenant)).count("changed a draft of the rules") == 1
        assert read_ruleset(tenant.pk).seq == 1

    @pytest.mark.parametrize("changes", [{"reason": ""}, {"rules": "["}, {"rules": "{}"}])
    def test_errors_are_shown_and_the_text_stays(
        self, staff: Client, tenant: Tenant, changes: dict[str, str]
    ) -> None:
        draft = draft_of(tenant, RULE)
        answer = send(staff, page_of(draft), **{"rules": '[{"id": "mine"}]', **changes})
        assert answer.status_code == 400
        text = changes.get("rules", "[{&quot;id&quot;: &quot;mine&quot;}]")
        assert f"{text}</textarea>" in answer.content.decode().replace("\n", "")
        assert acts() == []

    def test_a_conflict_shows_both_texts(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE)
        fields = {**fields_of(staff, page_of(draft)), "reason": "x", "rules": json.dumps([LONGER])}
        send(staff, page_of(draft), rules=json.dumps([ADS]))
        answer = staff.post(page_of(draft), fields)
        html = answer.content.decode()
        assert answer.status_code == 409
        assert "Another user saved the draft first" in html
        etag = unescape(re.findall(r'name="etag" value="([^"]+)"', html)[0])
        assert staff.post(page_of(draft), {**fields, "etag": etag}).status_code == 302
        draft.refresh_from_db()
        assert draft.rules == [LONGER]

    def test_lint_is_shown_and_stands_in_the_way(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, {**RULE, "ttlSeconds": -1})
        text = page_text(staff, page_of(draft))
        assert "error line 11 orders out-of-range" in text
        assert "It cannot be published now. Lint finds errors in the draft." in text
        assert "It can be replayed when lint finds no error in it." in text
        assert "Replay the last 7 days" not in text
        assert page_of(draft, "-publish") not in staff.get(page_of(draft)).content.decode()
        assert "Lint finds errors in the draft." in page_text(staff, page_of(draft, "-publish"))
        # A page that was open before.
        answer = staff.post(page_of(draft), {"replay": "yes"})
        assert answer.status_code == 400
        assert "Draft: The draft has lint errors" in answer.content.decode()
        assert "</textarea>" in answer.content.decode()

    def test_lint_as_one_types(self, support: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE)
        answer = support.post(f"{page_of(draft)}?part=check", {"rules": "["})
        assert [mark["type"] for mark in answer.json()["marks"]] == ["error"]

    def test_support_looks_and_replays(self, support: Client, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE, ADS)
        text = page_text(support, page_of(draft))
        assert "A platform admin saves." in text
        assert "Reason or ticket" not in text
        html = support.get(page_of(draft)).content.decode()
        for act in ("-rebase", "-publish", "-delete"):
            assert page_of(draft, act) not in html
            assert support.get(page_of(draft, act)).status_code == 403
            assert support.post(page_of(draft, act), fields_of(staff, page_of(draft, act))).status_code == 403
        assert support.post(page_of(draft), fields_of(staff, page_of(draft))).status_code == 403
        assert RuleDraft.objects.get().version == 0
        assert support.post(page_of(draft), {"replay": "yes"}).status_code == 302

    def test_deleting(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE)
        assert send(staff, page_of(draft, "-delete"), reason="").status_code == 400
        answer = send(staff, page_of(draft, "-delete"))
        assert answer["Location"] == to("tenant-rules", tenant)
        assert not RuleDraft.objects.exists()
        assert acts() == [("ticket 4", {"act": "draft.deleted", "draftId": str(draft.pk)})]
        assert staff.get(page_of(draft)).status_code == 404


class TestRebasing:
    @pytest.mark.slow
    def test_the_changes_of_the_draft_come_on_top_of_the_live_rules(
        self, staff: Client, tenant: Tenant
    ) -> None:
        draft = draft_of(tenant, LONGER)
        write(tenant, RULE, ADS)
        text = page_text(staff, page_of(draft))
        assert "The live rules are at revision 2 by now, and the draft began from revision 1." in text
        assert "Compared with the live rules" not in text
        assert "Rebase onto revision 2" in text
        publish = page_of(draft, "-publish")
        assert publish not in staff.get(page_of(draft)).content.decode()
        assert "First rebase it: apply its changes to the live rules." in page_text(staff, publish)
        late = send(staff, publish, etag=fields_of(staff, page_of(draft))["etag"])
        assert late.status_code == 409
        assert "Open the draft, rebase it, and publish it then." in late.content.decode()
        assert "baseSeq" not in late.content.decode()
        rebase = page_of(draft, "-rebase")
        assert rebase in staff.get(page_of(draft)).content.decode()
        before, _, after = page_text(staff, rebase).partition("Rebase and save the draft")
        # The act is above the difference, which may be long.
        assert "Rebasing will save the draft" in before
        assert '+ "ttlSeconds": 90,' in after
        assert RuleDraft.objects.get().base_seq == 1
        assert send(staff, rebase)["Location"] == page_of(draft)
        assert acts() == [("ticket 4", {"act": "draft.rebased", "draftId": str(draft.pk)})]
        assert "cannot be published" not in page_text(staff, page_of(draft))
        assert staff.get(rebase).status_code == 409
        assert "What it changes in the live rules Changes orders" in page_text(staff, page_of(draft))
        assert send(staff, publish)["Location"] == to("tenant-rules", tenant)
        assert [(rule["id"], rule["ttlSeconds"]) for rule in read_ruleset(tenant.pk).rules] == [
            ("orders", 90),
            ("ads", 60),
        ]

    def test_rules_changed_on_both_sides_are_named(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, LONGER)
        write(tenant, {**RULE, "ttlSeconds": 10})
        assert "Both sides changed: orders" in page_text(staff, page_of(draft))
        text = page_text(staff, page_of(draft, "-rebase"))
        assert "The live rules have changed these too since revision 1: orders ." in text

    def test_a_draft_with_errors_is_not_rebased(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, {**RULE, "ttlSeconds": -1})
        write(tenant, RULE, ADS)
        assert page_of(draft, "-rebase") not in staff.get(page_of(draft)).content.decode()
        assert "Lint finds errors in the draft." in text_of(
            staff.get(page_of(draft, "-rebase")).content.decode()
        )

    @pytest.mark.parametrize(
        ("mine", "theirs", "rebased"),
        [
            ("a b c", "a b c", "a b c"),
            ("a b", "a b c", "a b"),  # removed here
            ("a b c", "a c", "a c"),  # removed there
            ("a b c x", "y a b c", "y a b c x"),  # added on both sides
            ("x a b c", "a y b c", "x a y b c"),
            ("a x b c", "a y b c", "a x y b c"),
            ("a b x c", "a c", "a x c"),  # what it followed is gone
            ("c b a", "a b c y", "c y b a"),  # ordered here
            ("a b c", "c b a", "c b a"),  # ordered there
            ("a B c", "a b! c", "a B c"),  # changed on both sides
            ("a b c", "a b! c", "a b! c"),
            ("a c", "a b! c", "a c"),
            ("a b! c", "a c", "a b! c"),
        ],
    )
    def test_rules_are_merged(self, mine: str, theirs: str, rebased: str) -> None:
        def rules(names: str) -> list[dict[str, Any]]:
            return [{**RULE, "id": name.lower()[0], "name": name, "ttlSeconds": 60} for name in names.split()]

        merged = rebase_rules(rules("a b c"), rules(mine), rules(theirs))
        assert " ".join(rule["name"] for rule in merged) == rebased


class TestPublishing:
    def test_with_a_reason(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, {**RULE, "varyBy": []}, {**ADS, "varyBy": []})
        publish = page_of(draft, "-publish")
        text = page_text(staff, publish)
        assert '+ "id": "ads",' in text
        assert "Lint finds nothing." in text
        assert "Rules to remove" not in text
        assert send(staff, publish, reason="").status_code == 400
        assert send(staff, publish)["Location"] == to("tenant-rules", tenant)
        assert ids_of(tenant) == ["orders", "ads"]
        assert acts() == [
            ("ticket 4", {"act": "draft.published", "seq": 2, "draftId": str(draft.pk)}),
        ]

    def test_the_reason_for_the_draft_is_offered(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE)
        publish = page_of(draft, "-publish")
        assert 'name="reason" value=' not in staff.get(publish).content.decode()
        send(staff, page_of(draft), reason="orders come hourly")
        for page in (publish, page_of(draft)):
            assert 'name="reason" value="orders come hourly"' in staff.get(page).content.decode()
        assert "orders come hourly" not in staff.get(page_of(draft, "-delete")).content.decode()

    def test_a_draft_changed_after_it_was_shown_is_not_published(self, staff: Client, tenant: Tenant) -> None:
        draft = draft_of(tenant, RULE, ADS)
        fields = {**fields_of(staff, page_of(draft, "-publish")), "reason": "x"}
        send(staff, page_of(draft), rules=json.dumps([]))
        assert staff.post(page_of(draft, "-publish"), fields).status_code == 409
        assert ids_of(tenant) == ["orders"]

    def test_a_removed_rule_with_a_marker_is_confirmed(self, staff: Client, tenant: Tenant) -> None:
        create_marker(tenant.pk, NewMarker("m", "orders", {}, {}), actor="owner@example.org")
        draft = draft_of(tenant, ADS)
        publish = page_of(draft, "-publish")
        for address in (page_of(draft), publish):
            text = page_text(staff, address)
            assert "tick it under “Remove these rules although they have active markers”." in text
            assert "confirmDeletes" not in text
        assert "These rules have active markers, and publishing asks" in page_text(staff, page_of(draft))
        box = 'name="confirm_deletes" value="orders"'
        assert box in staff.get(publish).content.decode()
        assert box not in staff.get(page_of(draft)).content.decode()
        assert send(staff, publish, confirm_deletes="").status_code == 400
        assert ids_of(tenant) == ["orders"]
        assert send(staff, publish, confirm_deletes="orders").status_code == 302
        assert ids_of(tenant) == ["ads"]


def replay(client: Client, draft: RuleDraft) -> ReplayRun:
    """Replay a draft to its end."""
    assert client.post(page_of(draft), {"replay": "yes"}).status_code == 302
    run_next(default_store(), tenant_id=draft.tenant_id)
    return ReplayRun.objects.get()


def main_buttons(staff: Client, address: str) -> list[str]:
    return re.findall(r'class="button"[^>]*>([^<]+)', staff.get(address).content.decode())


@pytest.mark.django_db(transaction=True)
class TestReplays:
    @pytest.fixture
    def draft(self, tenant: Tenant) -> RuleDraft:
        """Two requests for the same a minute and a half apart: the longer TTL of the draft makes a hit."""
        first: dict[str, Any] = {
            **ENTRY,
            "cacheStatus": "MISS",
            "matchedRule": "orders",
            "parameterValues": "[]",
        }
        first |= {"warehouseExecutionTimeMs": 2000, "statementType": "SELECT", "isReadOnly": True}
        put_log(tenant, first, {**first, "timestamp": START + 80_000})
        return draft_of(tenant, LONGER, ADS)

    def test_the_live_rules_the_draft_and_the_difference(
        self, access: Client, staff: Client, draft: RuleDraft
    ) -> None:
        run = replay(access, draft)
        assert run.state == "done", run.error
        html = access.get(page_of(draft), {"part": "replays"}).content.decode()
        text = text_of(html)
        # The rules in force lack this rule.
        assert '<th><span title="ads">Advertising</span></th>' in html
        assert (
            "from the cache (of 2 on 1 of 7 days) and spare the warehouse 2 s; hit rate 0% → 50.0%. " in text
        )
        assert "Most of it is due to the rule “orders”. Publish them." in text
        assert (
            "has 0 hits in 2 requests, as the overview has. A replay of the rules that were in force ends as "
            "in the log for 100% of 2 log entries" in text
        )
        assert "All 2 1 1 more 1 1 fewer 0 0 2 s 2 s more 0" in text
        assert "orders 2 1 1 more 1 1 fewer 0 0 2 s 2 s more 0" in text
        assert "Was Becomes Log entries For instance Miss Hit 1 log-1" in text
        assert "In this hour, that costs about" in text
        assert re.search(
            r"of warehouse time, on a mean day \(1 of the 7 days \d+[ \w]* to \d+ \w+\)\. "
            r"(No hour costs less|It costs the least warehouse time at [\d-]{10} \d\d:00:00 UTC:)",
            text,
        )
        # Who may not read the log sees no ids of it.
        shown = page_text(staff, page_of(draft))
        assert "log-1" not in shown
        assert "For instance" not in shown
        # What to do next is the one main button.
        assert main_buttons(staff, page_of(draft)) == ["Review and publish"]
        assert main_buttons(staff, page_of(draft_of(draft.tenant, ADS))) == ["Replay the last 7 days"]

    def test_rules_that_the_draft_does_not_change_are_closed(self, staff: Client, draft: RuleDraft) -> None:
        shown = replay(staff, draft).result
        assert shown is not None
        # Results of earlier releases have no names.
        del shown["names"]
        ReplayRun.objects.update(result={**shown, "against": {**shown["against"], "rules": shown["rules"]}})
        html = staff.get(page_of(draft), {"part": "replays"}).content.decode()
        closed = text_of(html.partition("<details>")[2])
        assert closed.startswith("The draft changes no number of a rule Rule Requests Hits")
        assert "orders 2 1 1 0 0 2 s 0" in closed
        assert '<span title="ads">Advertising</span>' in html

    def test_publishing_shows_the_last_replay_and_warns_of_a_loss(
        self, access: Client, staff: Client, draft: RuleDraft
    ) -> None:
        publish = page_of(draft, "-publish")
        loss = "Keep the present rules, unless fewer hits are what you want."
        assert "The draft was not replayed as it is now." in page_text(staff, publish)
        shown = replay(access, draft).result
        assert shown is not None
        text = page_text(staff, publish)
        assert "Warehouse time 2 s less Hits 1 more Hits at risk of being stale no change" in text
        assert ("It costs the least warehouse time at" in text) != ("No hour costs less" in text)
        assert loss not in text
        sides = ("total", "rules")
        against = {**shown["against"], **{side: shown[side] for side in sides}}
        turned = {side: shown["against"][side] for side in sides}
        ReplayRun.objects.update(result={**shown, **turned, "against": against})
        text = page_text(staff, publish)
        assert (
            "would answer 1 fewer request from the cache (of 2 on 1 of 7 days) and cost the warehouse 2 s"
            in text
        )
        assert "Warehouse time 2 s more Hits 1 fewer" in text
        assert loss in text
        send(staff, page_of(draft), rules=json.dumps([LONGER]))
        assert "The draft was not replayed as it is now." in page_text(staff, publish)

    def test_a_rule_that_the_draft_removes_is_shown(self, access: Client, draft: RuleDraft) -> None:
        RuleDraft.objects.update(rules=[ADS])
        replay(access, draft)
        text = page_text(access, page_of(draft))
        assert "no rule 2 2 more 0 0 2 2 more 0 0 ms 0" in text
        assert "orders 0 2 fewer 0 0 2 fewer 0 0 0 ms 0" in text
        assert "Miss Passed through 2" in text

    def test_a_replay_of_an_earlier_text_says_so(
        self, access: Client, staff: Client, draft: RuleDraft
    ) -> None:
        replay(access, draft)
        note = "of an earlier text of the draft"
        assert note not in page_text(access, page_of(draft))
        send(staff, page_of(draft), rules=json.dumps([LONGER]))
        text = page_text(staff, page_of(draft))
        assert note in text
        assert "Replay again: the last 7 days" in text
        assert "Publish them." not in text
        assert text.count("Review and publish") == 1

    def test_a_replay_against_earlier_rules_says_so(self, staff: Client, draft: RuleDraft) -> None:
        replay(staff, draft)
        assert "how the draft changes it, compared with the rules of revision 1." in page_text(
            staff, page_of(draft)
        )
        write(draft.tenant, RULE, {**ADS, "id": "others"})
        text = page_text(staff, page_of(draft))
        assert "This replay is against revision 1, not the rules in force (revision 2)." in text
        assert "Replay it again before you decide." in text
        # A new one advises nothing that cannot be done.
        ReplayRun.objects.all().delete()
        replay(staff, draft)
        text = page_text(staff, page_of(draft))
        assert "First rebase it: apply its changes to the live rules." in text
        assert "Publish them." not in text

    @pytest.mark.slow
    def test_a_replay_of_the_same_rules_by_another_user_is_shown(
        self, access: Client, draft: RuleDraft
    ) -> None:
        replay(access, draft)
        ReplayRun.objects.update(subject={"digest": "a" * 64})
        text = page_text(access, page_of(draft))
        assert "as the overview has. A replay" in text
        note = ", is of the same rules and days: it is current."
        assert note not in text
        answer = access.post(page_of(draft), {"replay": "yes"})
        assert note in page_text(access, answer["Location"])

    @pytest.mark.slow
    def test_a_poor_calibration_is_a_banner_and_a_second_question(
        self, access: Client, staff: Client, draft: RuleDraft
    ) -> None:
        warning = "Do not decide by this: the replay of the rules in force differs much from the log."
        run = replay(access, draft)
        publish = page_of(draft, "-publish")
        assert warning not in page_text(staff, page_of(draft)) + page_text(staff, publish)
        assert "despite_poor" not in staff.get(publish).content.decode()
        result: Any = run.result
        result["calibration"]["grade"] = "poor"
        result["caveats"] = ["calibration-poor", "cold-start"]
        run.save()
        assert page_text(staff, page_of(draft)).count(warning) == 1
        assert warning in page_text(staff, publish)
        assert send(staff, publish).status_code == 400
        assert ids_of(draft.tenant) == ["orders"]
        assert send(staff, publish, despite_poor="on").status_code == 302
        assert ids_of(draft.tenant) == ["orders", "ads"]

    def test_the_progress_of_one_that_waits_is_polled(
        self, support: Client, draft: RuleDraft, monkeypatch: Any
    ) -> None:
        support.post(page_of(draft), {"replay": "yes"})
        run = ReplayRun.objects.get()
        address = f"{page_of(draft)}?part=replays&run={run.pk}"
        polled = f'hx-get="{address.replace("&", "&amp;")}" hx-trigger="every 2s"'
        assert polled in support.get(page_of(draft)).content.decode()
        run.progress = 0.25
        run.save()
        with monkeypatch.context() as patch, CaptureQueriesContext(connection) as captured:
            patch.setattr(outdated, "lint_document", lambda *_: pytest.fail("the draft was linted"))
            answer = support.get(address)
        assert len(captured) == 4
        assert polled in answer.content.decode()
        assert text_of(answer.content.decode()).startswith("queued")
        assert 'value="0.250"' in answer.content.decode()
        assert "HX-Retarget" not in answer
        run.state = "failed"
        run.error = "It took too long."
        run.save()
        answer = support.get(address)
        assert answer["HX-Retarget"] == "#replays"
        assert answer.content.decode().lstrip().startswith('<div id="replays"')
        assert "hx-get" not in answer.content.decode()
        assert "It took too long." in answer.content.decode()

    @pytest.mark.parametrize("run", ["x", "00000000-0000-4000-8000-000000000000"])
    def test_a_replay_that_is_not_there_is_not_polled(
        self, support: Client, draft: RuleDraft, run: str
    ) -> None:
        answer = support.get(page_of(draft), {"part": "replays", "run": run})
        assert text_of(answer.content.decode()) == "Not replayed yet."

    def test_too_many(self, support: Client, draft: RuleDraft, settings: Any) -> None:
        settings.REPLAY_QUEUE = 0
        answer = support.post(page_of(draft), {"replay": "yes"})
        assert answer.status_code == 429
        assert "Too many replays of this tenant are waiting." in answer.content.decode()

    @pytest.mark.slow
    def test_pages_cost_a_constant_number_of_queries(
        self, access: Client, staff: Client, draft: RuleDraft
    ) -> None:
        run = replay(access, draft)
        pages = (
            (access, page_of(draft), 18),
            (access, f"{page_of(draft)}?part=replays", 11),
            (staff, page_of(draft, "-publish"), 13),
        )
        for digest in ("1", "2"):
            for client, address, queries in pages:
                with CaptureQueriesContext(connection) as captured:
                    assert client.get(address).status_code == 200
                assert len(captured) == queries, address
            run.pk, run.digest = uuid4(), digest
            run.save(force_insert=True)


def test_a_number_with_bounds() -> None:
    assert between({"low": 2, "likely": 3, "high": 4}) == "≈ 3 (2 to 4)"
    assert between({"low": 2, "likely": 2, "high": 2}) == "2"
    assert between({"low": 2000, "high": 4000}, "duration") == "2 s to 4 s"
