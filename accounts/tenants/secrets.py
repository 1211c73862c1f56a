"""Detect credentials in text that must not contain any. Contract: TenantConfig (never a secret)."""

from __future__ import annotations

import re
from typing import Final

_SECRET_PATTERNS: Final = re.compile(
    r"""
      -----BEGIN                              # PEM
    | \beyJ[A-Za-z0-9_-]{8,}\.                # a JWT
    | \b(dapi|dkea)[0-9a-f]{16,}              # Databricks
    | \b(gh[pousr]_|github_pat_|glpat-|xox[abposr]-|sk-|sk_live_|npg_)[A-Za-z0-9_-]{8,}
    | \b(AKIA|ASIA)[A-Z0-9]{16}\b             # AWS key ids
    | \bAIza[A-Za-z0-9_-]{20,}                # Google API keys
    | \btas_(pat|refresh)_                    # this service's own
    | ://[^/\s:@]+:[^/\s@]+@                  # a URL with a password
    | (?i:\b(password|passwd|pwd)\s*[=:]\s*\S)
    | (?i:\b(secret|token|api[_-]?key|access[_-]?key)\s*=\s*\S)
    """,
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[A-Za-z0-9+]{24,}={0,2}")
_HEX: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")


def looks_like_secret(text: str) -> bool:
    """Return True if ``text`` looks like a credential, not like the name of one.

    Patterns find known token formats, assignments and URLs with a password. Other credentials are found as
    long runs of mixed letters and digits, which names of hosts and of secret store entries do not have.
    """
    if _SECRET_PATTERNS.search(text):
        return True
    return any(_looks_random(word) for word in _WORD.findall(text))


def _looks_random(word: str) -> bool:
    if _HEX.fullmatch(word):
        return len(word) >= 32 and any(character.isdigit() for character in word)
    kinds = (str.isdigit, str.islower, str.isupper)
    return all(any(kind(character) for character in word) for kind in kinds)
