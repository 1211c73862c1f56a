"""Search tenants, people, accounts, FQDNs and domains by words, beginnings and ids."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.postgres.search import SearchQuery, SearchVector
from django.db.models import Q

from accounts.models import Account, Domain, Fqdn, Membership, Tenant, User
from accounts.models.tenants import tenant_name_key
from accounts.models.words import words_of
from tenantadmin.lib.core.emails import normalize_email
from tenantadmin.lib.http.admin_lists import MAX_RELATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

#: Maximum number of results of each kind.
MAX_FOUND: Final = 10
_NAME: Final = SearchVector("name", config="simple")
#: At most this many tenants of one email are found.
_MAX_OF_ADDRESS: Final = 100
#: The start of an id, as lists show it.
_START_OF_ID: Final = re.compile(r"[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class Search:
    """A search of rows for a term. Each part uses an index.

    Attributes:
        begins: the condition for the rows that are meant most likely.
        others: searches for other rows.
    """

    rows: QuerySet[Any]
    begins: Q
    others: Sequence[QuerySet[Any]]

    def first(self) -> list[Any]:
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


def search_tenants(term: str) -> Search:
    """Search tenants, deleted ones too, by name, id, FQDN or a member's email."""
    term = term.strip()
    # FQDN and email are looked up in queries of their own.
    ids: list[UUID] = list(_tenants_named(term.lower()))
    with suppress(ValueError):
        ids.append(UUID(term))
    every = Tenant.objects.select_related("account")
    begins = Q(name_key__startswith=tenant_name_key(term)) | Q(pk__in=ids)
    return Search(every, begins, (with_words(every, term, _NAME), with_start_of_id(every, term)))


def search_people(term: str) -> Search:
    """Search users by name or email."""
    users, term = User.objects.all(), term.strip()
    words = SearchVector("display_name", config="simple"), words_of("email")
    begins = Q(email__startswith=normalize_email(term) if "@" in term else term.lower())
    return Search(users, begins, [with_words(users, term, vector) for vector in words])


def search_accounts(term: str) -> Search:
    """Search accounts, deleted ones too, by name or id."""
    every, term = Account.objects.all(), term.strip()
    others = with_words(every, term, _NAME), with_start_of_id(every, term)
    return Search(every, Q(name__istartswith=term), others)


def search_fqdns(term: str) -> Search:
    """Search FQDNs, released ones too, by words of the name."""
    every, term = Fqdn.objects.all(), term.strip().lower()
    return Search(every, Q(name__startswith=term), [with_words(every, term, words_of("name"))])


def search_domains(term: str) -> Search:
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


def find_tenants(term: str) -> list[Tenant]:
    """Return the first tenants that a term means."""
    return search_tenants(term).first()


def find_people(term: str) -> list[User]:
    """Return the first users that a term means."""
    return search_people(term).first()


def email_meant(text: str) -> str:
    """Return the email of the one active user that ``text`` means, else ``text`` as an email."""
    email = normalize_email(text)
    active = [user.email for user in find_people(text) if user.is_active] if text and "@" not in text else []
    return active[0] if len(active) == 1 else email


def find_accounts(term: str) -> list[Account]:
    """Return the first accounts that a term means."""
    return search_accounts(term).first()


def find_fqdns(term: str) -> list[Fqdn]:
    """Return the first FQDNs that a term means."""
    return search_fqdns(term).first()


def find_domains(term: str) -> list[Domain]:
    """Return the first domains that a term means."""
    return search_domains(term).first()


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
