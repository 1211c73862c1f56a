"""Names of tenants and accounts, and the host name of a new user's first tenant. Contract: Tenant."""

from __future__ import annotations

import secrets
import unicodedata
from typing import Final

from tenantadmin.lib.core.emails import is_line

MAX_NAME: Final = 100
#: Scripts and emoji need them inside of words.
_JOINERS: Final = "\u200c\u200d"


def normalize_name(name: str) -> str:
    """Return the name of a tenant or an account as it is stored: NFC and trimmed.

    Raises:
        ValueError: the name is empty, has over 100 characters, or contains control characters or invisible
            ones, which could imitate another name.
    """
    normalized = unicodedata.normalize("NFC", name.strip())
    if not 1 <= len(normalized) <= MAX_NAME:
        raise ValueError(f"A name has 1 to {MAX_NAME} characters.")
    if not is_line(normalized):
        raise ValueError("A name must not contain control characters.")
    if any(unicodedata.category(char) == "Cf" and char not in _JOINERS for char in normalized):
        raise ValueError("A name must not contain invisible characters.")
    return normalized


_ADJECTIVES: Final = """
    amber bold brave bright brisk calm clear clever cool coral crisp dawn deep eager early fair fast
    fine fresh gentle glad golden grand green happy hidden honest humble keen kind late light lively
    lucky mellow merry mild misty modest noble polar proud quick quiet rapid ready royal sandy sharp
    shiny silent silver simple sleek smart smooth soft solid spring steady still summer sunny swift tidy
    vivid warm wide wild winter wise young
"""
_NOUNS: Final = """
    anchor arch atlas bay beacon birch bridge brook canyon cedar cliff cloud comet coral cove creek
    delta dune falcon fern field fjord forest garden glacier grove harbor heron hill island lagoon lake
    lantern laurel ledge lighthouse maple meadow mesa mill mountain oak ocean orchard otter peak pebble
    pine plateau pond prairie quarry rain reef ridge river shore sky spruce star stone stream summit
    tide trail tundra valley wave willow wind wood
"""


def draw_name(domain: str) -> str:
    """Return a random host name under ``domain``. Another tenant may have it already."""
    adjective, noun = secrets.choice(_ADJECTIVES.split()), secrets.choice(_NOUNS.split())
    return f"{adjective}-{noun}-{10 + secrets.randbelow(90)}.{domain}"
