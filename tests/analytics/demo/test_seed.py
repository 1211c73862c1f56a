"""Tests of seeding the demo: it runs once, and another run completes it after it was killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from io import StringIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import msgspec
import pytest
from django.core.management import CommandError, call_command
from msgspec import structs

from accounts.access.credentials import InvalidGrant, exchange_pat
from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.models import Account, Domain, Membership, PersonalAccessToken, Revision, Tenant, User
from accounts.models.billing import Plan
from accounts.tenants.config import read_config
from accounts.tenants.lifecycle import create_tenant
from analytics.advice import follow, search
from analytics.advice.follow import measure_tenant_effects, read_effect
from analytics.advice.search import run_mining
from analytics.demo import logs as writer
from analytics.demo import seed as people
from analytics.demo.generate import Hour, generate
from analytics.demo.logs import FOLDER, DemoDataError, pack_hour, read_demo
from analytics.demo.seed import RECORD_KEY, continue_demo, demo_file, seed_demo
from analytics.models import Build, DayRollup, Mining, Recommendation, ReplayRun, TenantHealth
from analytics.numbers.days import find_stale_days, rebuild_day
from logs.layout import parse_raw_key
from logs.models import PendingBuild, QuarantinedEntry
from rules.marker_lists import MarkerFilter, list_markers
from rules.markers import read_marker
from rules.models import Marker, RuleDraft
from rules.ruleset import read_ruleset
from rules.write import RulesetRejected, restore_ruleset, write_ruleset
from tenantadmin.backoffice.home import read_home
from tenantadmin.lib.core.timestamps import from_epoch_ms
from tenantadmin.lib.objectstore import LocalStore, ObjectStore, StoreError
from tests.factories import sign_in
from tests.objects import read_object, save_object, use_store
from tosapp.publishing import last_publication, publish, read_current, terms_of

if TYPE_CHECKING:
    from analytics.demo.profile import Profile

DEMO = read_demo()
PEOPLE = DEMO.people
RETAIL = DEMO.profiles[0]
TODAY = date(2026, 11, 21)
DAYS = 2
SHARE = 0.3

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def var_dir(tmp_path: Path, settings: Any) -> Path:
    settings.VAR_DIR = tmp_path / "var"
    return tmp_path / "var"


@pytest.fixture
def store(object_store: Path) -> ObjectStore:
    return LocalStore(object_store)


def seed(store: ObjectStore, *, today: date = TODAY) -> int:
    """Run to the end. Return the number of entries written."""
    return sum(step.entries for step in seed_demo(store, DEMO, today=today, days=DAYS, share=SHARE))


def demo() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(demo_file().read_text())
    return content


def objects(store: ObjectStore) -> dict[str, bytes]:
    return {entry.key: read_object(store, entry.key) for entry in store.list("")}


def raw_logs(store: ObjectStore) -> dict[str, bytes]:
    """Return the logs of the demo's tenants except the stranger's."""
    strangers = str(strangers_tenant().pk)
    return {
        key: content
        for key, content in objects(store).items()
        if parse_raw_key(key) and not key.startswith(strangers)
    }


def strangers_tenant() -> Tenant:
    return Tenant.objects.get(memberships__user__email=PEOPLE.stranger.email)


def generated(profile: Profile, tenant_id: str, *, first_day: date) -> Iterator[Hour]:
    entries = round(profile.entries * SHARE * DAYS / 30)
    return generate(profile, tenant_id=tenant_id, first_day=first_day, days=DAYS, entries=entries)


def expected_logs(*, first_day: date) -> dict[str, bytes]:
    """Return the objects that the tenants in the demo file must have as logs."""
    return dict(
        item
        for profile, tenant in zip(DEMO.profiles, demo()["tenants"], strict=True)
        for hour in generated(profile, tenant["tenantId"], first_day=first_day)
        for item in pack_hour(hour, tenant_id=UUID(tenant["tenantId"]))
    )


def rows() -> dict[str, list[Any]]:
    """Return everything that seeding stores in the database."""
    return {
        model.__name__: list(model.objects.order_by("pk").values())
        for model in (
            *(Account, Tenant, User, Membership, PersonalAccessToken, Revision, Marker, RuleDraft),
            *(ReplayRun, Domain, Build),
        )
    }


class KilledStore:
    """A store whose process is killed at the write numbered ``last``, before or after it is done."""

    class Killed(BaseException):
        pass

    def __init__(self, store: ObjectStore, *, last: int, done: bool) -> None:
        self._store, self._last, self._done = store, last, done
        self._numbers = count(1)
        self.open = store.open

    def save(self, name: str, content: Any) -> None:
        number = next(self._numbers)
        if number < self._last or (number == self._last and self._done):
            self._store.save(name, content)
        if number >= self._last:
            raise KilledStore.Killed


def test_two_tenants_with_configuration_rules_and_members(store: ObjectStore) -> None:
    seed(store)
    assert [tenant["name"] for tenant in demo()["tenants"]] == ["Retail warehouse", "Product database"]
    for profile, tenant in zip(DEMO.profiles, demo()["tenants"], strict=True):
        tenant_id = UUID(tenant["tenantId"])
        config = msgspec.to_builtins(read_config(tenant_id).answer())
        assert {name: config[name] for name in profile.config if name != "warehouse"} == {
            name: value for name, value in profile.config.items() if name != "warehouse"
        }
        assert config["warehouse"]["adapterType"] == profile.adapter_type
        ruleset = read_ruleset(tenant_id)
        assert [rule["id"] for rule in ruleset.rules] == [rule["id"] for rule in profile.rules]
        assert ruleset.seq == 1
        assert set(Membership.objects.filter(tenant=tenant_id).values_list("user__email", "role")) == {
            (PEOPLE.owner.email, "owner"),
            (PEOPLE.member.email, "member"),
        }


def test_the_markers_that_the_logs_caused_are_stored(store: ObjectStore) -> None:
    seed(store)
    for profile, tenant in zip(DEMO.profiles, demo()["tenants"], strict=True):
        tenant_id = UUID(tenant["tenantId"])
        made = sorted(
            (
                marker
                for hour in generated(profile, tenant["tenantId"], first_day=date(2026, 11, 19))
                for marker in hour.markers
            ),
            key=lambda marker: marker.at,
        )
        assert made
        ids = [marker.marker_id for marker in list_markers(tenant_id, MarkerFilter()).markers]
        assert len(ids) == len(made)
        first = made[0]
        stored = read_marker(tenant_id, f"{first.target_rule_id}.0-InvalidationMarker")
        ttl = next(
            rule.get("ttlSeconds", 86_400) for rule in profile.rules if rule["id"] == first.target_rule_id
        )
        assert (stored.target_rule_id, stored.ttl_seconds) == (first.target_rule_id, ttl)
        assert datetime.fromisoformat(stored.invalidated_at).timestamp() * 1000 == first.at
        assert stored.invalidated_by == {
            "ruleId": first.fired_rule_id,
            "statement": first.statement,
            "triggeredBy": "Cross-rule invalidation",
        }


def test_the_tenants_and_their_rules_are_older_than_the_logs(store: ObjectStore) -> None:
    seed(store)
    first = datetime(2026, 11, 19, tzinfo=UTC)
    for tenant in demo()["tenants"]:
        tenant_id = UUID(tenant["tenantId"])
        assert read_config(tenant_id).created_at == first - timedelta(hours=15)
        assert list(rule_changes(tenant_id)) == [
            (0, "create", first - timedelta(hours=15), None),
            (1, "update", first - timedelta(hours=14), None),
        ]
        assert read_ruleset(tenant_id).modified_at == first - timedelta(hours=14)
        # Pollers of the manifest see what was seeded as new.
        assert Tenant.objects.get(pk=tenant_id).modified_at > datetime.now(UTC) - timedelta(minutes=5)


def rule_changes(tenant_id: UUID) -> list[tuple[int, str, datetime, int | None]]:
    changes = Revision.objects.filter(kind="rules", tenant_id=tenant_id).order_by("seq")
    return list(changes.values_list("seq", "action", "changed_at", "restored_from"))


def test_a_mistake_was_published_and_restored_while_the_logs_were_written(store: ObjectStore) -> None:
    assert RETAIL.mistake is not None
    mistake = structs.replace(RETAIL.mistake, published=600, restored=1_200)
    changed = replace(DEMO, profiles=(structs.replace(RETAIL, mistake=mistake), DEMO.profiles[1]))
    list(seed_demo(store, changed, today=TODAY, days=DAYS, share=SHARE))
    tenant_id = UUID(demo()["tenants"][0]["tenantId"])
    assert rule_changes(tenant_id)[2:] == [
        (2, "update", datetime(2026, 11, 19, 10, tzinfo=UTC), None),
        (3, "restore", datetime(2026, 11, 19, 20, tzinfo=UTC), 1),
    ]
    rules = Revision.objects.get(kind="rules", tenant_id=tenant_id, seq=2).document
    assert rules is not None
    assert [rule["id"] for rule in rules["rules"]] == ["month-end", *(rule["id"] for rule in RETAIL.rules)]
    assert read_ruleset(tenant_id).seq == 3


def test_a_leak_was_cured_and_then_its_table_was_named(store: ObjectStore) -> None:
    product = DEMO.profiles[1]
    assert product.leak is not None
    leak = structs.replace(product.leak, cured=600)
    changed = replace(DEMO, profiles=(RETAIL, structs.replace(product, leak=leak)))
    list(seed_demo(store, changed, today=TODAY, days=DAYS, share=SHARE))
    tenant_id = UUID(demo()["tenants"][1]["tenantId"])
    assert rule_changes(tenant_id)[2:] == [(2, "update", datetime(2026, 11, 19, 10, tzinfo=UTC), None)]
    revision = Revision.objects.get(kind="rules", tenant_id=tenant_id, seq=2)
    assert (revision.summary["comment"], revision.summary["names"]) == (
        leak.comment,
        {"changed": ["billing"]},
    )
    named = Revision.objects.get(kind="config", tenant_id=tenant_id, seq=1)
    assert named.changed_at == datetime(2026, 11, 19, 10, 10, tzinfo=UTC)
    assert read_config(tenant_id).document["warehouse"]["perUserTables"] == ["billing.invoices"]
    with pytest.raises(RulesetRejected) as refused:
        restore_ruleset(tenant_id=tenant_id, seq=1, actor=PEOPLE.owner.email)
    assert {error.code for error in refused.value.report.errors} == {"per-user-table-shared"}
    before = rows()
    list(seed_demo(store, changed, today=TODAY, days=DAYS, share=SHARE))
    assert rows() == before


def test_a_draft_waits_with_a_queued_replay(store: ObjectStore) -> None:
    seed(store)
    retail = demo()["tenants"][0]["tenantId"]
    draft = RuleDraft.objects.get()
    assert (str(draft.tenant_id), draft.name, draft.base_seq) == (retail, "Cache marketing reports", 1)
    assert draft.lint["valid"] is True
    assert [rule["id"] for rule in draft.rules] == [
        *(rule["id"] for rule in RETAIL.rules),
        "marketing-reports",
    ]
    run = ReplayRun.objects.get()
    assert (str(run.tenant_id), run.state, run.subject) == (retail, "queued", {"draftId": str(draft.pk)})
    assert (run.first_day, run.last_day) == (date(2026, 11, 19), date(2026, 11, 20))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_recommendations_of_each_state(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One was accepted, and what it did is measured; one was dismissed; a search finds open ones.

    That the demo has digests with findings and without is in tests/analytics/digest/test_making.py.
    """
    # The day and the tenant's id choose the logs, so both are the same in each run.
    monkeypatch.setattr(
        writer, "generate", lambda *args, **kwargs: generate(*args, **kwargs | {"tenant_id": "t"})
    )
    morning = datetime.combine(TODAY, time(), tzinfo=UTC)
    for module in (search, follow):  # their windows end yesterday
        monkeypatch.setattr(module, "now", lambda: morning)
    one = replace(DEMO, profiles=DEMO.profiles[1:])
    assert sum(1 for _ in seed_demo(store, one, today=TODAY, days=22, share=0.2)) == 22
    product = UUID(demo()["tenants"][0]["tenantId"])
    assert Mining.objects.get(pk=product).state == "queued"
    dismissed, accepted = Recommendation.objects.order_by("decided_at")
    assert (accepted.state, accepted.title) == ("accepted", "Cache events.searches for 12 hours")
    assert (dismissed.state, dismissed.kind, bool(dismissed.reason)) == ("dismissed", "ttl", True)
    assert accepted.predicted["gain"]["hits"]["high"] > 0
    assert accepted.evidence[0]["rows"]
    ruleset = read_ruleset(product)
    assert (ruleset.seq, ruleset.rules[-1]["id"]) == (accepted.accepted_seq, "cache-events-searches")
    revision = Revision.objects.get(kind="rules", tenant_id=product, seq=ruleset.seq)
    assert revision.summary["recommendation"] == {
        "recommendationId": str(accepted.pk),
        "title": accepted.title,
    }
    for day in find_stale_days(store, tenant=product, first=accepted.last_day - timedelta(days=1)):
        rebuild_day(store, tenant=product, day=day)
    run_mining(store, tenant_id=product)
    found = Recommendation.objects.filter(state="open")
    assert "cache" in set(found.values_list("kind", flat=True))
    assert not found.filter(fingerprint__in=[accepted.fingerprint, dismissed.fingerprint]).exists()
    measure_tenant_effects(store, tenant_id=product)
    effect = read_effect(tenant_id=product, recommendation_id=accepted.pk)
    assert effect.result is not None
    assert (effect.state, effect.result["hits"]["measured"] > 0) == ("measuring", True)


