"""Pages for the access of staff to a tenant: in the dashboard, and to its log for a limited time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.conf import settings
from django.http import HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.http import urlencode

from accounts.admin.base import ReasonForm, TenantActPage
from accounts.limited_access import (
    MAX_HOURS,
    LastingMember,
    approve_for_owners,
    current_membership,
    end_access,
    find_request,
    needs_approval,
    request_access,
    take_access,
    withdraw_requests_of,
)
from accounts.models.users import StaffRole
from accounts.pending import AccessRequestEnded
from accounts.signin.staff.opening import is_challenge, make_code
from accounts.signin.staff.sessions import assurance_of, ways_used
from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import AccessRequest


class AccessForm(ReasonForm):
    """The time of access."""

    hours = forms.IntegerField(label="Hours", min_value=1, max_value=MAX_HOURS, initial=1)
    field_order = ("hours", "reason")


class AccessPage(TenantActPage):
    """Take access to a tenant's log for a limited time."""

    title = "Take access"
    name = "access.taken"
    button = "Take access"
    is_dangerous = True
    needs_live = True
    effect = (
        "You will become a member of this tenant, and may read its logs until the time ends. The tenant's "
        "owners get a mail at once, and see it with your reason among the members."
    )
    form_class = AccessForm

    def prepare(self) -> None:
        super().prepare()
        membership = current_membership(self.user, tenant_id=self.tenant.pk)
        if membership is not None and membership.ends_at is None:
            raise LastingMember

    def get(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if needs_approval(self.tenant.pk):
            return redirect("admin:tenant-access-ask", tenant=self.tenant.pk)
        return super().get(request, **more)

    def initial(self) -> dict[str, Any]:
        return {"hours": 1, **super().initial()}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        ends_at = take_access(self.user, tenant_id=self.tenant.pk, hours=values["hours"])
        message = f"You have access to {self.tenant.name} for {values['hours']} h."
        return message, {"endsAt": format_timestamp(ends_at)}

    def done_at(self) -> str:
        """Return the page of this tenant that needed access, or the list of members."""
        back = self.request.GET.get("back", "")
        return back if back.startswith(self.to("tenant")) else self.to("tenant-people")


class AccessActPage(TenantActPage):
    """A page of an act on access, which leads to the list of members."""

    back = "tenant-people"


class AskAccessPage(AccessActPage):
    """Ask the owners of a tenant for access."""

    title = "Ask for access"
    name = "access.requested"
    button = "Ask the owners"
    is_dangerous = True
    needs_live = True
    effect = (
        "The tenant's owners will get a mail with your reason, and have 12 h to approve or decline. You "
        "get a mail then. Access begins with the approval. In an emergency, another platform admin "
        "approves it on this tenant's page People."
    )
    form_class = AccessForm

    def initial(self) -> dict[str, Any]:
        return {"hours": 1, **super().initial()}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        asked = request_access(self.user, tenant_id=self.tenant.pk, hours=values["hours"])
        return f"The owners of {self.tenant.name} are asked.", {"request": str(asked.pk)}


class WithdrawAccessPage(AccessActPage):
    """Withdraw the user's own request."""

    title = "Withdraw the request for access"
    name = "access.withdrawn"
    button = "Withdraw"
    effect = "The owners will no longer be able to approve it."

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if not withdraw_requests_of(self.user, actor=self.actor, tenant_id=self.tenant.pk):
            raise AccessRequestEnded
        return "Your request is withdrawn.", {}


class ApproveAccessPage(AccessActPage):
    """Approve another user's request in an emergency."""

    title = "Approve access for the owners"
    name = "access.approved"
    button = "Approve"
    is_dangerous = True
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    needs_live = True
    effect = (
        "For an emergency in which no owner answers. Access will begin at once, and the tenant's owners "
        "will get a mail with both your names."
    )
    template_name = "backoffice/accounts/approve_access.html"
    asked: AccessRequest

    def prepare(self) -> None:
        super().prepare()
        self.asked = find_request(tenant_id=self.tenant.pk, request_id=self.kwargs["access_request"])
        if self.asked.state != "open":
            raise AccessRequestEnded

    def read(self) -> Mapping[str, Any]:
        return {"asked": self.asked}

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        approved = approve_for_owners(self.user, tenant_id=self.tenant.pk, request_id=self.asked.pk)
        message = f"{approved.staff.email} has access to {self.tenant.name} for {approved.hours} h."
        return message, {"request": str(approved.pk), "person": approved.staff.email}


class NoAccess(Conflict):
    """The user has no limited access."""

    message = "You have no limited access to this tenant."


class EndAccessPage(AccessActPage):
    """End the limited access."""

    title = "End access"
    name = "access.ended"
    button = "End access"
    effect = "Within five seconds, you will no longer be a member of this tenant."

    def prepare(self) -> None:
        super().prepare()
        membership = current_membership(self.user, tenant_id=self.tenant.pk)
        if membership is None or membership.ends_at is None:
            raise NoAccess

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if not end_access(self.user, tenant_id=self.tenant.pk):
            raise NoAccess
        return f"Your access to {self.tenant.name} has ended.", {}


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
        hours = values.get("hours") or 0
        after: dict[str, Any] = {}
        if hours and needs_approval(self.tenant.pk):
            after["request"] = str(request_access(self.user, tenant_id=self.tenant.pk, hours=hours).pk)
        elif hours:
            after["endsAt"] = format_timestamp(take_access(self.user, tenant_id=self.tenant.pk, hours=hours))
        code = make_code(
            self.user,
            tenant_id=self.tenant.pk,
            reason=values["reason"],
            challenge=self.request.GET.get("challenge", ""),
            assurance=assurance_of(self.request),
            ways=ways_used(self.request, self.user),
        )
        held = current_membership(self.user, tenant_id=self.tenant.pk)
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
