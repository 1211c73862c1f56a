"""Data of the pages of terms: active text, preview, acknowledgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import nh3
from django.db.models import Count, Max
from django.utils.safestring import mark_safe
from markdown_it import MarkdownIt

from accounts.cursors import cut_page, read_cursor, write_cursor
from accounts.models import Event, User
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.http.difference import diff_texts
from tosapp.active import active_terms
from tosapp.models import Acknowledgement
from tosapp.normal import HASH, Terms
from tosapp.publishing import require_terms

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping, Sequence

    from django.utils.safestring import SafeString

PAGE: Final = 50
#: The value in a URL for users who never acknowledged any terms.
NEVER: Final = "never"
CSV_HEADER: Final = ("email", "is_up_to_date", "acknowledged_hash", "acknowledged_at")
_PUBLICATIONS: Final = 20
#: Users read per query for the CSV.
_BATCH: Final = 1000
#: Without raw HTML and images: the content policy refuses images of other hosts.
_MARKDOWN: Final = MarkdownIt("js-default").disable("image")


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
    def asked(self) -> int:
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
