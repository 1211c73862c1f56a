"""Normalize the names of tenants and accounts. Contract: Tenant."""

from __future__ import annotations

import unicodedata
from typing import Final

from tenantadmin.lib.core.emails import is_line

MAX_TENANT_NAME: Final = 100


def normalize_tenant_name(name: str) -> str:
    """Return a name as it is stored: NFC and trimmed.

    Raises:
        ValueError: the name is empty, has over 100 characters, or contains control characters.
    """
    normalized = unicodedata.normalize("NFC", name.strip())
    if not 1 <= len(normalized) <= MAX_TENANT_NAME:
        raise ValueError(f"A tenant name has 1 to {MAX_TENANT_NAME} characters.")
    if not is_line(normalized):
        raise ValueError("A tenant name must not contain control characters.")
    return normalized
