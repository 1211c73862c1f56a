"""The outbox: tenants whose receivers hang delay nobody else, and no message is lost or sent twice.

What webhooks and mails do is tested where they are made.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

import pytest
from django.core.cache import cache
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounts.mailing import deliver_mail
from accounts.models import Mail, Tenant
from accounts.tasks import remove_old_invitations
from analytics import tasks
from analytics.models import AlertDelivery, DigestMail
from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.database.connections import Busy
from tenantadmin.lib.jobs import outbox, queue
from tenantadmin.lib.jobs.outbox import Kind, Lane, Parcel, Skipped, put, send_messages
from tests import factories
from tests.accounts.support import running_inbox
from tests.analytics.alerts.support import make_alert, read_number
from tests.killing import Killed, killed_at
from tests.sending import send_all, send_in_line, set_clock

if TYPE_CHECKING:
    from tests.factories import World
    from tests.receiver import Receiver

pytestmark = pytest.mark.django_db
SECOND: Final = dt.timedelta(seconds=1)
#: ``OUTBOX_HISTORIES=5000`` tries others too.
HISTORIES: Final = int(os.environ.get("OUTBOX_HISTORIES", "500"))


@pytest.fixture(autouse=True)
def _every_receiver_is_well() -> None:
    cache.clear()


def add(tenant: int, *names: str) -> None:
    """Put messages into the outbox, each due a moment after the one before."""
    began = now() - SECOND
    for number, name in enumerate(names):
        due_at = began + number * dt.timedelta(milliseconds=1)
        put([Mail(tenant_id=UUID(int=tenant), to="a@example.org", subject=name, due_at=due_at)])


def kind_of(send: Callable[[Mail], None], *, lane: Lane | None = None) -> Kind[Mail]:
    """Return a kind of messages that this function sends. Each tenant has one receiver."""

    def pack(mail: Mail) -> Parcel:
        return Parcel(receiver=f"receiver {mail.tenant_id}", send=lambda _: send(mail))

    return Kind(name="test", model=Mail, lane=lane or Lane(size=8, seconds=5.0), pack=pack)


def states() -> dict[str, str]:
    return dict(Mail.objects.values_list("subject", "state"))


class TestHanging:
    @pytest.mark.slow
    def test_100_tenants_of_whom_one_has_receivers_that_hang(
        self, world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The time limit of an attempt is 10 s; the others' messages do not wait for one."""
        arrived: list[float] = []

        def respond(handler: BaseHTTPRequestHandler) -> None:
            if "/slow" in handler.path:
                receiver.over.wait(60)
                return
            arrived.append(time.monotonic())
            handler.send_response(200)
            handler.end_headers()

        receiver.respond = respond
        slow = {"type": "webhook", "url": receiver.url.replace("/hook", "/slow")}
        for _ in range(20):
            read_number(make_alert(world, channels=[slow] * 5), 7.5)
        for number in range(99):
            name = f"t{number}"
            tenant = Tenant.objects.create(account=world.account, name=name, name_key=name)
            quick = [{"type": "webhook", "url": receiver.url}]
            read_number(make_alert(world, tenant=tenant, channels=quick), 7.5)
        hung = AlertDelivery.objects.filter(alert__tenant=world.tenant)
        # No attempt of the hanging receiver ends before all the others' messages have arrived.
        ended: list[float] = []
        note = queue.note

        def keep(receiver: str, *, has_answered: bool) -> None:
            if not has_answered:
                ended.append(time.monotonic())
            note(receiver, has_answered=has_answered)

        monkeypatch.setattr(queue, "note", keep)
        assert send_all(seconds=9.0) == 99
        assert max(arrived) < min(ended)
        assert hung.filter(attempts=1).count() == outbox.PLACES
        others = AlertDelivery.objects.exclude(alert__tenant=world.tenant)
        assert set(others.values_list("state", flat=True)) == {"delivered"}

    def test_a_receiver_that_did_not_answer_rests_and_costs_no_other_attempts(self) -> None:
        tried: list[str] = []

        def send(mail: Mail) -> None:
            tried.append(mail.subject)
            if mail.tenant_id == UUID(int=1):
                raise NotSent("No answer.")

        add(1, "a0", "a1", "a2", "a3")
        add(2, "b0")
        assert send_messages([kind_of(send)]) == 1
        assert sorted(tried) == ["a0", "a1", "b0"]
        rows = {mail.subject: mail for mail in Mail.objects.filter(tenant_id=UUID(int=1))}
        # The others wait for the receiver, and no attempt of theirs counts.
        assert [rows[name].attempts for name in ("a0", "a1", "a2", "a3")] == [1, 1, 0, 0]
        assert all(5 * SECOND < row.due_at - now() < 30 * SECOND for row in rows.values())

    def test_a_receiver_that_rested_gets_one_attempt_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        under_way, most = 0, 0
        lock = threading.Lock()

        def send(mail: Mail) -> None:
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.05)
            with lock:
                under_way -= 1

        add(1, "a0", "a1")
        queue.note(f"receiver {UUID(int=1)}", has_answered=False)
        monkeypatch.setattr(queue, "_FIRST_REST", 0.0)
        queue.note(f"receiver {UUID(int=1)}", has_answered=False)
        assert send_messages([kind_of(send)]) == 1
        assert most == 1
        assert sorted(states().values()) == ["delivered", "queued"]

    def test_receivers_that_hang_get_half_of_a_lane(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queue, "_FIRST_REST", 0.0)
        free = threading.Event()

        def send(mail: Mail) -> None:
            if mail.tenant_id != UUID(int=99):
                assert free.wait(20)
            else:
                free.set()

        for tenant in range(10):
            add(tenant, f"slow {tenant}")
            queue.note(f"receiver {UUID(int=tenant)}", has_answered=False)
        add(99, "quick")
        Mail.objects.filter(subject="quick").update(due_at=now() + SECOND)
        # The quick one comes when the others are being sent. It ends their waiting.
        assert send_messages([kind_of(send, lane=Lane(size=4, seconds=20.0))]) == 3
        assert states()["quick"] == "delivered"


