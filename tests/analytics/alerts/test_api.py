"""Alerts through the API: create, read, change, test, delete, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from standardwebhooks.webhooks import Webhook

from accounts.models import Event, Membership
from analytics.models import Alert, AlertDelivery, AlertFiring
from analytics.queues import ALERTS
from analytics.watch.alert_kinds import KINDS
from tests.analytics.alerts.support import SLACK, WEBHOOK, make_alert, messages, read_number, reader, writer

if TYPE_CHECKING:
    from pytest_django.fixtures import DjangoAssertNumQueries

    from tests import factories

pytestmark = pytest.mark.django_db

EMAIL = {"type": "email", "to": "member@example.org"}
BODY = {"name": "Errors", "kind": "errors", "channels": [EMAIL]}


def path(world: factories.World, *parts: object) -> str:
    return "/".join([f"/tenants/{world.tenant.pk}/alerts", *map(str, parts)])


def test_an_alert_is_due_when_it_is_written(world: factories.World) -> None:
    client = writer(world)
    client.post(path(world), {**BODY, "kind": "build-failed"})
    alert = Alert.objects.get()
    assert ALERTS.take(limit=9) == [alert]
    assert ALERTS.take(limit=9) == []
    client.put(path(world, alert.pk), {**BODY, "kind": "build-failed", "threshold": 2})
    assert ALERTS.take(limit=9) == [alert]


def test_an_alert_is_created_read_changed_and_deleted(world: factories.World) -> None:
    client = writer(world)
    answer = client.post(path(world), {**BODY, "channels": [EMAIL, WEBHOOK], "quietHours": None})
    assert answer.status_code == 201, answer.content
    created = answer.json()
    secret = created.pop("signingSecret")
    Webhook(secret)
    alert = Alert.objects.get()
    assert answer["Location"] == path(world, alert.pk)
    assert created == {
        "id": str(alert.pk),
        "tenantId": str(world.tenant.pk),
        "name": "Errors",
        "kind": "errors",
        "threshold": 5.0,
        "window": 1,
        "channels": [EMAIL, WEBHOOK],
        "quietHours": None,
        "enabled": True,
        "state": "unknown",
        "since": None,
        "value": None,
        "valueText": "first look within a minute",
        "evaluatedAt": None,
        "createdAt": created["createdAt"],
        "modifiedAt": created["modifiedAt"],
        "formerSecretEndsAt": None,
    }
    assert client.get(path(world, alert.pk)).json() == {**created, "signingSecret": secret}
    changed = {
        "name": "Leaks",
        "kind": "leak",
        "threshold": 3,
        "window": 2,
        "channels": [SLACK],
        "quietHours": {"from": "22:00", "to": "06:30"},
        "enabled": False,
    }
    answer = client.put(path(world, alert.pk), changed)
    assert answer.status_code == 200, answer.content
    assert {**answer.json(), **changed} == answer.json()
    assert client.delete(path(world, alert.pk)).json()["success"] is True
    assert client.get(path(world, alert.pk)).status_code == 404
    events = Event.objects.filter(kind__startswith="alert.").order_by("at", "id")
    assert [(event.kind, event.subject) for event in events] == [
        (f"alert.{verb}", str(alert.pk)) for verb in ("created", "changed", "deleted")
    ]
    # The path of a URL is a secret.
    assert (events[1].before or {})["channels"] == [
        "email member@example.org",
        "webhook https://hooks.example.org/…",
    ]


def test_a_stale_copy_overwrites_and_deletes_nothing(world: factories.World) -> None:
    client = writer(world)
    created = client.post(path(world), BODY)
    own = path(world, created.json()["id"])
    stale = created["ETag"]
    assert client.get(own)["ETag"] == stale
    changed = client.put(own, {**BODY, "name": "Failures"}, **{"If-Match": stale})
    assert changed["ETag"] == client.get(own)["ETag"] != stale
    for method, body in (("PUT", BODY), ("DELETE", None)):
        answer = client.request(method, own, body, headers={"If-Match": stale})
        assert answer.status_code == 409, answer.content
    assert Alert.objects.get().name == "Failures"
    # A measured number is no change of what an alert watches.
    Alert.objects.update(value=7)
    assert client.request("DELETE", own, headers={"If-Match": changed["ETag"]}).status_code == 200


def amount(number: float | None, unit: str) -> str:
    """Return a number as the documentation writes it: ``1 hour``."""
    if number is None:
        return "none"
    if unit == "money":
        return f"{number:,g}"
    return f"{number:,g} {unit.removesuffix('s') if number == 1 else unit}"


def test_the_list_has_the_kinds_of_the_documentation(world: factories.World) -> None:
    make_alert(world)
    listed = reader(world).get(path(world)).json()
    assert [alert["name"] for alert in listed["alerts"]] == ["Errors"]
    assert listed["limit"] == 20
    page = (Path(__file__).parents[3] / "docs" / "alerts.md").read_text()
    assert [
        (
            kind["kind"],
            amount(kind["threshold"], kind["unit"]),
            amount(kind["window"], kind["windowUnit"]),
        )
        for kind in listed["kinds"]
    ] == re.findall(r"^\| `([\w-]+)` \| .+ \| (.+) \| (.+) \|$", page, re.MULTILINE)
    queries = {kind["kind"]: kind["query"] for kind in listed["kinds"]}
    assert {kind for kind, query in queries.items() if query is None} == {
        "build-failed",
        "bill",
        "bill-forecast",
        "savings-low",
    }
    assert all(query in {None, f"alerts.{kind}"} for kind, query in queries.items())
    assert [kind["kind"] for kind in listed["kinds"] if kind["firesBelow"]] == ["savings-low"]


@pytest.mark.parametrize("kind", KINDS)
def test_threshold_and_window_have_defaults(world: factories.World, kind: str) -> None:
    answer = writer(world).post(path(world), {**BODY, "kind": kind})
    assert answer.status_code == 201, answer.content
    created = answer.json()
    assert (created["threshold"], created["window"]) == (KINDS[kind].threshold, KINDS[kind].window)


def test_the_key_of_pagerduty_is_for_writers_alone(world: factories.World) -> None:
    body = {"name": "Pages", "kind": "errors", "channels": [{"type": "pagerduty", "key": "k" * 32}]}
    answer = writer(world).post(path(world), body)
    assert (answer.status_code, answer.json()["channels"]) == (
        201,
        [{"type": "pagerduty", "url": "https://events.pagerduty.com/v2/enqueue", "key": "k" * 32}],
    )
    assert reader(world).get(path(world)).json()["alerts"][0]["channels"] == [
        {"type": "pagerduty", "url": "https://events.pagerduty.com/…", "key": "…"}
    ]
    assert "kkk" not in reader(world).get("/events").content.decode()


def test_readers_see_neither_the_paths_of_urls_nor_the_secret(world: factories.World) -> None:
    alert = make_alert(world, channels=[WEBHOOK, SLACK, EMAIL])
    read_number(alert, 10.0)
    client = reader(world)
    found = client.get(path(world, alert.pk)).json()
    assert "signingSecret" not in found
    assert found["channels"] == [
        {"type": "webhook", "url": "https://hooks.example.org/…"},
        {"type": "slack", "url": "https://hooks.example.org/…"},
        EMAIL,
    ]
    for answer in (
        client.get(path(world)),
        client.get(path(world, alert.pk, "deliveries")),
        client.get(path(world, "history")),
        writer(world).get(path(world, alert.pk, "deliveries")),
    ):
        assert answer.status_code == 200
        assert "secret" not in answer.content.decode()


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"threshold": 0}, "/threshold"),
        ({"threshold": -1}, "/threshold"),
        ({"threshold": 101}, "/threshold"),
        ({"threshold": "5"}, "/threshold"),
        ({"threshold": True}, "/threshold"),
        ({"threshold": 10**400}, "/threshold"),
        ({"window": 0}, "/window"),
        ({"window": 169}, "/window"),
        ({"kind": "leak", "window": 8}, "/window"),
        ({"kind": "log-late", "window": 1}, "/window"),
        ({"kind": "queue-age"}, "/kind"),
        ({"channels": []}, "/channels"),
        ({"channels": [EMAIL] * 6}, "/channels"),
        ({"channels": [EMAIL, {"type": "fax", "to": "1"}]}, "/channels/1/type"),
        ({"channels": [{"type": "email", "to": "stranger@example.org"}]}, "/channels/0/to"),
        ({"channels": [{"type": "email", "to": "no address"}]}, "/channels/0/to"),
        ({"channels": [{"type": "email"}]}, "/channels/0/to"),
        ({"channels": [{"type": "webhook", "to": "member@example.org"}]}, "/channels/0/url"),
        ({"channels": [{**EMAIL, "url": "https://example.org"}]}, "/channels/0/url"),
        ({"channels": [{"type": "pagerduty"}]}, "/channels/0/key"),
        ({"channels": [{"type": "pagerduty", "key": "short"}]}, "/channels/0/key"),
        ({"channels": [{**WEBHOOK, "key": "0" * 32}]}, "/channels/0/key"),
        ({"channels": [{"type": "webhook", "url": "http://example.org/"}]}, "/channels/0/url"),
        ({"channels": [{"type": "slack", "url": "https://169.254.169.254/"}]}, "/channels/0/url"),
        ({"channels": [{"type": "slack", "url": "https://hooks.example.org/…"}]}, "/channels/0/url"),
        ({"quietHours": {"from": "24:00", "to": "06:00"}}, "/quietHours/from"),
        ({"quietHours": {"from": "22:00"}}, "/quietHours/to"),
        ({"quietHours": {"from": "22:00", "to": "22:00"}}, "/quietHours/to"),
        ({"name": ""}, "/name"),
        ({"name": "a\0b"}, "/name"),
        ({"trheshold": 1}, "/trheshold"),
        ({"enabled": "yes"}, "/enabled"),
    ],
)
def test_what_is_refused_is_named(world: factories.World, change: dict[str, Any], place: str) -> None:
    answer = writer(world).post(path(world), {**BODY, **change})
    assert answer.status_code == 400
    assert place in [detail["path"] for detail in answer.json()["details"]], answer.content
    assert not Alert.objects.exists()


def test_a_tenant_has_at_most_twenty_alerts(world: factories.World) -> None:
    for _ in range(20):
        make_alert(world)
    make_alert(world, tenant=world.stranger_tenant)
    answer = writer(world).post(path(world), BODY)
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        "A tenant has at most 20 alerts. Delete one first.",
    )


def test_an_alert_of_another_tenant_is_not_found(world: factories.World) -> None:
    other = make_alert(world, tenant=world.stranger_tenant)
    client = writer(world)
    for method, address in (
        ("GET", path(world, other.pk)),
        ("PUT", path(world, other.pk)),
        ("DELETE", path(world, other.pk)),
        ("POST", path(world, other.pk, "test")),
        ("GET", path(world, other.pk, "deliveries")),
        ("GET", path(world, uuid4())),
    ):
        answer = client.request(method, address, BODY if method == "PUT" else None)
        assert (answer.status_code, answer.json()["message"]) == (404, "There is no such alert.")
    assert Alert.objects.count() == 1


def test_history_and_state(world: factories.World) -> None:
    alert = make_alert(world)
    client = reader(world)
    read_number(alert, 4.9)
    assert client.get(path(world, alert.pk)).json()["state"] == "quiet"
    read_number(alert, 5.0)
    found = client.get(path(world, alert.pk)).json()
    (firing,) = client.get(path(world, "history")).json()["firings"]
    assert (found["state"], found["value"], found["since"]) == ("firing", 5.0, firing["startedAt"])
    assert firing == {
        "id": str(AlertFiring.objects.get().pk),
        "alertId": str(alert.pk),
        "name": "Errors",
        "kind": "errors",
        "startedAt": firing["startedAt"],
        "endedAt": None,
        "value": 5.0,
        "valueText": "5.0%",
        "threshold": 5.0,
        "window": 1,
    }
    read_number(alert, 1.0)
    assert client.get(path(world, alert.pk)).json()["state"] == "quiet"
    (firing,) = client.get(path(world, "history")).json()["firings"]
    assert firing["endedAt"] is not None


def test_an_alert_that_is_switched_off_ends_without_a_message(world: factories.World) -> None:
    alert = make_alert(world)
    read_number(alert, 9.0)
    answer = writer(world).put(path(world, alert.pk), {**BODY, "enabled": False})
    assert (answer.json()["state"], answer.json()["enabled"]) == ("unknown", False)
    assert AlertFiring.objects.get().ended_at is not None
    assert messages(alert) == [("started", "skipped")]
    read_number(alert, 9.0)
    assert AlertFiring.objects.count() == 1
    writer(world).put(path(world, alert.pk), BODY)
    read_number(alert, 9.0)
    assert AlertFiring.objects.filter(ended_at=None).count() == 1


def test_a_test_message_goes_to_each_channel(world: factories.World, settings: Any) -> None:
    settings.ALERT_TEST_LIMIT = "1 per hour"
    alert = make_alert(world, channels=[WEBHOOK, EMAIL], quiet_hours={"from": "00:00", "to": "23:59"})
    client = writer(world)
    answer = client.post(path(world, alert.pk, "test"))
    assert answer.status_code == 202
    sent = answer.json()["deliveries"]
    assert [(item["occasion"], item["state"], item["channel"]["type"]) for item in sent] == [
        ("test", "queued", "webhook"),
        ("test", "queued", "email"),
    ]
    assert {item["dueAt"] for item in sent} == {sent[0]["createdAt"]}
    listed = client.get(path(world, alert.pk, "deliveries")).json()["deliveries"]
    assert {item["id"] for item in listed} == {item["id"] for item in sent}
    assert client.post(path(world, alert.pk, "test")).status_code == 429
    assert AlertDelivery.objects.count() == 2


def test_queries_do_not_grow_with_the_alerts(
    world: factories.World, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(3):
        read_number(make_alert(world), 9.0)
    client = reader(world)
    client.get(path(world))
    alert = Alert.objects.all()[0]
    for queries, address in (
        (5, path(world)),
        (3, path(world, "history")),
        (5, path(world, alert.pk, "deliveries")),
    ):
        with django_assert_num_queries(queries):
            assert client.get(address).status_code == 200


def test_a_member_who_has_left_is_refused(world: factories.World) -> None:
    Membership.objects.filter(user=world.member).delete()
    answer = writer(world).post(path(world), BODY)
    assert answer.json()["details"][0]["message"] == "member@example.org is not a member of this tenant."
