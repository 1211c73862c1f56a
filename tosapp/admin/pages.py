"""Pages of the terms of service: active text, acknowledgements, and publishing a new text."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import nh3
from django import forms
from django.contrib import admin
from django.db.models import Count, Max
from django.urls import reverse
from django.utils.safestring import mark_safe
from markdown_it import MarkdownIt

from accounts.admin.base import PART, ActPage, ReasonForm, StaffPage
from accounts.admin.names import FindsPeople
from accounts.cursors import cut_page, read_cursor, write_cursor
from accounts.models import Event, User
from accounts.models.events import EventKind
from accounts.models.users import StaffRole
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.errors import ApiError, BadRequest, Conflict
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.http.health import ObjectStoreUnreachable
from tenantadmin.lib.http.streaming import stream_csv
from tenantadmin.lib.objectstore import StoreError
from tosapp.models import Acknowledgement
from tosapp.publishing import HASH, Terms, active_terms, publish, require_terms

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase
    from django.utils.safestring import SafeString

    from accounts.admin.base import Trail


@admin.register(Acknowledgement)
class AcknowledgementAdmin(FindsPeople):
    list_display = ("user", "hash", "acknowledged_at")
    list_select_related = ("user",)
    list_filter = ("acknowledged_at",)


PAGE: Final = 50
#: The value in a URL for users who never acknowledged any terms.
NEVER: Final = "never"
CSV_HEADER: Final = ("email", "is_up_to_date", "acknowledged_hash", "acknowledged_at")
_PUBLICATIONS: Final = 20
#: Users read per query for the CSV.
_BATCH: Final = 1000
#: Without raw HTML and images: the content policy refuses images of other hosts.
_MARKDOWN: Final = MarkdownIt("js-default").disable("image")
#: How many unchanged lines are shown around a change, and what a line of it is.
_CONTEXT: Final = 3
_KINDS: Final = {"+": "added", "-": "removed", "@": "skip"}


def render_markdown(text: str) -> SafeString:
    """Return Markdown as HTML that is safe to show."""
    return mark_safe(nh3.clean(_MARKDOWN.render(text)))  # noqa: S308  # cleaned


@dataclass(frozen=True, slots=True)
class Group:
    """Active users by the text that they acknowledged last. ``hash`` is empty if they acknowledged none."""

    hash: str
    users: int
    published_at: dt.datetime | None
    is_current: bool

    @property
    def key(self) -> str:
        return self.hash or NEVER


@dataclass(frozen=True, slots=True)
class TermsView:
    """The active terms, publications (newest first), and users by the text that they acknowledged last."""

    terms: Terms | None
    publications: Sequence[Event]
    groups: Sequence[Group]

    @property
    def html(self) -> SafeString:
        return render_markdown(self.terms.markdown if self.terms else "")

    @property
    def acknowledged(self) -> int:
        return sum(group.users for group in self.groups if group.is_current)

    @property
    def missing(self) -> int:
        return sum(group.users for group in self.groups if not group.is_current)


def read_terms() -> TermsView:
    """Return the active terms and their acknowledgements.

    Raises:
        TosNotLoaded: the store fails and the terms were never read.
    """
    terms = active_terms().get()
    active = terms.hash if terms else None
    publications = list(
        Event.objects.filter(kind=EventKind.TERMS_PUBLISHED).order_by("-at", "-pk")[:_PUBLICATIONS]
    )
    published = {event.subject: event.at for event in reversed(publications)}
    groups = [
        Group(text, users, published.get(text), is_current=text == active)
        for text, users in _users_by_terms().items()
    ]
    groups.sort(key=lambda group: (not group.is_current, -group.users, group.hash))
    return TermsView(terms, publications, groups)


def _users_by_terms() -> Mapping[str, int]:
    """Return the number of active users by the hash that they acknowledged last."""
    active = User.objects.filter(is_active=True).order_by()
    return dict(active.values_list("tos").annotate(users=Count("*")))


@dataclass(frozen=True, slots=True)
class Preview:
    """A text as users see it, its diff with the active text, and who is asked if it is published."""

    html: SafeString
    lines: Sequence[tuple[str, str]]
    #: Number of users who acknowledged the active text and must acknowledge this one.
    again: int
    #: Number of users who have not acknowledged the active text and must acknowledge this one.
    others: int
    #: True if it is the active text, so that publishing it would change nothing.
    is_active: bool

    @property
    def affected(self) -> int:
        """Number of users who are asked for this text."""
        return self.again + self.others


def preview_terms(markdown: str) -> Preview:
    """Return the effect of publishing ``markdown``.

    Raises:
        ValidationFailed: it is empty after normalization.
        TosNotLoaded: the store fails and the terms were never read.
    """
    terms, active = require_terms(markdown), active_terms().get()
    asked = {text: users for text, users in _users_by_terms().items() if text != terms.hash}
    again = asked.pop(active.hash, 0) if active else 0
    return Preview(
        html=render_markdown(terms.markdown),
        lines=diff_texts(active.markdown if active else "", terms.markdown),
        again=again,
        others=sum(asked.values()),
        is_active=terms == active,
    )


@dataclass(frozen=True, slots=True)
class UserPage:
    """Active users with the time of their acknowledgement, and the cursor of the next page."""

    users: Sequence[tuple[User, dt.datetime | None]]
    cursor: str | None


def users_of(key: str, *, cursor: str | None) -> UserPage:
    """Return a page of the users of a `Group`, by email. ``key`` is the hash, or `NEVER`.

    Raises:
        BadRequest: the key is not valid, or the cursor is not from this list.
    """
    if key != NEVER and not HASH.fullmatch(key):
        raise BadRequest("The text is named by its hash of 32 hexadecimal digits, or by “never”.")
    rows = User.objects.filter(is_active=True, tos="" if key == NEVER else key).order_by("email")
    if cursor:
        rows = rows.filter(email__gt=read_cursor(cursor, (str,))[0])
    users, more = cut_page(rows.only("email", "tos"), PAGE)
    return UserPage(_with_times(users), write_cursor([users[-1].email]) if more else None)


def csv_rows() -> Iterator[Sequence[str]]:
    """Yield a row of `CSV_HEADER` for each active user, by email."""
    active = active_terms().get()
    last = ""
    while True:
        rows = User.objects.filter(is_active=True, email__gt=last).order_by("email")
        users = list(rows.only("email", "tos")[:_BATCH])
        for user, at in _with_times(users):
            is_current = active is not None and user.tos == active.hash
            yield user.email, "yes" if is_current else "no", user.tos, format_timestamp(at) if at else ""
        if len(users) < _BATCH:
            return
        last = users[-1].email


def _with_times(users: Sequence[User]) -> list[tuple[User, dt.datetime | None]]:
    """Return each user with the time of the last acknowledgement."""
    rows = Acknowledgement.objects.filter(user__in=users).order_by().values_list("user_id", "hash")
    times = {(user, text): at for user, text, at in rows.annotate(at=Max("acknowledged_at"))}
    return [(user, times.get((user.pk, user.tos))) for user in users]


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
        affected = preview_terms(values["markdown"]).affected
        try:
            result = publish(values["markdown"], actor=self.actor, replacing=values["replacing"])
        except StoreError as error:
            raise ObjectStoreUnreachable from error
        if not result.published:
            raise SameTerms
        self.published = result.hash
        who = "1 active user is" if affected == 1 else f"{formats.number(affected)} active users are"
        when = "when they next sign in to the dashboard or renew a token"
        said = f"Published. {who} asked to acknowledge it, {when}."
        return said, {"hash": self.published}

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": self.published}

    def done_at(self) -> str:
        return reverse("admin:terms")


def diff_texts(before: str, after: str) -> list[tuple[str, str]]:
    """Return changed lines with some context: (``added``, ``removed``, ``skip`` or empty, text)."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    # The first two lines name files.
    return [(_KINDS.get(line[:1], ""), "…" if line[:1] == "@" else line[1:]) for line in list(lines)[2:]]
