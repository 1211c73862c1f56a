"""Pages of people: the people of a tenant, one person, and the access review of all tenants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from django import forms
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.http import HttpResponseRedirect
from django.urls import reverse

from accounts.admin.actions import USER_ACTIONS
from accounts.admin.base import ObjectPage, ReasonForm, StaffPage, TenantActPage, TenantPage, may
from accounts.admin.finding import CompletedInput, email_meant
from accounts.admin.rights import (
    MAX_ROWS,
    RevokePage,
    RightsPage,
    far_reaching_rights,
    rights_of,
    rights_on,
    why_not_offboard,
)
from accounts.admin.words import latest_acts
from accounts.invitations import invitations_into
from accounts.limited_access import current_membership, requests_for
from accounts.models import Tenant, User
from accounts.models.users import MembershipRole, StaffRole
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from accounts.signin.staff.sessions import authenticators_of
from accounts.tenants.errors import TenantNotFound
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.http.admin_actions import FROM_RECORD, TO_PAGE, is_offered

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.admin.rights import Rights


def set_member(*, tenant_id: UUID, email: str, role: MembershipRole, author: Author) -> None:
    """Make a user a member of a live tenant, or change the role.

    Raises:
        NotFound: there is no such user.
        TenantNotFound: there is no such live tenant.
        Forbidden: as `change_readers`.
    """
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(email=email).first()
        if user is None:
            raise NotFound(f"There is no user '{email}'. A user exists after the first sign-in.")
        live = Tenant.objects.live().select_for_update(no_key=True).filter(pk=tenant_id)
        if not live.exists():
            raise TenantNotFound
        change_readers(author, SetMembership(user, tenant_id, role))


class TenantRights(TenantPage):
    """The rights on one tenant."""

    back = "tenant-people"

    def rights(self, *, limit: int | None) -> Rights:
        return rights_on(self.tenant, limit=limit)


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
    back = "tenant-people"
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


_FACTORS: Final = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
}
#: Actions on users that this page offers. The record of the user offers all.
_SIGNING_IN: Final = frozenset({"reset_second_factor", "invite_second_factor", "end_sessions"})


class UserNotFound(NotFound):
    message = "There is no such user. Events keep what it did."


class PersonScope(ObjectPage):
    """A page of one person."""

    of = "person"
    rows = User.objects.all()
    missing = UserNotFound
    person: User

    def rights(self, *, limit: int | None) -> Rights:
        return rights_of(self.person, limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": self.person.email}


class PersonPage(PersonScope, RightsPage):
    """A person's rights and sessions, and the latest events about the person."""

    title = "Person"
    template_name = "backoffice/people/person.html"
    file_name = "person-access.csv"

    def revoke_at(self) -> str:
        return self.to("person-revoke")

    def read(self) -> Mapping[str, Any]:
        is_admin = may(self.request, StaffRole.ADMIN)
        rights = self.rights(limit=MAX_ROWS)
        return {
            "person": self.person,
            "rights": rights,
            "no_offboarding": why_not_offboard(self.person, actor=self.actor) if is_admin else "",
            "is_offboarded": not self.person.is_active and not rights.rows,
            "factors": [
                (_FACTORS[factor.type], factor.created_at) for factor in authenticators_of(self.person)
            ],
            "sessions": self.person.refresh_tokens.in_force().count(),
            "offered": self._offered() if is_admin else {},
            "sends_to": reverse("admin:accounts_user_changelist"),
            "fields": {ACTION_CHECKBOX_NAME: self.person.pk, FROM_RECORD: TO_PAGE},
            "events": latest_acts(subject=self.person.email),
        }

    def _offered(self) -> dict[str, str]:
        """Return the titles of the actions on ways to sign in that would not be refused, by name."""
        return {
            run.__name__: run.short_description  # type: ignore[attr-defined]  # of `admin.action`
            for run in USER_ACTIONS
            if run.__name__ in _SIGNING_IN and is_offered(run, self.request, self.person)
        }


class PersonRevokePage(PersonScope, RevokePage):
    """Revoke rights of one person."""


class PersonOfPage(StaffPage):
    """Redirect from an email to the person's page."""

    title = "Person"

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        email = email_meant(request.GET.get("email", "").replace("\0", ""))
        found = User.objects.filter(email=email).values_list("pk", flat=True).first()
        if found is None:
            raise NotFound(f"There is no user '{email}'. Events keep what an earlier one did.")
        return HttpResponseRedirect(reverse("admin:person", args=[found]))


class ReviewScope(StaffPage):
    """A page of the access review."""

    def rights(self, *, limit: int | None) -> Rights:
        return far_reaching_rights(limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": "access-review"}

    def done_at(self) -> str:
        return reverse("admin:people")


class ReviewPage(ReviewScope, RightsPage):
    """Access review: staff, wildcard tokens, and access for a limited time."""

    title = "Access review"
    template_name = "backoffice/people/review.html"
    file_name = "access-review.csv"

    def revoke_at(self) -> str:
        return reverse("admin:people-revoke")

    def read(self) -> Mapping[str, Any]:
        field = CompletedInput("people", placeholder="Name or email of a person", required=True)
        attributes = {"id": "email", "class": "box"}
        return {
            "rights": self.rights(limit=MAX_ROWS),
            "person_field": field.render("email", None, attributes),
        }


class ReviewRevokePage(ReviewScope, RevokePage):
    """Revoke rights of the access review."""
