"""Search tenants, people, accounts, FQDNs and domains by words; fields that complete names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic
from uuid import UUID

from django import forms
from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from accounts.admin.base import PART, StaffPage
from accounts.cursors import Row
from accounts.models import Account, Domain, Fqdn, Membership, Tenant, User
from accounts.models.querysets import words_of
from accounts.models.tenants import tenant_name_key
from accounts.signin.staff.sessions import PART_PARAMETER
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.http.admin_lists import MAX_RELATED

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


#: Maximum number of results of each kind.
MAX_FOUND: Final = 10
_NAME: Final = SearchVector("name", config="simple")
#: At most this many tenants of one email are found.
_MAX_OF_ADDRESS: Final = 100
#: The start of an id, as lists show it.
_START_OF_ID: Final = re.compile(r"[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class Search(Generic[Row]):
    """A search of rows for a term. Each part uses an index.

    Attributes:
        begins: the condition for the rows that are meant most likely.
        others: searches for other rows.
    """

    rows: QuerySet[Row]
    begins: Q
    others: Sequence[QuerySet[Any]]

    def first(self) -> list[Row]:
        """Return at most `MAX_FOUND` rows, the likeliest first."""
        return _first_of(self.rows.filter(self.begins), *self.others)

    def condition(self) -> Q:
        """Return a filter for a list: for all rows that `begins` means, and some of the others."""
        more = {
            key
            for search in self.others
            for key in search.order_by().values_list("pk", flat=True)[:MAX_RELATED]
        }
        return self.begins | Q(pk__in=more) if more else self.begins


def search_tenants(term: str) -> Search[Tenant]:
    """Search tenants, deleted ones too, by name, id, FQDN or a member's email."""
    term = term.strip()
    # FQDN and email are looked up in queries of their own.
    ids: list[UUID] = list(_tenants_named(term.lower()))
    with suppress(ValueError):
        ids.append(UUID(term))
    every = Tenant.objects.select_related("account")
    begins = Q(name_key__startswith=tenant_name_key(term)) | Q(pk__in=ids)
    return Search(every, begins, (with_words(every, term, _NAME), with_start_of_id(every, term)))


def search_people(term: str) -> Search[User]:
    """Search users by name or email."""
    users, term = User.objects.all(), term.strip()
    words = SearchVector("display_name", config="simple"), words_of("email")
    begins = Q(email__startswith=normalize_email(term) if "@" in term else term.lower())
    return Search(users, begins, [with_words(users, term, vector) for vector in words])


def search_accounts(term: str) -> Search[Account]:
    """Search accounts, deleted ones too, by name or id."""
    every, term = Account.objects.all(), term.strip()
    others = with_words(every, term, _NAME), with_start_of_id(every, term)
    return Search(every, Q(name__istartswith=term), others)


def search_fqdns(term: str) -> Search[Fqdn]:
    """Search FQDNs, released ones too, by words of the name."""
    every, term = Fqdn.objects.all(), term.strip().lower()
    return Search(every, Q(name__startswith=term), [with_words(every, term, words_of("name"))])


def search_domains(term: str) -> Search[Domain]:
    """Search domains by words of the name."""
    every, term = Domain.objects.select_related("account"), term.strip().lower()
    return Search(every, Q(name=term), [with_words(every, term, words_of("name"))])


def people_meant(term: str) -> list[int]:
    """Return the ids of users that a term means by beginnings of their name or email."""
    if "\0" in term:
        return []
    people = User.objects.filter(search_people(term).condition()).order_by()
    return list(people.values_list("pk", flat=True)[:MAX_RELATED])


def accounts_meant(term: str) -> list[UUID]:
    """Return the ids of accounts that a term means by name or id."""
    accounts = Account.objects.filter(search_accounts(term).condition()).order_by("pk")
    return list(accounts.values_list("pk", flat=True)[:MAX_RELATED])


def tenants_meant(term: str) -> Q:
    """Return a filter for tenants, also by beginnings of a member's name or email and of an FQDN."""
    members = Membership.objects.filter(user__in=people_meant(term)).order_by("pk")
    fqdns = with_words(Fqdn.objects.order_by(), term, words_of("name"))
    related = {
        *members.values_list("tenant_id", flat=True)[:MAX_RELATED],
        *fqdns.values_list("tenant_id", flat=True)[:MAX_RELATED],
    }
    named = search_tenants(term).condition()
    return named | Q(pk__in=related) if related else named


