"""What makes one demo tenant: its configuration, ruleset, statements and the people who use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenantadmin.demo.statements import Persona, Statement


#: The days over which `Profile.entries` are spread.
PROFILE_DAYS: Final = 30


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer of the Gateway. ``share`` is how much it sends beside others of its persona."""

    name: str
    persona: Persona
    client_ip: str
    user_agent: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Profile:
    """One demo tenant.

    ``config`` is a TenantConfig without account, ``rules`` the documents of its ruleset. ``speaks_http``:
    its consumers reach the Gateway over HTTP, so that requests carry headers.
    """

    name: str
    host: str
    adapter_type: str
    server_hostname: str
    speaks_http: bool
    entries: int
    config: Mapping[str, Any] = field(repr=False)
    rules: tuple[Mapping[str, Any], ...] = field(repr=False)
    statements: tuple[Statement, ...] = field(repr=False)
    consumers: tuple[Consumer, ...] = field(repr=False)
