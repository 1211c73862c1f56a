"""Rate limits in Redis. Contract: Errors (429), Limits."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from accounts.access.credentials import create_pat, create_refresh_token, exchange_pat
from accounts.access.scopes import Scope
from accounts.events import record_event, record_failed_sign_in
from accounts.limits import ROW_BYTES, Quota, claim_try, count_use, storage, use_quota
from accounts.models import Event
from accounts.models.events import EventKind
from analytics.watch.preferences import set_preference
from rules.drafts import create_draft, delete_draft
from tenantadmin.lib.core.errors import InternalError, RateLimited
from tenantadmin.lib.core.request_context import set_address
from tests import factories
from tests.accounts.support import at_once
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World


LIMIT = "5 per 15 minutes"


def outcome(limit: str, key: str, kind: str = "test") -> str:
    try:
        count_use(limit=limit, kind=kind, key=key)
    except RateLimited:
        return "limited"
    return "ok"


def test_so_many_and_no_more() -> None:
    assert [outcome(LIMIT, "ada") for _ in range(7)] == ["ok"] * 5 + ["limited"] * 2
    assert outcome(LIMIT, "bob") == "ok"
    assert outcome(LIMIT, "ada", kind="another") == "ok"


def test_it_is_exact_under_concurrency(db: None) -> None:
    outcomes = at_once([partial(outcome, LIMIT, "ada")] * 24)
    assert sorted(outcomes) == ["limited"] * 19 + ["ok"] * 5


def test_it_says_when_a_use_is_free_again() -> None:
    for _ in range(5):
        count_use(limit=LIMIT, kind="test", key="ada")
    with pytest.raises(RateLimited) as raised:
        count_use(limit=LIMIT, kind="test", key="ada")
    assert 890 <= int(raised.value.headers["Retry-After"]) <= 900


@pytest.mark.parametrize("limit", ["", "five", "5", "5 per fortnight"])
def test_a_misconfigured_limit_lets_nothing_through(limit: str) -> None:
    with pytest.raises(InternalError):
        count_use(limit=limit, kind="test", key="ada")


def test_without_redis_nothing_is_let_through(settings: Any, tmp_path: Any) -> None:
    settings.REDIS_URL = f"unix://{tmp_path}/missing.sock"
    with pytest.raises(InternalError):
        count_use(limit=LIMIT, kind="test", key="ada")


@pytest.fixture
def silent_redis(settings: Any) -> Iterator[socket.socket]:
    """Connections wait here for a server that does not accept them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings.REDIS_URL = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        settings.REDIS_OPTIONS = {**settings.REDIS_OPTIONS, "socket_timeout": 0.2}
        yield listener


@pytest.mark.parametrize("use", [partial(count_use, limit=LIMIT), claim_try])
def test_a_redis_that_does_not_answer_is_asked_once(
    silent_redis: socket.socket, use: Callable[..., None]
) -> None:
    with pytest.raises(InternalError):
        use(kind="test", key="ada")
    silent_redis.setblocking(False)
    silent_redis.accept()[0].close()
    with pytest.raises(BlockingIOError):
        silent_redis.accept()


def test_a_connection_that_redis_closed_is_opened_again() -> None:
    """As after a restart of Redis."""
    count_use(limit=LIMIT, kind="test", key="ada")
    pool = storage().storage.connection_pool
    connection = pool.get_connection()
    connection._sock.shutdown(socket.SHUT_RDWR)
    pool.release(connection)
    assert outcome(LIMIT, "ada") == "ok"


pytestmark = pytest.mark.django_db
ADA = "ada@example.org"


@pytest.fixture(autouse=True)
def _at_an_address() -> Iterator[None]:
    set_address(lambda: "192.0.2.1")
    yield
    set_address(str)


def allow(settings: Any, stored_bytes: int) -> None:
    plans = settings.PLAN_LIMITS
    settings.PLAN_LIMITS = {plan: {**plans[plan], "stored_bytes": stored_bytes} for plan in plans}
    settings.NETWORK_STORED_BYTES = stored_bytes


def kinds() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("kind", flat=True))


class TestQuota:
    @given(texts=st.lists(st.text(max_size=300), min_size=1, max_size=30))
    def test_no_more_is_stored_than_the_limit(self, texts: list[str]) -> None:
        from django.conf import settings

        network, stored = str(uuid.uuid4()), 0
        most, settings.NETWORK_STORED_BYTES = settings.NETWORK_STORED_BYTES, 2_000
        try:
            for text in texts:
                size = len(text.encode(errors="replace")) + ROW_BYTES
                try:
                    use_quota(Quota.EVENTS, network, text)
                except RateLimited:
                    assert stored + size > 2_000
                else:
                    stored += size
            assert stored <= 2_000
        finally:
            settings.NETWORK_STORED_BYTES = most

    def test_each_kind_has_its_own(self, world: World, settings: Any) -> None:
        allow(settings, 300)
        for quota in Quota:
            use_quota(quota, world.tenant.pk, "x")
            with pytest.raises(RateLimited) as refusal:
                use_quota(quota, world.tenant.pk, "x")
            assert 86_000 < int(refusal.value.headers["Retry-After"]) <= 86_400

    def test_rows_without_text_count(self, world: World, settings: Any) -> None:
        allow(settings, 10 * ROW_BYTES)
        use_quota(Quota.AUDIT, world.tenant.pk, *[""] * 10)
        with pytest.raises(RateLimited):
            use_quota(Quota.AUDIT, world.tenant.pk, "")

    def test_revisions_of_accounts_and_replays_count(self, world: World, settings: Any) -> None:
        allow(settings, 800)
        client, address = ApiClient(factories.sign_in(world.owner)), f"/config/accounts/{world.account.pk}"
        body = {"name": "x" * 90, "owners": [world.owner.email], "billingEmail": world.owner.email}
        assert [client.put(address, body).status_code for _ in range(3)] == [200, 200, 429]
        replay = {"rules": [], "from": "2026-01-01", "to": "2026-01-01"}
        replays = f"/tenants/{world.tenant.pk}/replays"
        rules = [{"id": f"r{number}", "conditions": {"userName": "x" * 300}} for number in range(2)]
        assert client.post(replays, {**replay, "rules": rules}).status_code == 429

    def test_a_tenant_that_is_gone_has_the_smallest_plan(self, settings: Any) -> None:
        allow(settings, 300)
        with pytest.raises(RateLimited):
            use_quota(Quota.AUDIT, uuid.uuid4(), "x" * 400)


