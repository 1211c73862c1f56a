"""Store the generated markers of the demo, in the form that the service stores markers."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from rules.language import read_rules
from rules.markers import CROSS_RULE, cross_rule_id, make_marker
from rules.models import Marker
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.timestamps import from_epoch_ms, now

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from analytics.demo.generate import GeneratedMarker


def ensure_markers(tenant_id: UUID, markers: Iterable[GeneratedMarker]) -> None:
    """Store the markers of a tenant's logs. Do not change those that are stored already.

    The markers are numbered in order of time, so another run gives them the same ids.
    """
    rules = {rule.id: rule for rule in read_rules(read_ruleset(tenant_id).rules)}
    counts: Counter[str] = Counter()
    changed_at = now()
    rows = []
    for marker in sorted(markers, key=attrgetter("at")):
        target = rules.get(marker.target_rule_id)
        if target is None:
            # The rule was removed from the ruleset in the meantime.
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
                invalidated_by={
                    "ruleId": marker.fired_rule_id,
                    "statement": marker.statement,
                    "triggeredBy": CROSS_RULE,
                },
            )
        )
    Marker.objects.bulk_create(rows, batch_size=1000, ignore_conflicts=True)
