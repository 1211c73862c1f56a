"""The description of a demo tenant: its configuration, ruleset, statements and consumers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from tenantadmin.demo.statements import Persona

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenantadmin.demo.statements import Statement


#: The days over which `Profile.entries` are spread.
PROFILE_DAYS: Final = 30


class Consumer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One consumer of the Gateway. ``share``: how much it sends compared to others of its persona."""

    name: str
    persona: Persona
    client_ip: str
    user_agent: str
    share: Annotated[float, msgspec.Meta(gt=0)] = 1.0


@dataclass(frozen=True, slots=True)
class Profile:
    """One demo tenant.

    Attributes:
        speaks_http: the consumers reach the Gateway over HTTP, so the log has their headers.
        entries: log entries in `PROFILE_DAYS` days.
        config: a TenantConfig without account.
        rules: the rules of its ruleset, as documents.
        probes: statements that the Gateway answers itself.
        statements: the other statements.
        consumers: who sends the statements.
    """

    speaks_http: bool
    entries: int
    config: Mapping[str, Any] = field(repr=False)
    rules: tuple[Mapping[str, Any], ...] = field(repr=False)
    probes: tuple[str, ...] = field(repr=False)
    statements: tuple[Statement, ...] = field(repr=False)
    consumers: tuple[Consumer, ...] = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.config["tenantName"])

    @property
    def host(self) -> str:
        """The host name of the Gateway."""
        return str(self.config["fqdns"][0])

    @property
    def adapter_type(self) -> str:
        return str(self.config["warehouse"]["adapterType"])

    @property
    def server_hostname(self) -> str:
        return str(self.config["warehouse"]["serverHostname"])
