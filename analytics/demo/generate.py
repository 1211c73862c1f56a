"""Generate requests with the rhythm of a working week, and the log entries that the Gateway makes of them."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from itertools import accumulate
from operator import attrgetter, itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, toml

from analytics.demo.profile import (
    KEY_VERSION,
    Answer,
    Call,
    Consumer,
    Markers,
    OneOf,
    Persona,
    Profile,
    Publication,
    Result,
    Statement,
    TenantGateway,
    make_call,
)
from logs.columns import COLUMNS
from logs.definitions import ANSWERED
from logs.layout import HOUR_MS, day_start_ms
from rules.language import read_rules

if TYPE_CHECKING:
    from rules.match import Decision


_SATURDAY: Final = 5


class _Persona(Struct, frozen=True, forbid_unknown_fields=True):
    """The rhythm of a kind of consumers.

    Attributes:
        hours: the weight of each hour (UTC) of a weekday.
        weekend: the factor of a day of a weekend.
        bursts: the relative number of bursts.
        statements: the least and the most statements in a burst.
        gap_ms: the most time between two statements.
    """

    hours: tuple[int, ...]
    weekend: float
    bursts: float
    statements: tuple[int, int]
    gap_ms: int


class _Behaviour(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of ``data/traffic.toml``. All others than ``personas`` are shares or probabilities.

    Attributes:
        second_viewer: bursts of dashboards that a second viewer repeats at once. The Gateway holds these
            requests until the first results are ready.
        without_statement: requests without a statement by their status, as a share of the statements.
        failure, lost_marker, polled: that a statement fails, a marker cannot be stored, and a client polls.
        no_size, zero_size, no_time, no_warehouse, no_request_size, no_reason: that a measurement is missing.
    """

    second_viewer: float
    repeat: float
    nocache: float
    cache: float
    failure: float
    lost_marker: float
    polled: float
    no_size: float
    zero_size: float
    no_time: float
    no_warehouse: float
    no_request_size: float
    no_reason: float
    without_statement: dict[str, float]
    personas: dict[Persona, _Persona]


_BEHAVIOUR: Final = toml.decode(
    Path(__file__).with_name("data").joinpath("traffic.toml").read_bytes(), type=_Behaviour
)


class Arrival(NamedTuple):
    """A request that arrives at the Gateway.

    ``consumer`` is an index in the profile. Without a statement, ``call`` is None and ``status`` is the
    status of the log entry.
    """

    at: int
    consumer: int
    call: Call | None
    status: str = ""
    override: str | None = None