def test_users_have_their_roles_and_the_stranger_has_another_tenant(store: ObjectStore) -> None:
    seed(store)
    assert dict(User.objects.values_list("email", "role")) == {
        PEOPLE.admin.email: "admin",
        PEOPLE.owner.email: "user",
        PEOPLE.member.email: "user",
        PEOPLE.stranger.email: "user",
    }
    # Those in whose name the demo acts have signed in. One signs in as the admin oneself.
    actors = set(Revision.objects.values_list("user", flat=True)) - {PEOPLE.admin.email}
    assert actors == set(User.objects.exclude(last_login=None).values_list("email", flat=True))
    strangers = strangers_tenant()
    assert strangers.name == "Elsewhere sandbox"
    assert strangers.account.owners.get().email == PEOPLE.stranger.email


@pytest.mark.slow
def test_staff_find_an_incident_of_each_kind(store: ObjectStore) -> None:
    """The logs contain incidents of three kinds: a mistake in rules, stale results, and a leak to readers."""
    seed(store)
    tenant = strangers_tenant()
    retail = UUID(demo()["tenants"][0]["tenantId"])
    waiting = Domain.objects.get(verified_at=None)
    assert (waiting.name, waiting.account.name) == ("data.meridian.example", "Meridian Goods")
    failed = Build.objects.get(state="failed")
    assert (failed.tenant_id, failed.period) == (tenant.pk, "2026-11-18")
    call_command("rebuild", stdout=StringIO())
    late = TenantHealth.objects.get(pk=tenant.pk)
    assert (late.last_day, late.quarantined) == (date(2026, 11, 17), 1)
    assert TenantHealth.objects.get(pk=retail).last_day == date(2026, 11, 20)
    quarantined = QuarantinedEntry.objects.get()
    assert (quarantined.tenant_id, quarantined.day) == (tenant.pk, date(2026, 11, 17))
    assert RETAIL.mistake is not None
    assert any(b'"BLOCKED"' in content for content in raw_logs(store).values())


