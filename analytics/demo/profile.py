"""Profiles of demo tenants, read from TOML: statements, people, consumers and the gateway's behaviour."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from logs.layout import day_start_ms
from rules.conditions.evaluate import read_request
from rules.dialects.control import find_control
from rules.dialects.words import Dialect
from rules.language import Action, Rule
from rules.match import Decision, decide, vary_values

if TYPE_CHECKING:
    from rules.dialects.control import Control


#: The version of cache keys. Raise it when keys are made in another way.
KEY_VERSION: Final = 3

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class Result(Generic[Content]):
    """A result in the cache.

    Attributes:
        as_of: a marker after this time makes the result stale.
        ready_at: the time when the warehouse is done. Until then, requests wait for the result.
        expires_at: the end of the rule's TTL.
    """

    content: Content
    as_of: int
    ready_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Answer(Generic[Content]):
    """The Gateway's decision about a request.

    Attributes:
        status: ``cacheStatus`` of the log, unless the statement fails.
        rule: the rule that decided.
        key: ``cacheKey``; empty unless a cache rule decided.
        ttl_seconds: the rule's TTL for a result.
        result: the result that a HIT returns or a HOLD waits for.
        miss_reason: ``missReason`` of a MISS.
        refreshes: the result has expired. Return it, execute the statement, and store the new result.
    """

    status: str
    rule: Rule | None
    key: str = ""
    ttl_seconds: int = 0
    result: Result[Content] | None = None
    miss_reason: str | None = None
    refreshes: bool = False


class Markers:
    """The invalidation markers of a tenant's rules."""

    def __init__(self) -> None:
        self._times: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, rule_id: str, *, at: int) -> None:
        """Add a marker: older results of the rule are stale from ``at`` on."""
        insort(self._times[rule_id], at)

    def cutoff(self, rule_id: str, at: int) -> int | None:
        """Return the time of the newest marker of a rule up to a time."""
        times = self._times[rule_id]
        count = bisect_right(times, at)
        return times[count - 1] if count else None


class TenantGateway(Generic[Content]):
    """The rules and the cache of one tenant.

    Args:
        cutoff: returns the time of the newest marker of a rule up to a time, see `Markers.cutoff`.
    """

    def __init__(self, tenant_id: str, *, cutoff: Callable[[str, int], int | None]) -> None:
        self._tenant_id = tenant_id
        self._cutoff = cutoff
        self._rules: dict[str, Rule] = {}
        self._cache_bust = ""
        self._results: dict[str, Result[Content]] = {}
        #: Results that are not ready yet.
        self._pending: dict[str, Result[Content]] = {}

    def publish(self, rules: Iterable[Rule], *, cache_bust: str) -> None:
        """Use a new ruleset, with an empty cache."""
        self._rules = {rule.id: rule for rule in rules}
        self._cache_bust = cache_bust
        self._results.clear()
        self._pending.clear()

    def decide(self, request: Mapping[str, object]) -> Decision:
        """Decide a request by the rules. It has the condition keys of a row of ``proxy_logs``."""
        return decide(self._rules.values(), read_request(request))

    def answer(
        self,
        decision: Decision,
        request: Mapping[str, object],
        query_hash: str,
        *,
        at: int,
        context: Mapping[str, object] | None = None,
    ) -> Answer[Content]:
        """Answer a request that came at a time. It also has the columns that results can vary by.

        ``context`` is what the result depends on beside the request: schema, role, settings, format.
        """
        rule = self._rules[decision.rule_id] if decision.rule_id else None
        if rule is None or decision.action is not Action.CACHE:
            (status,) = decision.statuses
            return Answer(status, rule)
        values = vary_values(rule, request)
        if None in values.values():
            return Answer("BYPASS", rule)
        key = self._key(rule, values, query_hash, context or {})
        pending = self._pending.get(key)
        if pending is not None and pending.ready_at <= at:
            self._results[key] = self._pending.pop(key)
            pending = None
        result = self._results.get(key)
        if result is None:
            reason = "no-cache-entry"
        else:
            cutoff = self._cutoff(rule.id, at)
            is_valid = cutoff is None or cutoff <= result.as_of
            has_expired = at >= result.expires_at
            if is_valid and at < result.expires_at + 1000 * (rule.stale_while_revalidate or 0):
                refreshes = has_expired and pending is None
                return Answer("HIT", rule, key, rule.ttl_seconds, result, refreshes=refreshes)
            reason = "ttl-expired" if has_expired else "invalidation-marker"
        if pending is not None:
            return Answer("HOLD", rule, key, rule.ttl_seconds, pending)
        return Answer("MISS", rule, key, rule.ttl_seconds, miss_reason=reason)

    def store(
        self, answer: Answer[Content], content: Content, *, as_of: int, ready_at: int
    ) -> Result[Content]:
        """Store the new result of a MISS or of a refreshed HIT."""
        result = Result(content, as_of, ready_at, ready_at + 1000 * answer.ttl_seconds)
        self._pending[answer.key] = result
        return result

    def _key(
        self, rule: Rule, values: Mapping[str, object], query_hash: str, context: Mapping[str, object]
    ) -> str:
        parts = [self._tenant_id, str(KEY_VERSION), self._cache_bust, rule.id, query_hash]
        # JSON keeps values apart that contain a separator.
        parts += [json.dumps(values, sort_keys=True)] if values or context else []
        parts += [json.dumps(context, sort_keys=True)] if context else []
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def hash_query(text: str, parameters: str = "") -> str:
    """Return ``queryHash`` of a statement with its literals, and of its parameters."""
    return hashlib.sha256(f"{text}\x1f{parameters}".encode()).hexdigest()