class Traffic:
    """The arrivals of one tenant, hour by hour: about ``entries`` in ``days`` days from ``first_day``."""

    def __init__(self, profile: Profile, *, rng: Random, first_day: date, days: int, entries: int) -> None:
        self._profile = profile
        self._rng = rng
        self._count = 0
        self._choices = {persona: _weighted(profile.statements, persona) for persona in Persona}
        self._dashboards = [
            index for index, consumer in enumerate(profile.consumers) if consumer.persona is Persona.DASHBOARD
        ]
        weights = [
            sum(self._shares(hour % 24, weekend=(first_day.weekday() + hour // 24) % 7 >= _SATURDAY))
            for hour in range(days * 24)
        ]
        scale = entries / sum(weights)
        #: The start of each hour (epoch ms), and the number of arrivals until its end.
        self.hours = [
            (day_start_ms(first_day) + hour * HOUR_MS, round(due * scale))
            for hour, due in enumerate(accumulate(weights))
        ]

    def arrivals(self, hour_start: int, *, due: int) -> list[Arrival]:
        """Return the unsorted arrivals of one hour, so that the total since the beginning is ``due``."""
        when = datetime.fromtimestamp(hour_start / 1000, UTC)
        cumulative = list(accumulate(self._shares(when.hour, weekend=when.weekday() >= _SATURDAY)))
        arrivals: list[Arrival] = []
        consumers = range(len(self._profile.consumers))
        while self._count + len(arrivals) < due:
            (consumer,) = self._rng.choices(consumers, cum_weights=cumulative)
            burst = self._burst(consumer, hour_start=hour_start, day=when.date())
            arrivals += burst
            if self._profile.consumers[consumer].persona is Persona.DASHBOARD:
                arrivals += self._second_viewer(burst, hour_start=hour_start)
        self._count += len(arrivals)
        return arrivals

    def _shares(self, hour: int, *, weekend: bool) -> list[float]:
        shares = []
        for consumer in self._profile.consumers:
            rhythm = _BEHAVIOUR.personas[consumer.persona]
            share = rhythm.hours[hour] * rhythm.bursts * consumer.share
            shares.append(share * rhythm.weekend if weekend else share)
        return shares

    def _burst(self, consumer: int, *, hour_start: int, day: date) -> list[Arrival]:
        rng = self._rng
        persona = self._profile.consumers[consumer].persona
        rhythm = _BEHAVIOUR.personas[persona]
        statements, cumulative = self._choices[persona]
        last = hour_start + HOUR_MS - 1
        at = hour_start + int(rng.random() * HOUR_MS)
        arrivals: list[Arrival] = []
        call: Call | None = None
        for statement in rng.choices(statements, cum_weights=cumulative, k=rng.randint(*rhythm.statements)):
            if call is None or persona is not Persona.ANALYST or rng.random() > _BEHAVIOUR.repeat:
                call = make_call(statement, rng=rng, day=day)
            arrivals.append(Arrival(at, consumer, call, override=self._override(call, persona)))
            chance = rng.random()
            for status, share in _BEHAVIOUR.without_statement.items():
                if chance < share:
                    arrivals.append(Arrival(at, consumer, None, status=status))
                    break
                chance -= share
            at = min(at + 1 + int(rng.random() * rhythm.gap_ms), last)
        return arrivals

    def _second_viewer(self, burst: list[Arrival], *, hour_start: int) -> list[Arrival]:
        rng = self._rng
        if rng.random() > _BEHAVIOUR.second_viewer:
            return []
        viewer = rng.choice(self._dashboards)
        delay = int(rng.random() * 1_500)
        last = hour_start + HOUR_MS - 1
        return [
            Arrival(min(arrival.at + delay, last), viewer, arrival.call) for arrival in burst if arrival.call
        ]

    def _override(self, call: Call, persona: Persona) -> str | None:
        if persona not in {Persona.ANALYST, Persona.DASHBOARD} or not call.statement.is_read_only:
            return None
        chance = self._rng.random()
        if chance < _BEHAVIOUR.nocache:
            return "nocache"
        return "cache" if chance < _BEHAVIOUR.nocache + _BEHAVIOUR.cache else None


def _weighted(statements: tuple[Statement, ...], persona: Persona) -> tuple[list[Statement], list[float]]:
    chosen = [statement for statement in statements if persona in statement.personas]
    return chosen, list(accumulate(statement.weight for statement in chosen))


Entry: TypeAlias = dict[str, Any]

SEED: Final = 7

_SESSION_MS: Final = 30 * 60_000
_SLOW_MS: Final = 8_000


@dataclass(frozen=True, slots=True)
class GeneratedMarker:
    """An invalidation by the simulated Gateway. ``at`` is in epoch ms."""

    target_rule_id: str
    at: int
    fired_rule_id: str
    statement: str


@dataclass(frozen=True, slots=True)
class Hour:
    """The entries of one hour in order of time, and the markers that they caused. ``start``: epoch ms."""

    start: int
    entries: list[Entry]
    markers: list[GeneratedMarker]


def generate(
    profile: Profile,
    *,
    tenant_id: str,
    first_day: date,
    days: int,
    entries: int,
    seed: int = SEED,
    publications: tuple[Publication, ...] | None = None,
) -> Iterator[Hour]:
    """Yield every hour of ``days`` days from ``first_day`` (UTC): at least ``entries`` entries in total.

    ``publications`` are the rulesets in order of time; without them, the profile has its own.
    """
    rng = Random(f"{seed}/{profile.name}/{tenant_id}/{first_day}/{days}")  # noqa: S311 - no secrets
    traffic = Traffic(profile, rng=rng, first_day=first_day, days=days, entries=entries)
    if publications is None:
        publications = profile.publications(first_day)
    control = Random(f"control/{seed}/{tenant_id}/{first_day}/{days}")  # noqa: S311 - no secrets
    log = _Log(profile, publications, tenant_id=tenant_id, rng=rng, control=control)
    for start, due in traffic.hours:
        yield log.simulate(start, traffic.arrivals(start, due=due))


@cache
def _make_control(sql: str) -> Statement:
    return Statement(text=sql, personas=(), slots=(OneOf(("",)),) * sql.count("?"), ms=1, size=120)


def _columns_of(statement: Statement) -> Entry:
    return {
        "standardizedSql": statement.sql,
        "queryHash": statement.plain_hash,
        "hasParameters": statement.bound,
        "statementType": statement.kind,
        "isReadOnly": statement.is_read_only,
        "isDataChange": statement.is_data_change,
        "isDDL": statement.is_ddl,
        "hasNonDeterministicFunctions": statement.is_non_deterministic,
        "tableCount": len(statement.tables),
        "tables": statement.tables_json,
    }


class _Caller:
    """A consumer: its constant log columns, and its session."""

    def __init__(self, consumer: Consumer, profile: Profile) -> None:
        self.session_id = ""
        self.session_ends_at = 0
        self.has_connected = False
        self.driver = profile.drivers[consumer.driver]
        token = hashlib.sha256(f"{profile.name}/{consumer.name}".encode()).hexdigest()
        self.columns: Entry = dict.fromkeys(column.name for column in COLUMNS) | {
            "userName": consumer.name,
            "statusCode": 200,
            "adapterType": profile.adapter_type,
            "serverHostname": profile.server_hostname,
            "clientIp": consumer.client_ip,
            "userTokenHash": token,
            "userAgent": self.driver.user_agent,
        }
        if profile.speaks_http:
            self.columns |= {
                "host": profile.host,
                "connection": "keep-alive",
                "contentType": "application/json",
                "acceptEncoding": "gzip, deflate",
                "xForwardedFor": f"{consumer.client_ip}, 10.0.0.5",
                "xForwardedProto": "https",
                "xForwardedHost": profile.host,
                "xRealIp": consumer.client_ip,
            }
        if profile.speaks_http and consumer.persona is Persona.DASHBOARD:
            self.columns["origin"] = f"https://boards.{profile.host}"
            self.columns["referer"] = f"https://boards.{profile.host}/view/{token[:8]}"


class _Log:
    """Turns arrivals into log entries, in order, with the Gateway's answer and measured times and sizes."""

    def __init__(
        self,
        profile: Profile,
        publications: tuple[Publication, ...],
        *,
        tenant_id: str,
        rng: Random,
        control: Random,
    ) -> None:
        self._profile = profile
        self._rng = rng
        #: Of its own, so that what drivers send beside the statements changes none of these.
        self._control_rng = control
        self._publications = list(publications)
        self._rule_version = ""
        self._callers = [_Caller(consumer, profile) for consumer in profile.consumers]
        self._caller_by_name = {caller.columns["userName"]: caller for caller in self._callers}
        self._decisions: dict[tuple[int, int, str | None], Decision] = {}
        self._recorded = Markers()
        #: The cache stores sizes in place of results.
        self._gateway: TenantGateway[int] = TenantGateway(tenant_id, cutoff=self._recorded.cutoff)
        self._markers: list[GeneratedMarker] = []
        self._probes = [_make_control(sql) for sql in profile.probes]
        #: Requests that other requests cause, also in later hours.
        self._later: list[Entry] = []

    def simulate(self, hour_start: int, arrivals: list[Arrival]) -> Hour:
        """Simulate one hour. Call it for the hours in order."""
        self._markers = []
        handled = [self._handle(arrival) for arrival in sorted(arrivals, key=attrgetter("at"))]
        # A BEGIN is of the same millisecond as its statement.
        entries = self._later + handled
        entries.sort(key=itemgetter("timestamp"))
        count = bisect_left(entries, hour_start + HOUR_MS, key=itemgetter("timestamp"))
        self._later = entries[count:]
        return Hour(hour_start, entries[:count], self._markers)

    def _handle(self, arrival: Arrival) -> Entry:
        while self._publications and self._publications[0].at <= arrival.at:
            self._take_rules(self._publications.pop(0))
        if arrival.call is None:
            return self._handle_without_statement(arrival)
        entry = self._open(arrival)
        self._describe(entry, arrival.call, override=arrival.override)
        decision = self._decide(entry, arrival)
        answer = self._gateway.answer(decision, entry, arrival.call.cached_hash, at=arrival.at)
        entry["cacheStatus"] = answer.status
        if answer.rule:
            entry["matchedRule"] = answer.rule.id
            entry["matchedRuleName"] = answer.rule.name
            entry["ruleVersion"] = self._rule_version
        if answer.status == "BLOCKED":
            self._measure(entry, size=160, ms=self._rng.randint(1, 5))
        elif answer.key:
            self._serve(entry, arrival.call, answer)
        else:
            self._forward(entry, arrival.call, decision)
        self._surround(entry)
        return entry

    def _surround(self, entry: Entry) -> None:
        """Let the driver send what it sends when it connects, and around a statement."""
        caller, at = self._caller_by_name[entry["userName"]], entry["timestamp"]
        texts = [] if caller.has_connected else [*caller.driver.connect]
        caller.has_connected = True
        for text in [*texts, "BEGIN"] if caller.driver.begins else texts:
            self._control(entry, text, at=at)
        if caller.driver.begins:
            end = "COMMIT" if entry["cacheStatus"] in ANSWERED else "ROLLBACK"
            self._control(entry, end, at=at + max(entry["responseTimeMs"], 1))

    def _control(self, entry: Entry, text: str, *, at: int) -> None:
        """Let a consumer send a control statement in the session of an entry."""
        rng = self._control_rng
        control = self._caller_by_name[entry["userName"]].columns.copy()
        control.update(
            _columns_of(_make_control(text)),
            timestamp=at,
            logId=self._new_id(rng),
            sessionId=entry["sessionId"],
            cacheStatus="SPOOFED",
            requestSize=len(text) + 210,
            responseSize=120,
            responseTimeMs=rng.randint(1, 4),
            operationId=self._new_id(rng),
            operationType="EXECUTE_STATEMENT",
        )
        self._later.append(control)

    def _take_rules(self, publication: Publication) -> None:
        self._rule_version = str(publication.seq)
        self._gateway.publish(read_rules(publication.rules), cache_bust=self._rule_version)
        self._decisions.clear()

    # --- The request ----------------------------------------------------------------------------

    def _open(self, arrival: Arrival) -> Entry:
        """Return a new entry with the columns that every request has."""
        caller = self._callers[arrival.consumer]
        if arrival.at > caller.session_ends_at:
            caller.session_id = self._new_id()
            caller.has_connected = False
        caller.session_ends_at = arrival.at + _SESSION_MS
        entry = caller.columns.copy()
        entry["timestamp"] = arrival.at
        entry["logId"] = self._new_id()
        entry["sessionId"] = caller.session_id
        return entry

    def _describe(self, entry: Entry, call: Call, *, override: str | None) -> None:
        """Set the columns of the statement."""
        rng, statement = self._rng, call.statement
        entry.update(
            _columns_of(statement),
            parameterValues=call.parameters,
            cacheOverride=override,
            operationId=self._new_id(),
            operationType="EXECUTE_STATEMENT",
        )
        size = call.text_bytes + len(call.parameters or "") + 210
        if rng.random() >= _BEHAVIOUR.no_request_size:
            entry["requestSize"] = size
        if self._profile.speaks_http:
            entry["contentLength"] = str(size)
            if size > 450:
                entry["contentEncoding"] = "gzip"

    def _decide(self, entry: Entry, arrival: Arrival) -> Decision:
        # Everything that a rule may test depends only on consumer, statement and override.
        call = arrival.call
        key = (arrival.consumer, id(call.statement if call else None), arrival.override)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decisions[key] = self._gateway.decide(entry)
        return decision

    # --- The outcome ----------------------------------------------------------------------------

    def _serve(self, entry: Entry, call: Call, answer: Answer[int]) -> None:
        """Answer by a cache rule: HIT, HOLD, MISS or, if the warehouse fails, ERROR."""
        rng, at, result = self._rng, entry["timestamp"], answer.result
        entry.update(queryHash=call.cached_hash, cacheKey=answer.key, cacheKeyVersion=KEY_VERSION)
        overhead = rng.lognormvariate(2.0, 0.5)
        if result:
            if answer.status == "HIT":
                entry["cacheAgeSeconds"] = (at - result.ready_at) // 1000
                self._measure(entry, size=result.content, ms=overhead + result.content / 60_000)
            else:
                self._measure(entry, size=result.content, ms=result.ready_at - at + overhead)
            if answer.refreshes:
                self._store(answer, at, *self._run(call))
        elif rng.random() < _BEHAVIOUR.failure:
            self._fail(entry, call)
            return
        else:
            entry["missReason"] = answer.miss_reason if rng.random() >= _BEHAVIOUR.no_reason else None
            result = self._store(answer, at, *self._execute(entry, call))
        entry["cacheTtlSeconds"] = answer.ttl_seconds
        entry["cacheExpiresAt"] = result.expires_at

    def _store(self, answer: Answer[int], at: int, warehouse_ms: int, size: int) -> Result[int]:
        ready_at = at + warehouse_ms
        return self._gateway.store(answer, size, as_of=ready_at, ready_at=ready_at)

    def _forward(self, entry: Entry, call: Call, decision: Decision) -> None:
        """Answer without the cache: BYPASS, PASSTHROUGH, ERROR, or INVALIDATION_ERROR for a lost marker."""
        rng = self._rng
        if any(firing.required for firing in decision.fired) and rng.random() < _BEHAVIOUR.lost_marker:
            # The Gateway refuses a change if it cannot store the markers. Otherwise stale results would stay
            # in use.
            entry["cacheStatus"] = "INVALIDATION_ERROR"
            self._measure(entry, size=210, ms=rng.lognormvariate(4.5, 0.6))
            return
        if rng.random() < _BEHAVIOUR.failure:
            self._fail(entry, call)
            return
        warehouse_ms, _ = self._execute(entry, call)
        at = entry["timestamp"] + warehouse_ms
        for firing in decision.fired:
            for target in firing.targets:
                self._recorded.add(target, at=at)
                self._markers.append(GeneratedMarker(target, at, firing.rule_id, call.statement.sql))

    def _run(self, call: Call) -> tuple[int, int]:
        """Return the warehouse time in ms, and the size of the result in bytes."""
        statement, rng = call.statement, self._rng
        warehouse_ms = max(1, int(statement.ms * call.scale * rng.lognormvariate(0, 0.3)))
        return warehouse_ms, int(statement.size * call.scale * (0.95 + 0.1 * rng.random()))

    def _execute(self, entry: Entry, call: Call) -> tuple[int, int]:
        """Run and log a statement. Return its time in ms and its size. The log may lack one of them."""
        rng = self._rng
        warehouse_ms, size = self._run(call)
        entry["queryId"] = self._new_id()
        entry["warehouseExecutionTimeMs"] = warehouse_ms if rng.random() >= _BEHAVIOUR.no_warehouse else None
        self._measure(entry, size=size, ms=warehouse_ms + rng.lognormvariate(2.0, 0.5))
        if warehouse_ms > _SLOW_MS and rng.random() < _BEHAVIOUR.polled:
            self._poll(entry, warehouse_ms)
        return warehouse_ms, size

    def _fail(self, entry: Entry, call: Call) -> None:
        rng = self._rng
        entry.update(cacheStatus="ERROR", statusCode=rng.choice((400, 500, 502, 504)))
        spent = max(1, int(call.statement.ms * call.scale * rng.random()))
        if entry["statusCode"] in {500, 504}:
            entry["warehouseExecutionTimeMs"] = spent
            entry["queryId"] = self._new_id()
        self._measure(entry, size=240, ms=spent + rng.lognormvariate(2.0, 0.5))

    def _poll(self, entry: Entry, warehouse_ms: int) -> None:
        """Let the consumer poll the state of a slow statement: EXECUTOR entries while it runs."""
        polls = self._rng.randint(1, 3)
        for number in range(1, polls + 1):
            poll = self._caller_by_name[entry["userName"]].columns.copy()
            poll.update(
                logId=self._new_id(),
                sessionId=entry["sessionId"],
                timestamp=entry["timestamp"] + warehouse_ms * number // (polls + 1),
                cacheStatus="EXECUTOR",
                operationType="GET_OPERATION_STATUS",
                operationId=entry["operationId"],
                queryId=entry["queryId"],
                requestSize=self._rng.randint(120, 260),
            )
            self._measure(poll, size=self._rng.randint(80, 400), ms=self._rng.randint(2, 20))
            self._later.append(poll)

    def _handle_without_statement(self, arrival: Arrival) -> Entry:
        rng, entry = self._rng, self._open(arrival)
        entry["cacheStatus"] = arrival.status
        if arrival.status == "SPOOFED":
            probe = rng.choice(self._probes)
            self._describe(entry, Call(probe, None, len(probe.sql), probe.plain_hash, 1.0), override=None)
            self._measure(entry, size=120, ms=rng.lognormvariate(1.0, 0.4))
        elif arrival.status == "TELEMETRY":
            entry.update(operationType="TELEMETRY", requestSize=rng.randint(300, 5_000))
            entry.update(responseSize=0, responseTimeMs=rng.randint(1, 8))
        else:
            entry.update(userName=None, sessionId=None, operationType="OPEN_SESSION")
            entry["userTokenHash"] = self._new_id().replace("-", "") * 2 if rng.random() < 0.6 else None
            self._measure(entry, size=110, ms=rng.randint(2, 30))
        return entry

    # --- Helpers --------------------------------------------------------------------------------

    def _measure(self, entry: Entry, *, size: int, ms: float) -> None:
        """Set the size and time of the response. Sometimes one of them is missing."""
        chance = self._rng.random()
        if chance < _BEHAVIOUR.no_size:
            size = -1
        elif chance < _BEHAVIOUR.no_size + _BEHAVIOUR.zero_size:
            size = 0
        entry["responseSize"] = size
        entry["responseTimeMs"] = max(1, int(ms)) if self._rng.random() >= _BEHAVIOUR.no_time else 0

    def _new_id(self, rng: Random | None = None) -> str:
        digits = f"{(rng or self._rng).getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
