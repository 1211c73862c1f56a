"""Pages for access to a tenant's log: staff take it for a limited time, and end it."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.admin.pages.base import ReasonForm, TenantActPage
from accounts.limited_access import MAX_HOURS, LastingMember, current_membership, end_access, take_access
from accounts.models import User
from tenantadmin.lib.core.errors import Conflict
from tenantadmin.lib.core.timestamps import format_timestamp


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
        "You become a member of this tenant and may read its logs until the time ends. The tenant's "
        "owners get a mail at once, and see it among the members and in the events, with your reason."
    )
    form_class = AccessForm

    def prepare(self) -> None:
        super().prepare()
        membership = current_membership(self.user, tenant_id=self.tenant.pk)
        if membership is not None and membership.ends_at is None:
            raise LastingMember

    def initial(self) -> dict[str, Any]:
        return {"hours": 1, **super().initial()}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        user = User.objects.get(email=self.actor)
        ends_at = take_access(user, tenant_id=self.tenant.pk, hours=values["hours"])
        message = f"You have access to {self.tenant.name} for {values['hours']} h."
        return message, {"endsAt": format_timestamp(ends_at)}

    def done_at(self) -> str:
        """Return the page of this tenant that needed access, or the list of members."""
        back = self.request.GET.get("back", "")
        return back if back.startswith(self.to("tenant")) else self.to("tenant-people")


class NoAccess(Conflict):
    """The user has no limited access."""

    message = "You have no limited access to this tenant."


class EndAccessPage(TenantActPage):
    """End the limited access."""

    title = "End access"
    name = "access.ended"
    button = "End access"
    effect = "Within five seconds, you are no longer a member of this tenant."

    def prepare(self) -> None:
        super().prepare()
        membership = current_membership(self.user, tenant_id=self.tenant.pk)
        if membership is None or membership.ends_at is None:
            raise NoAccess

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        user = User.objects.get(email=self.actor)
        if not end_access(user, tenant_id=self.tenant.pk, actor=self.actor):
            raise NoAccess
        return f"Your access to {self.tenant.name} has ended.", {}

    def done_at(self) -> str:
        return self.to("tenant-people")