_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING|TABLE)\s+(\w+\.\w+)(?=[\s,;()]|$)")
_NON_DETERMINISTIC = re.compile(r"\b(?:CURRENT_TIMESTAMP|CURRENT_DATE|RANDOM\(\)|NOW\(\))")
_DATA_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"})
_DEFINITIONS: Final = frozenset({"CREATE", "ALTER", "DROP"})


class Persona(StrEnum):
    """The kind of a consumer. It decides the times and the bursts of its statements."""

    DASHBOARD = "dashboard"
    ANALYST = "analyst"
    APPLICATION = "application"
    LOADER = "loader"
    OPERATOR = "operator"


class OneOf(msgspec.Struct, frozen=True, array_like=True, tag="one_of", forbid_unknown_fields=True):
    """A slot that is filled with one of ``values``; earlier values are more frequent."""

    values: Annotated[tuple[str | int, ...], msgspec.Meta(min_length=1)]

    def fill(self, rng: Random, _day: date) -> str | int:
        return self.values[int(rng.random() ** 1.7 * len(self.values))]


class Number(msgspec.Struct, frozen=True, array_like=True, tag="number", forbid_unknown_fields=True):
    """A slot that is filled with an integer from ``low`` to below ``high``; small ones are more frequent."""

    low: int
    high: int

    def fill(self, rng: Random, _day: date) -> int:
        return self.low + int((self.high - self.low) * rng.random() ** 7)


class DaysAgo(msgspec.Struct, frozen=True, array_like=True, tag="days_ago", forbid_unknown_fields=True):
    """A slot that is filled with a date from ``nearest`` to ``farthest`` days before the request."""

    nearest: int
    farthest: int

    def fill(self, rng: Random, day: date) -> str:
        return (day - timedelta(days=rng.randint(self.nearest, self.farthest))).isoformat()


