"""When digests are made, made again and withdrawn; by tasks, the command and REST."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, patch
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from analytics import tasks
from analytics.demo.logs import LogPlan, read_demo, write_logs
from analytics.jobs.digests import delete_old_exchanges, find_due_digests, make_digest, make_due_digests
from analytics.models import Digest, ModelExchange, TenantHealth
from analytics.numbers.state import update_health
from analytics.queues import DIGESTS, count_failing_jobs
from analytics.watch.facts import DigestPeriod
from analytics.words.digests import etag_of
from tenantadmin.lib.core.timestamps import days_before, now
from tenantadmin.lib.database.connections import build_lock
from tenantadmin.lib.objectstore import StoreError, default_store
from tests import factories
from tests.analytics.digest.support import DAY, at, entries, make, put, rebuild
from tests.conftest import ApiClient
from tests.objects import save_object
from tests.racing import all_at_once

if TYPE_CHECKING:
    from tests.factories import World


MONDAY = dt.date(2026, 3, 30)


class Clock:
    """The present of `analytics.jobs.digests`."""

    def __init__(self) -> None:
        self.now = dt.datetime(2026, 4, 1, 0, 59, 59, tzinfo=dt.UTC)


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with (
        patch("analytics.jobs.digests.now", lambda: clock.now),
        patch("analytics.numbers.state.now", lambda: clock.now),
        patch("tenantadmin.lib.jobs.queue.now", lambda: clock.now),
    ):
        yield clock


def fill(world: World, *days: dt.date) -> None:
    for day in days:
        put(world, day, entries(3, at=at(day), cacheStatus="HIT"))
    rebuild(world)


class TestDue:
    def test_an_hour_after_the_end_of_a_day_or_week(self, world: World, clock: Clock) -> None:
        fill(world, MONDAY, DAY)
        assert find_due_digests(world.tenant.pk) == ["2026-03-30"]
        clock.now += dt.timedelta(seconds=1)
        assert find_due_digests(world.tenant.pk) == ["2026-03-31", "2026-03-30"]
        clock.now = dt.datetime(2026, 4, 6, 1, tzinfo=dt.UTC)
        assert find_due_digests(world.tenant.pk) == ["2026-W14", "2026-03-31", "2026-03-30"]

    def test_of_the_last_35_days(self, world: World, clock: Clock) -> None:
        fill(world, DAY)
        clock.now = dt.datetime(2026, 5, 5, 12, tzinfo=dt.UTC)
        assert find_due_digests(world.tenant.pk) == ["2026-W14", "2026-03-31"]
        clock.now += dt.timedelta(days=1)
        assert find_due_digests(world.tenant.pk) == []

    def test_one_that_was_made_is_not_due(self, world: World, clock: Clock) -> None:
        fill(world, MONDAY)
        before = make(world, MONDAY)
        assert find_due_digests(world.tenant.pk) == []
        with patch("analytics.jobs.digests.open_log", side_effect=AssertionError):
            assert (
                make_digest(default_store(), tenant=world.tenant.pk, period=DigestPeriod.of_day(MONDAY))
                == before
            )

    @pytest.mark.parametrize(("days_ago", "is_read"), [(0, True), (1, True), (28, True), (29, False)])
    def test_it_is_due_again_when_a_build_of_its_days_changes(
        self, world: World, clock: Clock, days_ago: int, is_read: bool
    ) -> None:
        other = MONDAY - dt.timedelta(days=days_ago)
        fill(world, MONDAY, other)
        digest = make(world, MONDAY)
        put(world, other, entries(7, at=at(other), cacheStatus="MISS"))
        rebuild(world)
        clock.now += dt.timedelta(seconds=10)
        assert ("2026-03-30" in find_due_digests(world.tenant.pk)) is is_read
        after = make(world, MONDAY)
        assert (after.source != digest.source) is is_read
        # Only what the digest says changes its tag. A digest of a Monday has no number of the day before.
        assert (after.etag != digest.etag) is (days_ago == 0)
        assert (after.made_at != digest.made_at) is (days_ago == 0)

    def test_one_without_entries_any_more_is_withdrawn(self, world: World, clock: Clock) -> None:
        fill(world, MONDAY)
        make(world, MONDAY)
        key = f"{world.tenant.pk}/logs/{MONDAY:%Y/%m/%d}/00/a.json"
        default_store().delete(key)
        save_object(default_store(), key, b"")
        rebuild(world)
        assert find_due_digests(world.tenant.pk) == ["2026-03-30"]
        tasks.refresh_digests.run(str(world.tenant.pk))
        assert not Digest.objects.exists()
        assert find_due_digests(world.tenant.pk) == []

    def test_the_first_day_of_the_calendar(self, world: World) -> None:
        assert days_before(dt.date(1, 1, 5), 28) == dt.date(1, 1, 1)
        first = dt.date(1, 1, 1)
        save_object(
            default_store(),
            f"{world.tenant.pk}/logs/0001/01/01/00/a.json",
            json.dumps({"timestamp": 0, "cacheStatus": "HIT"}).encode(),
        )
        rebuild(world)
        assert make(world, first).period == "0001-01-01"

    def test_the_last_day_of_the_calendar(self, world: World) -> None:
        fill(world, dt.date.max)
        assert DigestPeriod.with_day(dt.date.max) == DigestPeriod(dt.date(9999, 12, 27), dt.date.max)
        make_due_digests(default_store(), tenant=world.tenant.pk)
        assert not Digest.objects.exists()


class TestTurns:
    """Which tenants are looked at, and when again."""

    @pytest.fixture
    def turn(self, world: World, clock: Clock) -> Callable[[], list[str] | None]:
        """Make the tenant's due digests, and return them; None if it is not its turn."""
        clock.now = dt.datetime(2026, 4, 1, 12, tzinfo=dt.UTC)

        def look() -> list[str] | None:
            if world.tenant.pk not in {row.pk for row in DIGESTS.take(limit=9)}:
                return None
            due = find_due_digests(world.tenant.pk)
            make_due_digests(default_store(), tenant=world.tenant.pk)
            return due

        return look

    def test_a_clock_that_was_set_back_delays_no_turn(
        self, world: World, clock: Clock, turn: Callable[[], list[str] | None]
    ) -> None:
        fill(world, dt.date(2026, 4, 1))
        assert turn() == []
        clock.now -= dt.timedelta(days=1)
        assert turn() == []
        assert turn() is None

    def test_a_tenant_is_looked_at_when_a_day_is_built_when_one_ends_and_once_a_day(
        self, world: World, clock: Clock, turn: Callable[[], list[str] | None]
    ) -> None:
        today = dt.date(2026, 4, 1)
        fill(world, DAY, today)
        assert turn() == ["2026-03-31"]
        assert turn() is None
        clock.now = dt.datetime(2026, 4, 2, 0, 59, tzinfo=dt.UTC)
        assert turn() is None
        put(world, DAY, entries(7, at=at(DAY), cacheStatus="MISS"))
        rebuild(world)
        assert turn() == ["2026-03-31"]
        clock.now = dt.datetime(2026, 4, 2, 1, 5, tzinfo=dt.UTC)
        assert turn() == ["2026-04-01"]
        clock.now += dt.timedelta(hours=23, minutes=59)
        assert turn() is None
        clock.now += dt.timedelta(minutes=1)
        assert turn() == []

    def test_a_turn_that_no_worker_takes_comes_again(
        self, world: World, clock: Clock, turn: Callable[[], list[str] | None]
    ) -> None:
        fill(world, DAY)
        assert len(DIGESTS.take(limit=9)) == 1
        assert turn() is None
        clock.now += dt.timedelta(minutes=5)
        assert turn() == ["2026-03-31"]

    def test_the_previous_release_makes_a_tenant_due_by_null(
        self, world: World, turn: Callable[[], list[str] | None]
    ) -> None:
        fill(world, DAY)
        TenantHealth.objects.update(due_at=None)
        assert turn() == ["2026-03-31"]

    def test_one_that_fails_rests_longer_each_time_and_the_others_are_made(
        self, world: World, clock: Clock, turn: Callable[[], list[str] | None], caplog: Any
    ) -> None:
        fill(world, MONDAY, DAY)

        def make_one(*_: Any, period: DigestPeriod, **options: Any) -> Digest | None:
            if period.last == DAY:
                raise StoreError("out of memory")
            return make_digest(default_store(), period=period, **options)

        pauses = []
        with patch("analytics.jobs.digests.make_digest", make_one):
            for _ in range(7):
                before = clock.now
                while not DIGESTS.take(limit=9):
                    clock.now += dt.timedelta(minutes=1)
                pauses.append((clock.now - before) // dt.timedelta(minutes=1))
                with pytest.raises(StoreError):
                    tasks.refresh_digests.run(str(world.tenant.pk))
                assert Digest.objects.get().period == "2026-03-30"
        assert pauses == [0, 5, 10, 20, 40, 80, 120]
        assert f"of tenant {world.tenant.pk} failed, and is tried again: out of memory" in caplog.text
        assert count_failing_jobs()["digests"] == 1
        clock.now += dt.timedelta(hours=2)
        assert turn() == ["2026-03-31"]
        assert count_failing_jobs()["digests"] == 0

    def test_slow_failures_keep_no_other_digest_waiting_and_builds_do_not_repeat_them(
        self, world: World, clock: Clock
    ) -> None:
        fill(world, MONDAY, DAY)
        clock.now += dt.timedelta(seconds=1)
        seconds = [0.0]

        def make_one(*_: Any, period: DigestPeriod, **options: Any) -> Digest | None:
            if period.last == DAY:
                seconds[0] += 300
                raise StoreError("interrupted")
            return make_digest(default_store(), period=period, **options)

        with (
            patch("analytics.jobs.digests.make_digest", make_one),
            patch("analytics.jobs.digests.monotonic", lambda: seconds[0]),
        ):
            for expected in ([], ["2026-03-30"]):
                while not DIGESTS.take(limit=9):
                    clock.now += dt.timedelta(minutes=1)
                with pytest.raises(StoreError):
                    tasks.refresh_digests.run(str(world.tenant.pk))
                assert list(Digest.objects.values_list("period", flat=True)) == expected
        update_health(world.tenant.pk)
        assert DIGESTS.take(limit=9) == []

    def test_a_day_that_is_built_during_the_look_is_not_missed(
        self, world: World, clock: Clock, turn: Callable[[], list[str] | None]
    ) -> None:
        fill(world, DAY)
        turn()

        def build(*_: Any) -> list[str]:
            clock.now += dt.timedelta(seconds=1)
            fill(world, MONDAY)
            return []

        TenantHealth.objects.update(due_at=clock.now)
        with patch("analytics.jobs.digests.find_due_digests", build):
            assert len(DIGESTS.take(limit=9)) == 1
            make_due_digests(default_store(), tenant=world.tenant.pk)
        assert turn() == ["2026-03-31", "2026-03-30"]

    def test_its_cost_depends_on_the_changes(
        self, world: World, turn: Callable[[], list[str] | None], django_assert_num_queries: Any
    ) -> None:
        TenantHealth.objects.bulk_create(
            TenantHealth(tenant_id=uuid4(), due_at=dt.datetime(2026, 4, 2, tzinfo=dt.UTC)) for _ in range(20)
        )
        with django_assert_num_queries(3):
            assert turn() is None


class TestTasks:
    def test_a_tenant_is_a_task(self, world: World, clock: Clock) -> None:
        fill(world, MONDAY)
        for _ in range(2):
            tasks.refresh_digests.run(str(world.tenant.pk))
        assert Digest.objects.get().period == "2026-03-30"

    @pytest.mark.django_db(transaction=True)
    def test_a_digest_that_another_worker_makes_is_left_to_it(
        self, transactional_db: None, clock: Clock
    ) -> None:
        world = factories.make_world()
        fill(world, MONDAY)

        def run() -> None:
            tasks.refresh_digests.run(str(world.tenant.pk))

        with build_lock(tenant=world.tenant.pk, period="digest 2026-03-30", wait=True):
            all_at_once([run])
        assert not Digest.objects.exists()
        all_at_once([run, run])
        assert Digest.objects.count() == 1

    def test_a_tenant_has_one_long_job_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked = Mock()
        monkeypatch.setattr(tasks.refresh_digests, "apply_async", asked)
        world = factories.make_world()
        fill(world, MONDAY)
        with build_lock(tenant=world.tenant.pk, period=tasks.LONG_JOB, wait=True):
            all_at_once([lambda: tasks.refresh_digests.run(str(world.tenant.pk))])
        assert not Digest.objects.exists()
        # Nobody waits for the row's next turn.
        asked.assert_called_once()
        assert asked.call_args.kwargs["countdown"] == tasks.LOOK_AGAIN_SECONDS


class TestCommand:
    def run(self, world: World, *arguments: str) -> str:
        output = StringIO()
        call_command("digest", f"--tenant={world.tenant.pk}", *arguments, stdout=output)
        return output.getvalue()

    def test_it_prints_a_digest_in_three_forms(self, world: World) -> None:
        fill(world, MONDAY)
        assert self.run(world, "--day=2026-03-30") == (
            "Warehouse: digest of 2026-03-30\n===============================\n\nTotals\n\n"
            "- A quiet day without anything unusual; requests: 3, hits: 100%.\n"
        )
        assert self.run(world, "--week=2026-W14", "--format=markdown").startswith(
            "# Warehouse: digest of week 2026-W14, 2026-03-30 to 2026-04-05\n\n## Totals\n"
        )
        document = json.loads(self.run(world, "--day=2026-03-30", "--format=json"))
        assert (document["period"], document["quiet"]) == ("2026-03-30", True)
        assert document["_links"]["self"]["href"] == f"/tenants/{world.tenant.pk}/digests/2026/03/30"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--day=2026-03-29"], "There is no log entry in 2026-03-29."),
            (["--week=2026-W54"], "'2026-W54': Invalid week: 54"),
            (["--week=2026-14"], "'2026-14' is not a week; write it like 2026-W09"),
            ([], "one of the arguments --day --week is required"),
        ],
    )
    def test_it_refuses_unknown_arguments(self, world: World, arguments: list[str], message: str) -> None:
        with pytest.raises(CommandError, match=message):
            self.run(world, *arguments)


