"""Tables of rights: show them, save them as CSV, and revoke the chosen rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.http import HttpResponseRedirect

from accounts.admin.pages.base import ActPage, StaffPage
from accounts.admin.revoking import revoke_rights
from accounts.admin.rights import HEADER, RightKind, count_kinds, left_alone
from accounts.events import record_event
from accounts.models.events import EventKind
from accounts.models.users import StaffRole
from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.http.streaming import stream_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from accounts.admin.rights import Right, Rights

#: The query parameter that requests the CSV file instead of the page.
_CSV = "csv"


class RightsPage(StaffPage):
    """A page with a table of rights, which is also a CSV file."""

    #: The name of the CSV file.
    file_name: ClassVar[str]

    def rights(self, *, limit: int | None) -> Rights:
        """Return the rights that the page shows."""
        raise NotImplementedError

    def done_to(self) -> Mapping[str, Any]:
        """Return whom events of this page name, like `ActPage.done_to`."""
        raise NotImplementedError

    def revoke_at(self) -> str:
        """Return the address of the page that revokes rights of this table."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **more: Any) -> HttpResponseBase:
        if request.GET.get("format") != _CSV:
            return super().get(request, **more)
        rights = self.rights(limit=None)
        # The file leaves the service, so the download is recorded.
        record_event(
            EventKind.STAFF_ACTED,
            actor=self.actor,
            after={"act": "rights.exported", "rows": len(rights.rows)},
            **self.done_to(),
        )
        return stream_csv(self.file_name, HEADER, rights.cells())


class RevokePage(ActPage):
    """Revoke the chosen rights."""

    title = "Revoke rights"
    name = "rights.revoked"
    button = "Revoke"
    is_dangerous = True
    is_destructive = True
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    template_name = "backoffice/people/revoke.html"
    effect = (
        "Revoking is final, and will take effect within five seconds, also on tokens already issued. "
        "Either all chosen rights will be revoked or none."
    )

    def rights(self, *, limit: int | None) -> Rights:
        """Return the rights from which the reader has chosen."""
        raise NotImplementedError

    def get(self, request: HttpRequest, **more: Any) -> HttpResponse:
        # Before the page asks for the second factor.
        if not request.GET.getlist("right"):
            messages.error(request, "Choose what to revoke first.")
            return HttpResponseRedirect(self.done_at())
        return super().get(request, **more)

    def read(self) -> Mapping[str, Any]:
        rights = self.rights(limit=None)
        chosen = self._chosen(rights)
        return {"chosen": chosen, "rights": rights, "alone": left_alone(chosen)}

    def _chosen(self, rights: Rights) -> Sequence[Right]:
        values = self.request.POST if self.request.method == "POST" else self.request.GET
        keys = set(",".join(values.getlist("right")).split(","))
        return [right for right in rights.rows if right.key in keys and right.can_be_revoked]

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        chosen = self._chosen(self.rights(limit=None))
        ended = revoke_rights(chosen, author=self.author)
        if not ended:
            raise Conflict("None of these rights is in force any more. Go back and choose again.")
        verb = "Ended" if all(right.kind is RightKind.SESSION for right in ended) else "Revoked"
        missed = len(chosen) - len(ended)
        before = f" {missed} had ended before." if missed else ""
        return f"{verb} {count_kinds(ended)}.{before}", {"rights": [right.key for right in chosen]}
