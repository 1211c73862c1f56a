"""The one form of email addresses, names of one line, and what users wrote in mails. Contract: User.

The form is trimmed and lower-case, and its domain is ASCII (IDNA 2008): ``zoe@BÜCHER.example`` is
``zoe@xn--bcher-kva.example``.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

from tenantadmin.lib.core.hosts import normalize_fqdn

_CONTROLS: Final = frozenset({"Cc", "Cs", "Co", "Zl", "Zp"})


def is_line(text: str) -> bool:
    """Return True if the text has neither line breaks nor other control characters."""
    return not any(unicodedata.category(character) in _CONTROLS for character in text)


#: Characters (contract: Limits).
MAX_EMAIL_LENGTH: Final = 320

_MALFORMED: Final = "Give an email address like ada@example.org."

_validate = EmailValidator()


def check_email(text: str) -> str:
    """Return the normal form of an address. It is where mail to the address goes.

    Besides malformed addresses this refuses line breaks (they could inject mail headers), slashes (an address
    is one segment of a path), quoted local parts (``"ada"@…`` is the mailbox of ``ada@…``), IP addresses as
    domains, and domains that IDNA would map to another name (`normalize_fqdn`).

    Raises:
        ValueError: the message says what is wrong.
    """
    local, _, domain = text.strip().rpartition("@")
    if len(text) > MAX_EMAIL_LENGTH:
        raise ValueError(f"An email address has at most {MAX_EMAIL_LENGTH} characters.")
    # Mail to a local part beyond ASCII needs SMTPUTF8, which few servers have.
    if not local or not local.isascii() or any(mark in local for mark in '/"'):
        raise ValueError(_MALFORMED)
    try:
        email = f"{local.lower()}@{_normalize_domain(domain)}"
        _validate(email)
    except ValidationError as error:
        raise ValueError(_MALFORMED) from error
    except ValueError as error:
        raise ValueError(f"The address after '@' is no domain. {error}") from error
    if len(email) > MAX_EMAIL_LENGTH:
        raise ValueError(f"An email address has at most {MAX_EMAIL_LENGTH} characters.")
    return email


def normalize_email(text: str) -> str:
    """Return the form by which an address is looked up.

    Text that is no address is trimmed, and ASCII is lower-cased. The lower case of other letters, such as the
    Kelvin sign, could be the address of a user.
    """
    try:
        return check_email(text)
    except ValueError:
        stripped = text.strip()
        return stripped.lower() if stripped.isascii() else stripped


def _normalize_domain(domain: str) -> str:
    is_local = settings.DEBUG and domain.lower() == "localhost"
    return "localhost" if is_local else normalize_fqdn(domain)


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
