"""Pages of rights: on a tenant, of a person, access review; revoke many at once; offboard."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django import forms
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.urls import reverse

from accounts.access_requests import requests_for
from accounts.admin.finding import email_meant
from accounts.admin.forms import CompletedInput
from accounts.admin.heirs import suggest_heirs
from accounts.admin.names import names_of
from accounts.admin.pages.base import (
    ActPage,
    ReasonForm,
    StaffPage,
    TenantActPage,
    TenantPage,
    may,
)
from accounts.admin.revoking import (
    accounts_billed_to,
    offboard,
    revoke_rights,
    set_member,
    why_not_offboard,
)
from accounts.admin.rights import (
    HEADER,
    MAX_ROWS,
    far_reaching_rights,
    left_alone,
    rights_of,
    rights_on,
)
from accounts.admin.telling import group_requests, rank_event, tell_event
from accounts.deletion import owned_alone
from accounts.events import record_event
from accounts.invitations import invitations_into
from accounts.limited_access import current_membership
from accounts.models import Event, User
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole, StaffRole
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import Conflict, NotFound
from tenantadmin.lib.http.csv_files import stream_csv

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from accounts.admin.heirs import Heir
    from accounts.admin.pages.base import Trail
    from accounts.admin.rights import Right, Rights
    from tenantadmin.lib.core.errors import ApiError

_EVENTS = 20
#: The query parameter that requests the CSV file instead of the page.
_CSV = "csv"
#: Names of fields of `OffboardPage`. The field of an account or a tenant has its id as name.
_EVERYTHING: Final = "everything"
_BILLING: Final = "billing"


def _latest(**fields: Any) -> list[tuple[Event, str]]:
    """Return the newest acts: the event that tells it, what was done, and to which tenant or account."""
    found = Event.objects.filter(**fields).order_by("-at", "-id")[:_EVENTS]
    requests = group_requests(found, lambda event: (event.request_id, event.actor))
    events = [min(request, key=rank_event) for request in requests]
    names = names_of(key for it in events for key in (it.tenant_id, it.account_id) if key)
    told = []
    for event in events:
        what, joint = tell_event(event)
        place = event.tenant_id or event.account_id
        name = names[place][1] if place is not None and place in names else ""
        told.append((event, " ".join(filter(None, (what, joint, name))) if name else what))
    return told


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
        "Revoking is final, and takes effect within five seconds, also on tokens already issued. Either all "
        "chosen rights are revoked or none."
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
        ended = revoke_rights(chosen, actor=self.actor)
        if not ended:
            raise Conflict("None of these rights is in force any more. Go back and choose again.")
        return f"Revoked {ended} of {len(chosen)}.", {"rights": [right.key for right in chosen]}


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
            "events": _latest(tenant_id=self.tenant.pk),
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
    effect = "Within five seconds, the user has this role in the tenant, and no other."

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        email, role = email_meant(values["email"]), MembershipRole(values["role"])
        set_member(tenant_id=self.tenant.pk, email=email, role=role, actor=self.actor)
        return f"{email} is {role} of {self.tenant.name}.", {"person": email, "role": role}

    def done_at(self) -> str:
        return self.to("tenant-people")


class PersonScope(StaffPage):
    """A page of one person."""

    person: User

    def prepare(self) -> None:
        person = User.objects.filter(pk=self.kwargs["person"]).first()
        if person is None:
            raise NotFound("There is no such user. Events keep what it did.")
        self.person = person

    def heading(self) -> str:
        return f"{self.title}: {self.person.email}" if hasattr(self, "person") else self.title

    def trail(self) -> Trail:
        pages = [*super().trail(), ("Users", reverse("admin:accounts_user_changelist"))]
        if hasattr(self, "person"):
            pages.append((self.person.email, self.done_at()))
        return pages

    def rights(self, *, limit: int | None) -> Rights:
        return rights_of(self.person, limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": self.person.email}

    def done_at(self) -> str:
        return reverse("admin:person", args=[self.kwargs["person"]])


class PersonPage(PersonScope, RightsPage):
    """A person's rights and sessions, and the latest events about the person."""

    title = "Person"
    template_name = "backoffice/people/person.html"
    file_name = "person-access.csv"

    def revoke_at(self) -> str:
        return reverse("admin:person-revoke", args=[self.person.pk])

    def read(self) -> Mapping[str, Any]:
        is_admin = may(self.request, StaffRole.ADMIN)
        rights = self.rights(limit=MAX_ROWS)
        return {
            "person": self.person,
            "rights": rights,
            "no_offboarding": why_not_offboard(self.person, actor=self.actor) if is_admin else "",
            "is_offboarded": not self.person.is_active and not rights.rows,
            "events": _latest(subject=self.person.email),
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


class OffboardPage(PersonScope, ActPage):
    """Offboard a user: transfer sole ownerships, then revoke all access."""

    title = "Offboard"
    name = "person.offboarded"
    button = "Offboard"
    is_dangerous = True
    is_destructive = True
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    template_name = "backoffice/people/offboard.html"
    effect = (
        "First, new owners get what only this person owns. Then memberships, ownerships, grants, personal "
        "access tokens, staff roles and sessions end, and the user is deactivated. Either all of this "
        "happens or nothing. The user's row and history are kept."
    )

    def form(self, data: Any = None) -> ReasonForm:
        alone = owned_alone(self.person)
        accounts, tenants = list(alone[0].order_by("name", "pk")), list(alone[1].order_by("name", "pk"))
        heirs = suggest_heirs(self.person, accounts=accounts, tenants=tenants)
        owned = {
            **{account.pk: f"the account {account.name}" for account in accounts},
            **{tenant.pk: f"the tenant {tenant.name}" for tenant in tenants},
        }
        fields: dict[str, forms.Field] = {}
        # One new owner for everything, if there are several things; each may get another one.
        common = None
        if has_several := len(owned) > 1:
            emails = Counter(heirs[key].email for key in owned if key in heirs).most_common(1)
            common = next((it for it in heirs.values() if emails and it.email == emails[0][0]), None)
            fields[_EVERYTHING] = _heir_field("New owner of everything below", common)
        for key, name in owned.items():
            label = f"Another owner for {name}" if has_several else f"New owner of {name}"
            heir = heirs.get(key)
            is_common = heir is not None and common is not None and heir.email == common.email
            fields[str(key)] = _heir_field(label, None if is_common else heir, required=not has_several)
        billed = list(accounts_billed_to(self.person).order_by("name", "pk"))
        to_new = ", ".join(it.name for it in billed if it.pk in owned)
        to_other = ", ".join(it.name for it in billed if it.pk not in owned)
        if billed:
            receivers = [
                *([f"to the new owner of {to_new}"] if to_new else []),
                *([f"to another owner of {to_other}"] if to_other else []),
            ]
            fields[_BILLING] = forms.BooleanField(
                label=f"Mails about billing go {' and '.join(receivers)}",
                help_text=f"Otherwise they still go to {self.person.email}.",
                required=False,
                initial=True,
            )
        form_class = type("OffboardForm", (ReasonForm,), {**fields, "field_order": [*fields, "reason"]})
        made: ReasonForm = form_class(data)
        return made

    def read(self) -> Mapping[str, Any]:
        return {
            "person": self.person,
            "refusal": why_not_offboard(self.person, actor=self.actor),
            "rights": self.rights(limit=MAX_ROWS),
        }

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        other = {_EVERYTHING, _BILLING, "reason"}
        heirs = {
            UUID(key): email_meant(heir or values.get(_EVERYTHING, ""))
            for key, heir in values.items()
            if key not in other
        }
        done = offboard(
            self.person.pk, heirs=heirs, actor=self.actor, gives_billing=values.get(_BILLING, False)
        )
        ended = {"membership": done.memberships, "grant": done.grants, "token": done.tokens}
        said = ", ".join(formats.count(number, what) for what, number in ended.items() if number)
        names = names_of(heirs)
        owns: defaultdict[str, list[str]] = defaultdict(list)
        for key, heir in heirs.items():
            owns[heir].append(names[key][1] if key in names else str(key))
        message = f"{self.person.email} is offboarded."
        if said:
            message += f" Ended: {said}."
        for heir in sorted(owns):
            message += f" {heir} now owns {', '.join(owns[heir])}."
        return message, msgspec.to_builtins(done)

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        """Show a problem at the field that was filled in: of one thing, or of everything."""
        if _EVERYTHING in form.cleaned_data:
            of_all = [it for it in error.details if not form.cleaned_data.get(it.path.strip("/"))]
            for message in dict.fromkeys(it.message for it in of_all):
                form.add_error(_EVERYTHING, message)
            error.details = tuple(it for it in error.details if it not in of_all)
            if not error.details:
                return self.show(self.template_name, {"form": form, **self.read()}, status=error.status)
        return super().refused(form, error)


def _heir_field(label: str, heir: Heir | None, *, required: bool = True) -> forms.CharField:
    none = "There is no other active owner or admin to suggest." if required else ""
    return forms.CharField(
        label=label,
        error_messages={"required": "There is no other owner. Name a new one."},
        max_length=400,
        initial=heir.email if heir else "",
        help_text=heir.text if heir else none,
        required=required,
        widget=CompletedInput("people", placeholder="Name or email of an active user"),
    )


class ReviewPage(RightsPage):
    """Access review: staff, wildcard tokens, and access for a limited time."""

    title = "Access review"
    template_name = "backoffice/people/review.html"
    file_name = "access-review.csv"

    def rights(self, *, limit: int | None) -> Rights:
        return far_reaching_rights(limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": "access-review"}

    def revoke_at(self) -> str:
        return reverse("admin:people-revoke")

    def read(self) -> Mapping[str, Any]:
        field = CompletedInput("people", placeholder="Name or email of a person", required=True)
        attributes = {"id": "email", "class": "box"}
        return {
            "rights": self.rights(limit=MAX_ROWS),
            "person_field": field.render("email", None, attributes),
        }


class ReviewRevokePage(RevokePage):
    """Revoke rights of the access review."""

    def rights(self, *, limit: int | None) -> Rights:
        return far_reaching_rights(limit=limit)

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": "access-review"}

    def done_at(self) -> str:
        return reverse("admin:people")
