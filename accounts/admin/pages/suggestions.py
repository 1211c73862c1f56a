"""What a field completes while the user types: people, tenants, accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.http import HttpResponse
from django.utils.html import format_html_join

from accounts.admin.finding import find_accounts, find_people, find_tenants
from accounts.admin.pages.base import PART, StaffPage
from tenantadmin.lib.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.http import HttpRequest

#: Value and explanation of each choice, by kind.
_KINDS: Final[dict[str, Callable[[str], Sequence[tuple[str, str]]]]] = {
    "people": lambda term: [(it.email, it.display_name) for it in find_people(term) if it.is_active],
    "tenants": lambda term: [(it.name, f"of {it.account.name}") for it in find_tenants(term)],
    "accounts": lambda term: [(it.name, it.plan) for it in find_accounts(term)],
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