class MonthStart(msgspec.Struct, frozen=True, array_like=True, tag="month_start", forbid_unknown_fields=True):
    """A slot that is filled with the first day of one of the last ``months`` months, mostly recent ones."""

    months: Annotated[int, msgspec.Meta(ge=1)]

    def fill(self, rng: Random, day: date) -> str:
        count = day.year * 12 + day.month - 1 - int(rng.random() ** 2 * self.months)
        return date(count // 12, count % 12 + 1, 1).isoformat()


Slot: TypeAlias = OneOf | Number | DaysAgo | MonthStart


class Statement(msgspec.Struct, frozen=True, kw_only=True, dict=True, forbid_unknown_fields=True):
    """A statement in a data file.

    Attributes:
        text: the SQL, with ``?`` for every literal.
        personas: the kinds of consumers that send it.
        slots: a slot for each ``?``, in order.
        bound: the values are sent as parameters, not inside the text.
        ms: the median time in the warehouse.
        size: the size of the result in bytes.
        weight: its frequency relative to other statements of its personas.
    """

    text: str = msgspec.field(name="sql")
    personas: tuple[Persona, ...]
    slots: tuple[Slot, ...] = ()
    bound: bool = False
    ms: Annotated[int, msgspec.Meta(ge=1)]
    size: Annotated[int, msgspec.Meta(ge=0)]
    weight: Annotated[float, msgspec.Meta(gt=0)] = 1.0

    def __post_init__(self) -> None:
        if self.text.count("?") != len(self.slots):
            raise ValueError(f"{self.sql!r} needs a slot for each '?', but has {len(self.slots)}")

    @cached_property
    def sql(self) -> str:
        """The text on one line, as in the log."""
        return " ".join(self.text.split())

    @cached_property
    def kind(self) -> str:
        """``statementType``."""
        if self.control is not None:
            return self.control[1]
        first = self.sql.split(None, 1)[0]
        return "SELECT" if first == "WITH" else first

    @cached_property
    def control(self) -> tuple[Control, str] | None:
        """What a control statement is about, and its ``statementType``."""
        # PostgreSQL, where SHOW is one too: no statement of the demo lists tables.
        return find_control(self.sql, Dialect.POSTGRESQL)

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables in the text, in order. Only tables have a schema; common table expressions have none."""
        return tuple(dict.fromkeys(_TABLE.findall(self.sql)))

    @cached_property
    def tables_json(self) -> str | None:
        """``tables``."""
        return msgspec.json.encode(self.tables).decode() if self.tables else None

    @property
    def is_data_change(self) -> bool:
        return self.kind in _DATA_CHANGES

    @property
    def is_ddl(self) -> bool:
        return self.kind in _DEFINITIONS

    @property
    def is_read_only(self) -> bool:
        return not (self.is_data_change or self.is_ddl or self.control)

    @cached_property
    def is_non_deterministic(self) -> bool:
        return _NON_DETERMINISTIC.search(self.sql) is not None

    @cached_property
    def plain_hash(self) -> str:
        """``queryHash`` of a request that does not use the cache: a hash of the standardized text alone."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Call:
    """A statement with its values.

    ``cached_hash`` is ``queryHash`` of a request that uses the cache. ``scale`` multiplies the statement's
    size and time, so that equal calls have equal costs, and other values have other costs.
    """

    statement: Statement
    parameters: str | None
    text_bytes: int
    cached_hash: str
    scale: float


def make_call(statement: Statement, *, rng: Random, day: date) -> Call:
    """Fill the slots of ``statement`` for a request on ``day``."""
    values = tuple(slot.fill(rng, day) for slot in statement.slots)
    parameters = msgspec.json.encode(values).decode() if statement.bound and values else None
    text = statement.sql if statement.bound else _inline(statement.sql, values)
    cached_hash = hash_query(text, parameters or "")
    scale = 0.6 + 0.8 * int(cached_hash[:2], 16) / 255
    return Call(statement, parameters, len(text.encode()), cached_hash, scale)


def _inline(sql: str, values: tuple[str | int, ...]) -> str:
    parts = iter(sql.split("?"))
    text = next(parts)
    for value, part in zip(values, parts, strict=True):
        text += (str(value) if isinstance(value, int) else f"'{value}'") + part
    return text


#: The number of days for `Profile.entries`.
PROFILE_DAYS: Final = 30
#: Times from the creation of the tenant, and from its first ruleset, to the first day with logs.
_CREATED_BEFORE_MS: Final = 15 * 3_600_000
_WRITTEN_BEFORE_MS: Final = 14 * 3_600_000
_MINUTE_MS: Final = 60_000


class Driver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program or a driver: how it names itself, and what it sends beside the statements.

    Attributes:
        connect: the statements with which it begins a session.
        begins: each statement is a transaction, between BEGIN and COMMIT.
    """

    user_agent: str | None = None
    connect: tuple[str, ...] = ()
    begins: bool = False


class Consumer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One consumer of the Gateway. ``share`` is its amount of requests relative to others of its persona."""

    name: str
    persona: Persona
    client_ip: str
    driver: str
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
        entries: the number of log entries in `PROFILE_DAYS` days, without control statements.
        config: a TenantConfig without account.
        rules: the rules of its ruleset, as documents.
        mistake: a change of the ruleset that was soon restored.
        leak: a former version of one of its rules, after the mistake was restored.
        draft: a draft of the next ruleset.
        advice: decided recommendations, in order of time, all after the mistake and the leak.
        drivers: what consumers use, by name.
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
    drivers: dict[str, Driver]
    probes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    statements: tuple[Statement, ...]
    consumers: Annotated[tuple[Consumer, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        if unknown := {consumer.driver for consumer in self.consumers} - {*self.drivers}:
            raise ValueError(f"consumers have drivers that are not described: {', '.join(sorted(unknown))}")
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
