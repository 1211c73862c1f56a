"""Digests by mail: to those who ask for it, each once, through a real SMTP server; and how to end them."""

from __future__ import annotations

import datetime as dt
import os
import re
import signal
import smtplib
from collections.abc import Iterator
from email.message import EmailMessage
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.test import Client

from accounts.models import Event, Membership, PermissionGrant, User
from analytics.jobs.digests import make_digest
from analytics.models import Digest, DigestMail, DigestPreference
from analytics.watch.facts import DigestPeriod
from analytics.watch.preferences import readable_tenants
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.accounts.support import Inbox, running_inbox
from tests.analytics.digest.support import DAY, at, entries, put, rebuild
from tests.analytics.workers import Child
from tests.conftest import ApiClient
from tests.sending import make_all_due, send_all

if TYPE_CHECKING:
    from tests.factories import World

#: A rule whose id would be markup in HTML.
RULE = "<b>sales</b> & co"


@pytest.fixture
def inbox(settings: Any) -> Iterator[Inbox]:
    with running_inbox() as received:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", received.port
        yield received


def choose(world: World, user: User, frequency: str, *, status: int = 200) -> Any:
    client = ApiClient(factories.sign_in(user))
    answer = client.put(f"/users/me/digests/{world.tenant.pk}", {"frequency": frequency})
    assert answer.status_code == status, answer.content
    return answer.json()


def make(world: World, period: DigestPeriod | None = None, *, days_after: int = 1) -> None:
    """Make a digest, some days after its period."""
    period = period or DigestPeriod.of_day(DAY)
    present = dt.datetime.combine(period.last, dt.time(2), dt.UTC) + dt.timedelta(days=days_after)
    hit = {"tables": '["s.a"]', "cacheAgeSeconds": 3_600, "matchedRule": RULE}
    put(
        world,
        DAY,
        entries(1, at=at(DAY), cacheStatus="BYPASS", isDataChange=True, tables='["s.a"]'),
        entries(1_234, at=at(DAY) + 60_000, cacheStatus="HIT", **hit),
    )
    rebuild(world)
    with patch("analytics.jobs.digests.now", lambda: present):
        assert make_digest(default_store(), tenant=world.tenant.pk, period=period)


def recipients(inbox: Inbox) -> list[str]:
    return sorted(str(message["To"]) for message in inbox.messages)


