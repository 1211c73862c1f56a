"""Draft, accept, dismiss and reopen recommendations, by the services and by REST."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import pytest
from django.db import connection

from accounts.models import Event, Revision, Tenant
from analytics.advice import recommend
from analytics.advice.follow import read_rule_change
from analytics.advice.proposal import RuleEdit
from analytics.advice.recommend import Decision, describe_recommendation, find_outdated
from analytics.advice.search import run_mining
from analytics.models import Mining, Recommendation
from analytics.queues import MININGS
from rules.drafts import delete_draft, publish_draft
from rules.language import complete_rule
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import ApiError, Conflict
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.advice.searching import accept, cached, search

if TYPE_CHECKING:
    from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


def test_accepting_writes_the_ruleset_and_its_history_names_the_recommendation(tenant: UUID) -> None:
    (found,) = search(tenant)
    written = accept(found)
    assert [rule["id"] for rule in written.rules] == ["cache-m-ads"]
    found.refresh_from_db()
    assert (found.state, found.accepted_seq, found.decided_by) == ("accepted", 1, "ada@example.org")
    revision = Revision.objects.get(kind="rules", tenant_id=tenant, seq=1)
    assert revision.summary["recommendation"] == {
        "recommendationId": str(found.pk),
        "title": "Cache m.ads for 12 hours",
    }
    with pytest.raises(ApiError, match=r"^The recommendation is accepted; this is possible while it is open"):
        accept(found)


def test_of_two_acceptances_at_once_one_wins(tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = search(tenant)

    both = Barrier(2)
    monkeypatch.setattr(recommend, "require_etag", lambda *_, **__: both.wait(20))

    def work(_: int) -> str:
        try:
            Decision(tenant_id=tenant, recommendation_id=found.pk, actor="a@example.org").accept()
        except Conflict as error:
            return error.code
        finally:
            connection.close()
        return "accepted"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(work, range(2))) == ["accepted", "concurrent_change"]
    assert read_ruleset(tenant).seq == 1


def test_a_ruleset_that_moved_is_a_conflict_and_changes_nothing(tenant: UUID) -> None:
    (found,) = search(tenant)
    own = {"id": "own", "action": "deny", "conditions": {"tables": {"containsAny": ["none"]}}}
    write_ruleset(tenant_id=tenant, document={"rules": [own]}, actor="b@example.org")
    assert describe_recommendation(found).is_outdated
    with pytest.raises(Conflict, match=r"^The rules are at revision 1, and the recommendation is based on"):
        accept(found)
    found.refresh_from_db()
    assert (found.state, found.version, read_ruleset(tenant).seq) == ("open", 1, 1)
    (again,) = search(tenant)
    assert (again.pk, again.seq) == (found.pk, 1)
    # Another revision of the same rules is no obstacle.
    write_ruleset(tenant_id=tenant, document={"rules": [own]}, actor="b@example.org")
    assert not describe_recommendation(again).is_outdated
    accept(again)
    again.refresh_from_db()
    assert (again.accepted_seq, read_ruleset(tenant).seq) == (3, 3)


@pytest.mark.slow
def test_a_dismissed_one_returns_on_its_day_or_when_it_would_save_twice_as_much(
    tenant: UUID, client: ApiClient
) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    until = (now().date() + timedelta(days=3)).isoformat()
    answer = client.post(f"{address}/dismiss", {"reason": "Not now.", "until": until})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["state"], body["reason"], body["until"]) == ("dismissed", "Not now.", until)
    event = Event.objects.get(kind="recommendation.dismissed")
    assert (event.subject, event.reason, event.tenant_id) == (str(found.pk), "Not now.", tenant)
    assert search(tenant) == []
    Recommendation.objects.update(until=now().date())
    (returned,) = search(tenant)
    assert returned.pk != found.pk
    assert client.post(f"{address}/reopen").json()["message"] == (
        "The same recommendation is open again. Decide that one."
    )
    returned.delete()
    Recommendation.objects.update(until=None, estimate_ms=found.estimate_ms // 2 + 1)
    assert search(tenant) == []
    Recommendation.objects.update(estimate_ms=found.estimate_ms // 2)
    (twice,) = search(tenant)
    twice.delete()
    assert client.post(f"{address}/reopen").json()["state"] == "open"
    assert Event.objects.filter(kind="recommendation.reopened").count() == 1
    assert client.post(f"{address}/reopen").status_code == 409


@pytest.mark.parametrize("day", ["2020-01-01", "today"])
def test_the_day_of_return_is_in_the_future(tenant: UUID, client: ApiClient, day: str) -> None:
    (found,) = search(tenant)
    until = now().date().isoformat() if day == "today" else day
    answer = client.post(
        f"/tenants/{tenant}/recommendations/{found.pk}/dismiss", {"reason": "x", "until": until}
    )
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/until")


def test_a_draft_is_made_and_publishing_it_accepts(tenant: UUID, client: ApiClient) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    answer = client.post(f"{address}/draft")
    assert (answer.status_code, answer.json()["name"]) == (201, "Cache m.ads for 12 hours")
    assert answer["Location"].endswith(answer.json()["draftId"])
    assert client.get(address).json()["state"] == "drafted"
    assert client.post(f"{address}/draft").status_code == 409
    draft = RuleDraft.objects.get()
    publish_draft(tenant_id=tenant, draft_id=draft.pk, actor="b@example.org")
    # At once, and also after the next search.
    assert client.get(address).json()["state"] == "accepted"
    search(tenant)
    found.refresh_from_db()
    assert (found.state, found.accepted_seq, found.decided_by) == ("accepted", 1, "b@example.org")


@pytest.fixture
def several(world: factories.World) -> list[Recommendation]:
    """Three recommendations: two that go together, and one that excludes the first."""
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [cached("a", "m.a")]}, actor="b@example.org")
    (rule,) = read_ruleset(world.tenant.pk).rules
    edits = {
        "A shorter": RuleEdit.replace({**rule, "ttlSeconds": 600}),
        "B is cached": RuleEdit.insert(complete_rule(cached("b", "m.b"))),
        "A longer": RuleEdit.replace({**rule, "ttlSeconds": 7200}),
    }
    return [
        factories.recommendation(
            world.tenant,
            fingerprint=title,
            rank=rank,
            title=title,
            patch=[msgspec.to_builtins(edit)],
            seq=1,
        )
        for rank, (title, edit) in enumerate(edits.items())
    ]


def test_one_draft_has_several_and_publishing_it_accepts_all(
    world: factories.World, client: ApiClient, several: list[Recommendation]
) -> None:
    tenant = world.tenant.pk
    shorter, second, longer = several
    address = f"/tenants/{tenant}/recommendations/drafts"
    wanted = [str(second.pk), str(shorter.pk)]
    answer = client.post(address, {"recommendations": wanted})
    assert (answer.status_code, answer.json()["name"]) == (201, "B is cached and 1 more")
    rules = answer.json()["rules"]
    assert [(rule["id"], rule["ttlSeconds"]) for rule in rules] == [("a", 600), ("b", 86_400)]
    draft = RuleDraft.objects.get()
    assert set(Recommendation.objects.values_list("state", "draft_id")) == {
        ("drafted", draft.pk),
        ("open", None),
    }
    assert client.post(address, {"recommendations": wanted}).status_code == 409
    publish_draft(tenant_id=tenant, draft_id=draft.pk, actor="b@example.org")
    states = {row.title: (row.state, row.accepted_seq) for row in Recommendation.objects.all()}
    assert states == {
        "A shorter": ("accepted", 2),
        "B is cached": ("accepted", 2),
        "A longer": ("open", None),
    }
    # The one that is left would change the rules of before: it is searched again without being asked.
    assert Mining.objects.get().state == "queued"
    assert longer.pk in find_outdated([longer])
    # Each is measured against the rules that have the other.
    shorter.refresh_from_db()
    change = read_rule_change(shorter)
    assert change is not None
    assert change.rules == [complete_rule(cached("a", "m.a")), rules[1]]


def test_after_a_publication_the_others_are_searched_again_and_can_be_accepted(
    tenant: UUID, client: ApiClient
) -> None:
    (found,) = search(tenant)
    rule = complete_rule(cached("other", "m.other"))
    other = factories.recommendation(
        Tenant.objects.get(pk=tenant),
        fingerprint="other",
        seq=found.seq,
        rules=[rule],
        patch=[{"op": "insert", "ruleId": "other", "before": None, "rule": rule}],
    )
    draft = client.post(
        f"/tenants/{tenant}/recommendations/drafts", {"recommendations": [str(other.pk)]}
    ).json()
    publish_draft(tenant_id=tenant, draft_id=UUID(draft["draftId"]), actor="b@example.org")
    found.refresh_from_db()
    assert found.pk in find_outdated([found])
    # Nobody asked for it, and a worker takes it at once.
    assert [row.pk for row in MININGS.take(limit=9)] == [tenant]
    run_mining(default_store(), tenant_id=tenant)
    found.refresh_from_db()
    assert find_outdated([found]) == set()
    assert [rule["id"] for rule in accept(found).rules] == ["other", "cache-m-ads"]


def test_those_that_exclude_each_other_are_named_and_nothing_is_drafted(
    world: factories.World, client: ApiClient, several: list[Recommendation]
) -> None:
    wanted = [str(row.pk) for row in several]
    answer = client.post(f"/tenants/{world.tenant.pk}/recommendations/drafts", {"recommendations": wanted})
    assert (answer.status_code, answer.json()["message"]) == (
        409,
        "“A shorter” and “A longer” change the rule “a” in different ways. Choose one of them.",
    )
    assert [one["path"] for one in answer.json()["details"]] == ["/recommendations/0", "/recommendations/2"]
    assert not RuleDraft.objects.exists()
    assert set(Recommendation.objects.values_list("state", flat=True)) == {"open"}


@pytest.mark.parametrize(
    ("body", "status", "place"),
    [
        ({"recommendations": []}, 400, "/recommendations"),
        ({"recommendations": ["{0}", "{0}"]}, 400, "/recommendations"),
        ({"recommendations": ["{0}"], "variants": {"{1}": "shared"}}, 400, "/variants/{1}"),
        ({"recommendations": ["{0}"], "variants": {"{0}": "no"}}, 400, "/variants/{0}"),
        ({"recommendations": ["{0}"], "variants": {"{0}": "vary"}}, 400, "/variant"),
        ({"recommendations": ["{0}", "3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c"]}, 404, ""),
    ],
)
def test_a_wrong_choice_drafts_nothing(
    world: factories.World,
    client: ApiClient,
    several: list[Recommendation],
    body: Any,
    status: int,
    place: str,
) -> None:
    text = json.dumps(body)
    for number, row in enumerate(several):
        text, place = text.replace(f"{{{number}}}", str(row.pk)), place.replace(f"{{{number}}}", str(row.pk))
    answer = client.post(f"/tenants/{world.tenant.pk}/recommendations/drafts", json.loads(text))
    assert (answer.status_code, [one["path"] for one in answer.json().get("details") or []]) == (
        status,
        [place] if place else [],
    )
    assert not RuleDraft.objects.exists()


def test_a_comment_on_accepting_is_kept_in_the_revision(tenant: UUID, client: ApiClient) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}/accept"
    assert client.post(f"{address}?comment={'x' * 501}").status_code == 400
    assert client.post(f"{address}?comment=Campaign%20week").status_code == 200
    summary = Revision.objects.get(kind="rules", tenant_id=tenant, seq=1).summary
    assert summary["comment"] == "Campaign week"
    assert summary["recommendation"]["recommendationId"] == str(found.pk)


def test_a_deleted_draft_opens_the_recommendation_again_and_accepting_deletes_the_draft(
    tenant: UUID, client: ApiClient
) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    client.post(f"{address}/draft")
    delete_draft(tenant_id=tenant, draft_id=RuleDraft.objects.get().pk, actor="b@example.org")
    assert client.get(address).json()["state"] == "open"
    (found,) = search(tenant)
    client.post(f"{address}/draft")
    assert client.post(f"{address}/accept").status_code == 200
    assert RuleDraft.objects.count() == 0


def test_an_alternative_is_accepted(tenant: UUID, client: ApiClient) -> None:
    (found,) = search(tenant)
    assert (found.variant, found.caveats) == ("shared", ["row-level-security-invisible"])
    (twin,) = found.alternatives
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    answer = client.post(f"{address}/accept?variant=per-user")
    assert answer.status_code == 200
    assert answer.json()["rules"] == twin["rules"]
    assert twin["rules"][0]["varyBy"] == ["userName"]
    body = client.get(address).json()
    assert (body["state"], body["variant"], body["title"], body["replayId"]) == (
        "accepted",
        "per-user",
        "Cache m.ads per user for 12 hours",
        None,
    )
    assert body["predicted"] == twin["predicted"]
    (other,) = body["alternatives"]
    assert (other["variant"], other["title"], other["predicted"]) == (
        "shared",
        "Cache m.ads for 12 hours",
        found.predicted,
    )
    revision = Revision.objects.get(kind="rules", tenant_id=tenant, seq=1)
    assert revision.summary["recommendation"]["title"] == "Cache m.ads per user for 12 hours"


@pytest.mark.slow
def test_a_drafted_alternative_stays_chosen_when_it_is_found_again(tenant: UUID, client: ApiClient) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}"
    answer = client.post(f"{address}/draft?variant=per-user")
    assert (answer.status_code, answer.json()["rules"][0]["varyBy"]) == (201, ["userName"])
    drafted = client.get(address).json()
    Mining.objects.update(digest="")
    assert search(tenant) == []
    again = client.get(address).json()
    ignored = {"minedAt": None, "replayId": None}
    assert again | ignored == drafted | ignored
    assert again["minedAt"] > drafted["minedAt"]
    draft_id = UUID(answer.json()["draftId"])
    delete_draft(tenant_id=tenant, draft_id=draft_id, actor="b@example.org")
    Mining.objects.update(digest="")
    (found,) = search(tenant)
    assert found.variant == "shared"


@pytest.mark.parametrize("act", ["draft", "accept"])
def test_a_variant_that_there_is_not(tenant: UUID, client: ApiClient, act: str) -> None:
    (found,) = search(tenant)
    address = f"/tenants/{tenant}/recommendations/{found.pk}/{act}"
    answer = client.post(f"{address}?variant=narrower")
    assert (answer.status_code, answer.json()["details"][0]) == (
        400,
        {
            "path": "/variant",
            "code": "out-of-range",
            "message": "This recommendation has no variant 'narrower'. It has: shared, per-user.",
        },
    )
    assert client.post(f"{address}?variant=x").status_code == 400
    found.refresh_from_db()
    assert (found.state, found.version) == ("open", 1)


def test_rest(tenant: UUID, client: ApiClient) -> None:
    address = f"/tenants/{tenant}/recommendations"
    assert client.get(address).json()["mining"] is None
    answer = client.post(address)
    assert (answer.status_code, answer["Location"], answer.json()["state"]) == (202, address, "queued")
    assert [row.pk for row in MININGS.take(limit=9)] == [tenant]
    assert client.post(address).status_code == 202  # it is queued already
    event = Event.objects.get(kind="recommendations.requested")
    assert (event.subject, event.tenant_id) == (str(tenant), tenant)
    run_mining(default_store(), tenant_id=tenant)
    body = client.get(address).json()
    assert body["mining"]["state"] == "done"
    (found,) = body["recommendations"]
    own = f"{address}/{found['recommendationId']}"
    assert body["_links"]["items"] == [{"name": found["recommendationId"], "href": own}]
    single = client.get(own)
    assert single.json() == found
    assert client.get(own, **{"If-None-Match": single["ETag"]}).status_code == 304
    assert client.get(f"{address}?state=accepted").json()["recommendations"] == []
    verdict = client.get(f"/tenants/{tenant}/verdict").json()
    assert verdict["advice"].startswith(
        "1 open recommendation: judging by the 3 days replayed, changes of rules could save about "
    )
    assert client.get(f"{own}/effect").status_code == 409
    assert client.request("POST", f"{own}/accept", headers={"If-Match": '"x"'}).status_code == 409
    accepted = client.request("POST", f"{own}/accept", headers={"If-Match": single["ETag"]})
    assert (accepted.status_code, accepted.json()["seq"]) == (200, 1)
    assert [(row.pk, row.requested_by) for row in MININGS.take(limit=9)] == [(tenant, "system")]
    assert "advice" not in client.get(f"/tenants/{tenant}/verdict").json()
    effect = client.get(f"{own}/effect").json()
    assert effect == {
        "recommendationId": found["recommendationId"],
        "state": "waiting",
        "measuredAt": None,
        "period": None,
        "closedBy": None,
    }
    unknown = f"{address}/3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"
    assert client.get(unknown).status_code == 404
