"""Messages of alerts: what they say, how often they are tried, and receivers that fail or hang."""

from __future__ import annotations

import datetime as dt
import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from accounts.models import Event
from analytics.models import Alert, AlertDelivery, AlertFiring
from analytics.watch.alerts import after_quiet_hours, delete_old_messages, signing_secrets
from analytics.watch.preferences import readable_tenants
from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.timestamps import format_timestamp, from_epoch_ms, now
from tenantadmin.lib.jobs.outbox import WEB
from tests.analytics.alerts.support import make_alert, messages, read_number, writer
from tests.sending import make_all_due, send_all, set_clock

if TYPE_CHECKING:
    from django.core.mail import EmailMultiAlternatives

    from accounts.models import User
    from tests.factories import World
    from tests.receiver import Receiver

pytestmark = pytest.mark.django_db


def webhook(receiver: Receiver) -> dict[str, str]:
    return {"type": "webhook", "url": receiver.url}


def fire(world: World, *channels: dict[str, str], **fields: Any) -> Alert:
    """Make an alert that has just crossed its threshold."""
    alert = make_alert(world, channels=list(channels), **fields)
    read_number(alert, 7.5)
    return alert


def signed_in(user: User) -> dict[str, str]:
    """Return the channel of a user who has signed in."""
    user.last_login = now()
    user.save()
    return {"type": "email", "to": user.email}


def test_a_webhook_is_signed_by_the_standard_scheme(world: World, receiver: Receiver) -> None:
    alert = fire(world, webhook(receiver))
    assert send_all() == 1
    firing = AlertFiring.objects.get()
    ((headers, body),) = receiver.messages
    payload = Webhook(signing_secrets(alert)[0]).verify(body, headers)
    message = AlertDelivery.objects.get()
    assert payload == {
        "type": "alert.started",
        "timestamp": format_timestamp(message.created_at),
        "data": {
            "alertId": str(alert.pk),
            "name": "Errors",
            "tenantId": str(world.tenant.pk),
            "tenantName": "Warehouse",
            "kind": "errors",
            "unit": "percent",
            "currency": None,
            "threshold": 5.0,
            "window": 1,
            "value": 7.5,
            "startedAt": format_timestamp(firing.started_at),
            "endedAt": None,
            "text": "7.5% of the log entries of the last 1 h failed (threshold: 5.0%).",
            "href": f"http://testserver/dashboard/#/t/{world.tenant.pk}/alerts",
        },
    }
    assert (headers["webhook-id"], headers["content-type"]) == (str(message.pk), "application/json")
    read_number(alert, 0.0)
    assert send_all() == 1
    over = receiver.bodies()[1]
    firing.refresh_from_db()
    assert (over["type"], over["data"]["value"]) == ("alert.ended", 0.0)
    assert firing.ended_at is not None
    assert over["data"]["endedAt"] == format_timestamp(firing.ended_at)
    assert send_all() == 0
    assert messages(alert) == [("started", "delivered"), ("ended", "delivered")]


def test_both_secrets_sign_until_the_former_one_ends(world: World, receiver: Receiver) -> None:
    alert = fire(world, webhook(receiver))
    former, address = signing_secrets(alert)[0], f"/tenants/{world.tenant.pk}/alerts/{alert.pk}/rotate"
    owner = writer(world)
    shown = owner.post(address, {"graceSeconds": 60}).json()
    assert shown["signingSecret"] != former
    assert shown["formerSecretEndsAt"] > format_timestamp(now())
    send_all()
    ((headers, body),) = receiver.messages
    for secret in (former, shown["signingSecret"]):
        Webhook(secret).verify(body, headers)
    shown = owner.post(address, {"graceSeconds": 0}).json()
    assert shown["formerSecretEndsAt"] is None
    read_number(alert, 0.0)
    send_all()
    headers, body = receiver.messages[1]
    Webhook(shown["signingSecret"]).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(former).verify(body, headers)


