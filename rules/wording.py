"""Messages of the API in the words of the staff pages, which have fields and buttons and no parameters."""

from __future__ import annotations

import re
from typing import Final

_PHRASES: Final = ((re.compile(r"'from' is later than 'to'\."), "The first day is later than the last."),)
#: Members of requests, as fields of pages.
_LABELS: Final = {
    "from": "First day",
    "to": "Last day",
    "until": "Until",
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
