"""Base classes of staff pages: who may see a page, its frame and tabs, parts that are polled, forms that act.

docs/contributing.md has the recipe for a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast
from uuid import UUID

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.reauthentication import STATE_SESSION_KEY, is_reauthentication_required
from allauth.core.internal.httpkit import serialize_request
from django import forms
from django.contrib import admin, messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.db import transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.views.generic import View

from accounts.events import record_event
from accounts.limited_access import may_read_logs
from accounts.models import Tenant
from accounts.models.events import EventKind
from accounts.models.users import StaffRole
from accounts.readers.rule import Author
from accounts.signin.staff.sessions import PART_PARAMETER
from accounts.tenants.errors import TenantNotFound
from tenantadmin.lib.core.errors import ApiError, Forbidden
from tenantadmin.lib.core.request_context import MAX_REASON, REASON_HELP, acting_for
from tenantadmin.lib.http.formats import with_moments

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern

    from accounts.models import User

    #: Title and address of each page above.
    Trail = Sequence[tuple[str, str]]


#: Title and page name of each tab, by its place.
TABS: Final[dict[int, tuple[str, str]]] = {}


class Tab(NamedTuple):
    """One tab. ``is_current``: the reader is on its page or a page below it."""

    title: str
    href: str
    is_current: bool


def add_tab(place: int, title: str, *, page: str) -> None:
    """Add a tab for the page named ``page``. Tabs are sorted by ``place``, any number that is not taken."""
    TABS[place] = title, page


def tabs_of(tenant_id: UUID, *, path: str) -> list[Tab]:
    """Return the tabs of a tenant, as the page at ``path`` shows them."""
    found = []
    for _, (title, page) in sorted(TABS.items()):
        href = reverse(f"admin:{page}", kwargs={"tenant": tenant_id})
        is_current = path == href if page == "tenant" else path.startswith(href)
        found.append(Tab(title, href, is_current))
    return found


#: The query parameter that requests one part of a page.
PART: Final = PART_PARAMETER


class StaffPage(View):
    """A staff page of the admin site.

    Attributes:
        needs: the staff role that may see the page.
        parts: templates of the parts that the page polls with ``?part=name``.
    """

    title: str = ""
    template_name: str = ""
    needs: ClassVar[StaffRole] = StaffRole.SUPPORT
    parts: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def at(cls, route: str, name: str) -> URLPattern:
        """Return the URL pattern of the page, which requires the admin site's sign-in."""
        return path(route, admin.site.admin_view(cls.as_view()), name=name)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer the request, and show errors on a page."""
        try:
            if not may(request, self.needs):
                raise Forbidden("Your role on this site does not allow this. Ask a platform admin.")
            self.prepare()
            # Parts of the templates are read while they are rendered.
            return super().dispatch(request, *args, **kwargs)
        except ApiError as error:
            return self.show("backoffice/failed.html", {"error": error}, status=error.status)

    def prepare(self) -> None:
        """Read the object of the page, before `get` and `post`."""

    def read(self) -> Mapping[str, Any]:
        """Return the context of the template."""
        return {}

    def heading(self) -> str:
        """Return the heading of the page."""
        return self.title

    def trail(self) -> Trail:
        """Return the pages above this one, for the breadcrumbs."""
        return [("Home", reverse("admin:index"))]

    def get(self, request: HttpRequest, **_: Any) -> HttpResponseBase:
        template = self.parts.get(request.GET.get(PART, ""), self.template_name)
        return self.show(template, self.read())

    def show(self, template: str, content: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
        """Render ``template`` in the frame of the admin site."""
        context = {
            **admin.site.each_context(self.request),
            "title": self.heading(),
            "trail": self.trail(),
            "page": self,
            "is_admin": may(self.request, StaffRole.ADMIN),
            **content,
        }
        return TemplateResponse(self.request, template, context, status=status)

    @property
    def user(self) -> User:
        """The signed-in user. `admin_view` lets only users in."""
        return cast("User", self.request.user)

    @property
    def actor(self) -> str:
        """The email of the signed-in user."""
        return self.user.email


def may(request: HttpRequest, role: StaffRole) -> bool:
    """Return True if the user has the staff role. Admins may do everything that support may."""
    own = request.user.staff_role  # type: ignore[union-attr]  # admin_view lets only users in
    return own is StaffRole.ADMIN or own is role


class NoLogAccess(Forbidden):
    """The user is not a member of the tenant."""

    message = "This is for members of the tenant. Take access for a limited time: see its page People."


class DeletedTenant(TenantNotFound):
    """The tenant is deleted."""

    message = "The tenant is deleted and cannot be changed."


class ObjectPage(StaffPage):
    """A page of one object, whose key is in the address.

    Attributes:
        of: the name of the object's own page, of the key in addresses, and of the attribute with the object.
        rows: where the object is looked up.
        missing: the error if there is none.
        back: the name of the page of the object to which an act leads, if not to its own.
    """

    of: ClassVar[str]
    rows: ClassVar[QuerySet[Any]]
    missing: ClassVar[type[ApiError]]
    back: ClassVar[str] = ""

    def prepare(self) -> None:
        found = self.rows.filter(pk=self.kwargs[self.of]).first()
        if found is None:
            raise self.missing
        setattr(self, self.of, found)

    def heading(self) -> str:
        found = getattr(self, self.of, None)
        return f"{self.title}: {found}" if found else self.title

    def trail(self) -> Trail:
        model = self.rows.model._meta
        listed = reverse(f"admin:accounts_{model.model_name}_changelist")
        pages = [*super().trail(), (capfirst(model.verbose_name_plural), listed)]
        if found := getattr(self, self.of, None):
            pages.append((str(found), self.to(self.of)))
        return pages

    def to(self, page: str, **more: Any) -> str:
        """Return the address of another page of this object."""
        return reverse(f"admin:{page}", kwargs={self.of: self.kwargs[self.of], **more})

    def done_at(self) -> str:
        return self.to(self.back or self.of)


class TenantPage(ObjectPage):
    """A page of one tenant, which may be deleted, with the tenant's tabs.

    Attributes:
        needs_live: refuse the page for a deleted tenant.
    """

    of = "tenant"
    rows = Tenant.objects.select_related("account")
    missing = TenantNotFound
    needs_live: ClassVar[bool] = False
    tenant: Tenant

    def prepare(self) -> None:
        super().prepare()
        if self.needs_live and self.tenant.deleted_at is not None:
            raise DeletedTenant

    def done_to(self) -> Mapping[str, Any]:
        tenant = self.tenant
        return {"subject": str(tenant.pk), "tenant_id": tenant.pk, "account_id": tenant.account_id}

    @cached_property
    def has_access(self) -> bool:
        """True if the tenant is live and the user is a member, who may see its log and users."""
        return self.tenant.deleted_at is None and may_read_logs(self.user, tenant_id=self.tenant.pk)

    def require_access(self) -> None:
        """Raise `NoLogAccess` if the user may not see the tenant's log."""
        if not self.has_access:
            raise NoLogAccess

    def show(self, template: str, content: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
        tenant = getattr(self, "tenant", None)
        tabs = [] if tenant is None else tabs_of(tenant.pk, path=self.request.path)
        return super().show(template, {"tenant": tenant, "tabs": tabs, **content}, status=status)


class ReasonForm(forms.Form):
    """The reason, which every act needs."""

    reason = forms.CharField(
        label="Reason or ticket",
        max_length=MAX_REASON,
        help_text=REASON_HELP,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class ActPage(StaffPage):
    """A page with a form that performs one action. Records an event with the reason.

    Attributes:
        name: the name of the action in the event, such as ``rules.published``.
        effect: shown above the form: what the action will do.
        button: the text of the button.
        is_dangerous: ask for the second factor again before it is done. The request goes on then.
        is_destructive: what it ends does not come back: the button is red.
    """

    name: ClassVar[str]
    effect: ClassVar[str] = ""
    button: ClassVar[str] = "Do it"
    is_dangerous: ClassVar[bool] = False
    is_destructive: ClassVar[bool] = False
    form_class: ClassVar[type[ReasonForm]] = ReasonForm
    template_name = "backoffice/act.html"

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        if part := self.parts.get(request.GET.get(PART, "")):
            return self.show(part, self.read())
        return self.show(self.template_name, {"form": self.form(), **self.read()})

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        if self.asks_for_proof() and is_reauthentication_required(request, app="allauth.mfa"):
            return _ask_for_proof(request)
        form = self.form(request.POST)
        if not form.is_valid():
            return self.show(self.template_name, {"form": form, **self.read()}, status=400)
        try:
            message = self.perform(form.cleaned_data)
        except ApiError as error:
            with acting_for(form.cleaned_data["reason"]):
                error.settle()
            return self.refused(form, error)
        if message:
            messages.success(request, with_moments(message))
        return HttpResponseRedirect(self.done_at())

    def asks_for_proof(self) -> bool:
        """Return True if the request needs a proof of the last minutes."""
        return self.is_dangerous

    def perform(self, values: dict[str, Any]) -> str:
        """Act and record the event in one transaction. Return the message for the user, if any."""
        with acting_for(values["reason"]), transaction.atomic():
            message, after = self.act(values)
            record_event(
                EventKind.STAFF_ACTED,
                actor=self.actor,
                after={"act": self.name, **after},
                **self.done_to(),
            )
        return message

    @property
    def author(self) -> Author:
        """The signed-in user as who changes rights. Only a page that asks for a proof has one."""
        if not self.is_dangerous:
            raise AssertionError(f"{type(self).__name__} changes rights, so it must be dangerous.")
        return Author.on_site(self.user)

    def done_to(self) -> Mapping[str, Any]:
        """Return whom the event names: ``subject``, and ``tenant_id`` and ``account_id`` if known."""
        raise NotImplementedError

    def form(self, data: Any = None) -> ReasonForm:
        """Return the form, bound to ``data`` if given."""
        return self.form_class(data, initial=self.initial()) if data is None else self.form_class(data)

    def initial(self) -> dict[str, Any]:
        """Return the initial values of the form, from the query string."""
        return {
            name: self.request.GET[name] for name in self.form_class.base_fields if name in self.request.GET
        }

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Perform the action. Return the message for the user and more values for the event.

        Raises:
            ApiError: the action is refused; nothing was changed.
        """
        raise NotImplementedError

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        """Show the form again, with the error. What concerns a field stands at the field."""
        fields = {
            name.replace("_", ""): name for name, field in form.fields.items() if not field.widget.is_hidden
        }
        places = [fields.get(detail.path.strip("/").split("/")[0].lower()) for detail in error.details]
        for name, detail in zip(places, error.details, strict=True):
            if name is not None:
                form.add_error(name, detail.message)
        # The error itself says no more if all of its details have a field.
        told = {} if places and all(places) else {"error": error}
        return self.show(self.template_name, {"form": form, **told, **self.read()}, status=error.status)

    def done_at(self) -> str:
        """Return the address of the next page."""
        raise NotImplementedError


def _ask_for_proof(request: HttpRequest) -> HttpResponse:
    """Keep the request, and go on with it after the user has proved again who it is.

    As allauth's `suspend_request`, which goes on only with an address without a query.
    """
    request.session[STATE_SESSION_KEY] = {"request": serialize_request(request)}
    confirm = get_adapter().get_reauthentication_methods(request.user)[0]["url"]
    return HttpResponseRedirect(f"{confirm}?{urlencode({REDIRECT_FIELD_NAME: request.path})}")


class TenantActPage(TenantPage, ActPage):
    """A page with a form that performs one action on a tenant."""
