"""Invalidation markers. Contract: Invalidation marker, States and transitions.

Creating a marker locks the row of the tenant's ruleset: numbers do not collide, and the target rule cannot be
removed in between.

Markers are created and expire by the database's clock, so that several servers agree. ``changed_at`` is not a
time of that clock but a stamp (`accounts.tenants.stamps`): it only orders the feed, and may be later.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.db import connection, transaction
from django.db.models import Max
from msgspec import Meta

from accounts.limits import Quota, limits_of, use_quota
from accounts.models import Tenant
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from accounts.tenants.stamps import new_stamp
from rules.cache_metadata import cut_statement
from rules.language import read_rule
from rules.models import Marker, Ruleset
from tenantadmin.lib.core.errors import BadRequest, Detail, NotFound, RateLimited, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct, sent_as
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp

if TYPE_CHECKING:
    from rules.language import Rule

MANUAL: Final = "Manual"
CROSS_RULE: Final = "Cross-rule invalidation"
_MADE_PER_COUNT: Final = 100


class MarkerNotFound(NotFound):
    message = "There is no such marker."


class RuleNotFound(NotFound):
    message = "There is no such rule in the tenant's ruleset."


@dataclass(frozen=True, slots=True)
class NewMarker:
    """The input for a new marker. Everything else derives from the target rule."""

    marker_id: str
    target_rule_id: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    invalidated_by: Mapping[str, Any] = field(default_factory=dict)


class MarkerDocument(JsonStruct):
    """An invalidation marker."""

    component = "InvalidationMarker"

    marker_id: str
    target_rule_id: str
    metadata: Annotated[dict[str, Any], sent_as("rules.serializers.MarkerMetadata")]
    invalidated_at: Timestamp
    expires_at: Timestamp
    ttl_seconds: Annotated[int, Meta(ge=1)]
    invalidated_by: Annotated[dict[str, Any], sent_as("rules.serializers.InvalidatedBy")]
    created_at: Timestamp
    created_by: Annotated[
        str, Meta(description="The email of the user who made it, or whose token did. May be empty.")
    ]
    superseded: Annotated[bool, Meta(description="The same rule has a newer marker.")]


def describe_marker(marker: Marker, *, superseded: bool) -> MarkerDocument:
    return MarkerDocument(
        marker_id=marker.marker_id,
        target_rule_id=marker.target_rule_id,
        metadata=marker.metadata,
        invalidated_at=format_timestamp(marker.invalidated_at),
        expires_at=format_timestamp(marker.expires_at),
        ttl_seconds=marker.ttl_seconds,
        invalidated_by=marker.invalidated_by,
        created_at=format_timestamp(marker.created_at),
        created_by=marker.created_by,
        superseded=superseded,
    )


def active_marker_targets(tenant_id: UUID) -> set[str]:
    """Return the ids of the rules that have an unexpired marker."""
    return set(
        Marker.objects.active()
        .of_live_tenant(tenant_id)
        .order_by()
        .values_list("target_rule_id", flat=True)
        .distinct()
    )


def read_marker(tenant_id: UUID, marker_id: str) -> MarkerDocument:
    """Return a marker.

    Raises:
        TenantNotFound, MarkerNotFound: there is no such live tenant or marker.
    """
    remaining = Marker.objects.remaining().of_live_tenant(tenant_id)
    marker = remaining.with_superseded().filter(marker_id=marker_id).first()
    if marker is None:
        require_live_tenant(tenant_id)
        raise MarkerNotFound
    return describe_marker(marker, superseded=marker.superseded)


def create_marker(tenant_id: UUID, new: NewMarker, *, actor: str) -> MarkerDocument:
    """Create a manual marker, the new cutoff of its target rule. Return it.

    Raises:
        TenantNotFound: there is no such live tenant.
        ValidationFailed: the target rule is unknown, or the id was used before.
    """
    with transaction.atomic():
        target = _lock_rules(tenant_id).get(new.target_rule_id)
        details = []
        if target is None:
            message = f"The ruleset has no rule '{new.target_rule_id}'."
            details.append(Detail("/targetRuleId", "unknown-rule", message))
        if Marker.objects.filter(tenant=tenant_id, marker_id=new.marker_id).exists():
            message = f"The id '{new.marker_id}' was used before. Choose another."
            details.append(Detail("/markerId", "duplicate-marker-id", message))
        if details or target is None:
            raise ValidationFailed(details=details)
        changed_at = new_stamp(Marker, "changed_at")
        cutoffs(tenant_id, [target.id]).update(changed_at=changed_at)
        marker = make_marker(
            tenant_id,
            target=target,
            at=database_now(),
            changed_at=changed_at,
            marker_id=new.marker_id,
            metadata=dict(new.metadata),
            actor=actor,
            invalidated_by={
                "ruleId": target.id,
                "triggeredBy": MANUAL,
                **new.invalidated_by,
            },
        )
        save_markers(tenant_id, [marker])
    return describe_marker(marker, superseded=False)


def invalidate_targets(tenant_id: UUID, *, rule_id: str, statement: str, actor: str) -> list[MarkerDocument]:
    """Create one marker for each target of a rule that fired, all or none. Return them with a cut statement.

    A disabled rule is accepted: it was enabled when the Gateway saw it fire.

    Raises:
        TenantNotFound, RuleNotFound: there is no such live tenant, or no such rule.
        BadRequest: the rule invalidates nothing.
    """
    with transaction.atomic():
        rules = _lock_rules(tenant_id)
        fired = rules.get(rule_id)
        if fired is None:
            raise RuleNotFound
        if not fired.invalidate_rules:
            raise BadRequest(f"The rule '{rule_id}' has no 'invalidateRules': it invalidates nothing.")
        created_at = database_now()
        changed_at = new_stamp(Marker, "changed_at")
        cutoffs(tenant_id, fired.invalidate_rules).update(changed_at=changed_at)
        markers = []
        for target_id in fired.invalidate_rules:
            number, marker_id = _next_id(tenant_id, target_id)
            markers.append(
                make_marker(
                    tenant_id,
                    target=rules[target_id],
                    at=created_at,
                    changed_at=changed_at,
                    marker_id=marker_id,
                    number=number,
                    actor=actor,
                    invalidated_by={"ruleId": rule_id, "statement": statement, "triggeredBy": CROSS_RULE},
                )
            )
        save_markers(tenant_id, markers)
    for marker in markers:
        marker.invalidated_by = cut_statement(marker.invalidated_by)
    return [describe_marker(marker, superseded=False) for marker in markers]


def save_markers(tenant_id: UUID, made: Sequence[Marker]) -> None:
    """Store new markers. Remove the oldest superseded ones above the limit of the tenant's plan.

    Above its limit of bytes, markers take effect without their statement and reason.
    Counting takes long where there are many markers, so only every hundredth one leads to it. Cutoffs stay.
    """
    try:
        notes = ([marker.metadata, marker.invalidated_by] for marker in made)
        use_quota(Quota.NOTES, tenant_id, *notes)
    except RateLimited:
        for marker in made:
            marker.metadata = {}
            marker.invalidated_by.pop("statement", None)
    Marker.objects.bulk_create(made)
    if not any(marker.pk % _MADE_PER_COUNT == 0 for marker in made):
        return
    active = Marker.objects.active().filter(tenant=tenant_id)
    plan = Tenant.objects.values_list("account__plan", flat=True).get(pk=tenant_id)
    limit = limits_of(plan).markers
    if limit is None or (surplus := active.count() - limit) <= 0:
        return
    superseded = active.with_superseded().filter(superseded=True).order_by("invalidated_at", "pk")
    stamp = new_stamp(Marker, "changed_at")
    Marker.objects.filter(pk__in=superseded.values("pk")[:surplus]).update(removed_at=stamp, changed_at=stamp)


def update_marker(tenant_id: UUID, marker_id: str, changes: Mapping[str, Any]) -> MarkerDocument:
    """Merge ``metadata`` and ``invalidatedBy`` of ``changes`` into a marker and return it.

    ``changes`` may also hold derived members with their current values.

    Raises:
        TenantNotFound, MarkerNotFound: there is no such live tenant or marker.
        ValidationFailed: a derived member has another value.
        RateLimited: see `use_quota`.
    """
    use_quota(Quota.NOTES, tenant_id, changes.get("metadata"), changes.get("invalidatedBy"))
    with transaction.atomic():
        require_live_tenant(tenant_id)
        remaining = Marker.objects.remaining().of_live_tenant(tenant_id)
        marker = remaining.select_for_update(of=("self",)).filter(marker_id=marker_id).first()
        if marker is None:
            raise MarkerNotFound
        superseded = Marker.objects.filter(pk=marker.pk).with_superseded().get().superseded
        _require_derived(changes, msgspec.to_builtins(describe_marker(marker, superseded=superseded)))
        marker.metadata = {**marker.metadata, **changes.get("metadata", {})}
        marker.invalidated_by = {**marker.invalidated_by, **changes.get("invalidatedBy", {})}
        marker.changed_at = new_stamp(Marker, "changed_at")
        marker.save(update_fields=["metadata", "invalidated_by", "changed_at"])
    return describe_marker(marker, superseded=superseded)


def delete_marker(tenant_id: UUID, marker_id: str) -> bool:
    """Remove a marker and return whether it existed. Its id cannot be used again.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    require_live_tenant(tenant_id)
    with transaction.atomic():
        remaining = Marker.objects.remaining().of_live_tenant(tenant_id)
        marker = remaining.select_for_update(of=("self",)).filter(marker_id=marker_id).first()
        if marker is None:
            return False
        marker.removed_at = marker.changed_at = new_stamp(Marker, "changed_at")
        marker.save(update_fields=["removed_at", "changed_at"])
        older = cutoffs(tenant_id, [marker.target_rule_id]).filter(invalidated_at__lte=marker.invalidated_at)
        older.update(changed_at=marker.changed_at)
    return True


