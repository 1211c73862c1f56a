"""Rows of Home that a reader has put away: snoozed for some days, or acknowledged until they say more."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q

from accounts.models import Domain, Snooze, Tenant
from analytics.models import Build, TenantHealth
from analytics.words.verdict import VerdictSentence, describe_open
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.db.models import Field

    from accounts.models import User

    #: What a row says: texts, or a number that is worse the larger it is.
    Said = list[str] | float

_SNOOZED_FOR: Final = dt.timedelta(days=7)
#: An acknowledged row that never changes comes back after this time.
_ACKNOWLEDGED_FOR: Final = dt.timedelta(days=365)
#: A hit rate that falls by this much more is news.
_LEAST_DROP: Final = 0.02


@dataclass(frozen=True, slots=True)
class _Panel:
    """A panel of Home: its name in a list, the field of its rows' keys, and what a row of health says."""

    name: str
    key: Field[Any, Any]
    says: Callable[[TenantHealth], Said] | None = None


_TENANT: Final = TenantHealth._meta.pk
PANELS: Final[Mapping[str, _Panel]] = {
    "findings": _Panel("open findings", _TENANT),
    "drops": _Panel("hit rate fell", _TENANT, lambda health: health.drop or 0.0),
    "late": _Panel("late log", _TENANT, lambda health: [str(health.last_day)]),
    "stale": _Panel("stale builds", _TENANT, lambda health: health.stale_days),
    "quarantine": _Panel("quarantine", _TENANT, lambda health: health.quarantined),
    "failed": _Panel("failed build", Build._meta.pk),
    "domains": _Panel("domain to verify", Domain._meta.pk),
}


@dataclass(frozen=True, slots=True)
class SnoozedRow:
    """A row that its reader does not see now. ``until`` is None if it stays away until it says more."""

    panel: str
    subject: str
    until: dt.datetime | None
    name: str = ""

    @property
    def row(self) -> str:
        return f"{self.panel}:{self.subject}"

    @property
    def what(self) -> str:
        return PANELS[self.panel].name


def read_snoozed(user: User) -> Sequence[SnoozedRow]:
    """Return the rows that the user does not see now, the newest first, in at most eight queries."""
    # Another release may know other panels.
    stored = list(Snooze.objects.filter(user=user, until__gt=now(), panel__in=PANELS).order_by("-pk"))
    said = _read_said((row.panel, row.subject) for row in stored if row.seen is not None)
    hidden = [
        row
        for row in stored
        if row.seen is None or not _exceeds(said.get((row.panel, row.subject)), row.seen)
    ]
    names = _read_names(hidden)
    return [
        SnoozedRow(
            row.panel,
            row.subject,
            row.until if row.seen is None else None,
            names.get((PANELS[row.panel].key, row.subject), ""),
        )
        for row in hidden
    ]


def snooze(user: User, row: str) -> None:
    """Leave a row of Home out for this user for some days. ``row`` is its panel and key, as in ``late:…``.

    Raises:
        BadRequest: there is no such panel, or the key is none of it.
    """
    _store(user, *_parse(row), until=now() + _SNOOZED_FOR, seen=None)


def acknowledge(user: User, row: str) -> None:
    """Leave a row of Home out for this user until it says more than now.

    Raises:
        BadRequest: there is no such panel, or the key is none of it.
    """
    place = _parse(row)
    seen = _read_said([place]).get(place, [])
    if place[0] == "drops" and isinstance(seen, float):
        seen += _LEAST_DROP
    _store(user, *place, until=now() + _ACKNOWLEDGED_FOR, seen=seen)


def bring_back(user: User, row: str | None = None) -> None:
    """Show a row of Home to this user again, or all rows.

    Raises:
        BadRequest: there is no such panel, or the key is none of it.
    """
    rows = Snooze.objects.filter(user=user)
    if row is not None:
        panel, subject = _parse(row)
        rows = rows.filter(panel=panel, subject=subject)
    rows.delete()


def _parse(row: str) -> tuple[str, str]:
    panel, _, subject = row.partition(":")
    try:
        return panel, str(PANELS[panel].key.to_python(subject))
    except (KeyError, ValidationError) as error:
        raise BadRequest("Home has no such row.") from error


def _store(user: User, panel: str, subject: str, *, until: dt.datetime, seen: Said | None) -> None:
    with transaction.atomic():
        Snooze.objects.filter(user=user, until__lte=now()).delete()
        Snooze.objects.update_or_create(
            user=user, panel=panel, subject=subject, defaults={"until": until, "seen": seen}
        )


def _read_said(places: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], Said]:
    """Return what rows say now, by panel and key."""
    wanted = list(places)
    tenants = {subject: UUID(subject) for panel, subject in wanted if PANELS[panel].key is _TENANT}
    health = TenantHealth.objects.in_bulk(tenants.values()) if tenants else {}
    found = describe_open(tenants[subject] for panel, subject in wanted if panel == "findings")
    said: dict[tuple[str, str], Said] = {}
    for panel, subject in wanted:
        says = PANELS[panel].says
        if panel == "findings":
            said[panel, subject] = [_identify(item) for item in found.get(tenants[subject], ())]
        elif says is not None and (row := health.get(tenants[subject])):
            said[panel, subject] = says(row)
    return said


def _identify(sentence: VerdictSentence) -> str:
    """Return what does not change while the days pass: the sentence names a day by its weekday at first."""
    what, _, _ = sentence.text.partition(" on ")
    return f"{sentence.day} {what}"


def _exceeds(said: Said | None, seen: Said) -> bool:
    """Return True if a row says more than was seen. A part of it is no news."""
    if isinstance(said, list) and isinstance(seen, list):
        return not set(said) <= set(seen)
    return isinstance(said, int | float) and isinstance(seen, int | float) and said > seen


def _read_names(rows: Iterable[Snooze]) -> Mapping[tuple[Field[Any, Any], str], str]:
    """Return the names of what rows are about, by the field of their key and the key."""
    keys: defaultdict[Field[Any, Any], set[str]] = defaultdict(set)
    for row in rows:
        keys[PANELS[row.panel].key].add(row.subject)
    builds, domains = Build._meta.pk, Domain._meta.pk
    failed = Build.objects.filter(pk__in=keys[builds]).values_list("pk", "tenant_id", "period")
    builds_by_key = {str(pk): (tenant, period) for pk, tenant, period in failed} if keys[builds] else {}
    about = {*keys[_TENANT], *(str(tenant) for tenant, _ in builds_by_key.values())}
    tenants = (
        {str(pk): name for pk, name in Tenant.objects.filter(Q(pk__in=about)).values_list("pk", "name")}
        if about
        else {}
    )
    named = Domain.objects.filter(pk__in=keys[domains]).values_list("pk", "name") if keys[domains] else ()
    return {
        **{(_TENANT, key): name for key, name in tenants.items()},
        **{
            (builds, key): f"{tenants.get(str(tenant), '')}, {period or 'history'}"
            for key, (tenant, period) in builds_by_key.items()
        },
        **{(domains, str(pk)): name for pk, name in named},
    }
