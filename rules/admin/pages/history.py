"""The page of a tenant's history: changes, diff of two revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.admin.pages.base import may
from accounts.models.history import RevisionKind
from accounts.models.users import StaffRole
from rules.admin.history import KINDS, blame_rules, compare, find_restorable, read_page
from rules.admin.names import NamesRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest


def kind_of(request: HttpRequest) -> RevisionKind:
    """Return the kind of document in the query string; rules by default."""
    value = request.GET.get("kind", "")
    return RevisionKind(value) if value in {kind.value for kind in KINDS} else RevisionKind.RULES


def number(request: HttpRequest, name: str) -> int | None:
    """Return the revision in the query string, or None."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


class HistoryPage(NamesRules):
    """The changes, with the diff of two revisions, and blame."""

    title = "History"
    template_name = "backoffice/tenant/history.html"

    def read(self) -> Mapping[str, Any]:
        kind = kind_of(self.request)
        page = read_page(self.tenant.pk, kind, cursor=self.request.GET.get("cursor") or None)
        later = number(self.request, "to")
        earlier = number(self.request, "from")
        compared = None
        if later is not None:
            before = max(later - 1, 0) if earlier is None else earlier
            compared = compare(self.tenant.pk, kind, earlier=before, later=later)
        is_admin = may(self.request, StaffRole.ADMIN) and self.tenant.deleted_at is None
        return {
            "kind": kind,
            "kinds": KINDS,
            "changes": [(change, change.text) for change in page.changes],
            "live": page.changes[0].seq if is_admin and not self.request.GET.get("cursor") else None,
            "cursor": page.cursor,
            "compared": compared,
            "restorable": find_restorable(self.tenant.pk, kind, compared) if compared and is_admin else (),
            "blame": blame_rules(self.tenant.pk) if kind is RevisionKind.RULES else [],
        }
