"""Drafts of rules: reading, writing, comparing and publishing them."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Event, Revision
from rules.diff import rebase_rules
from rules.drafts import DraftNotFound, TooManyDrafts, create_draft, publish_draft
from rules.models import Marker, RuleDraft, Ruleset
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import ApiClient
from tests.racing import all_at_once

if TYPE_CHECKING:
    from tests.factories import World

UNKNOWN = "3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"


def rule(rule_id: str, **fields: Any) -> dict[str, Any]:
    shared: dict[str, Any] = {} if "invalidateRules" in fields or "action" in fields else {"varyBy": []}
    return {"id": rule_id, "conditions": {"userName": rule_id}, **shared, **fields}


@pytest.fixture
def client(world: World) -> ApiClient:
    return ApiClient(factories.sign_in(world.owner))


@pytest.fixture
def rules(world: World) -> str:
    write_ruleset(
        tenant_id=world.tenant.pk, document={"rules": [rule("a"), rule("b")]}, actor=world.owner.email
    )
    return f"/config/tenants/{world.tenant.pk}/rules"


def make(client: ApiClient, address: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{address}/drafts", body)
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return {**made, "href": f"{address}/drafts/{made['draftId']}", "etag": answer["ETag"]}


class TestWriting:
    def test_a_new_draft_is_a_copy_of_the_current_rules(
        self, world: World, client: ApiClient, rules: str
    ) -> None:
        answer = client.post(f"{rules}/drafts", {})
        draft = answer.json()
        assert answer["Location"] == f"{rules}/drafts/{draft['draftId']}"
        assert draft["rules"] == client.get(rules).json()["rules"]
        assert (draft["name"], draft["baseSeq"], draft["createdBy"]) == ("", 1, world.owner.email)
        assert draft["lint"] == {"valid": True, "errors": [], "warnings": []}
        read = client.get(answer["Location"])
        assert (read.json(), read["ETag"]) == (draft, answer["ETag"])
        assert client.post(f"{rules}/drafts").status_code == 201

    def test_properties_stay_in_the_order_of_the_writer(self, client: ApiClient, rules: str) -> None:
        written = [{"ttlSeconds": 60, "id": "é", "conditions": {"tables": "b", "isDDL": False}, "a": 1.0}]
        draft = make(client, rules, rules=written)
        assert json.dumps(client.get(draft["href"]).json()["rules"]) == json.dumps(written)
        written[0] = dict(reversed(written[0].items()))
        assert client.put(draft["href"], {"rules": written}).status_code == 200
        assert json.dumps(client.get(draft["href"]).json()["rules"]) == json.dumps(written)

    def test_a_draft_with_lint_errors_is_kept(self, client: ApiClient, rules: str) -> None:
        wrong = [{"id": "a", "conditons": {}}, 5, None]
        draft = make(client, rules, rules=wrong, name="Half done")
        assert draft["rules"] == wrong
        assert draft["lint"]["valid"] is False
        assert {finding["code"] for finding in draft["lint"]["errors"]} == {"unknown-property", "wrong-type"}
        assert client.get(rules).json()["seq"] == 1

    def test_without_a_name_it_is_named_by_what_it_changes(self, client: ApiClient, rules: str) -> None:
        a, b = (rule(name, name=f"Rule {name}") for name in "ab")
        before = client.get(rules).json()["rules"]
        names = {
            "Add Rule c": [*before, rule("c", name="Rule c")],
            "Turn off b": [before[0], {**before[1], "enabled": False}],
            "Remove b": [before[0]],
            "Change the order": [before[1], before[0]],
            "Change Rule a and 1 more": [a, b],
        }
        assert [make(client, rules, rules=after)["name"] for after in names.values()] == [*names]
        draft = make(client, rules)
        renamed = {"name": "", "rules": [before[0]]}
        put = client.put(draft["href"], renamed, **{"If-Match": draft["etag"]})
        assert put.json()["name"] == "Remove b"

    def test_lint_compares_with_the_current_rules(self, client: ApiClient, rules: str) -> None:
        client.put(rules, {"rules": [rule("a"), {"id": "w", "invalidateRules": ["a"]}]})
        draft = make(client, rules, rules=[{"id": "w", "invalidateRules": ["a"]}])
        codes = [finding["code"] for finding in draft["lint"]["errors"]]
        assert codes == ["rule-removed-still-referenced"]

    def test_a_put_replaces_it(self, world: World, rules: str, client: ApiClient) -> None:
        draft = make(client, rules, name="One")
        admin = ApiClient(factories.sign_in(world.tenant_admin))
        answer = admin.put(draft["href"], {"rules": [rule("c")]}, **{"If-Match": draft["etag"]})
        assert answer.status_code == 200
        body = answer.json()
        assert (body["name"], body["rules"], body["baseSeq"]) == ("One", [rule("c")], 1)
        assert (body["createdBy"], body["modifiedBy"]) == (world.owner.email, world.tenant_admin.email)
        assert answer["ETag"] != draft["etag"]
        assert client.get(draft["href"], **{"If-None-Match": answer["ETag"]}).status_code == 304
        # What was read may be sent back.
        assert client.put(draft["href"], body).json()["rules"] == [rule("c")]

    def test_a_stale_copy_is_a_409(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules)
        stale = {"If-Match": draft["etag"]}
        assert client.put(draft["href"], {"rules": []}, **stale).status_code == 200
        assert client.put(draft["href"], {"rules": [rule("z")]}, **stale).status_code == 409
        assert client.request("DELETE", draft["href"], headers=stale).status_code == 409
        assert client.request("POST", f"{draft['href']}/publish", headers=stale).status_code == 409
        assert client.get(draft["href"]).json()["rules"] == []
        assert client.get(rules).json()["seq"] == 1

    def test_a_deleted_draft_is_gone(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules)
        assert client.delete(draft["href"]).status_code == 204
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/diff"), ("POST", "/publish")):
            assert client.request(method, draft["href"] + path).status_code == 404, (method, path)

    def test_each_write_leaves_an_event(self, world: World, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, name="One")
        client.put(draft["href"], {"rules": [], "name": "Two"})
        client.put(draft["href"], {"rules": []}, **{"If-Match": draft["etag"]})
        client.delete(draft["href"])
        events = Event.objects.filter(kind__startswith="draft.").order_by("id")
        assert [(event.kind, event.after) for event in events] == [
            ("draft.created", {"name": "One", "baseSeq": 1}),
            ("draft.changed", {"name": "Two", "baseSeq": 1}),
            ("draft.deleted", {"name": "Two", "baseSeq": 1}),
        ]
        assert {(event.actor, event.subject, event.tenant_id) for event in events} == {
            (world.owner.email, draft["draftId"], world.tenant.pk)
        }

    def test_the_list_has_the_last_modified_first(self, client: ApiClient, rules: str) -> None:
        assert client.get(f"{rules}/drafts").json()["drafts"] == []
        one, two = make(client, rules, name="1"), make(client, rules, name="2", rules=[5])
        client.put(one["href"], {"rules": []})
        body = client.get(f"{rules}/drafts").json()
        assert [draft["name"] for draft in body["drafts"]] == ["1", "2"]
        assert [draft["lint"]["valid"] for draft in body["drafts"]] == [True, False]
        assert [link["href"] for link in body["_links"]["items"]] == [one["href"], two["href"]]

    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ({"rules": {}}, "/rules"),
            ({"baseSeq": 2}, "/baseSeq"),
            ({"baseSeq": -1}, "/baseSeq"),
            ({"name": "x" * 201}, "/name"),
            ({"nam": "x"}, "/nam"),
        ],
    )
    def test_a_wrong_body_is_a_400(
        self, client: ApiClient, rules: str, body: dict[str, Any], path: str
    ) -> None:
        answer = client.post(f"{rules}/drafts", body)
        assert answer.status_code == 400
        assert [detail["path"] for detail in answer.json()["details"]] == [path]

    def test_a_tenant_has_at_most_25(self, client: ApiClient, rules: str) -> None:
        drafts = [make(client, rules) for _ in range(25)]
        answer = client.post(f"{rules}/drafts", {})
        assert (answer.status_code, answer.json()["message"]) == (
            400,
            "A tenant has at most 25 drafts. Delete or publish one first.",
        )
        client.delete(drafts[0]["href"])
        make(client, rules)

    def test_another_tenants_draft_is_not_found(self, world: World, client: ApiClient, rules: str) -> None:
        other = create_draft(tenant_id=world.stranger_tenant.pk, document={}, actor="x@example.org")
        assert client.get(f"{rules}/drafts/{other.pk}").status_code == 404
        assert client.get(f"{rules}/drafts/{UNKNOWN}").status_code == 404

    def test_drafts_are_deleted_with_their_tenant(self, world: World, client: ApiClient, rules: str) -> None:
        make(client, rules)
        assert client.delete(f"/config/tenants/{world.tenant.pk}").json()["deletedFiles"] == 2
        assert not RuleDraft.objects.exists()
        assert client.get(f"{rules}/drafts").status_code == 404
        assert client.post(f"{rules}/drafts", {}).status_code == 404

    def test_the_number_of_queries_is_constant(self, client: ApiClient, rules: str) -> None:
        def count() -> int:
            with CaptureQueriesContext(connection) as captured:
                client.get(f"{rules}/drafts")
            return len(captured)

        make(client, rules)
        few = count()
        for _ in range(3):
            make(client, rules)
        assert count() == few


class TestDiff:
    def test_it_compares_with_the_current_rules(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[rule("c"), rule("a", ttlSeconds=60)])
        body = client.get(f"{draft['href']}/diff").json()
        assert (body["from"], body["baseSeq"], body["draftId"]) == (1, 1, draft["draftId"])
        assert [rule["id"] for rule in body["added"]] == ["c"]
        assert [rule["id"] for rule in body["removed"]] == ["b"]
        (changed,) = body["changed"]
        assert (changed["id"], changed["fields"]) == (
            "a",
            [{"path": "/ttlSeconds", "from": 86400, "to": 60}],
        )
        assert changed["inWords"] == [{"field": "A result is fresh for", "from": "1 d", "to": "1 min"}]
        assert (body["reordered"], body["conflicts"]) == (False, [])

    def test_a_new_order_is_told(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[rule("b"), rule("a")])
        body = client.get(f"{draft['href']}/diff").json()
        assert (body["added"], body["removed"], body["changed"], body["reordered"]) == ([], [], [], True)

    def test_rules_that_both_changed_are_conflicts(self, client: ApiClient, rules: str) -> None:
        draft = make(
            client,
            rules,
            rules=[rule("a", ttlSeconds=60), rule("b", name="B"), rule("new"), rule("same", name="N")],
        )
        client.put(
            rules,
            {"rules": [rule("a", ttlSeconds=70), rule("c"), rule("new", name="x"), rule("same", name="N")]},
        )
        body = client.get(f"{draft['href']}/diff").json()
        # a: two TTLs. b: changed here, removed there. new: added by both. same: both made the same change.
        assert body["conflicts"] == ["a", "b", "new"]
        assert (body["from"], body["baseSeq"]) == (2, 1)

    def test_it_is_rebased_onto_the_current_rules(self, world: World, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, name="Mine", rules=[rule("a", name="A"), rule("b"), rule("mine")])
        theirs = [rule("theirs"), rule("a", name="B"), rule("b", name="B")]
        assert client.put(rules, {"rules": theirs}).status_code == 200
        rebase = f"{draft['href']}/rebase"
        stale = client.request("POST", rebase, headers={"If-Match": '"x"'})
        assert stale.status_code == 409
        answer = client.request("POST", rebase, headers={"If-Match": draft["etag"]})
        rebased = answer.json()
        assert [(rule["id"], rule.get("name")) for rule in rebased["rules"]] == [
            ("theirs", "theirs"),
            ("a", "A"),
            ("b", "B"),
            ("mine", "mine"),
        ]
        assert (rebased["name"], rebased["baseSeq"]) == ("Mine", 2)
        assert answer["ETag"] != draft["etag"]
        assert Event.objects.filter(kind="draft.changed", tenant_id=world.tenant.pk).count() == 1
        assert client.post(f"{draft['href']}/publish").status_code == 200

    def test_one_with_errors_is_not_rebased(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[rule("a", ttlSeconds=-1)])
        refused = client.post(f"{draft['href']}/rebase")
        assert refused.status_code == 400
        assert [error["code"] for error in refused.json()["errors"]] == ["out-of-range"]

    def test_a_draft_with_errors_is_compared_as_far_as_possible(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[7, {"id": 5}, {}, rule("a"), {"id": "b", "ttlSeconds": "x"}])
        body = client.get(f"{draft['href']}/diff").json()
        assert [change["id"] for change in body["changed"]] == ["b"]
        assert (body["added"], body["removed"]) == ([], [])


class TestPublishing:
    def test_it_writes_the_rules_and_deletes_the_draft(
        self, world: World, client: ApiClient, rules: str
    ) -> None:
        draft = make(client, rules, rules=[rule("c")], name="Only c")
        answer = client.post(f"{draft['href']}/publish?comment=Quarter%20end")
        assert answer.status_code == 200
        assert [rule["id"] for rule in answer.json()["rules"]] == ["c"]
        assert (answer.json()["seq"], answer["ETag"]) == (2, client.get(rules)["ETag"])
        assert not RuleDraft.objects.exists()

        change = client.get(f"{rules}/history").json()["changes"][0]
        assert (change["seq"], change["action"], change["userId"]) == (2, "update", world.owner.email)
        assert change["summary"]["draft"] == {"draftId": draft["draftId"], "name": "Only c"}
        assert change["summary"]["names"] == {"added": ["c"], "removed": ["a", "b"]}
        assert change["summary"]["comment"] == "Quarter end"

    def test_lint_errors_are_a_400(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[{"id": "a", "conditons": {}}])
        answer = client.post(f"{draft['href']}/publish")
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
        assert [finding["code"] for finding in answer.json()["errors"]] == ["unknown-property"]
        assert RuleDraft.objects.count() == 1
        assert client.get(rules).json()["seq"] == 1

    def test_a_removed_rule_with_a_marker_needs_a_confirmation(
        self, world: World, client: ApiClient, rules: str
    ) -> None:
        moment = now()
        Marker.objects.create(
            tenant=world.tenant,
            marker_id="m",
            target_rule_id="b",
            ttl_seconds=60,
            invalidated_at=moment,
            expires_at=moment.replace(year=2099),
            created_at=moment,
        )
        draft = make(client, rules, rules=[rule("a")])
        assert client.post(f"{draft['href']}/publish").status_code == 400
        assert client.post(f"{draft['href']}/publish?confirmDeletes=b").status_code == 200

    def test_a_moved_base_is_a_409_until_the_draft_is_put_again(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[rule("c")])
        client.put(rules, {"rules": [rule("a")]})
        answer = client.post(f"{draft['href']}/publish")
        assert (answer.status_code, answer.json()["error"]) == (409, "concurrent_change")
        assert "put the draft again with 'baseSeq' 2" in answer.json()["message"]
        assert client.get(rules).json()["seq"] == 2

        client.put(draft["href"], {"rules": [rule("c")], "baseSeq": 2})
        assert client.post(f"{draft['href']}/publish").json()["seq"] == 3

    def test_the_plan_still_limits_the_rules(self, world: World, client: ApiClient, rules: str) -> None:
        world.account.plan = "free"
        world.account.save()
        draft = make(client, rules, rules=[rule(f"r{n}") for n in range(26)])
        assert client.post(f"{draft['href']}/publish").json()["error"] == "plan_limit_exceeded"


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_two_publications_at_once_one_wins(self, world: World) -> None:
        tenant_id = world.tenant.pk
        drafts = [
            create_draft(tenant_id=tenant_id, document={"rules": [rule(name)]}, actor="a@example.org")
            for name in ("x", "y")
        ]

        def publish(draft: RuleDraft) -> bool:
            try:
                publish_draft(tenant_id=tenant_id, draft_id=draft.pk, actor="a@example.org")
            except Conflict:
                return False
            return True

        won = all_at_once([partial(publish, draft) for draft in drafts])
        assert sorted(won) == [False, True]
        winner, loser = (drafts[won.index(result)] for result in (True, False))
        assert read_ruleset(tenant_id).rules[0]["id"] == winner.rules[0]["id"]
        assert list(RuleDraft.objects.values_list("pk", flat=True)) == [loser.pk]
        assert Revision.objects.filter(tenant_id=tenant_id, kind="rules").count() == 2

    def test_one_draft_is_published_once(self, world: World) -> None:
        tenant_id = world.tenant.pk
        draft = create_draft(tenant_id=tenant_id, document={"rules": [rule("x")]}, actor="a@example.org")

        def publish() -> str:
            try:
                publish_draft(tenant_id=tenant_id, draft_id=draft.pk, actor="a@example.org")
            except (Conflict, DraftNotFound) as error:
                return error.code
            return "published"

        results = all_at_once([publish] * 4)
        assert results.count("published") == 1
        assert set(results) <= {"published", "concurrent_change", "not_found"}
        assert Ruleset.objects.get(pk=tenant_id).seq == 1

    def test_the_cap_holds_under_many_writers(self, world: World, settings: Any) -> None:
        settings.MAX_RULE_DRAFTS = 3

        def create() -> bool:
            try:
                create_draft(tenant_id=world.tenant.pk, document={}, actor="a@example.org")
            except TooManyDrafts:
                return False
            return True

        assert all_at_once([create] * 8).count(True) == 3
        assert RuleDraft.objects.count() == 3


class TestExplainingADraft:
    def test_its_rules_decide(self, client: ApiClient, rules: str) -> None:
        draft = make(client, rules, rules=[{"id": "all"}])
        body = client.post(f"{rules}/explain", {"request": {}, "draftId": draft["draftId"]}).json()
        assert body["decision"]["ruleId"] == "all"
        assert (body["ruleset"]["draftId"], body["ruleset"]["seq"]) == (draft["draftId"], 1)

    @pytest.mark.parametrize("kind", ["unknown", "wrong"])
    def test_one_that_is_unknown_or_has_errors_is_a_400(
        self, client: ApiClient, rules: str, kind: str
    ) -> None:
        draft_id = UNKNOWN if kind == "unknown" else make(client, rules, rules=[5])["draftId"]
        answer = client.post(f"{rules}/explain", {"request": {}, "draftId": draft_id})
        assert answer.status_code == 400
        code = {"unknown": "unknown-draft", "wrong": "lint-errors"}[kind]
        assert [(detail["path"], detail["code"]) for detail in answer.json()["details"]] == [
            ("/draftId", code)
        ]


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
def test_rules_are_merged(mine: str, theirs: str, rebased: str) -> None:
    def named(names: str) -> list[dict[str, Any]]:
        return [rule(name.lower()[0], name=name, ttlSeconds=60) for name in names.split()]

    merged = rebase_rules(named("a b c"), named(mine), named(theirs))
    assert " ".join(rule["name"] for rule in merged) == rebased
