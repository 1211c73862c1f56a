"""Path segments of this app; importing this module registers them."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class UserIdConverter(StringConverter):
    """A user of the log as one percent-encoded segment.

    The server has decoded the path already, so a ``%2F`` reads as a slash here: everything between
    ``/users/`` and the numbers at the end is the user. The numbers have fixed widths, so that is unambiguous.
    """

    regex = r"(?s:.*)"


class WeekConverter(StringConverter):
    """``01`` to ``53``, a week of ISO 8601."""

    regex = "0[1-9]|[1-4][0-9]|5[0-3]"


register_converter(WeekConverter, "week")
register_converter(UserIdConverter, "userid")