def _tenants_named(text: str) -> QuerySet[Fqdn, UUID] | QuerySet[Membership, UUID]:
    if "@" in text:
        members = Membership.objects.filter(user__email=text).order_by("pk")
        return members.values_list("tenant_id", flat=True)[:_MAX_OF_ADDRESS]
    return Fqdn.objects.filter(name=text).values_list("tenant_id", flat=True)


def email_meant(text: str) -> str:
    """Return the email of the one active user that ``text`` means, else ``text`` as an email."""
    email = normalize_email(text)
    active = (
        [user.email for user in search_people(text).first() if user.is_active]
        if text and "@" not in text
        else []
    )
    return active[0] if len(active) == 1 else email


def _first_of(*searches: QuerySet[Any]) -> list[Any]:
    """Return at most `MAX_FOUND` results, each once. Results of an earlier search are first."""
    found: dict[Any, Any] = {}
    for search in searches:
        # In no order: any order would read all rows that match.
        found |= {row.pk: row for row in search.order_by()[:MAX_FOUND] if row.pk not in found}
        if len(found) >= MAX_FOUND:
            break
    return list(found.values())[:MAX_FOUND]


def with_words(rows: QuerySet[Any], term: str, vector: SearchVector) -> QuerySet[Any]:
    """Return the rows in which each word of ``term`` begins a word of ``vector``, which has an index."""
    words = re.findall(r"[^\W_]+", term)
    if not words:
        return rows.none()
    query = SearchQuery(" & ".join(f"{word}:*" for word in words), search_type="raw", config="simple")
    found: QuerySet[Any] = rows.annotate(words=vector).filter(words=query)
    return found


def with_start_of_id(rows: QuerySet[Any], term: str) -> QuerySet[Any]:
    """Return the rows whose id, a UUID, begins with ``term``: at least 6 digits."""
    digits = term.replace("-", "").lower()
    if not _START_OF_ID.fullmatch(digits):
        return rows.none()
    return rows.filter(pk__range=(UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))))


class CompletedInput(forms.TextInput):
    """A field that completes ``people`` (to an email), ``tenants`` or ``accounts`` from words of their names.

    The page's htmx fills the list of choices (`accounts.admin.finding`).
    """

    def __init__(self, kind: str, **attrs: Any) -> None:
        self.kind = kind
        super().__init__({"autocomplete": "off", **attrs})

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        choices = f"{name}-choices"
        more = {
            "list": choices,
            # So this request does not save the session, which would overwrite what a form saved meanwhile.
            "hx-get": f"{reverse('admin:suggestions', args=[self.kind])}?{PART_PARAMETER}=choices",
            "hx-trigger": "input changed delay:200ms",
            "hx-target": f"next #{choices}",
            "hx-sync": "this:replace",
        }
        field = super().render(name, value, {**(attrs or {}), **more}, renderer)
        return format_html('{}<datalist id="{}"></datalist>', field, choices)


def split_ids(text: str) -> frozenset[str]:
    """Return the ids in a comma-separated text."""
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


#: Value and explanation of each choice, by kind.
_KINDS: Final[dict[str, Callable[[str], Sequence[tuple[str, str]]]]] = {
    "people": lambda term: [
        (user.email, user.display_name) for user in search_people(term).first() if user.is_active
    ],
    "tenants": lambda term: [
        (tenant.name, f"of {tenant.account.name}") for tenant in search_tenants(term).first()
    ],
    "accounts": lambda term: [(account.name, account.plan) for account in search_accounts(term).first()],
}


class SuggestionsPage(StaffPage):
    """The choices of a `CompletedInput`, as options. The request has the field under its own name."""

    title = "Suggestions"

    def get(self, request: HttpRequest, **_: object) -> HttpResponse:
        find = _KINDS.get(self.kwargs["kind"])
        if find is None:
            raise NotFound
        typed = (str(value) for name, value in request.GET.items() if name != PART)
        term = next(typed, "").replace("\0", "").strip()[:100]
        found = find(term) if term else ()
        return HttpResponse(format_html_join("", '<option value="{}">{}</option>', found))
