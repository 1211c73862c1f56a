"""The description of a demo tenant: its configuration, rulesets, statements and consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from analytics.demo.statements import Persona, Statement
from logs.layout import day_start_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

#: The number of days for `Profile.entries`.
PROFILE_DAYS: Final = 30
#: Times from the creation of the tenant, and from its first ruleset, to the first day with logs.
_CREATED_BEFORE_MS: Final = 15 * 3_600_000
_WRITTEN_BEFORE_MS: Final = 14 * 3_600_000
_MINUTE_MS: Final = 60_000


class Consumer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One consumer of the Gateway. ``share`` is its amount of requests relative to others of its persona."""

    name: str
    persona: Persona
    client_ip: str
    user_agent: str
    share: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class Mistake(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule that was published before all others by mistake, and removed by a restore.

    ``published`` and ``restored`` are in minutes after the beginning of the first day with logs.
    """

    published: Annotated[int, msgspec.Meta(ge=0)]
    restored: int
    rule: dict[str, Any]


class Leak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A former version of a cache rule, whose results all users shared until ``cured``.

    The rule with its id in the ruleset took its place then, and ``perUserTables`` came into the
    configuration. ``cured`` is in minutes after the beginning of the first day with logs.
    """

    cured: Annotated[int, msgspec.Meta(ge=0)]
    comment: str
    rule: dict[str, Any]

    def cured_at(self, first_day: date) -> int:
        """Return the time of the cure (epoch ms), if the logs begin with ``first_day``."""
        return day_start_ms(first_day) + self.cured * _MINUTE_MS


class Draft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A draft that adds a rule after all others."""

    name: str
    rule: dict[str, Any]


class DecidedAdvice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recommendation that was accepted or dismissed ``decided`` minutes after the first day began.

    It replaces the rule that has the id of ``rule``, or adds ``rule`` after all others.
    """

    state: Literal["accepted", "dismissed"]
    decided: Annotated[int, msgspec.Meta(ge=0)]
    kind: Literal["cache", "ttl"]
    subject: str
    title: str
    why: tuple[str, ...]
    rule: dict[str, Any]
    reason: str = ""

    def decided_at(self, first_day: date) -> int:
        """Return the time of the decision (epoch ms), if the logs begin with ``first_day``."""
        return day_start_ms(first_day) + self.decided * _MINUTE_MS

    def apply(self, rules: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Return the rules with the recommendation."""
        if any(rule["id"] == self.rule["id"] for rule in rules):
            return _replace(rules, self.rule)
        return (*rules, self.rule)


def _replace(rules: Sequence[Mapping[str, Any]], new: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the rules with ``new`` in place of the rule with its id."""
    return tuple(new if rule["id"] == new["id"] else rule for rule in rules)


@dataclass(frozen=True, slots=True)
class Publication:
    """A ruleset that was published at a time (epoch ms), as revision ``seq``."""

    seq: int
    at: int
    rules: tuple[Mapping[str, Any], ...]
    restored_from: int | None = None
    advised: DecidedAdvice | None = None
    comment: str = ""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One demo tenant.

    Attributes:
        speaks_http: the consumers use HTTP, so the log has their headers.
        entries: the number of log entries in `PROFILE_DAYS` days.
        config: a TenantConfig without account.
        rules: the rules of its ruleset, as documents.
        mistake: a change of the ruleset that was soon restored.
        leak: a former version of one of its rules, after the mistake was restored.
        draft: a draft of the next ruleset.
        advice: decided recommendations, in order of time, all after the mistake and the leak.
        probes: statements that the Gateway answers without the warehouse.
        statements: the other statements.
        consumers: the senders of the statements.
    """

    speaks_http: bool
    entries: Annotated[int, msgspec.Meta(ge=0)]
    config: dict[str, Any]
    rules: tuple[dict[str, Any], ...]
    mistake: Mistake | None = None
    leak: Leak | None = None
    draft: Draft | None = None
    advice: tuple[DecidedAdvice, ...] = ()
    probes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    statements: tuple[Statement, ...]
    consumers: Annotated[tuple[Consumer, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        times = [] if self.mistake is None else [self.mistake.published, self.mistake.restored]
        times += [] if self.leak is None else [self.leak.cured]
        times += [advised.decided for advised in self.advice]
        if times != sorted(times):
            raise ValueError(
                "a mistake is published, then restored, then a leak is cured, and then advice is decided in "
                "order"
            )

    @property
    def name(self) -> str:
        return str(self.config["tenantName"])

    @property
    def first_config(self) -> dict[str, Any]:
        """The configuration before the leak was cured."""
        if self.leak is None:
            return self.config
        warehouse = {
            name: value for name, value in self.config["warehouse"].items() if name != "perUserTables"
        }
        return {**self.config, "warehouse": warehouse}

    @staticmethod
    def created_at(first_day: date) -> int:
        """Return the time (epoch ms) at which the tenant is created, if its logs begin with ``first_day``."""
        return day_start_ms(first_day) - _CREATED_BEFORE_MS

    def publications(self, first_day: date) -> tuple[Publication, ...]:
        """Return the history of the ruleset, oldest first, if the logs begin with ``first_day``."""
        start = day_start_ms(first_day)
        first = self.rules if self.leak is None else _replace(self.rules, self.leak.rule)
        publications = [Publication(1, start - _WRITTEN_BEFORE_MS, first)]
        if self.mistake is not None:
            published, restored = (
                start + minute * _MINUTE_MS for minute in (self.mistake.published, self.mistake.restored)
            )
            publications += [
                Publication(2, published, (self.mistake.rule, *first)),
                Publication(3, restored, first, restored_from=1),
            ]
        if self.leak is not None:
            seq, at = publications[-1].seq + 1, self.leak.cured_at(first_day)
            publications.append(Publication(seq, at, self.rules, comment=self.leak.comment))
        for advised in self.advice:
            if advised.state == "accepted":
                last = publications[-1]
                rules = advised.apply(last.rules)
                publications.append(
                    Publication(last.seq + 1, advised.decided_at(first_day), rules, advised=advised)
                )
        return tuple(publications)

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
