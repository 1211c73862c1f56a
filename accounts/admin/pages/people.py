"""The tab People of a tenant: its rights, invitations and latest events; set a member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from accounts.access_requests import requests_for
from accounts.admin.finding import email_meant
from accounts.admin.forms import CompletedInput
from accounts.admin.latest import latest_acts
from accounts.admin.pages.base import ReasonForm, TenantActPage, TenantPage
from accounts.admin.pages.rights import RevokePage, RightsPage
from accounts.admin.revoking import set_member
from accounts.admin.rights import MAX_ROWS, rights_on
from accounts.invitations import invitations_into
from accounts.limited_access import current_membership
from accounts.models.users import MembershipRole, StaffRole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.admin.rights import Rights


class TenantRights(TenantPage):
    """The rights on one tenant."""

    def rights(self, *, limit: int | None) -> Rights:
        return rights_on(self.tenant, limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        tenant = self.tenant
        return {"subject": str(tenant.pk), "tenant_id": tenant.pk, "account_id": tenant.account_id}

    def done_at(self) -> str:
        return self.to("tenant-people")


class PeoplePage(TenantRights, RightsPage):
    """All rights on a tenant, and the latest events about it."""

    title = "People"
    template_name = "backoffice/tenant/people.html"
    file_name = "tenant-access.csv"

    def revoke_at(self) -> str:
        return self.to("tenant-revoke")

    def read(self) -> Mapping[str, Any]:
        return {
            "rights": self.rights(limit=MAX_ROWS),
            "invitations": invitations_into(self.tenant.pk),
            "access_requests": requests_for(self.tenant.pk),
            "membership": current_membership(self.user, tenant_id=self.tenant.pk),
            "events": latest_acts(tenant_id=self.tenant.pk),
        }


class TenantRevokePage(TenantRights, RevokePage):
    """Revoke rights on a tenant."""


class MemberForm(ReasonForm):
    """A user's email, and the role."""

    email = forms.CharField(
        label="Person", max_length=400, widget=CompletedInput("people", placeholder="Name or email")
    )
    role = forms.ChoiceField(label="Role", choices=MembershipRole.choices, initial=MembershipRole.OWNER)
    field_order = ("email", "role", "reason")


class MemberPage(TenantActPage):
    """Add a member or change a role. Also gives a tenant without an owner a new one."""

    title = "Add a member or change a role"
    name = "member.set"
    button = "Save"
    is_dangerous = True
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    needs_live = True
    form_class = MemberForm
    effect = "Within five seconds, the user will have this role in the tenant, and no other."

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        email, role = email_meant(values["email"]), MembershipRole(values["role"])
        set_member(tenant_id=self.tenant.pk, email=email, role=role, author=self.author)
        return f"{email} is {role} of {self.tenant.name}.", {"person": email, "role": role}

    def done_at(self) -> str:
        return self.to("tenant-people")
