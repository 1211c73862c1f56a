"""Offboard a person: transfer sole ownerships, then end all access."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django import forms

from accounts.admin.finding import email_meant
from accounts.admin.forms import CompletedInput
from accounts.admin.heirs import suggest_heirs
from accounts.admin.names import names_of
from accounts.admin.pages.base import ActPage, ReasonForm
from accounts.admin.pages.person import PersonScope
from accounts.admin.revoking import accounts_billed_to, offboard, why_not_offboard
from accounts.admin.rights import MAX_ROWS
from accounts.deletion import owned_alone
from accounts.models.users import StaffRole

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from django.http import HttpResponse

    from accounts.admin.heirs import Heir
    from accounts.models import User
    from tenantadmin.lib.core.errors import ApiError

#: Names of fields of `OffboardPage`. The field of an account or a tenant has its id as name.
_EVERYTHING: Final = "everything"
_BILLING: Final = "billing"


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
        "First, new owners will get what only this person owns. Then memberships, ownerships, grants, "
        "personal access tokens, staff roles and sessions will end, and the user will be deactivated. Either "
        "all of this happens or nothing. The user's row and history are kept."
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
            label = f"New owner of {name}, if not the one above" if has_several else f"New owner of {name}"
            heir = heirs.get(key)
            is_common = heir is not None and common is not None and heir.email == common.email
            fields[str(key)] = _heir_field(label, None if is_common else heir, required=not has_several)
        if billing := _billing_field(self.person, owned):
            fields[_BILLING] = billing
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
        ended = self.rights(limit=None)
        done = offboard(
            self.person.pk, heirs=heirs, author=self.author, gives_billing=values.get(_BILLING, False)
        )
        names = names_of(heirs)
        owns: defaultdict[str, list[str]] = defaultdict(list)
        for key, heir in heirs.items():
            owns[heir].append(names[key][1] if key in names else str(key))
        message = f"{self.person.email} is offboarded."
        if ended.rows:
            message += f" {len(ended.rows)} ended: {ended.counted}."
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
    none = "No other active user owns or administers it, so there is no suggestion." if required else ""
    return forms.CharField(
        label=label,
        error_messages={"required": "There is no other owner. Name a new one."},
        max_length=400,
        initial=heir.email if heir else "",
        help_text=heir.text if heir else none,
        required=required,
        widget=CompletedInput("people", placeholder="Name or email of an active user"),
    )


def _billing_field(person: User, owned: Collection[UUID]) -> forms.BooleanField | None:
    """Return the field that says who gets the person's mails about billing, if there are any.

    ``owned`` are the ids of what only this person owns.
    """
    billed = list(accounts_billed_to(person).order_by("name", "pk"))
    to_new = ", ".join(it.name for it in billed if it.pk in owned)
    to_other = ", ".join(it.name for it in billed if it.pk not in owned)
    receivers = [
        *([f"to the new owner of {to_new}"] if to_new else []),
        *([f"to another owner of {to_other}"] if to_other else []),
    ]
    if not receivers:
        return None
    return forms.BooleanField(
        label=f"Mails about billing go {' and '.join(receivers)}",
        help_text=f"Otherwise they still go to {person.email}.",
        required=False,
        initial=True,
    )