@pytest.mark.slow
def test_a_hit_rate_fell_and_its_cause_can_be_restored(store: ObjectStore) -> None:
    for _ in seed_demo(store, DEMO, today=TODAY, days=21, share=0.01):
        pass
    tenant = strangers_tenant()
    call_command("rebuild", tenant=tenant.pk, stdout=StringIO())
    drops = read_home(User.objects.get(email=PEOPLE.stranger.email)).drops
    assert [row.tenant_id for row in drops] == [tenant.pk]
    assert drops[0].requests_7 > 600
    assert read_ruleset(tenant.pk).rules[0]["id"] == "try-without-cache"
    changes = Revision.objects.filter(kind="rules", tenant_id=tenant.pk).order_by("seq")
    assert list(changes.values_list("seq", "user", "changed_at__date")) == [
        (0, PEOPLE.stranger.email, date(2026, 10, 30)),
        (1, PEOPLE.stranger.email, date(2026, 10, 30)),
        (2, PEOPLE.stranger.email, date(2026, 11, 13)),
    ]
    rates = list(
        DayRollup.objects.filter(tenant_id=tenant.pk, day__gte="2026-11-13").values_list("hits", flat=True)
    )
    assert rates == [0] * 5


def test_the_pat_need_not_accept_the_published_terms(store: ObjectStore) -> None:
    seed(store)
    terms = terms_of(DEMO.terms)
    assert terms is not None
    assert read_current(store) == terms
    publication = last_publication(store, terms.hash)
    assert publication is not None
    assert publication.published_by == PEOPLE.admin.email
    member = User.objects.get(email=PEOPLE.member.email)
    assert authenticate_token(sign_in(member)).claims.tos_required
    assert not authenticate_token(exchange_pat(demo()["pat"]).access_token).claims.tos_required