def part(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    assert body is not None
    return str(body.get_content())


class TestPreference:
    def test_a_user_chooses_per_tenant(self, world: World) -> None:
        client = ApiClient(factories.sign_in(world.member))
        path = "/users/me/digests"
        one = {"tenantId": str(world.tenant.pk), "tenantName": "Warehouse"}
        assert client.get(path).json()["digests"] == [{**one, "frequency": "off"}]
        assert choose(world, world.member, "weekly") == {**one, "frequency": "weekly"}
        assert client.get(path).json() == {
            "_links": {
                "self": {"href": "/users/member@example.org/digests"},
                "parent": {"href": "/users/member@example.org"},
                "items": [],
            },
            "digests": [{**one, "frequency": "weekly"}],
        }

    def test_a_change_is_an_event(self, world: World) -> None:
        for frequency in ("daily", "daily", "off", "off"):
            choose(world, world.member, frequency)
        events = Event.objects.filter(kind="digest-mail.changed").order_by("pk")
        assert [(event.before, event.after) for event in events] == [
            ({"frequency": "off"}, {"frequency": "daily"}),
            ({"frequency": "daily"}, {"frequency": "off"}),
        ]
        assert {(event.actor, event.subject, event.tenant_id) for event in events} == {
            ("member@example.org", "member@example.org", world.tenant.pk)
        }

    def test_an_auditor_gets_digests_and_no_alerts(self, world: World, inbox: Inbox) -> None:
        PermissionGrant.objects.create(
            grantee=world.stranger,
            resource="tenant",
            resource_id=world.tenant.pk,
            permissions=["analytics:numbers", "config:read"],
        )
        choose(world, world.stranger, "daily")
        make(world)
        assert send_all() == 1
        (mail,) = inbox.messages
        assert mail["To"] == world.stranger.email
        # Alerts name what the numbers alone do not tell.
        assert not readable_tenants(world.stranger).filter(pk=world.tenant.pk).exists()

    def test_of_a_tenant_that_the_user_may_read_alone(self, world: World) -> None:
        for user in (world.stranger, world.platform_admin):
            body = choose(world, user, "daily", status=404)
            assert body["message"] == "There is no such tenant, or you are not a member of it."
        PermissionGrant.objects.create(
            grantee=world.stranger,
            resource="tenant",
            resource_id=world.tenant.pk,
            permissions=["analytics:read"],
        )
        choose(world, world.stranger, "daily")

    @pytest.mark.parametrize("body", [{"frequency": "hourly"}, {}, {"frequency": "daily", "x": 1}])
    def test_another_body_is_a_400(self, world: World, body: dict[str, Any]) -> None:
        client = ApiClient(factories.sign_in(world.member))
        assert client.put(f"/users/me/digests/{world.tenant.pk}", body).status_code == 400


class TestMail:
    def test_a_statement_leads_to_the_dashboard(self, world: World, inbox: Inbox, settings: Any) -> None:
        choose(world, world.member, "daily")
        make(world)
        digest = Digest.objects.get()
        digest.document |= {
            "names": [{"id": "it", "kind": "statement", "value": "SELECT 1", "href": None}],
            "sections": [{"id": "leaks", "heading": "Leaks", "text": "Shared: {it}"}],
        }
        digest.save()
        send_all()
        address = f"{settings.DASHBOARD_URL}#/t/{world.tenant.pk}/statements"
        link = (
            f'<a href="{address}?day=2026-03-31&amp;days=1&amp;statement=SELECT+1"><code>SELECT 1</code></a>'
        )
        assert f"<li>Shared: {link}</li>" in part(inbox.messages[0], "html")

    def test_the_content_of_a_mail(self, world: World, inbox: Inbox) -> None:
        choose(world, world.member, "daily")
        make(world)
        send_all()
        (message,) = inbox.messages
        assert message["To"] == "member@example.org"
        assert message["Subject"] == "Warehouse: digest of 2026-03-31"
        text, html = part(message, "plain"), part(message, "html")
        told = "that were older than a change of a table that they read: 1,234 of 1,234."
        assert f"- Hits of {RULE} {told}" in text.replace("\r\n", "\n")
        name = "&lt;b&gt;sales&lt;/b&gt; &amp; co"
        assert f'<li>Hits of <strong title="{name}">{name}</strong> {told}</li>' in html
        assert "<b>" not in html
        link = str(message["List-Unsubscribe"]).strip(" <>")
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert link in text.replace("=\n", "")
        assert link.startswith("http://testserver/digests/unsubscribe?t=")
        assert message["Auto-Submitted"] == "auto-generated"
        assert re.fullmatch(r"<digest-[0-9a-f]{32}@testserver>", str(message["Message-ID"]))
        (mail,) = DigestMail.objects.all()
        assert (mail.state, mail.attempts) == ("sent", 1)

    @pytest.mark.slow
    def test_days_to_daily_readers_and_weeks_to_weekly_ones(self, world: World, inbox: Inbox) -> None:
        choose(world, world.owner, "daily")
        choose(world, world.member, "weekly")
        choose(world, world.tenant_admin, "off")
        make(world)
        assert send_all() == 1
        assert recipients(inbox) == ["owner@example.org"]
        make(world, DigestPeriod.with_day(DAY))
        assert send_all() == 1
        assert recipients(inbox) == ["member@example.org", "owner@example.org"]

    @pytest.mark.slow
    def test_once_also_if_the_digest_is_made_again(self, world: World, inbox: Inbox) -> None:
        choose(world, world.member, "daily")
        for _ in range(2):
            make(world)
            Digest.objects.update(source="stale", etag="changed")
            send_all()
        Digest.objects.all().delete()
        make(world)
        assert send_all() == 0
        assert recipients(inbox) == ["member@example.org"]

    @pytest.mark.parametrize(("days", "mails"), [(3, 1), (4, 0)])
    def test_an_old_digest_is_not_mailed(self, world: World, inbox: Inbox, days: int, mails: int) -> None:
        choose(world, world.member, "daily")
        make(world, days_after=days)
        assert send_all() == mails

    def test_not_to_users_without_membership_or_subscription(self, world: World, inbox: Inbox) -> None:
        for user in (world.owner, world.tenant_admin, world.member):
            choose(world, user, "daily")
        make(world)
        Membership.objects.filter(user=world.member).delete()
        User.objects.filter(pk=world.tenant_admin.pk).update(is_active=False)
        choose(world, world.owner, "weekly")
        assert send_all() == 0
        assert set(DigestMail.objects.values_list("state", flat=True)) == {"skipped"}
        # A member again later gets the next one, as it wished.
        assert inbox.messages == []

    def test_without_a_mail_server_mails_wait(self, world: World, inbox: Inbox, settings: Any) -> None:
        choose(world, world.member, "daily")
        make(world)
        settings.MAGIC_LINKS_ENABLED = False
        assert send_all() == 0
        settings.MAGIC_LINKS_ENABLED = True
        settings.EMAIL_PORT, port = 9, settings.EMAIL_PORT
        make_all_due()
        assert send_all() == 0
        mail = DigestMail.objects.get()
        assert (mail.state, mail.error) == ("queued", "The mail server does not answer.")
        settings.EMAIL_PORT = port
        make_all_due()
        assert send_all() == 1

    def test_a_refused_mail_is_sent_later_again(self, world: World, inbox: Inbox) -> None:
        choose(world, world.member, "daily")
        choose(world, world.owner, "daily")
        make(world)
        inbox.refuses = True
        assert send_all() == 0
        assert set(DigestMail.objects.values_list("state", "attempts")) == {("queued", 1)}
        inbox.refuses = False
        assert send_all() == 0
        make_all_due()
        assert send_all() == 2
        inbox.refuses = True
        DigestMail.objects.update(state="queued", until=now())
        make_all_due()
        assert send_all() == 0
        assert set(DigestMail.objects.values_list("state", "error")) == {
            ("failed", "The mail server refused the mail.")
        }

    def test_a_mail_that_may_have_arrived_is_not_sent_again(self, world: World, inbox: Inbox) -> None:
        choose(world, world.member, "daily")
        make(world)
        lost = patch("smtplib.SMTP.sendmail", side_effect=smtplib.SMTPServerDisconnected("gone"))
        with lost:
            assert send_all() == 0
        assert DigestMail.objects.get().state == "sending"
        make_all_due()
        assert send_all() == 0


class TestKilled:
    """The worker is killed (kill -9) by the mail server itself, at a certain moment."""

    @pytest.fixture
    def world(self, transactional_db: None) -> World:
        return factories.make_world()

    def run(self, inbox: Inbox) -> Child:
        name = str(connection.settings_dict["NAME"])
        return Child("tests.analytics.digest.killed_mailer", name, str(inbox.port))

    @pytest.mark.slow
    @pytest.mark.parametrize("moment", ["EHLO", "DATA"])
    def test_each_person_gets_it_once(self, world: World, inbox: Inbox, moment: str) -> None:
        users = [world.owner, world.tenant_admin, world.member]
        for user in users:
            choose(world, user, "daily")
        make(world)
        keep = inbox.handle_DATA
        with self.run(inbox) as child:
            kill = partial(os.kill, child._process.pid, signal.SIGKILL)

            async def receive(*arguments: Any) -> str:
                answer = await keep(*arguments)
                kill()
                return answer

            async def greet(_: Any, session: Any, __: Any, hostname: str, responses: list[str]) -> list[str]:
                session.host_name = hostname
                kill()
                return responses

            name, handler = ("handle_DATA", receive) if moment == "DATA" else ("handle_EHLO", greet)
            with pytest.MonkeyPatch.context() as change:
                change.setattr(inbox, name, handler, raising=False)
                child.send("go")
                assert child._process.wait(60) == -signal.SIGKILL
        assert len(inbox.messages) == (1 if moment == "DATA" else 0)
        assert not DigestMail.objects.filter(state="sent").exists()
        make_all_due()
        with self.run(inbox) as again:
            again.send("go")
            assert again.read() == ("2" if moment == "DATA" else "3")
        assert recipients(inbox) == sorted(user.email for user in users)


class TestUnsubscribe:
    @pytest.fixture
    def link(self, world: World, inbox: Inbox) -> str:
        choose(world, world.member, "daily")
        make(world)
        send_all()
        parts = urlsplit(str(inbox.messages[0]["List-Unsubscribe"]).strip(" <>"))
        return f"{parts.path}?{parts.query}"

    def frequency(self) -> str:
        return DigestPreference.objects.get().frequency

    def test_opening_the_link_only_asks(self, link: str) -> None:
        client = Client()
        for method in (client.get, client.head):
            answer = method(link)
            assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
        assert self.frequency() == "daily"
        page = client.get(link).content.decode()
        assert "Do you want no more digests of Warehouse by mail?" in page
        (action,) = re.findall(r'action="([^"]+)"', page)
        answer = client.post(action.replace("&amp;", "&"))
        assert "You get no more digests of Warehouse by mail." in answer.content.decode()
        assert self.frequency() == "off"

    @pytest.mark.parametrize("is_multipart", [False, True])
    def test_one_click_without_signing_in(self, link: str, is_multipart: bool) -> None:
        client = Client(enforce_csrf_checks=True)
        for _ in range(2):
            if is_multipart:
                answer = client.post(link, {"List-Unsubscribe": "One-Click"})
            else:
                form = "application/x-www-form-urlencoded"
                answer = client.post(link, "List-Unsubscribe=One-Click", content_type=form)
            assert answer.status_code == 200, answer.content
            assert self.frequency() == "off"
        (event,) = Event.objects.filter(kind="digest-mail.changed", after={"frequency": "off"})
        assert (event.actor, event.subject) == ("member@example.org", "member@example.org")

    def test_a_forged_link_ends_nothing(self, link: str) -> None:
        for forged in (
            link[:-1],
            link.replace("?t=", "?t=x"),
            "/digests/unsubscribe",
            "/digests/unsubscribe?t=",
        ):
            client = Client()
            page = client.get(forged)
            assert page.status_code == 200
            assert "The link is incomplete." in page.content.decode()
            assert "<form" not in page.content.decode()
            assert client.post(forged).status_code == 400
        assert self.frequency() == "daily"

    def test_a_removed_user_gets_the_same_answer(self, world: World, link: str) -> None:
        world.member.delete()
        assert Client().post(link).status_code == 200

    def test_it_ends_the_mails_of_one_tenant_alone(self, world: World, link: str) -> None:
        other = factories.make_tenant(world.account, "Second", member=world.member)
        DigestPreference.objects.create(user=world.member, tenant=other, frequency="daily")
        Client().post(link)
        assert dict(DigestPreference.objects.values_list("tenant__name", "frequency")) == {
            "Warehouse": "off",
            "Second": "daily",
        }
