"""Path segments of this app."""

from __future__ import annotations


class UserIdConverter:
    """A user of the log as one percent-encoded segment.

    The server has decoded the path already, so a ``%2F`` reads as a slash here: everything between
    ``/users/`` and the numbers at the end is the user. The numbers have fixed widths, so that is unambiguous.
    """

    regex = r"(?s:.*)"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