class TestEvents:
    """A free member wrote 700 events in six seconds; they are kept for two years."""

    def test_an_act_above_the_quota_is_refused(self, world: World, settings: Any) -> None:
        allow(settings, 2_000)
        client = ApiClient(factories.sign_in(world.owner))
        address = f"/users/{world.owner.email}/tokens"
        body = {"name": "x" * 60, "scopes": ["config:read"], "tenants": [str(world.tenant.pk)]}
        statuses = [client.post(address, body).status_code for _ in range(8)]
        assert statuses[0] == 201
        assert (statuses[-1], {*statuses}) == (429, {201, 429})
        # What ends something is possible all the same, and leaves its event.
        token = client.get(address).json()["tokens"][0]["id"]
        assert client.delete(f"{address}/{token}").status_code in {200, 204}
        assert kinds()[-1] == "pat.revoked"

    def test_failures_above_the_quota_are_refused_as_before(self, settings: Any) -> None:
        allow(settings, 700)
        for number in range(9):
            record_failed_sign_in(f"{uuid.uuid4()}@example.org", way=None, reason=f"{number}")
        assert kinds() == ["sign-in.failed"] * 2

    def test_tenants_have_their_own(self, world: World, settings: Any) -> None:
        allow(settings, 400)
        for tenant in (world.tenant, world.stranger_tenant):
            record_event(EventKind.GRANT_CREATED, actor=ADA, subject=ADA, tenant_id=tenant.pk)
            with pytest.raises(RateLimited):
                record_event(EventKind.GRANT_CREATED, actor=ADA, subject=ADA, tenant_id=tenant.pk)
        assert kinds() == ["grant.created"] * 2


class TestRepeated:
    def test_exchanges_of_a_token_by_a_client(self, world: World) -> None:
        texts = [
            create_pat(
                owner=world.owner, name=name, scopes=[Scope.CONFIG_READ], tenants=[str(world.tenant.pk)]
            )[1]
            for name in "ab"
        ]
        for address in ("192.0.2.1", "2001:db8::1", "2001:db8::2"):
            set_address(partial(str, address))
            for text in texts * 5:
                exchange_pat(text)
        minted = Event.objects.filter(kind="token.minted").order_by("pk")
        assert list(minted.values_list("address", flat=True)) == ["192.0.2.1"] * 2 + ["2001:db8::1"] * 2
        assert minted.values("after__pat").order_by().distinct().count() == 2

    def test_a_minute_later_it_is_recorded_again(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        from accounts import events

        _, text = create_pat(
            owner=world.owner, name="a", scopes=[Scope.CONFIG_READ], tenants=[str(world.tenant.pk)]
        )
        exchange_pat(text)
        monkeypatch.setattr(events, "_REPEATED_WITHIN", events._REPEATED_WITHIN * 0)
        exchange_pat(text)
        assert kinds().count("token.minted") == 2

    def test_refreshes_of_a_session(self, world: World) -> None:
        session, text = create_refresh_token(user=world.owner)
        body = {"grant_type": "refresh_token", "refresh_token": text}
        assert {ApiClient().post("/oauth/token", body).status_code for _ in range(5)} == {200}
        minted = Event.objects.filter(kind="token.minted")
        assert list(minted.values_list("after__session", flat=True)) == [session.pk]

    def test_digests_that_are_switched_on_and_off(self, world: World) -> None:
        for frequency in ("daily", "off") * 20:
            set_preference(
                email=world.owner.email,
                tenant_id=world.tenant.pk,
                frequency=frequency,
                actor=world.owner.email,
            )
        changed = Event.objects.filter(kind="digest-mail.changed").order_by("pk")
        assert [event.after for event in changed] == [{"frequency": "daily"}, {"frequency": "off"}]

    def test_drafts_that_are_made_and_deleted(self, world: World) -> None:
        for _ in range(20):
            draft = create_draft(tenant_id=world.tenant.pk, document={"rules": []}, actor=ADA)
            delete_draft(tenant_id=world.tenant.pk, draft_id=draft.pk, actor=ADA)
        assert kinds() == ["draft.created", "draft.deleted"]


@pytest.mark.django_db(transaction=True)
def test_exchanges_at_the_same_time_are_recorded_once() -> None:
    owner = factories.make_user("owner@example.org")
    _, text = create_pat(owner=owner, name="a", scopes=[Scope.CONFIG_READ], tenants=[str(uuid.uuid4())])

    def exchange(_: int) -> None:
        try:
            exchange_pat(text)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(exchange, range(24)))
    assert kinds().count("token.minted") == 1
