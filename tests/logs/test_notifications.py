"""Notifications of new objects: from the Gateway, and from S3 through SQS."""

from __future__ import annotations

import json
import os
import uuid
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import boto3
import pytest

from analytics import tasks
from logs.models import LogSweep, PendingBuild
from logs.notifications import mark_objects, read_event_message, receive_events
from logs.pending import mark_days
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.support import configure
from tests.conftest import ApiClient
from tests.objects import use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db

TENANT = uuid.UUID("11111111-2222-4333-8444-555555555555")


@pytest.fixture
def gateway(world: World) -> ApiClient:
    return ApiClient(factories.pat_token(world.owner, "logs:notify", tenants=[str(world.tenant.pk)]))


def pending() -> list[tuple[uuid.UUID, date | None]]:
    return list(PendingBuild.objects.order_by("tenant_id", "day").values_list("tenant_id", "day"))


def test_the_days_of_a_notification_become_pending(world: World, gateway: ApiClient) -> None:
    prefixes = ["logs/2026/11/23/05", "logs/2026/11/22/23", "logs/2026/11/23/04"]
    answer = gateway.post(f"/tenants/{world.tenant.pk}/logs/notifications", {"prefixes": prefixes})
    assert answer.status_code == 202
    assert answer.json() == {"tenantId": str(world.tenant.pk), "days": ["2026-11-22", "2026-11-23"]}
    days = [date(2026, 11, 22), date(2026, 11, 23)]
    assert pending() == [(world.tenant.pk, day) for day in days]
    assert LogSweep.objects.get().tenant_id == world.tenant.pk


@pytest.mark.parametrize(
    "prefix",
    [
        *("logs/2026/11/23", "logs/2026/11/23/24", "logs/2026/11/31/04", "logs/0000/11/23/04"),
        *("/logs/2026/11/23/04", "logs/2026/11/23/04/", "logs/2026/11/23/04\n", " logs/2026/11/23/04"),
        *("logs/٢٠٢٦/11/23/04", 7, None, ["logs/2026/11/23/04"]),
    ],
)
def test_a_prefix_that_names_no_hour_is_refused(world: World, gateway: ApiClient, prefix: Any) -> None:
    body = {"prefixes": ["logs/2026/11/23/04", prefix]}
    answer = gateway.post(f"/tenants/{world.tenant.pk}/logs/notifications", body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed")
    assert answer.json()["details"][0]["path"] == "/prefixes/1"
    assert pending() == []


@pytest.mark.parametrize(("days", "status"), [(1, 202), (2, 400), (-31, 202), (-32, 400)])
def test_days_that_no_gateway_has_are_refused(
    world: World, gateway: ApiClient, days: int, status: int
) -> None:
    """Its clock and ours may differ by a day, on both sides."""
    configure(world.tenant.pk, logging={"retentionDays": 30})
    day = now().date() + timedelta(days=days)
    body = {"prefixes": [f"logs/{now():%Y/%m/%d}/04", f"logs/{day:%Y/%m/%d}/04"]}
    answer = gateway.post(f"/tenants/{world.tenant.pk}/logs/notifications", body)
    assert answer.status_code == status, answer.content
    if status == 400:
        (detail,) = answer.json()["details"]
        assert (detail["path"], detail["code"]) == ("/prefixes/1", "out-of-range")
        assert pending() == []


def test_a_tenant_has_so_many_places_in_the_queue_of_builds(
    world: World, gateway: ApiClient, settings: Any
) -> None:
    settings.BUILD_QUEUE = 3
    path = f"/tenants/{world.tenant.pk}/logs/notifications"

    def send(*ages: int) -> Any:
        days = [now().date() - timedelta(days=age) for age in ages]
        return gateway.post(path, {"prefixes": [f"logs/{day:%Y/%m/%d}/04" for day in days]})

    assert send(0, 1).status_code == 202
    refused = send(1, 2, 3)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert len(pending()) == 2
    # Days that wait already take no other place, and other tenants have places of their own.
    assert send(0, 1, 2).status_code == 202
    mark_days(tenant=TENANT, days=[date(2026, 3, day) for day in range(1, 9)])
    assert send(0, 1, 2).status_code == 202


def test_a_thousand_prefixes_are_the_most(world: World, gateway: ApiClient) -> None:
    path = f"/tenants/{world.tenant.pk}/logs/notifications"
    for count, status in ((0, 202), (1000, 202), (1001, 400)):
        assert gateway.post(path, {"prefixes": ["logs/2026/11/23/04"] * count}).status_code == status
    assert gateway.post(path, {}).status_code == 400


def event(*keys: str, bucket: str) -> dict[str, Any]:
    """A notification as S3 sends it."""
    return {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "eventName": "ObjectCreated:Put",
                "s3": {"bucket": {"name": bucket}, "object": {"key": quote_plus(key, safe="/"), "size": 1}},
            }
            for key in keys
        ]
    }


