"""Collect the input of a replay: files, rulesets, markers. Contract: docs/replay.md."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from accounts.tenants.pricing import Pricing
from analytics.replay.job import DayFile, Gateway, Job, Marker, Ruleset
from logs.partitions import partitions_with_file
from rules.language import read_rules
from rules.models import Marker as StoredMarker
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.timestamps import days_before, end_of_day, epoch_ms, now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from analytics.replay.result import ReplayResult
    from rules.tables.warehouse import WarehouseTables
    from tenantadmin.lib.objectstore import ObjectStore

#: Raise it when a replay of the same input has another result. Then earlier results are not reused.
_VERSION: Final = 6


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a replay. ``rules`` are complete, ``gateway`` is ``{nocache?, nonDeterministic?,
    keysPerUser?}``."""

    tenant_id: UUID
    rules: Sequence[Mapping[str, Any]]
    first_day: date
    last_day: date
    warmup_days: int
    gateway: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Input:
    """The whole input of a replay, read at one moment."""

    request: Request
    #: Day, build, object keys and number of rows of each partition.
    partitions: Sequence[tuple[date, str, Sequence[str], int]]
    current: Sequence[Mapping[str, Any]]
    #: The revision of the current rules.
    seq: int
    in_force: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]
    changes: Sequence[int]
    markers: Sequence[tuple[str, int]]
    cache_enabled: bool
    tables: WarehouseTables
    prices: Sequence[Mapping[str, Any]]

    @property
    def rows(self) -> int:
        return sum(rows for *_, rows in self.partitions)

    def digest(self) -> str:
        """Return the digest of everything that a replay depends on, except the current hour."""
        request = self.request
        parts = (
            [*request.rules, request.first_day, request.last_day, request.warmup_days, request.gateway],
            [(day, build) for day, build, *_ in self.partitions],
            (self.current, self.in_force, self.changes, self.markers, self.cache_enabled),
            (_VERSION, self.prices, self.tables),
        )
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()

    def as_stored(self, result: ReplayResult) -> Any:
        """Return the result of the replay as JSON that the database stores."""
        against = msgspec.structs.replace(result.against, seq=self.seq)
        return make_storable(msgspec.structs.replace(result, against=against))

    def as_job(self, store: ObjectStore) -> Job:
        request = self.request
        return Job(
            files=[DayFile(day, store.uri(key)) for day, _, keys, _ in self.partitions for key in keys],
            first_day=request.first_day,
            last_day=request.last_day,
            subject=read_rules(request.rules),
            current=read_rules(self.current),
            in_force=[Ruleset(start, read_rules(rules)) for start, rules in self.in_force],
            changes=self.changes,
            markers=[Marker(rule_id, at) for rule_id, at in self.markers],
            warmup_days=request.warmup_days,
            gateway=Gateway(
                request.gateway.get("nocache"),
                request.gateway.get("nonDeterministic"),
                request.gateway.get("keysPerUser"),
            ),
            cache_enabled=self.cache_enabled,
            tables=self.tables,
            pricing=Pricing.of(self.prices),
            hour=now().hour,
        )


def collect_input(request: Request) -> Input:
    """Read everything that a replay depends on. The files belong to one consistent set of builds.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    first = days_before(request.first_day, request.warmup_days)
    start = datetime.combine(first, time(), UTC)
    end = end_of_day(request.last_day)
    ruleset = read_ruleset(request.tenant_id)
    current = ruleset.rules
    remaining = StoredMarker.objects.remaining().filter(tenant=request.tenant_id, number__isnull=True)
    markers = remaining.filter(invalidated_at__gte=start, invalidated_at__lte=end).order_by(
        "invalidated_at", "pk"
    )
    changes = list(
        DocumentHistory(RevisionKind.RULES, request.tenant_id)
        .revisions()
        .filter(changed_at__lte=end)
        .order_by("seq")
        .values_list("seq", "changed_at")
    )
    days = partitions_with_file(tenant=request.tenant_id).filter(day__range=(first, request.last_day))
    return Input(
        request,
        partitions=[(day.day, day.build, day.files, day.rows) for day in days.defer("hours")],
        current=current,
        seq=ruleset.seq,
        in_force=_find_rulesets_in_force(request.tenant_id, changes, current=current, start=start),
        changes=[epoch_ms(changed_at) for _, changed_at in changes if changed_at >= start],
        markers=[(marker.target_rule_id, epoch_ms(marker.invalidated_at)) for marker in markers],
        cache_enabled=ruleset.caching.enabled,
        tables=ruleset.tables,
        prices=ruleset.prices,
    )


def _find_rulesets_in_force(
    tenant_id: UUID,
    changes: Sequence[tuple[int, datetime]],
    *,
    current: Sequence[Mapping[str, Any]],
    start: datetime,
) -> list[tuple[int, Sequence[Mapping[str, Any]]]]:
    """Return the rulesets in force from ``start`` on, with the times (epoch ms) from which they applied.

    A log may be older than the tenant's first revision. The current rules are used for it.
    """
    before = [seq for seq, changed_at in changes if changed_at <= start]
    numbers = {*before[-1:], *(seq for seq, changed_at in changes if changed_at > start)}
    revisions = (
        DocumentHistory(RevisionKind.RULES, tenant_id).revisions().filter(seq__in=numbers).order_by("seq")
    )
    rulesets: list[tuple[int, Sequence[Mapping[str, Any]]]] = [] if before else [(0, current)]
    rulesets += [
        (epoch_ms(revision.changed_at), revision.document["rules"])
        for revision in revisions
        if revision.document is not None
    ]
    return rulesets or [(0, current)]
