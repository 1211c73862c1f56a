"""Normalize and check email addresses. The normal form is trimmed, NFC and lower-case."""

from __future__ import annotations

import unicodedata
from typing import Final

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator

#: Characters (contract: Limits).
MAX_EMAIL_LENGTH: Final = 320
_validate = EmailValidator()


def normalize_email(email: str) -> str:
    """Return the normal form of ``email``, in which it is stored and compared."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", email.strip()).lower())


def has_lookalike(text: str) -> bool:
    """Return True if ``text`` has a non-ASCII letter whose lower case is ASCII, such as the Kelvin sign."""
    return not text.isascii() and any(
        not character.isascii() and character.lower()[0].isascii()
        for character in unicodedata.normalize("NFC", text) + text
    )


def check_email(text: str) -> str:
    """Return the normal form of an address that a user typed.

    Besides malformed addresses this refuses line breaks (they could inject mail headers), slashes (an address
    is one segment of a path) and look-alike letters (`has_lookalike`).

    Raises:
        ValueError: the message says what is wrong.
    """
    email = normalize_email(text)
    if len(text) > MAX_EMAIL_LENGTH or len(email) > MAX_EMAIL_LENGTH:
        raise ValueError(f"An email address has at most {MAX_EMAIL_LENGTH} characters.")
    local, _, domain = email.rpartition("@")
    if has_lookalike(text):
        raise ValueError("The address contains a letter that only looks like an ASCII letter.")
    if not local.isascii() or "/" in email or not domain:
        raise ValueError("Give an email address like ada@example.org.")
    try:
        _validate(email)
    except ValidationError as error:
        raise ValueError("Give an email address like ada@example.org.") from error
    return email