class TestRest:
    def client(self, world: World) -> ApiClient:
        return ApiClient(factories.pat_token(world.owner, "analytics:read", tenants=[str(world.tenant.pk)]))

    def test_json(self, world: World) -> None:
        fill(world, MONDAY)
        digest = make(world, MONDAY)
        path = f"/tenants/{world.tenant.pk}/digests/2026/03/30"
        answer = self.client(world).get(path)
        assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
        assert (answer["ETag"], answer["Vary"]) == (
            etag_of(digest, "application/json", None),
            "Accept, origin",
        )
        body = answer.json()
        assert body["_links"] == {
            "self": {"href": path},
            "parent": {"href": f"/config/tenants/{world.tenant.pk}"},
        }
        texts = [fact.pop("text") for fact in body["facts"]]
        assert (texts, body["facts"]) == (["3", "100%"], digest.document["facts"])
        text = "A quiet day without anything unusual; requests: {requests}, hits: {hit-rate}."
        assert body["sections"] == [{"id": "totals", "heading": "Totals", "text": text, "template": text}]
        assert (body["quiet"], body["rewritten"], body["kind"]) == (True, False, "day")
        assert (body["from"], body["to"], body["period"]) == ("2026-03-30", "2026-03-30", "2026-03-30")

    def test_a_week_as_markdown_and_text(self, world: World) -> None:
        fill(world, MONDAY)
        make(world, DigestPeriod.with_day(MONDAY))
        client, path = self.client(world), f"/tenants/{world.tenant.pk}/digests/2026/weeks/14"
        tags = set()
        for accept, start in (
            ("application/json", "{"),
            ("text/markdown", "# Warehouse: digest of week 2026-W14, 2026-03-30 to 2026-04-05\n"),
            ("text/plain", "Warehouse: digest of week 2026-W14, 2026-03-30 to 2026-04-05\n==="),
        ):
            answer = client.get(path, Accept=accept)
            assert answer.content.decode().startswith(start)
            assert answer["Content-Type"].partition(";")[0] == accept
            tags.add(answer["ETag"])
            unchanged = client.get(path, Accept=accept, **{"If-None-Match": answer["ETag"]})
            assert (unchanged.status_code, unchanged["Vary"], unchanged.content) == (
                304,
                "Accept, origin",
                b"",
            )
        assert len(tags) == 3
        assert client.get(path, Accept="text/html").status_code == 406

    @pytest.mark.parametrize(
        "path",
        ["2026/03/29", "2026/02/30", "2026/weeks/15", "2026/weeks/53", "2025/weeks/53", "2026/weeks/00"],
    )
    def test_a_missing_digest_is_a_404(self, world: World, path: str) -> None:
        fill(world, MONDAY)
        make(world, MONDAY)
        assert self.client(world).get(f"/tenants/{world.tenant.pk}/digests/{path}").status_code == 404


