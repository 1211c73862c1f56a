"""Query parameters of pages of changes and events, and of differences. Contract: Change history, Events."""
# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from accounts.revisions import DEFAULT_LIMIT, MAX_COMMENT, MAX_LIMIT
from tenantadmin.lib.http.serializers import (
    OneOfField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
    StrictUuidField,
    TimestampField,
)


class CommentParameters(StrictSerializer):
    comment = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=MAX_COMMENT,
        help_text="Why the document changes. The `summary` of the revision keeps it.",
    )


class PageParameters(StrictSerializer):
    limit = StrictIntegerField(default=DEFAULT_LIMIT, min_value=1, max_value=MAX_LIMIT)
    cursor = StrictCharField(required=False, max_length=200, help_text="From the `next` link of a page.")


class ChangeParameters(PageParameters):
    """`from` and `to` limit the period."""

    from_ = TimestampField(required=False, help_text="Inclusive.")
    to = TimestampField(required=False, help_text="Inclusive.")
    userId = StrictCharField(required=False, max_length=320, help_text="Who made the change.")
    kind = OneOfField(choices=RevisionKind.values, required=False)


class DiffParameters(StrictSerializer):
    """The two revisions to compare."""

    from_ = StrictIntegerField(min_value=0)
    to = StrictIntegerField(min_value=0)


class EventParameters(PageParameters):
    """`from` and `to` limit the period."""

    from_ = TimestampField(required=False, help_text="Inclusive.")
    to = TimestampField(required=False, help_text="Inclusive.")
    actor = StrictCharField(
        required=False, max_length=320, help_text="Who did it: an email, or the name of a command."
    )
    subject = StrictCharField(
        required=False, max_length=320, help_text="What it was done to: an email, a domain, a hash of terms."
    )
    kind = OneOfField(choices=EventKind.values, required=False)
    tenant = StrictUuidField(required=False)
