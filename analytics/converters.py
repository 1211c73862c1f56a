"""Path converters of this app. Importing this module registers them."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class UserIdConverter(StringConverter):
    """A user of the log as one percent-encoded segment.

    The server has already decoded the path, so ``%2F`` is a slash here. The user is everything between
    ``/users/`` and the numbers at the end, which have fixed widths.
    """

    regex = r"(?s:.*)"


class WeekConverter(StringConverter):
    """``01`` to ``53``, a week of ISO 8601."""

    regex = "0[1-9]|[1-4][0-9]|5[0-3]"


register_converter(WeekConverter, "week")
register_converter(UserIdConverter, "userid")