def test_existing_terms_are_not_replaced(store: ObjectStore) -> None:
    publish("# Ours", actor="someone@example.org")
    seed(store)
    assert read_current(store) == terms_of("# Ours")


def test_the_history_of_an_account_starts_with_its_creation(store: ObjectStore) -> None:
    seed(store)
    revision = Revision.objects.get(kind="account", account_id=Account.objects.get(name="Meridian Goods").pk)
    assert (revision.seq, revision.action, revision.user) == (0, "create", PEOPLE.admin.email)
    assert revision.document is not None
    assert revision.document["owners"] == [PEOPLE.owner.email]


def test_logs_cover_the_days_before_today(store: ObjectStore) -> None:
    written = seed(store)
    logs = raw_logs(store)
    assert logs == expected_logs(first_day=date(2026, 11, 19))
    entries = [json.loads(line) for content in logs.values() for line in content.splitlines()]
    assert len(entries) == written > 0
    places = [parse_raw_key(key) for key in logs]
    # Compare days, not hours: so few entries may leave an hour of the night empty.
    assert {place.day for place in places if place} == {date(2026, 11, 19), date(2026, 11, 20)}


def test_most_objects_have_many_entries_and_some_have_one(store: ObjectStore) -> None:
    seed(store)
    names = {key.rpartition("-")[2] for key in raw_logs(store)}
    assert "batch.json" in names
    assert len(names) > 1


