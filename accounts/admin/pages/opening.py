"""The page that opens a tenant in the dashboard, with access to its log if staff ask for that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.conf import settings
from django.http import HttpResponseRedirect
from django.utils.http import urlencode

from accounts.access_requests import request_access
from accounts.admin.pages.base import ReasonForm, TenantActPage
from accounts.limited_access import MAX_HOURS, current_membership, needs_approval, take_access
from accounts.models import User
from accounts.signin.staff.opening import is_challenge, make_code
from accounts.signin.staff.sessions import assurance_of, ways_used
from tenantadmin.lib.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

#: The part of an address of the dashboard that names a page of a tenant.
_PAGE: Final = re.compile(r"[\w/-]+(\?[\w=&%.:+~-]*)?", re.ASCII)


class OpenForm(ReasonForm):
    """Whether the user wants to read the log, and why it looks at the tenant."""

    hours = forms.TypedChoiceField(
        label="Read its log, run SQL, see names of users",
        required=False,
        coerce=int,
        choices=[("", "no"), *((hours, f"for {hours} h") for hours in range(1, MAX_HOURS + 1))],
    )
    field_order = ("reason", "hours")


class OpenPage(TenantActPage):
    """Sign the user in to the dashboard, as itself. The dashboard sends the challenge of its secret."""

    title = "Open in the dashboard"
    name = "dashboard.opened"
    button = "Open"
    form_class = OpenForm
    address: str

    @property
    def effect(self) -> str:  # type: ignore[override]  # it depends on the tenant
        """What the user will be able to do there."""
        said = "You will see the tenant as its owners do. Each change that you make there asks for a reason."
        if needs_approval(self.tenant.pk):
            return f"{said} The owners approve first who reads its log: they get a mail, and have 12 h."
        return f"{said} If you read its log, the owners get a mail at once, with your reason."

    @property
    def page_wanted(self) -> str:
        """The page of the tenant in the dashboard."""
        wanted = self.request.GET.get("to", "")
        return wanted if _PAGE.fullmatch(wanted) else "overview"

    def get(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if not is_challenge(request.GET.get("challenge", "")):
            given = self.initial()
            return HttpResponseRedirect(self._dashboard(tenant=self.tenant.pk, to=self.page_wanted, **given))
        return super().get(request, **more)

    def form(self, data: Any = None) -> ReasonForm:
        form = super().form(data)
        held = current_membership(self.user, tenant_id=self.tenant.pk)
        if self.tenant.deleted_at is not None or (held is not None and held.ends_at is None):
            del form.fields["hours"]
        return form

    def asks_for_proof(self) -> bool:
        # The dashboard asks for it where an act there was refused without one.
        return bool(self.request.POST.get("hours")) or self.request.GET.get("proof") == "1"

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        user = User.objects.get(email=self.actor)
        hours = values.get("hours") or 0
        after: dict[str, Any] = {}
        if hours and needs_approval(self.tenant.pk):
            after["request"] = str(request_access(user, tenant_id=self.tenant.pk, hours=hours).pk)
        elif hours:
            after["endsAt"] = format_timestamp(take_access(user, tenant_id=self.tenant.pk, hours=hours))
        code = make_code(
            user,
            tenant_id=self.tenant.pk,
            reason=values["reason"],
            challenge=self.request.GET.get("challenge", ""),
            assurance=assurance_of(self.request),
            ways=ways_used(self.request, user),
        )
        held = current_membership(user, tenant_id=self.tenant.pk)
        until = held and held.ends_at
        self.address = self._dashboard(
            code=code,
            to=f"/t/{self.tenant.pk}/{self.page_wanted}",
            name=self.tenant.name,
            reason=values["reason"],
            until=format_timestamp(until) if until else "",
        )
        return "", after

    def done_at(self) -> str:
        return self.address if hasattr(self, "address") else self.to("tenant")

    def _dashboard(self, **query: Any) -> str:
        """Return the address of the dashboard's page that goes on. No server sees what is behind the #."""
        return f"{settings.DASHBOARD_URL}#/open?{urlencode(query)}"
