"""Names of tenants and host names in their one spelling. Contract: Tenant, FQDNs."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import idna

MAX_TENANT_NAME: Final = 100
MAX_FQDN: Final = 253
_DIGITS: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")


def normalize_tenant_name(name: str) -> str:
    """Return a tenant's name as it is stored: NFC, trimmed.

    Raises:
        ValueError: empty, over 100 characters, or with control characters.
    """
    normalized = unicodedata.normalize("NFC", name.strip())
    if not 1 <= len(normalized) <= MAX_TENANT_NAME:
        raise ValueError(f"A tenant name has 1 to {MAX_TENANT_NAME} characters.")
    if any(unicodedata.category(character) in {"Cc", "Cs", "Co", "Zl", "Zp"} for character in normalized):
        raise ValueError("A tenant name holds no control characters.")
    return normalized


def normalize_fqdn(name: str) -> str:
    """Return a host name as it is stored: lower-case, its international labels in their ASCII form.

    Raises:
        ValueError: not a host name by IDNA 2008, with the reason.
    """
    if "*" in name:
        raise ValueError("A wildcard is not a host name: name each host.")
    if name.endswith("."):
        raise ValueError("Leave out the dot at the end.")
    if any(mark in name for mark in ":/@ \t\r\n"):
        raise ValueError("Give a host name alone: no scheme, port, path, address or space.")
    if any(not character.isascii() and character.lower()[0].isascii() for character in name):
        raise ValueError("A letter only looks like an ASCII one.")
    lowered = unicodedata.normalize("NFC", name.lower())
    try:
        ascii_name = idna.encode(lowered, strict=True, std3_rules=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise ValueError(f"Not a valid host name (IDNA 2008): {error}.") from error
    if len(ascii_name) > MAX_FQDN:
        raise ValueError(f"A host name has at most {MAX_FQDN} characters.")
    labels = ascii_name.split(".")
    if len(labels) < 2:
        raise ValueError("A host name has at least two labels, like gateway.example.org.")
    if _DIGITS.fullmatch(labels[-1]):
        raise ValueError("An IP address is not a host name.")
    return ascii_name


def lies_in(name: str, domain: str) -> bool:
    """Tell whether a normalized host name is ``domain`` or lies under it."""
    return name == domain or name.endswith(f".{domain}")
