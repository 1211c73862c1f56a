"""Normal forms of host names and origins. Contract: FQDNs; Authentication, 10."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

import idna

MAX_FQDN: Final = 253
_DIGITS: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\]")


def normalize_fqdn(name: str) -> str:
    """Return a host name in its stored form: lower-case, with international labels in ASCII.

    Programs that map names (UTS 46) must reach the same host: a name is refused if mapping changes more than
    its case and composition, as with full-width letters.

    Raises:
        ValueError: it is not a host name by IDNA 2008. The message has the reason.
    """
    if "*" in name:
        raise ValueError("A wildcard is not a host name: name each host.")
    if name.endswith("."):
        raise ValueError("Remove the dot at the end.")
    if any(mark in name for mark in ":/@ \t\r\n"):
        raise ValueError("Give only a host name, without scheme, port, path, user or space.")
    if has_lookalike(name):
        raise ValueError("A character only looks like an ASCII letter. Type the name again.")
    lowered = unicodedata.normalize("NFC", name.lower())
    try:
        mapped = idna.uts46_remap(name, std3_rules=True, transitional=False)
        if mapped != lowered:
            raise ValueError(f"Some programs would take it for '{mapped}'. Type the name that you mean.")
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


def has_lookalike(text: str) -> bool:
    """Return True if ``text`` has a non-ASCII letter whose lower case is ASCII, such as the Kelvin sign."""
    return any(not character.isascii() and character.lower()[0].isascii() for character in text)


def lies_in(name: str, domain: str) -> bool:
    """Return True if a normalized host name is ``domain`` or a subdomain of it."""
    return name == domain or name.endswith(f".{domain}")


def origin_of(address: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an absolute http or https URL, or None for any other text."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    host = parts.netloc.lower()
    if scheme not in _DEFAULT_PORTS or not address[len(scheme) :].startswith("://"):
        return None
    if host.endswith(":"):
        return None
    if port is not None:
        host = host.rpartition(":")[0]
    return (scheme, host, port or _DEFAULT_PORTS[scheme]) if _HOST.fullmatch(host) else None