def test_the_file_has_a_password_and_a_token_and_is_private(store: ObjectStore) -> None:
    seed(store)
    content = demo()
    assert demo_file().stat().st_mode & 0o777 == 0o600
    assert content["lastDay"] == "2026-11-20"
    admin = User.objects.get(email=content["adminEmail"])
    assert admin.is_staff
    assert admin.check_password(content["adminPassword"])
    principal = authenticate_token(exchange_pat(content["pat"]).access_token)
    for tenant in content["tenants"]:
        tenant_id = UUID(tenant["tenantId"])
        account_id = Tenant.objects.get(pk=tenant_id).account_id
        assert principal.on_tenants.scopes_on(tenant_id=tenant_id, account_id=account_id) >= {
            Scope.CONFIG_READ,
            Scope.CONFIG_WRITE,
            Scope.LOGS_READ,
            Scope.LOGS_QUERY,
            Scope.ANALYTICS_READ,
            Scope.ANALYTICS_USERS,
            Scope.CACHE_ADMIN,
        }


def test_a_second_run_changes_nothing_even_days_later(store: ObjectStore) -> None:
    seed(store)
    before = (rows(), list(store.list("")), demo_file().read_bytes())
    assert seed(store, today=date(2026, 12, 24)) == 0
    assert (rows(), list(store.list("")), demo_file().read_bytes()) == before


