"""What users wrote, in mails of the service: recognisable as theirs, and linked by no mail program."""

from __future__ import annotations

import re
from typing import Final

#: An address of the web, with or without its scheme. Mail programs make links of both.
_WEB_ADDRESS: Final = re.compile(r"(?i)\b(?:[a-z][a-z0-9+.-]{1,20}:/{1,3}|www\.)\S*")
#: The last dots of what may be a host: the name after them has no digits.
_HOST_DOT: Final = re.compile(r"(?<=[^\W_])[.。．｡](?=[^\W\d_]{2,})")
_QUOTES: Final = str.maketrans(dict.fromkeys('“”„‟"«»', "'"))


def unlinked(text: str) -> str:
    """Return ``text`` without web addresses, and with ``[.]`` for the dots of host names."""
    return _HOST_DOT.sub("[.]", _WEB_ADDRESS.sub("[web address left out]", text))


def named(name: str) -> str:
    """Return a name in quotation marks on one line, of which it cannot break out."""
    return f"“{' '.join(unlinked(name).translate(_QUOTES).split())}”"


def quoted(text: str) -> str:
    """Return ``text`` with each line marked as quoted, for a mail without HTML."""
    return "\n".join(f"> {line}".rstrip() for line in unlinked(text).splitlines())
