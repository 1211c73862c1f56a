"""Filters of the audit, and how a reader gives them."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from accounts.admin.finding import find_accounts, find_people, find_tenants
from tenantadmin.backoffice.audit.kinds import EVENT_GROUPS, KINDS, SOURCE_KINDS, Source
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import QueryDict

_FILTERS: Final = ("who", "what", "tenant", "account", "kind", "since", "until", "zone")
#: Buttons of the filter: the age of the first and the last day.
SPANS: Final = {"Today": (0, 0), "Yesterday": (1, 1), "7 days": (6, 0)}


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filters of the timeline, combined by AND.

    SQL that the service wrote for the figures of a page is left out unless ``kind`` asks for it: each page
    that a person opens may run some.

    Attributes:
        who: actor email. Matches exactly.
        what: event subject. Matches exactly.
        since, until: days of ``zone``, inclusive.
    """

    who: str = ""
    what: str = ""
    tenant: UUID | None = None
    account: UUID | None = None
    kind: str = ""
    since: dt.date | None = None
    until: dt.date | None = None
    zone: dt.tzinfo = dt.UTC

    def has(self, source: Source) -> bool:
        """Return True if rows of this source can match."""
        if self.what:
            return source is Source.EVENT and self.kind not in SOURCE_KINDS
        return not self.kind or source in SOURCE_KINDS.get(self.kind, (Source.EVENT,))

    @property
    def event_kinds(self) -> Sequence[str]:
        """The event kinds; empty means all."""
        return EVENT_GROUPS.get(self.kind, (self.kind,)) if self.kind else ()


def given_filters(query: QueryDict) -> dict[str, str]:
    """Return the filters in a query string, as texts. A button names a span of days."""
    texts = {name: query.get(name, "").strip().replace("\0", "")[:400] for name in _FILTERS}
    if (span := query.get("days", "")) in SPANS:
        today = now().astimezone(_zone_of(texts["zone"])).date()
        first, last = (today - dt.timedelta(days=age) for age in SPANS[span])
        texts |= {"since": first.isoformat(), "until": last.isoformat()}
    if not (texts["since"] or texts["until"]):
        texts["zone"] = ""
    return {name: text for name, text in texts.items() if text}


def _zone_of(name: str) -> dt.tzinfo:
    """Return the time zone with this name; UTC if there is none."""
    return ZoneInfo(name) if name in _find_zones() else dt.UTC


_find_zones: Final = cache(available_timezones)


class Unclear(BadRequest):
    """A filter means more than one person, tenant or account."""

    def __init__(self, name: str, text: str, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__(f"“{text}” fits more than one. Choose:")
        #: The filter, and value and title of each choice.
        self.name, self.choices = name, choices


def parse_filters(given: Mapping[str, str]) -> AuditFilter:
    """Return the filters. People, tenants and accounts may be given by a word of the name.

    Raises:
        BadRequest: a filter is malformed, or it fits none.
        Unclear: it fits several.
    """
    kind = given.get("kind", "")
    if kind and kind not in KINDS:
        raise BadRequest(f"There is no kind '{kind}'.")
    filters = AuditFilter(
        who=_person("who", given.get("who", "")),
        what=_person("what", given.get("what", "")),
        kind=kind,
        since=_parse_day(given.get("since", "")),
        until=_parse_day(given.get("until", "")),
        zone=_zone_of(given.get("zone", "")),
    )
    if text := given.get("account"):
        accounts = [(it.pk, it.name) for it in find_accounts(text)]
        filters = replace(filters, account=_meant("account", text, accounts))
    if text := given.get("tenant"):
        tenants = [(it.pk, f"{it.name} of {it.account.name}") for it in find_tenants(text)]
        filters = replace(filters, tenant=_meant("tenant", text, tenants))
    return filters


def _person(name: str, text: str) -> str:
    """Return the email that is meant, or the text: the name of a job, a domain, or a deleted user."""
    email = normalize_email(text)
    people = find_people(text) if text else []
    if not people or any(it.email == email for it in people):
        return email if "@" in text else text
    if len(people) > 1:
        raise Unclear(name, text, [(it.email, f"{it.email} {it.display_name}".strip()) for it in people])
    return people[0].email


def _meant(name: str, text: str, found: Sequence[tuple[UUID, str]]) -> UUID:
    # What is deleted still has records.
    with suppress(ValueError):
        return UUID(text)
    if not found:
        raise BadRequest(f"No {name} is called '{text}'.")
    if len(found) > 1:
        raise Unclear(name, text, [(str(key), title) for key, title in found])
    return found[0][0]


def _parse_day(text: str) -> dt.date | None:
    """Parse a day of a date field; None for an empty text.

    Raises:
        BadRequest: it is not a day.
    """
    if not text:
        return None
    try:
        day = dt.datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007
    except ValueError:
        raise BadRequest("Give days like 2026-03-31.") from None
    if not 1971 <= day.year <= 9000:
        raise BadRequest("Give a day of the years 1971 to 9000.")
    return day
