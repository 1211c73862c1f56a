"""Leaks that a digest found: which revision closed them."""

from __future__ import annotations

import datetime as dt
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.digest.facts import LEAKS
from analytics.models import Digest
from analytics.reports.leaks import ClosedLeaks, Closing
from rules.conditions import read_request
from rules.language import CachingDefaults, read_rules
from rules.match import find_possible
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from rules.conditions import Request

#: The documents whose revisions can close a leak, in the order of their names.
CLOSING_KINDS: Final = (RevisionKind.CONFIG, RevisionKind.RULES)


def read_leaking(digest: Digest) -> list[Mapping[str, Any]]:
    """Return what is known of the statements that leaked, or nothing if the digest does not know them all."""
    leaking: list[Mapping[str, Any]] = digest.document.get("leaking", [])
    return leaking


def find_closing(digests: Sequence[Digest], newest_first: Iterable[Revision]) -> Closing | None:
    """Return the revision since which no statement that leaked can leak again, or None.

    A statement can leak if the configuration has the cache on, and a rule that may decide it shares results.
    What is not known of its requests, such as who asks, may be anything. What leaked after a revision is not
    closed by it, whatever it says.

    Args:
        digests: at least one. If one does not know its leaks, nothing of the history is read.
        newest_first: the revisions of `CLOSING_KINDS`, one kind after the other. They may reach further back
            than is needed.
    """
    leaking = [read_leaking(digest) for digest in digests]
    if not all(leaking):
        return None
    requests = [
        {name: value for name, value in read_request(known).items() if name in known}
        for known in chain.from_iterable(leaking)
    ]
    since = _since(max(digest.first_day for digest in digests))
    for kind, revisions in groupby(newest_first, key=lambda it: it.kind):
        closing = None
        for revision in revisions:
            if revision.changed_at < since or _can_leak(revision, requests):
                break
            closing = Closing(RevisionKind(kind), revision.seq)
        if closing is not None:
            return closing
    return None


def _can_leak(revision: Revision, requests: Iterable[Request]) -> bool:
    document = revision.document
    if revision.kind == RevisionKind.CONFIG:
        return document is None or CachingDefaults.of(document).enabled
    rules = read_rules((document or {}).get("rules", ()))
    return any(rule.is_shared for known in requests for rule in find_possible(rules, known))


def has_leaks(digest: Digest) -> bool:
    """Return True if the digest found leaks."""
    return any(section["id"] == LEAKS for section in digest.document["sections"])


def find_closing_of_all(digests: Iterable[Digest]) -> Closing | None:
    """Return the revision since which no leak that a tenant's digests found can happen again.

    None if one can, or if they found none. Only then is nothing read.
    """
    leaking = [digest for digest in digests if has_leaks(digest)]
    if not leaking:
        return None
    history = (
        Revision.objects.filter(
            kind__in=CLOSING_KINDS,
            tenant_id=leaking[0].tenant_id,
            changed_at__gte=_since(max(digest.first_day for digest in leaking)),
        )
        .only("changed_at", "document", "kind", "seq")
        .order_by("kind", "-seq")
    )
    # Documents are large, and mostly the first one says that a leak is open.
    return find_closing(leaking, history.iterator(chunk_size=10))


def find_closed_of_days(tenant_id: UUID, first: dt.date, last: dt.date) -> ClosedLeaks | None:
    """Return what the digests of some days found, if all of it is closed, as `find_closing_of_all`."""
    of_days = Digest.objects.filter(
        tenant_id=tenant_id, first_day=F("last_day"), last_day__range=(first, last)
    )
    digests = list(of_days)
    closing = find_closing_of_all(digests)
    if closing is None:
        return None
    return ClosedLeaks(
        closing, {known["standardizedSql"] for digest in digests for known in read_leaking(digest)}
    )


def _since(day: dt.date) -> dt.datetime:
    """Return the start of the day before a digest of ``day``: a write of that day may have closed it."""
    return dt.datetime.combine(days_before(day, 1), dt.time(), dt.UTC)