def test_a_second_run_does_not_revert_changes_of_users(store: ObjectStore) -> None:
    seed(store)
    User.objects.filter(email=PEOPLE.member.email).delete()
    Tenant.objects.filter(name=RETAIL.name).update(name="Ours now", name_key="ours now")
    before = rows()
    assert seed(store) == 0
    assert rows() == before


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("last", [1, 2, 60])
def test_a_run_completes_one_that_was_killed_at_a_write(store: ObjectStore, last: int, done: bool) -> None:
    with pytest.raises(KilledStore.Killed):
        seed(cast("ObjectStore", KilledStore(store, last=last, done=done)))
    has_record = last > 1 or done
    assert seed(store, today=date(2026, 11, 25)) > 0
    assert raw_logs(store) == expected_logs(first_day=date(2026, 11, 19 if has_record else 23))
    assert json.loads(read_object(store, RECORD_KEY))["complete"] is True
    assert (Account.objects.count(), Tenant.objects.count()) == (2, 3)
    assert seed(store) == 0


def test_a_run_completes_one_that_was_killed_after_all_logs(store: ObjectStore) -> None:
    seed(store)
    logs = raw_logs(store)
    record = json.loads(read_object(store, RECORD_KEY))
    save_object(store, RECORD_KEY, json.dumps(record | {"complete": False}).encode())
    demo_file().unlink()
    assert seed(store, today=date(2026, 11, 25)) > 0
    assert raw_logs(store) == logs
    assert json.loads(read_object(store, RECORD_KEY)) == record
    assert exchange_pat(demo()["pat"]).expires_in > 0


def test_a_run_completes_one_that_was_killed_between_documents(store: ObjectStore) -> None:
    users = people.ensure_users(PEOPLE)
    account_id = people.ensure_account("Meridian Goods", owner=users.owner, plan=Plan.TEAM, actor=users.admin)
    create_tenant(
        account_id=account_id,
        document=RETAIL.config,
        actor=users.owner.email,
        created_at=from_epoch_ms(RETAIL.created_at(TODAY)) - timedelta(days=DAYS),
    )
    seed(store)
    assert sorted(Tenant.objects.values_list("name", flat=True)) == [
        "Elsewhere sandbox",
        "Product database",
        "Retail warehouse",
    ]
    retail = UUID(demo()["tenants"][0]["tenantId"])
    assert [rule["id"] for rule in read_ruleset(retail).rules] == [rule["id"] for rule in RETAIL.rules]


@pytest.mark.parametrize("content", [None, "{", "[]", '{"pat": 1}', "another database"])
def test_a_lost_file_is_replaced_and_the_old_secrets_are_revoked(
    store: ObjectStore, content: str | None
) -> None:
    seed(store)
    old = demo()
    if content is None:
        demo_file().unlink()
    elif content == "another database":
        demo_file().write_text(json.dumps(old | {"pat": "tas_pat_" + "x" * 43}))
    else:
        demo_file().write_text(content)
    assert seed(store) == 0
    new = demo()
    assert new["tenants"] == old["tenants"]
    admin = User.objects.get(email=PEOPLE.admin.email)
    assert admin.check_password(new["adminPassword"])
    assert not admin.check_password(old["adminPassword"])
    assert exchange_pat(new["pat"]).expires_in > 0
    with pytest.raises(InvalidGrant):
        exchange_pat(old["pat"])


def test_a_new_database_with_an_old_store_is_seeded(store: ObjectStore) -> None:
    record = {
        "account_id": "00000000-0000-4000-8000-000000000000",
        "tenant_ids": ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"],
        "first_day": "2020-01-01",
        "days": 1,
        "entries": [1, 1],
        "seed": 1,
        "complete": True,
    }
    save_object(store, RECORD_KEY, json.dumps(record).encode())
    assert seed(store) > 0
    assert raw_logs(store) == expected_logs(first_day=date(2026, 11, 19))


def test_the_command_says_that_the_demo_is_complete(store: ObjectStore) -> None:
    seed(store)
    out = StringIO()
    call_command("seed_demo", stdout=out)
    assert out.getvalue() == f"Demo data: complete already. Password and token: {demo_file()}\n"


def test_the_command_names_the_cure_if_the_admin_is_deleted(store: ObjectStore) -> None:
    seed(store)
    demo_file().unlink()
    User.objects.filter(email=PEOPLE.admin.email).delete()
    with pytest.raises(CommandError, match=r"admin@meridian\.example .* manage\.py create_admin"):
        call_command("seed_demo")


