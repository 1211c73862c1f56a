"""Messages of the API in the words of the staff pages, which have fields and buttons and no parameters."""

from __future__ import annotations

import re
from typing import Final

#: The label of the field that confirms removals.
CONFIRM_LABEL: Final = "Remove these rules although they have active markers"

_PHRASES: Final = (
    (re.compile(r"confirm with \?confirmDeletes=.*\."), f"tick it under “{CONFIRM_LABEL}”."),
    (
        re.compile(r"Compare them, put the draft again with 'baseSeq' \d+, and publish that\."),
        "Open the draft, rebase it, and publish it then.",
    ),
    (re.compile(r"'from' is later than 'to'\."), "The first day is later than the last."),
)
#: Members of requests, as fields of pages. A place in an editor's text has no label: its pointer says more.
_LABELS: Final = {
    "from": "First day",
    "to": "Last day",
    "until": "Until",
    "seq": "Revision",
    "baseSeq": "Revision",
    "draftId": "Draft",
    "owners": "Owners",
    "email": "Email",
    "domain": "Domain",
}


def say(text: str) -> str:
    """Return a message of the API in the words of a page."""
    for pattern, phrase in _PHRASES:
        text = pattern.sub(phrase, text)
    return text


def label_of(path: str) -> str | None:
    """Return the label of the field for a JSON Pointer into a request, or None."""
    return _LABELS.get(path.split("/")[1] if path.startswith("/") else path)
