"""Many writers of one ruleset, many statements that fire at once. Contract: Tenants and configuration."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from django.db import connection

from accounts.models import Revision
from accounts.serializers.tenants import parse_config
from accounts.tenants.config import write_config
from rules.markers import (
    NewMarker,
    create_marker,
    delete_marker,
    invalidate_targets,
    read_marker,
    update_marker,
)
from rules.models import Marker
from rules.ruleset import read_ruleset
from rules.write import restore_ruleset, write_ruleset
from tenantadmin.lib.core.errors import Conflict, ValidationFailed
from tenantadmin.lib.core.timestamps import parse_timestamp
from tests.racing import (
    PATIENCE,
    all_at_once,
    in_thread,
    result_unless_blocked,
    run_behind,
    uncommitted,
    wait_until_blocked,
)

if TYPE_CHECKING:
    from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = "owner@example.org"
WRITERS = 50


def rule(number: int) -> dict[str, Any]:
    return {"id": f"r{number}", "conditions": {"userName": f"u{number}"}}


def replace(tenant_id: UUID, *rules: dict[str, Any]) -> object:
    return write_ruleset(tenant_id=tenant_id, document={"rules": list(rules)}, actor=ACTOR)


def database_clock() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    moment: datetime = row[0]
    return moment


@pytest.mark.slow
def test_under_50_writers_nothing_is_lost_skipped_or_doubled(world: factories.World) -> None:
    tenant_id = world.tenant.pk

    def append(number: int) -> int:
        """Add one rule to the current rules, and try again if another writer was faster."""
        refusals = 0
        while True:
            present = read_ruleset(tenant_id)
            document = {"rules": [*present.rules, rule(number)], "seq": present.seq}
            try:
                write_ruleset(tenant_id=tenant_id, document=document, actor=f"u{number}@example.org")
            except Conflict:
                refusals += 1
            else:
                return refusals

    all_at_once([partial(append, number) for number in range(WRITERS)])
    final = read_ruleset(tenant_id)
    assert final.seq == WRITERS
    assert {rule["id"] for rule in final.rules} == {f"r{number}" for number in range(WRITERS)}
    history = list(Revision.objects.filter(tenant_id=tenant_id, kind="rules").order_by("seq"))
    assert [row.seq for row in history] == list(range(WRITERS + 1))
    assert {row.user for row in history[1:]} == {f"u{number}@example.org" for number in range(WRITERS)}
    for seq, row in enumerate(history):
        assert row.document is not None
        assert len(row.document["rules"]) == seq
    moments = [row.changed_at for row in history]
    assert moments == sorted(set(moments))


def test_blind_writers_get_their_409_exactly_when_they_lose(world: factories.World) -> None:
    tenant_id = world.tenant.pk

    def attempt(number: int) -> str | None:
        try:
            return write_ruleset(
                tenant_id=tenant_id, document={"rules": [rule(number)]}, actor=ACTOR
            ).cache_bust
        except Conflict:
            return None

    tokens = [token for token in all_at_once([partial(attempt, n) for n in range(WRITERS)]) if token]
    final = read_ruleset(tenant_id)
    assert final.seq == len(tokens) >= 1
    assert len(set(tokens)) == len(tokens)
    assert final.cache_bust == max(tokens)
    assert Revision.objects.filter(tenant_id=tenant_id, kind="rules").count() == len(tokens) + 1


def test_a_ruleset_that_comes_with_its_past_keeps_the_order_of_its_history(world: factories.World) -> None:
    stored = read_ruleset(world.tenant.pk)
    with pytest.raises(ValueError, match="later than the last change"):
        write_ruleset(
            tenant_id=world.tenant.pk,
            document={"rules": [rule(1)]},
            actor=ACTOR,
            changed_at=stored.modified_at,
        )
    assert read_ruleset(world.tenant.pk) == stored


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_that_appears_while_its_rule_is_being_removed(world: factories.World, commits: bool) -> None:
    tenant_id = world.tenant.pk
    replace(tenant_id, rule(1), rule(2))
    marker = partial(create_marker, tenant_id, NewMarker("m", "r1"), actor="x")
    run_behind(marker, partial(replace, tenant_id, rule(2)), commits=commits, refusal=Conflict)
    assert len(read_ruleset(tenant_id).rules) == (2 if commits else 1)


def test_of_two_updates_of_a_marker_at_once_none_is_lost(world: factories.World) -> None:
    tenant_id = world.tenant.pk
    replace(tenant_id, rule(1))
    create_marker(tenant_id, NewMarker("m", "r1"), actor="x@example.org")
    with uncommitted(partial(update_marker, tenant_id, "m", {"metadata": {"reason": "why"}})) as first:
        second = in_thread(partial(update_marker, tenant_id, "m", {"invalidatedBy": {"statement": "DELETE"}}))
        wait_until_blocked(second)
        first.finish(commit=True)
    assert second.result(PATIENCE) == read_marker(tenant_id, "m")
    marker = Marker.objects.get(marker_id="m")
    assert (marker.metadata, marker.invalidated_by["statement"]) == ({"reason": "why"}, "DELETE")


def test_the_rules_can_change_while_a_marker_is_updated_or_removed(world: factories.World) -> None:
    tenant_id = world.tenant.pk
    replace(tenant_id, rule(1))
    create_marker(tenant_id, NewMarker("m", "r1"), actor="x@example.org")
    changes: list[Callable[[], object]] = [
        partial(update_marker, tenant_id, "m", {}),
        partial(delete_marker, tenant_id, "m"),
    ]
    for seq, change in enumerate(changes, start=2):
        with uncommitted(change):
            result_unless_blocked(in_thread(partial(replace, tenant_id, rule(1), rule(seq))))
        assert read_ruleset(tenant_id).seq == seq


def test_of_two_removals_of_a_marker_at_once_one_succeeds(world: factories.World) -> None:
    tenant_id = world.tenant.pk
    replace(tenant_id, rule(1))
    create_marker(tenant_id, NewMarker("m", "r1"), actor="x@example.org")
    with uncommitted(partial(delete_marker, tenant_id, "m")) as first:
        second = in_thread(partial(delete_marker, tenant_id, "m"))
        wait_until_blocked(second)
        first.finish(commit=True)
    assert second.result(PATIENCE) is False


def test_a_marker_that_waited_for_another_is_later(world: factories.World) -> None:
    """Its moment is when its turn came, not when its transaction began."""
    tenant_id = world.tenant.pk
    replace(tenant_id, rule(1))
    with uncommitted(partial(create_marker, tenant_id, NewMarker("first", "r1"), actor="x")) as first:
        second = in_thread(partial(create_marker, tenant_id, NewMarker("second", "r1"), actor="x"))
        wait_until_blocked(second)
        waited_until = database_clock() + timedelta(milliseconds=2)
        while database_clock() < waited_until:
            pass
        first.finish(commit=True)
    assert parse_timestamp(second.result(PATIENCE).invalidated_at) > waited_until - timedelta(milliseconds=1)
    assert read_marker(tenant_id, "first").superseded is True


@pytest.mark.parametrize("commits", [True, False])
def test_a_ruleset_that_changes_during_its_restore(world: factories.World, commits: bool) -> None:
    tenant_id = world.tenant.pk
    replace(tenant_id, rule(1))
    replace(tenant_id)
    restored = run_behind(
        partial(replace, tenant_id, rule(2)),
        partial(restore_ruleset, tenant_id=tenant_id, seq=1, actor=ACTOR),
        commits=commits,
        refusal=Conflict,
    )
    assert commits or (restored is not None and restored.seq == 3)
    final = read_ruleset(tenant_id)
    assert (final.seq, [rule["id"] for rule in final.rules]) == (3, ["r2" if commits else "r1"])
    last = Revision.objects.filter(tenant_id=tenant_id, kind="rules").latest("seq")
    assert (last.seq, last.restored_from) == (3, None if commits else 1)


def test_numbers_of_markers_never_collide(world: factories.World) -> None:
    tenant_id = world.tenant.pk
    replace(
        tenant_id,
        rule(1),
        rule(2),
        {"id": "a", "conditions": {"isDataChange": True}, "invalidateRules": ["r1", "r2"]},
        {"id": "b", "conditions": {"isDDL": True}, "invalidateRules": ["r2", "r1"]},
    )
    fired = [
        partial(invalidate_targets, tenant_id, rule_id="ab"[number % 2], statement=f"s{number}", actor="x")
        for number in range(20)
    ]
    made = all_at_once(fired)
    for target in ("r1", "r2"):
        ids = sorted(
            (marker.marker_id for markers in made for marker in markers if marker.target_rule_id == target),
            key=lambda it: int(it.split(".")[1].split("-")[0]),
        )
        assert ids == [f"{target}.{number}-InvalidationMarker" for number in range(20)]
    assert Marker.objects.filter(tenant=tenant_id).count() == 40


class TestPerUserTables:
    """A ruleset and a configuration that do not go together. Whoever is second waits, and is refused."""

    @staticmethod
    def protect(tenant_id: UUID) -> object:
        warehouse = {"adapterType": "snowflake", "serverHostname": "a.example", "perUserTables": ["hr.*"]}
        document = {"tenantName": "Lager", "warehouse": warehouse}
        return write_config(tenant_id=tenant_id, document=document, parse=parse_config, actor=ACTOR)

    @staticmethod
    def share(tenant_id: UUID) -> object:
        return replace(tenant_id, {"id": "r", "conditions": {"isReadOnly": True}, "varyBy": []})

    @pytest.mark.parametrize("commits", [True, False])
    def test_rules_behind_a_configuration(self, world: factories.World, *, commits: bool) -> None:
        tenant_id = world.tenant.pk
        written = run_behind(
            lambda: self.protect(tenant_id),
            lambda: self.share(tenant_id),
            commits=commits,
            refusal=Conflict,
        )
        assert (written is None) is commits

    @pytest.mark.parametrize("commits", [True, False])
    def test_a_configuration_behind_rules(self, world: factories.World, *, commits: bool) -> None:
        tenant_id = world.tenant.pk
        written = run_behind(
            lambda: self.share(tenant_id),
            lambda: self.protect(tenant_id),
            commits=commits,
            refusal=ValidationFailed,
        )
        assert (written is None) is commits