class TestWorkers:
    def test_one_takes_messages_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise Busy("x")

        add(1, "a0")
        with monkeypatch.context() as patch:
            patch.setattr(outbox, "advisory_lock", refuse)
            tasks.send_outbox()
        assert states() == {"a0": "queued"}
        tasks.send_outbox()
        assert states() == {"a0": "delivered"}

    def test_a_message_that_a_killed_worker_took_is_sent_after_its_lease(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add(1, "a0")
        kind = kind_of(lambda _: None)
        assert len(kind.queue.take(limit=9)) == 1
        assert send_messages([kind]) == 0
        later = now() + outbox.LEASE
        set_clock(monkeypatch, lambda: later)
        assert send_messages([kind]) == 1


class TestAttempts:
    def test_how_long_a_receiver_wants_to_rest_is_heeded_up_to_an_hour(self) -> None:
        waits = {"a0": 600.0, "b0": 7_200.0, "c0": 1.0}

        def send(mail: Mail) -> None:
            raise NotSent("Busy.", has_answered=True, retry_after=waits[mail.subject])

        for tenant, name in enumerate(waits):
            add(tenant, name)
        send_messages([kind_of(send)])
        due = {mail.subject: (mail.due_at - now()).total_seconds() for mail in Mail.objects.all()}
        assert 590 < due["a0"] <= 600
        assert 3_590 < due["b0"] <= 3_600
        assert 5 < due["c0"] <= 12

    def test_a_message_that_no_one_accepts_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moment = now()
        set_clock(monkeypatch, lambda: moment)
        tries = 0

        def send(mail: Mail) -> None:
            nonlocal tries
            tries += 1
            raise NotSent("No answer.")

        add(1, "a0")
        while states()["a0"] == "queued" and tries < 100:
            cache.clear()
            moment = Mail.objects.get().due_at
            send_messages([kind_of(send)])
        row = Mail.objects.get()
        assert (row.state, row.error, row.attempts) == ("failed", "No answer.", tries)
        assert 30 < tries < 45

    def test_a_receiver_that_always_rests_does_not_keep_a_message_for_ever(self) -> None:
        add(1, "a0")
        Mail.objects.update(until=now())
        queue.note(f"receiver {UUID(int=1)}", has_answered=False)
        assert send_messages([kind_of(lambda _: None)]) == 0
        assert states() == {"a0": "failed"}

    def test_the_log_names_tenant_and_reason(self, caplog: pytest.LogCaptureFixture) -> None:
        def send(mail: Mail) -> None:
            raise ValueError("a fault of ours")

        add(7, "a0")
        with caplog.at_level(logging.WARNING):
            assert send_messages([kind_of(send)]) == 0
        assert f"of tenant {UUID(int=7)} was not accepted, attempt 1: a fault of ours" in caplog.text
        assert Mail.objects.get().error == "a fault of ours"

    def test_an_attempt_that_does_not_end_is_given_up(self) -> None:
        """Looking a name up has no time limit. A late success is not recorded: it is sent again."""
        over = threading.Event()

        def hang(_: Mail) -> None:
            over.wait(20)

        add(1, "a0")
        kind = kind_of(hang, lane=Lane(size=8, seconds=0.0))
        assert send_messages([kind]) == 0
        over.set()
        row = Mail.objects.get()
        assert (row.state, row.error) == ("queued", "No answer within 0 seconds.")

    def test_a_message_that_is_no_longer_for_its_receiver(self) -> None:
        def pack(mail: Any) -> Parcel:
            raise Skipped("Gone.")

        alert_kind = Kind(
            name="alert",
            model=AlertDelivery,
            lane=Lane(size=1, seconds=1.0),
            pack=pack,
            tenant="alert__tenant_id",
        )
        read_number(make_alert(factories.make_world()), 7.5)
        assert send_messages([alert_kind]) == 0
        assert AlertDelivery.objects.values_list("state", "error").get() == ("skipped", "Gone.")


@pytest.mark.parametrize("state", ["sending", "sent"])
def test_a_mail_that_another_worker_sends_meanwhile_is_left_to_it(
    world: World, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """A worker of the previous release may have read it before this one took it."""
    send_in_line(monkeypatch)
    put([DigestMail(tenant_id=uuid4(), period="2026-03-01", user=world.member)])

    def send(go: Callable[[], None]) -> None:
        DigestMail.objects.update(state=state)
        go()
        pytest.fail("it was sent twice")

    kind = Kind(
        name="digest",
        model=DigestMail,
        lane=Lane(size=1, seconds=1.0),
        pack=lambda _: Parcel("mail server", send),
        is_sent_once=True,
    )
    assert send_messages([kind]) == 0
    assert DigestMail.objects.values_list("state", "error").get() == (state, "")


class Post:
    """A mail server that refuses, loses connections, and after which workers are killed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_calm = False
        self.arrived: list[Any] = []

    def deliver(self, identity: Any, go: Callable[[], None]) -> None:
        fate = 1.0 if self.is_calm else self.chance.random()
        if fate < 0.1:
            raise NotSent("The mail server does not answer.")
        go()
        if fate < 0.2:
            raise NotSent("Refused.", has_answered=True, retry_after=self.chance.choice([None, 5.0]))
        if fate < 0.25:
            raise NotSent("It ended before it got it.")
        self.arrived.append(identity)
        if fate < 0.35:
            raise NotSent("It ended after it got it.")
        if fate < 0.45:
            raise Killed


class History:
    """Messages, workers that are killed, and at last a mail server that accepts everything."""

    def __init__(self, seed: int, world: World) -> None:
        self.chance = random.Random(seed)  # noqa: S311
        self.world = world
        self.post = Post(self.chance)
        self.now = now()
        self.kinds = [self.kind(Mail), self.kind(DigestMail, is_sent_once=True)]

    def kind(self, model: Any, *, is_sent_once: bool = False) -> Kind[Any]:
        def pack(row: Any) -> Parcel:
            return Parcel("mail server", lambda go: self.post.deliver(row.pk, go))

        lane = Lane(size=4, seconds=5.0)
        return Kind(name="test", model=model, lane=lane, pack=pack, is_sent_once=is_sent_once)

    def run(self) -> None:
        chance = self.chance
        for number in range(chance.randrange(1, 6)):
            add(number % 2, str(number))
            put([DigestMail(tenant_id=uuid4(), period=str(number), user=self.world.member)])
        for _ in range(chance.randrange(2, 8)):
            with killed_at(chance.randrange(1, 30), before=chance.random() < 0.5):
                send_messages(self.kinds, seconds=5.0)
            self.pass_time(chance.randrange(1, 200))
        self.post.is_calm = True
        while any(kind.queue.rows.exists() for kind in self.kinds):
            self.pass_time(1_000)
            send_messages(self.kinds, seconds=5.0)

    def read_clock(self) -> dt.datetime:
        return self.now

    def pass_time(self, seconds: int) -> None:
        self.now += seconds * SECOND
        cache.clear()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_nothing_is_lost_or_sent_twice_in_500_histories_with_kills(
    part: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that is sent once arrives at most once. Another arrives at least once, with one id."""
    send_in_line(monkeypatch)
    unsure = 0
    for seed in range(part, HISTORIES, 4):
        Mail.objects.all().delete()
        DigestMail.objects.all().delete()
        history = History(seed, world)
        with pytest.MonkeyPatch.context() as patch:
            set_clock(patch, history.read_clock)
            history.run()
        arrived = history.post.arrived
        for pk, state in Mail.objects.values_list("pk", "state"):
            assert (state, pk in arrived) == ("delivered", True), seed
        for number, state in DigestMail.objects.values_list("pk", "state"):
            # What may have arrived is never sent again.
            assert arrived.count(number) == 1 if state == "sent" else arrived.count(number) <= 1, seed
            assert state in {"sent", "sending"}, seed
            unsure += state == "sending"
    assert 0 < unsure < HISTORIES


class TestQuickHistories(TestCase):
    """The same without kills, in a moment: every message ends, and each that is accepted arrives."""

    @given(seed=st.integers(0, 2**32))
    def test_every_message_arrives(self, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311
        arrived: list[str] = []

        def send(mail: Mail) -> None:
            if chance.random() < 0.4:
                raise NotSent("Not now.", has_answered=chance.random() < 0.5)
            arrived.append(mail.subject)

        Mail.objects.all().delete()
        moment = now()
        with pytest.MonkeyPatch.context() as patch:
            set_clock(patch, lambda: moment)
            send_in_line(patch)
            names = [str(number) for number in range(chance.randrange(1, 6))]
            for name in names:
                add(chance.randrange(3), name)
            for _ in range(80):
                if not Mail.objects.filter(state="queued").exists():
                    break
                cache.clear()
                moment += chance.randrange(1, 2_000) * SECOND
                send_messages([kind_of(send)])
        assert sorted(arrived) == sorted(names)
        assert set(states().values()) == {"delivered"}


def test_mails_go_through_a_real_server_with_one_id_each(settings: Any) -> None:
    with running_inbox() as inbox:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", inbox.port
        put(
            [
                Mail(tenant_id=UUID(int=number), to="a@example.org", subject="A", text="t", html="<p>")
                for number in range(6)
            ]
        )
        inbox.refuses = True
        assert send_all() == 0
        assert set(Mail.objects.values_list("error", flat=True)) == {"The mail server refused the mail."}
        inbox.refuses = False
        Mail.objects.update(due_at=now())
        assert send_all() == 6
        assert {str(message["Message-ID"]) for message in inbox.messages} == {
            f"<mail-{row.pk}@testserver>" for row in Mail.objects.all()
        }


def test_mails_are_deleted_after_a_month() -> None:
    add(1, "old", "new")
    Mail.objects.filter(subject="old").update(created_at=now() - dt.timedelta(days=31))
    remove_old_invitations()
    assert states() == {"new": "queued"}


def test_a_mail_of_a_process_of_the_previous_release_is_put_into_the_outbox() -> None:
    context = {"outcome": "declined", "owner": "o@example.org", "tenant": "T", "hours": 1, "service": "s"}
    deliver_mail(to="a@example.org", subject="Your  access", template="access_answered", context=context)
    mail = Mail.objects.get()
    assert (mail.to, mail.subject, mail.state) == ("a@example.org", "Your access", "queued")
    assert "o@example.org has declined your access" in mail.text