def test_slack_gets_its_own_json_unsigned_and_escaped(world: World, receiver: Receiver) -> None:
    world.tenant.name = "A&B <!channel>"
    world.tenant.save()
    fire(world, {"type": "slack", "url": receiver.url}, name="<!here>")
    assert send_all() == 1
    ((headers, body),) = receiver.messages
    assert not [name for name in headers if name.startswith("webhook-")]
    assert json.loads(body) == {
        "text": "*Alert “&lt;!here&gt;”, A&amp;B &lt;!channel&gt;*\n"
        "7.5% of the log entries of the last 1 h failed (threshold: 5.0%).\n"
        f"<http://testserver/dashboard/#/t/{world.tenant.pk}/alerts|Open>"
    }


def test_teams_gets_a_card_in_which_nothing_is_markup(world: World, receiver: Receiver) -> None:
    fire(world, {"type": "teams", "url": receiver.url}, name="[a](https://example.org)")
    assert send_all() == 1
    ((_, body),) = receiver.messages
    (attachment,) = json.loads(body)["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert [block["type"] for block in attachment["content"]["body"]] == ["RichTextBlock", "RichTextBlock"]
    assert [block["inlines"][0]["text"] for block in attachment["content"]["body"]] == [
        "Alert “[a](https://example.org)”, Warehouse",
        "7.5% of the log entries of the last 1 h failed (threshold: 5.0%).",
    ]
    assert attachment["content"]["actions"][0]["url"].endswith(f"/t/{world.tenant.pk}/alerts")


def test_pagerduty_opens_an_incident_and_resolves_it(world: World, receiver: Receiver) -> None:
    channel = {"type": "pagerduty", "url": receiver.url, "key": "0123456789abcdef0123456789ABCDEF"}
    alert = fire(world, channel)
    assert send_all() == 1
    read_number(alert, 0.0)
    assert send_all() == 1
    opened, resolved = (json.loads(body) for _, body in receiver.messages)
    assert (opened["routing_key"], opened["event_action"]) == (channel["key"], "trigger")
    assert opened["payload"] | {"custom_details": None} == {
        "summary": "Alert “Errors”, Warehouse: "
        "7.5% of the log entries of the last 1 h failed (threshold: 5.0%).",
        "source": "Warehouse",
        "severity": "warning",
        "class": "errors",
        "custom_details": None,
    }
    assert (resolved["event_action"], resolved["dedup_key"]) == ("resolve", opened["dedup_key"])


def test_a_member_who_has_signed_in_gets_a_mail(
    world: World, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    alert = fire(world, signed_in(world.member), name="<b>Errors")
    assert send_all() == 1
    (mail,) = mailoutbox
    (message,) = alert.deliveries.all()
    assert (mail.to, mail.subject) == (["member@example.org"], "Alert “<b>Errors”, Warehouse")
    assert mail.extra_headers == {
        "Message-ID": f"<alert-{message.pk}@testserver>",
        "Auto-Submitted": "auto-generated",
    }
    html = str(mail.alternatives[0][0])
    for part in (str(mail.body), html):
        assert "7.5% of the log entries of the last 1 h failed (threshold: 5.0%)." in part
        assert part.count(f"http://testserver/dashboard/#/t/{world.tenant.pk}/alerts") == 1
        assert "alert of the tenant “Warehouse” of tenantadmin at http://testserver" in part
    assert "&lt;b&gt;Errors" in html


def test_nobody_else_gets_a_mail(world: World, mailoutbox: list[EmailMultiAlternatives]) -> None:
    """Who has not signed in yet, has left, is deactivated, or has no user."""
    for user in (world.owner, world.stranger):
        signed_in(user)
    signed_in(world.tenant_admin)
    world.tenant_admin.is_active = False
    world.tenant_admin.save()
    assert not readable_tenants(world.stranger).filter(pk=world.tenant.pk).exists()
    people = ("member", "stranger", "tenant-admin", "gone")
    alert = fire(world, *({"type": "email", "to": f"{name}@example.org"} for name in people))
    assert send_all() == 0
    assert mailoutbox == []
    rows = alert.deliveries.order_by("channel_number").values_list("state", "error")
    not_member = "The receiver is not a member who may read this tenant's summaries."
    assert list(rows) == [
        ("skipped", "The receiver has not signed in yet."),
        *[("skipped", not_member)] * 3,
    ]


def test_a_receiver_that_redirects_gets_one_request(world: World, receiver: Receiver) -> None:
    receiver.status = 307
    alert = fire(world, webhook(receiver))
    assert send_all() == 0
    assert len(receiver.messages) == 1
    assert alert.deliveries.get().error == (
        "The receiver redirects (status 307). Give the address that it redirects to."
    )


def test_a_receiver_that_is_busy_says_when_it_wants_the_message_again(
    world: World, receiver: Receiver
) -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(429)
        handler.send_header("Retry-After", "900")
        handler.end_headers()

    receiver.respond = respond
    alert = fire(world, webhook(receiver))
    assert send_all() == 0
    message = alert.deliveries.get()
    assert message.error == "The receiver answered with status 429."
    assert dt.timedelta(minutes=14) < message.due_at - now() <= dt.timedelta(minutes=15)


def test_a_private_receiver_gets_nothing(world: World, receiver: Receiver, settings: Any) -> None:
    settings.WEBHOOK_EXCEPTIONS = []
    alert = fire(world, webhook(receiver), {"type": "slack", "url": receiver.url})
    assert send_all() == 0
    assert receiver.messages == []
    assert {item.error for item in alert.deliveries.all()} == {"The host has no public address."}


def test_a_late_200_is_sent_again_with_the_same_id(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(handler: BaseHTTPRequestHandler) -> None:
        receiver.over.wait(0.6)
        handler.send_response(200)
        handler.end_headers()

    receiver.respond = late
    alert = fire(world, webhook(receiver))
    with monkeypatch.context() as patch:
        patch.setattr(WEB, "seconds", 0.3)
        assert send_all() == 0
    receiver.respond = None
    make_all_due()
    assert send_all() == 1
    assert messages(alert) == [("started", "delivered")]
    assert len(receiver.ids) == 2
    assert len({*receiver.ids}) == 1


def test_a_mail_server_that_refuses_is_tried_again(
    world: World, settings: Any, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    alert = fire(world, signed_in(world.member))
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    assert send_all() == 0
    assert alert.deliveries.get().error == "The mail server does not answer."
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    make_all_due()
    assert send_all() == 1
    assert len(mailoutbox) == 1


def test_messages_of_a_deleted_tenant_are_not_sent(world: World, receiver: Receiver) -> None:
    alert = fire(world, webhook(receiver))
    world.tenant.deleted_at = now()
    world.tenant.save()
    assert send_all() == 0
    assert messages(alert) == [("started", "skipped")]


def test_messages_wait_for_the_end_of_quiet_hours(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = {"from": "00:00", "to": "23:59"}
    alert = fire(world, webhook(receiver), quiet_hours=quiet)
    message = alert.deliveries.get()
    assert message.due_at.strftime("%H:%M") in {"23:59", message.created_at.strftime("%H:%M")}
    assert message.until is not None
    assert message.until - message.due_at == dt.timedelta(hours=24)
    set_clock(monkeypatch, lambda: message.due_at)
    assert send_all() == 1


MOMENTS = st.integers(0, 10**12).map(from_epoch_ms)
TIMES = st.times().map(lambda item: item.replace(second=0, microsecond=0))


@pytest.mark.parametrize(
    ("at", "end"),
    [
        ("2026-03-01 21:59", "2026-03-01 21:59"),
        ("2026-03-01 22:00", "2026-03-02 06:30"),
        ("2026-03-01 23:59", "2026-03-02 06:30"),
        ("2026-03-02 00:00", "2026-03-02 06:30"),
        ("2026-03-02 06:29", "2026-03-02 06:30"),
        ("2026-03-02 06:30", "2026-03-02 06:30"),
    ],
)
def test_quiet_hours_over_midnight(at: str, end: str) -> None:
    moment, expected = (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in (at, end))
    assert after_quiet_hours({"from": "22:00", "to": "06:30"}, at=moment) == expected
    assert after_quiet_hours(None, at=moment) == moment


@given(start=TIMES, end=TIMES, at=MOMENTS)
def test_the_end_of_quiet_hours_is_the_next_moment_that_is_not_quiet(
    start: dt.time, end: dt.time, at: dt.datetime
) -> None:
    """A minute is quiet if it is one of those that are counted from the start to the end."""
    if start == end:
        return
    quiet = {"from": f"{start:%H:%M}", "to": f"{end:%H:%M}"}
    minutes = [(start.hour * 60 + start.minute + number) % 1440 for number in range(1440)]
    quiet_minutes = {*minutes[: minutes.index(end.hour * 60 + end.minute)]}
    expected = at
    while expected.hour * 60 + expected.minute in quiet_minutes:
        expected = expected.replace(second=0, microsecond=0) + dt.timedelta(minutes=1)
    assert after_quiet_hours(quiet, at=at) == expected


def test_old_messages_and_firings_are_deleted(world: World) -> None:
    alert = fire(world, {"type": "slack", "url": "https://hooks.example.org/"})
    read_number(alert, 0.0)
    old = now() - dt.timedelta(days=91)
    lasting = fire(world, {"type": "slack", "url": "https://hooks.example.org/"})
    AlertDelivery.objects.update(created_at=old)
    AlertFiring.objects.update(started_at=old)
    AlertFiring.objects.filter(alert=alert).update(ended_at=old)
    delete_old_messages()
    assert not AlertDelivery.objects.exists()
    assert AlertFiring.objects.get().alert == lasting


class TestChannelsOfANewAlert:
    """`POST …/alerts/test` answers what each receiver answered, and creates nothing."""

    def ask(self, world: World, *channels: dict[str, Any], **body: Any) -> Any:
        path = f"/tenants/{world.tenant.pk}/alerts/test"
        return writer(world).post(path, {"name": "Errors", "kind": "errors", "channels": channels, **body})

    def test_each_receiver_is_asked_once_and_its_answer_said(
        self, world: World, receiver: Receiver, mailoutbox: list[EmailMultiAlternatives]
    ) -> None:
        signed_in(world.owner)
        statuses = iter([202, 403, 302])

        def respond(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(next(statuses))
            handler.end_headers()

        receiver.respond = respond
        answers = [
            self.ask(world, *channels).json()["tests"]
            for channels in (
                [{"type": "webhook", "url": receiver.url}],
                [{"type": "slack", "url": receiver.url}],
                [{"type": "pagerduty", "key": "k" * 32, "url": receiver.url}],
                [
                    {"type": "teams", "url": "https://127.0.0.1:1/"},
                    {"type": "email", "to": world.owner.email},
                    {"type": "email", "to": world.member.email},
                ],
            )
        ]
        host = f"https://127.0.0.1:{receiver.port}/…"
        assert answers == [
            [{"channel": {"type": "webhook", "url": host}, "accepted": True,
              "answer": "The receiver answered with status 202."}],
            [{"channel": {"type": "slack", "url": host}, "accepted": False,
              "answer": "The receiver answered with status 403."}],
            [{"channel": {"type": "pagerduty", "url": host, "key": "…"}, "accepted": False,
              "answer": "The receiver redirects (status 302). Give the address that it redirects to."}],
            [
                {"channel": {"type": "teams", "url": "https://127.0.0.1:1/…"}, "accepted": False,
                 "answer": "The connection failed, or the answer is not HTTP."},
                {"channel": {"type": "email", "to": world.owner.email}, "accepted": True,
                 "answer": "The mail server took the mail."},
                {"channel": {"type": "email", "to": world.member.email}, "accepted": False,
                 "answer": "The receiver has not signed in yet."},
            ],
        ]  # fmt: skip
        webhook = receiver.bodies()[0]
        assert (webhook["type"], webhook["data"]["text"]) == (
            "alert.test",
            "This is a test. The alert's channel works.",
        )
        assert [mail.subject for mail in mailoutbox] == ["Test of the alert “Errors”, Warehouse"]
        assert not Alert.objects.exists()
        assert not AlertDelivery.objects.exists()
        event = Event.objects.filter(kind="alert.tested").order_by("at", "id")[0]
        assert event.subject == str(world.tenant.pk)
        assert (event.after or {})["channels"] == [f"webhook {host}"]

    def test_a_fault_of_one_channel_is_logged_and_the_others_are_tried(
        self,
        world: World,
        receiver: Receiver,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        signed_in(world.owner)
        monkeypatch.setattr("accounts.mailing.get_connection", lambda: 1 / 0)
        channels = [{"type": "email", "to": world.owner.email}, {"type": "slack", "url": receiver.url}]
        tests = self.ask(world, *channels).json()["tests"]
        assert [(test["accepted"], test["answer"]) for test in tests] == [
            (False, "The message was not sent. The service's log says why."),
            (True, "The receiver answered with status 204."),
        ]
        assert "A test of a channel of the type email failed" in caplog.text

    def test_a_channel_without_an_answer_holds_no_request_and_one_test_is_sent_at_a_time(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        signed_in(world.owner)
        answers, begun = threading.Event(), threading.Event()

        def connect() -> None:
            begun.set()
            answers.wait()
            raise NotSent("It answers late.")

        monkeypatch.setattr("accounts.mailing.get_connection", connect)
        monkeypatch.setattr("analytics.words.alerts._TEST_SECONDS", 0)
        silent = {"type": "email", "to": world.owner.email}
        try:
            first = self.ask(world, silent, {"type": "email", "to": world.member.email})
            assert [test["answer"] for test in first.json()["tests"]] == [
                "No answer within 10 seconds.",
                "The receiver has not signed in yet.",
            ]
            assert begun.wait(30)
            monkeypatch.setattr("analytics.words.alerts._TEST_SECONDS", 11.0)
            second = self.ask(world, silent)
            assert (second.status_code, second["Retry-After"]) == (429, "11")
            assert second.json()["message"].startswith("A test of this tenant is still being sent.")
            monkeypatch.setattr("analytics.words.alerts._MOST_TESTS", 1)
            monkeypatch.setattr("analytics.words.alerts._testing", {world.stranger_tenant.pk})
            assert self.ask(world, silent).json()["message"].startswith("A test of others is still")
            monkeypatch.undo()
        finally:
            answers.set()
        for thread in threading.enumerate():
            if thread.name.startswith("alert test"):
                thread.join()
        assert self.ask(world, silent).status_code == 200

    def test_the_test_of_a_changed_alert_is_signed_as_the_alert(
        self, world: World, receiver: Receiver
    ) -> None:
        alert = make_alert(world, channels=[webhook(receiver)], secret_number=3)
        answer = self.ask(world, webhook(receiver), name="Changed", alertId=str(alert.pk))
        assert [test["accepted"] for test in answer.json()["tests"]] == [True]
        ((headers, body),) = receiver.messages
        data = Webhook(signing_secrets(alert)[0]).verify(body, headers)["data"]
        assert (data["alertId"], data["name"]) == (str(alert.pk), "Changed")
        # Nothing is stored.
        assert Alert.objects.get().name == "Errors"
        foreign = Alert.objects.create(
            tenant=world.stranger_tenant, name="x", kind="errors", threshold=1.0, channels=alert.channels
        )
        assert self.ask(world, webhook(receiver), alertId=str(foreign.pk)).status_code == 404
        assert len(receiver.messages) == 1

    def test_a_host_that_is_no_name_is_refused(self, world: World) -> None:
        answer = self.ask(world, {"type": "slack", "url": "https://a..b/x"})
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/channels/0/url")

    def test_what_create_refuses_is_refused_and_tests_are_limited(self, world: World, settings: Any) -> None:
        settings.ALERT_TEST_LIMIT = "1 per hour"
        mail = {"type": "email", "to": world.owner.email}
        assert self.ask(world, mail, threshold=-1).json()["details"][0]["path"] == "/threshold"
        assert (
            self.ask(world, {**mail, "to": "x@example.org"}).json()["details"][0]["path"] == "/channels/0/to"
        )
        assert [self.ask(world, mail).status_code for _ in range(2)] == [200, 429]