pytestmark = pytest.mark.django_db


def keep_exchange(world: factories.World) -> ModelExchange:
    return ModelExchange.objects.create(
        tenant_id=world.tenant.pk,
        period=str(DAY),
        address="https://llm.example.com/v1",
        request={"model": "small"},
        answer="{}",
        outcome=ModelExchange.Outcome.REFUSED,
        reason="The answer has not one index for each sentence.",
    )


def test_owners_and_platform_admins_read_them() -> None:
    world = factories.make_world()
    kept = keep_exchange(world)

    def read(user: Any) -> Any:
        return ApiClient(factories.sign_in(user)).get(f"/tenants/{world.tenant.pk}/model-exchanges")

    for user in (world.owner, world.platform_admin):
        (shown,) = read(user).json()["exchanges"]
        assert (shown["period"], shown["address"]) == (str(DAY), kept.address)
        assert (shown["request"], shown["answer"]) == (kept.request, "{}")
        assert (shown["outcome"], shown["reason"]) == ("refused", kept.reason)
    for user in (world.tenant_admin, world.member, world.stranger):
        assert read(user).status_code == 403


def test_they_end_with_the_audits_of_their_time(settings: Any) -> None:
    keep_exchange(factories.make_world())
    delete_old_exchanges()
    assert ModelExchange.objects.count() == 1

    ModelExchange.objects.update(sent_at=now() - settings.AUDIT_RETENTION - dt.timedelta(seconds=1))
    delete_old_exchanges()
    assert ModelExchange.objects.count() == 0


FIRST = dt.date(2026, 2, 2)
DAYS = 30


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_every_fact_of_sixty_digests_equals_its_sql(world: World, number: int) -> None:
    profile = read_demo().profiles[number]
    plan = LogPlan(profile, world.tenant.pk, FIRST, DAYS, seed=1, entries=12_000)
    assert len(list(write_logs(default_store(), plan))) == DAYS
    rebuild(world)
    periods = [DigestPeriod.of_day(FIRST + dt.timedelta(days=day)) for day in range(4, DAYS)]
    periods += [DigestPeriod.with_day(FIRST + dt.timedelta(weeks=week)) for week in range(4)]
    assert len(periods) == 30
    digests = [make(world, period) for period in periods]
    # There are days with findings, and days without.
    assert {digest.document["quiet"] for digest in digests} == {True, False}
