"""Pages of the terms of service: acknowledgements, and publishing a new text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.urls import reverse

from accounts.admin.pages.base import PART, ActPage, ReasonForm, StaffPage
from accounts.models.users import StaffRole
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import ApiError, Conflict
from tenantadmin.lib.http.health import ObjectStoreUnreachable
from tenantadmin.lib.http.streaming import stream_csv
from tenantadmin.lib.objectstore import StoreError
from tosapp.active import active_terms
from tosapp.admin.terms import CSV_HEADER, csv_rows, preview_terms, read_terms, users_of
from tosapp.publishing import publish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

    from accounts.admin.pages.base import Trail

#: The maximum length of the editor's text. The API accepts 1 MiB.
_MAX_TEXT: Final = 500_000


class TermsPage(StaffPage):
    """The active terms, and the users by their last acknowledgement."""

    title = "Terms of service"
    template_name = "backoffice/terms.html"

    def read(self) -> Mapping[str, Any]:
        shown: dict[str, Any] = {"view": read_terms(), "key": self.request.GET.get("text", "")}
        if shown["key"]:
            shown["found"] = users_of(shown["key"], cursor=self.request.GET.get("cursor"))
        return shown


class TermsCsvPage(StaffPage):
    """All users with their last acknowledgement, as a CSV file."""

    title = "Terms of service"

    def get(self, request: HttpRequest, **_: Any) -> HttpResponseBase:  # noqa: ARG002
        return stream_csv("terms.csv", CSV_HEADER, csv_rows())


class TermsForm(ReasonForm):
    """The text, and the hash of the text that it replaces."""

    markdown = forms.CharField(
        label="Text, in Markdown",
        max_length=_MAX_TEXT,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24}),
    )
    replacing = forms.CharField(widget=forms.HiddenInput, required=False, max_length=32)
    field_order = ("markdown", "reason")


class SameTerms(Conflict):
    """The text is active already."""

    message = "This text is active already. Nothing was published."


class TermsEditPage(ActPage):
    """Publish terms. Shows a preview, the diff with the active text, and how many users are asked again."""

    title = "Publish terms"
    name = "terms.published"
    button = "Publish"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    is_dangerous = True
    template_name = "backoffice/terms_edit.html"
    form_class = TermsForm
    parts: ClassVar[Mapping[str, str]] = {"preview": "backoffice/terms_preview.html"}
    published = ""

    def trail(self) -> Trail:
        return [*super().trail(), (TermsPage.title, self.done_at())]

    def initial(self) -> dict[str, Any]:
        terms = active_terms().get()
        return {
            "markdown": terms.markdown if terms else "",
            "replacing": terms.hash if terms else "",
            **super().initial(),
        }

    def read(self) -> Mapping[str, Any]:
        """Preview the submitted text, or the active one."""
        sent = self.request.POST.get("markdown")
        text = self.initial()["markdown"] if sent is None else sent
        try:
            return {"preview": preview_terms(text)}
        except ApiError as error:
            return {"problem": error}

    def post(self, request: HttpRequest, **more: Any) -> HttpResponse:
        if request.GET.get(PART) == "preview":
            return self.show(self.parts["preview"], self.read())
        return super().post(request, **more)

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        asked = preview_terms(values["markdown"]).asked
        try:
            result = publish(values["markdown"], actor=self.actor, replacing=values["replacing"])
        except StoreError as error:
            raise ObjectStoreUnreachable from error
        if not result.published:
            raise SameTerms
        self.published = result.hash
        who = "1 active user is" if asked == 1 else f"{formats.number(asked)} active users are"
        when = "when they next sign in to the dashboard or renew a token"
        said = f"Published. {who} asked to acknowledge it, {when}."
        return said, {"hash": self.published}

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": self.published}

    def done_at(self) -> str:
        return reverse("admin:terms")
