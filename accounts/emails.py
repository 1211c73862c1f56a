"""The one spelling of an email address: trimmed, NFC, lower-cased."""

from __future__ import annotations

import unicodedata
from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

#: Characters (contract: Limits).
MAX_EMAIL_LENGTH: Final = 320
_validate = EmailValidator()


def normalize_email(email: str) -> str:
    """Return the key under which ``email`` is stored and compared."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", email.strip()).lower())


def has_lookalike(text: str) -> bool:
    """Tell whether ``text`` holds a letter that lower-cases to an ASCII one, such as the Kelvin sign."""
    return not text.isascii() and any(
        not character.isascii() and character.lower()[0].isascii()
        for character in unicodedata.normalize("NFC", text) + text
    )


def check_email(text: str) -> str:
    """Return the key of an address that somebody typed.

    Refused beyond malformed ones: a line break (it would end a mail's header), a slash (the address is one
    segment of a path), and a look-alike letter (`has_lookalike`).

    Raises:
        ValueError: with what is wrong.
    """
    email = normalize_email(text)
    if len(text) > MAX_EMAIL_LENGTH or len(email) > MAX_EMAIL_LENGTH:
        raise ValueError(f"An email address has at most {MAX_EMAIL_LENGTH} characters.")
    local, _, domain = email.rpartition("@")
    if has_lookalike(text):
        raise ValueError("The address holds a letter that only looks like an ASCII one.")
    if not local.isascii() or "/" in email or not domain:
        raise ValueError("Give an email address like ada@example.org.")
    try:
        _validate(email)
    except ValidationError as error:
        raise ValueError("Give an email address like ada@example.org.") from error
    return email