def test_the_keys_of_a_notification() -> None:
    keys = [f"some/prefix/{TENANT}/logs/2026/11/23/04/a b+ü.json", "other/x.json", "some/prefixes/x"]
    body = json.dumps(event(*keys, bucket="b"))
    assert read_event_message(body, bucket="b", location="some/prefix") == [
        f"{TENANT}/logs/2026/11/23/04/a b+ü.json"
    ]
    assert read_event_message(body, bucket="b", location="") == keys
    assert read_event_message(body, bucket="c", location="") == []
    wrapped = json.dumps({"Type": "Notification", "Message": body})
    assert read_event_message(wrapped, bucket="b", location="") == keys
    test_event = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"})
    assert read_event_message(test_event, bucket="b", location="") == []


@pytest.mark.parametrize("body", ["", "{", "[]", "7", "null", "{}", '{"Records": [{}]}', '{"Records": 1}'])
def test_invalid_notifications(body: str) -> None:
    with pytest.raises(ValueError, match=r"not a notification of S3|Expect"):
        read_event_message(body, bucket="b", location="")


def test_objects_of_days_that_no_gateway_has_wait_for_the_sweep(world: World) -> None:
    """Objects of a day before the retention or after tomorrow cost a build, even if no Gateway wrote them."""
    configure(world.tenant.pk, logging={"retentionDays": 30})
    today = now().date()
    keys = {
        tenant: [f"{tenant}/logs/{today + timedelta(days=days):%Y/%m/%d}/04/a.json" for days in ages]
        for tenant, ages in ((world.tenant.pk, (-32, -31, 1, 2)), (TENANT, (-402, -401, 1, 2)))
    }
    assert mark_objects([key for of_tenant in keys.values() for key in of_tenant]) == 4
    days = {(world.tenant.pk, -31), (world.tenant.pk, 1), (TENANT, -401), (TENANT, 1)}
    assert set(pending()) == {(tenant, today + timedelta(days=age)) for tenant, age in days}
    assert mark_objects(keys[TENANT][:1]) == 0


@pytest.mark.skipif("TEST_S3_ENDPOINT" in os.environ, reason="Only moto is a server of queues too.")
def test_a_queue_is_read_until_it_is_empty_and_keeps_invalid_messages(
    s3_url: str,  # noqa: F811
    settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    use_store(settings, s3_url)
    bucket, _, location = s3_url.removeprefix("s3://").partition("/")
    client: Any = boto3.client("sqs")
    queue = client.create_queue(QueueName=f"q-{uuid.uuid4()}")["QueueUrl"]
    days = [f"{location}/{TENANT}/logs/2026/11/{day:02}/04/a.json" for day in range(1, 13)]
    for key in (
        *days,
        f"{location}/{TENANT}/compacted/x.parquet",
        f"{location}/No-UUID/logs/2026/11/23/04/a.json",
    ):
        client.send_message(QueueUrl=queue, MessageBody=json.dumps(event(key, bucket=bucket)))
    client.send_message(QueueUrl=queue, MessageBody="hello")
    settings.OBJECT_EVENTS_QUEUE_URL = queue

    tasks.receive_object_events()

    assert pending() == [(TENANT, date(2026, 11, day)) for day in range(1, 13)]
    assert [row.tenant_id for row in LogSweep.objects.all()] == [TENANT]
    assert "not a notification" in caplog.text or "Expecting value" in caplog.text
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    left = client.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    assert sum(map(int, left.values())) == 1
    assert receive_events(queue, seconds=1) == 0


def test_events_need_a_store_on_s3() -> None:
    with pytest.raises(TypeError, match="OBJECT_STORE_URL"):
        receive_events("https://sqs.example.com/q", seconds=1)
    tasks.receive_object_events()  # no queue is configured
