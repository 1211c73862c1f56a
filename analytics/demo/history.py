"""Write the past of a tenant: its logs, and the rulesets and markers of that time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from accounts.tenants.config import SentConfig, read_config, write_config
from analytics.demo.advice import advised_summary
from analytics.demo.writer import write_logs
from rules.language import read_rules
from rules.markers import CROSS_RULE, cross_rule_id, make_marker
from rules.models import Marker
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import from_epoch_ms, now

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from analytics.demo.generate import GeneratedMarker
    from analytics.demo.profile import Publication
    from analytics.demo.writer import LogPlan
    from tenantadmin.lib.objectstore import ObjectStore

_DAY_MINUTES: Final = 1440
#: From the rule that cures the leak to the configuration that names its tables.
_NAMED_AFTER: Final = timedelta(minutes=10)


def write_history(store: ObjectStore, plan: LogPlan, *, actor: str) -> Iterator[int]:
    """Write the missing parts of a tenant's past. Yield the number of log entries after each day of logs.

    Raises:
        StoreError: the store failed.
    """
    markers: list[GeneratedMarker] = []
    for hours in write_logs(store, plan):
        markers += [marker for hour in hours for marker in hour.markers]
        yield sum(len(hour.entries) for hour in hours)
    for publication in plan.publications:
        _publish_rules(plan.tenant_id, publication, actor=actor)
    _name_per_user_tables(plan, actor=actor)
    store_markers(plan.tenant_id, markers)


def _publish_rules(tenant_id: UUID, publication: Publication, *, actor: str) -> None:
    """Write a ruleset, unless a user has written a newer one."""
    stored = read_ruleset(tenant_id)
    advised = publication.advised
    changed_at = from_epoch_ms(publication.at)
    if stored.seq == publication.seq - 1 and stored.modified_at < changed_at:
        write_ruleset(
            tenant_id=tenant_id,
            document={"rules": list(publication.rules)},
            actor=actor,
            restored_from=publication.restored_from,
            comment=publication.comment,
            summary=None if advised is None else advised_summary(tenant_id, advised),
            changed_at=changed_at,
        )


def _name_per_user_tables(plan: LogPlan, *, actor: str) -> None:
    """Write the configuration that came after the leak was cured, unless a user has written another."""
    profile, stored = plan.profile, read_config(plan.tenant_id)
    if profile.leak is None or profile.leak.cured >= plan.days * _DAY_MINUTES or stored.seq > 0:
        return
    write_config(
        tenant_id=plan.tenant_id,
        document=profile.config,
        parse=SentConfig,
        actor=actor,
        changed_at=from_epoch_ms(profile.leak.cured_at(plan.first_day)) + _NAMED_AFTER,
    )


def store_markers(
    tenant_id: UUID, markers: Iterable[GeneratedMarker], *, numbers: Mapping[str, int] | None = None
) -> None:
    """Store the missing markers of a tenant's logs.

    Markers are numbered in order of time, so every run gives them the same ids. ``numbers`` are the first
    numbers by rule, if they are not 0.
    """
    rules = {rule.id: rule for rule in read_rules(read_ruleset(tenant_id).rules)}
    counts: Counter[str] = Counter(numbers)
    changed_at = now()
    rows = []
    for marker in sorted(markers, key=attrgetter("at")):
        target = rules.get(marker.target_rule_id)
        if target is None:
            # The rule has been removed from the ruleset.
            continue
        number = counts[target.id]
        counts[target.id] += 1
        rows.append(
            make_marker(
                tenant_id,
                target=target,
                at=from_epoch_ms(marker.at),
                changed_at=changed_at,
                marker_id=cross_rule_id(target.id, number),
                number=number,
                actor="",
                invalidated_by={
                    "ruleId": marker.fired_rule_id,
                    "statement": marker.statement,
                    "triggeredBy": CROSS_RULE,
                },
            )
        )
    Marker.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)
