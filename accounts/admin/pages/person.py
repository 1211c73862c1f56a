"""Pages of one person: ways to sign in, rights, sessions and latest events; revoke rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from allauth.mfa.models import Authenticator
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpResponseRedirect
from django.urls import reverse

from accounts.admin.actions import USER_ACTIONS
from accounts.admin.finding import email_meant
from accounts.admin.latest import latest_acts
from accounts.admin.pages.base import StaffPage, may
from accounts.admin.pages.rights import RevokePage, RightsPage
from accounts.admin.revoking import why_not_offboard
from accounts.admin.rights import MAX_ROWS, rights_of
from accounts.models import User
from accounts.models.users import StaffRole
from accounts.signin.staff.sessions import authenticators_of
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.http.admin_actions import FROM_RECORD, TO_PAGE, is_offered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse

    from accounts.admin.pages.base import Trail
    from accounts.admin.rights import Rights


_FACTORS: Final = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
}
#: Actions on users that this page offers. The record of the user offers all.
_SIGNING_IN: Final = frozenset({"reset_second_factor", "invite_second_factor", "end_sessions"})


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
            "factors": [(_FACTORS[it.type], it.created_at) for it in authenticators_of(self.person)],
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