def cutoffs(tenant_id: UUID, targets: Sequence[str]) -> Any:
    """Return the markers that are the cutoffs of rules. Pollers read them again when that changes."""
    active = Marker.objects.active().filter(tenant=tenant_id, target_rule_id__in=targets)
    return active.with_superseded().filter(superseded=False)


def lock_ruleset(tenant_id: UUID) -> list[dict[str, Any]]:
    """Lock a live tenant's ruleset until the transaction ends and return its rules.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    # Deleting a tenant removes its ruleset.
    rules = Ruleset.objects.select_for_update().filter(pk=tenant_id).values_list("rules", flat=True).first()
    if rules is None:
        raise TenantNotFound
    return list(rules)


def _lock_rules(tenant_id: UUID) -> dict[str, Rule]:
    return {rule["id"]: read_rule(rule) for rule in lock_ruleset(tenant_id)}


def database_now() -> dt.datetime:
    """Return the time of the database's clock, in whole milliseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT date_trunc('milliseconds', clock_timestamp())")
        row = cursor.fetchone()
    time: dt.datetime = row[0]
    return time


def cross_rule_id(target_id: str, number: int) -> str:
    """Return the id of a marker that one rule made on another."""
    return f"{target_id}.{number}-InvalidationMarker"


def _next_id(tenant_id: UUID, target_id: str) -> tuple[int, str]:
    """Return the next free number of a target rule and its marker id. Skip ids of manual markers."""
    markers = Marker.objects.filter(tenant=tenant_id)
    highest = markers.filter(target_rule_id=target_id).aggregate(highest=Max("number"))["highest"]
    numbers = count(0 if highest is None else highest + 1)
    ids = ((number, cross_rule_id(target_id, number)) for number in numbers)
    return next(entry for entry in ids if not markers.filter(marker_id=entry[1]).exists())


def make_marker(
    tenant_id: UUID,
    *,
    target: Rule,
    at: dt.datetime,
    changed_at: dt.datetime,
    marker_id: str,
    invalidated_by: dict[str, Any],
    actor: str,
    metadata: dict[str, Any] | None = None,
    number: int | None = None,
) -> Marker:
    """Return an unsaved marker on the rule ``target``."""
    return Marker(
        tenant_id=tenant_id,
        marker_id=marker_id,
        target_rule_id=target.id,
        number=number,
        ttl_seconds=target.ttl_seconds,
        invalidated_at=at,
        expires_at=at + timedelta(seconds=target.ttl_seconds),
        created_at=at,
        created_by=actor,
        changed_at=changed_at,
        metadata=metadata or {},
        invalidated_by=invalidated_by,
    )


def _require_derived(changes: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Refuse a change of a derived member."""
    writable = {"metadata", "invalidatedBy"}
    details: Sequence[Detail] = [
        Detail(f"/{name}", "read-only", f"'{name}' is derived. Leave it out or send it as read.")
        for name, value in changes.items()
        if name not in writable and value != present[name]
    ]
    if details:
        raise ValidationFailed(details=details)