def test_another_number_of_tenants_is_refused(store: ObjectStore) -> None:
    seed(store)
    before = rows()
    fewer = replace(DEMO, profiles=DEMO.profiles[:1])
    with pytest.raises(
        DemoDataError, match=r"seeded with 2 tenants, .* describe 1\. Start again with an empty"
    ):
        list(seed_demo(store, fewer, today=TODAY))
    assert rows() == before


def test_the_command_names_a_wrong_data_file_before_it_seeds_anything(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "data")
    (folder / "product" / "profile.toml").write_text("entries = 'many'\n")
    monkeypatch.setattr("analytics.management.commands.seed_demo.read_demo", lambda: read_demo(folder))
    with pytest.raises(CommandError, match=r"/data/product: Expected `int`, got `str`"):
        call_command("seed_demo")
    assert not User.objects.exists()
    assert not objects(store)


def test_the_error_of_a_failed_store_names_it(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "full").write_text("")
    use_store(settings, f"file://{tmp_path}/full")
    with pytest.raises((CommandError, StoreError), match="run the command again"):
        call_command("seed_demo")


def test_the_log_goes_on_with_the_rules_that_were_published(store: ObjectStore) -> None:
    seed(store)
    tenants = [UUID(tenant["tenantId"]) for tenant in demo()["tenants"]]
    retail = tenants[0]
    write_ruleset(
        tenant_id=retail,
        document={"rules": [{"id": "past", "name": "Past", "action": "bypass", "conditions": {}}]},
        actor="x",
        changed_at=datetime(2026, 11, 21, 12, tzinfo=UTC),
    )
    before = {key: raw for key, raw in objects(store).items() if parse_raw_key(key)}
    later = date(2026, 11, 23)
    assert not list(continue_demo(store, DEMO, today=TODAY, share=SHARE))
    steps = list(continue_demo(store, DEMO, today=later, share=SHARE))
    assert [step.tenant for step in steps] == [profile.name for profile in DEMO.profiles] * 2
    assert all(step.entries > 20 for step in steps)
    assert demo()["lastDay"] == "2026-11-22"
    raw = {key: raw for key, raw in objects(store).items() if parse_raw_key(key)}
    assert raw.items() >= before.items()
    entries = [
        (key, json.loads(line)) for key in raw.keys() - before.keys() for line in raw[key].splitlines()
    ]
    assert len(entries) == sum(step.entries for step in steps)
    versions = {
        (entry["ruleVersion"], entry["matchedRule"] == "past")
        for key, entry in entries
        if key.startswith(str(retail)) and entry["matchedRule"]
    }
    assert versions == {("1", False), ("2", True)}
    assert set(PendingBuild.objects.values_list("tenant_id", "day")) == {
        (tenant, TODAY + timedelta(days=number)) for tenant in tenants for number in (0, 1)
    }
    numbers = Marker.objects.filter(number__isnull=False).order_by("target_rule_id", "tenant", "number")
    times = [(item.target_rule_id, item.tenant_id, item.invalidated_at) for item in numbers]
    assert times == sorted(times)
    assert times[-1][2].date() >= TODAY


def test_a_later_day_that_was_interrupted_is_written_once(store: ObjectStore) -> None:
    seed(store)
    killed = KilledStore(store, last=5, done=True)
    with pytest.raises(KilledStore.Killed):
        list(continue_demo(cast("ObjectStore", killed), DEMO, today=TODAY + timedelta(days=1), share=SHARE))
    steps = list(continue_demo(store, DEMO, today=TODAY + timedelta(days=1), share=SHARE))
    entries = sum(
        len(raw.splitlines())
        for key, raw in objects(store).items()
        if (parsed := parse_raw_key(key)) and parsed.day == TODAY
    )
    assert entries == sum(step.entries for step in steps)
    Tenant.objects.filter(pk=UUID(demo()["tenants"][0]["tenantId"])).update(deleted_at=datetime.now(UTC))
    following = list(continue_demo(store, DEMO, today=TODAY + timedelta(days=2), share=SHARE))
    assert [step.entries > 0 for step in following] == [False, True]
