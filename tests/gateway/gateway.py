"""A reference Gateway: the first place to look for the author of one. Read `docs/gateway.md` beside it.

It answers SQL statements from a cache in memory or from a warehouse, as the rules of the tenant say, and logs
each of them. `analytics/demo/profile.py` decides what the rules and the cache give. What a real one adds: a
network protocol, a parser of SQL, results on disk, and background threads for `poll`, `flush` and results
that have expired (`staleWhileRevalidate`).

`tests/gateway/faces` has small servers in front of it, to which real drivers connect.

What is easy to get wrong:

- A result is as old as the moment *before* its statement was sent to the warehouse. A marker of that
  millisecond or later makes it stale. Clocks of Gateways and service must agree (NTP).
- The key of a cached result contains the ruleset's `cacheBust`: a written ruleset has another cache.
- It also contains the values of the rule's `varyBy` columns. With a null among them, there is no key.
- It contains what the session adds to the text: schema, role, time zone, format of results.
- In a transaction that has written, reads see its writes: they are neither served from the cache nor
  stored, and rules fire after its COMMIT.
- Markers that this Gateway records count at once. Markers of other Gateways count after the next `poll`.
- An object of the log is written once, under a name of its own. It is never appended to or replaced.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import jwt
import requests

from analytics.demo.profile import KEY_VERSION, TenantGateway, hash_query
from analytics.demo.profile import Answer as CachedAnswer
from rules.language import read_rules
from tenantadmin.lib.core.timestamps import epoch_ms
from tests.gateway.faces.refusals import describe_refusal

if TYPE_CHECKING:
    from rules.dialects.control import Control
    from rules.language import Rule
    from rules.match import Firing
    from tests.gateway.service import Service


#: How far the clocks of the service and of the Gateway may differ.
LEEWAY_SECONDS: Final = 10


class Execution(Protocol):
    """A statement that the warehouse has run in a transaction that is open."""

    @property
    def result(self) -> str | bytes: ...
    def commit(self) -> None: ...
    def roll_back(self) -> None: ...


class Warehouse(Protocol):
    def execute(self, statement: Statement) -> Execution:
        """Run a statement.

        Raises:
            WarehouseError: it failed.
        """


class WarehouseError(Exception):
    """The warehouse failed a statement. `answer` is what it said, in the form of its protocol."""

    def __init__(self, answer: str | bytes) -> None:
        super().__init__(answer)
        self.answer = answer


@dataclass(frozen=True)
class Statement:
    """A statement, and what the parser of SQL found out about it. The members are named as in the log.

    `text` is what the key has of it: all its literals, and no comments; absent: `standardized_sql`.
    `control` says what a statement without a result of its own is about.
    """

    standardized_sql: str
    statement_type: str
    tables: list[str]
    is_read_only: bool
    is_data_change: bool
    parameter_values: list[Any] = field(default_factory=list)
    is_ddl: bool = False
    has_non_deterministic_functions: bool = False
    text: str = ""
    control: Control | None = None


@dataclass
class Session:
    """A connection of a consumer.

    Attributes:
        columns: what each of its requests logs, such as `sessionId`.
        context: what its results depend on beside the text. It is part of the key.
        in_transaction: the consumer has begun a transaction.
        sees_own: the transaction has written, or sees the state of its beginning.
        must_run: the next statement's result is not to be cached.
        fired: rules that fire after the COMMIT, each with its statement.
    """

    warehouse: Warehouse
    columns: dict[str, Any]
    context: dict[str, Any] = field(default_factory=dict)
    in_transaction: bool = False
    sees_own: bool = False
    must_run: bool = False
    fired: list[tuple[Statement, Firing]] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    """What the consumer gets. `rule_id` decided; `born_at` is the age of a cached result, in epoch ms.

    `error` is what the warehouse said, or a sentence in which the Gateway refuses.
    """

    cache_status: str
    result: str | bytes | None = None
    rule_id: str | None = None
    born_at: int | None = None
    error: str | bytes = ""


@dataclass
class Tenant:
    """What the Gateway knows of a tenant."""

    gateway: TenantGateway[str | bytes]
    etag: str


class Gateway:
    """One instance. `write_object` stores bytes under a key of the tenant's object store."""

    def __init__(
        self,
        service: Service,
        warehouse: Warehouse,
        *,
        jwks_url: str,
        issuer: str,
        write_object: Callable[[str, bytes], None],
    ) -> None:
        self._service = service
        self._warehouse = warehouse
        self._keys = jwt.PyJWKClient(jwks_url)
        self._issuer = issuer
        self._write_object = write_object
        self._name = uuid.uuid4().hex[:8]
        self._manifest_since: str | None = None
        self._markers_since: str | None = None
        self._tenants: dict[str, Tenant] = {}
        #: Markers by tenant and id. A marker can come before its tenant does.
        self._markers: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self._log: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self._described: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._objects = 0
        #: What it counted itself: requests by tenant and status.
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)

    # --- What changed: every few seconds -----------------------------------------------------------

    def poll(self) -> None:
        """Learn which tenants, rules and markers changed."""
        manifest = self._service.manifest(self._manifest_since)
        for item in manifest["_links"]["items"]:
            if item.get("deleted"):
                self._tenants.pop(item["name"], None)
                self._markers.pop(item["name"], None)
            else:
                self._read_rules(item["name"])
        self._manifest_since = manifest["generatedAt"]
        feed = self._service.markers(self._markers_since)
        for marker in feed["markers"]:
            if marker["deleted"]:
                self._markers[marker["tenantId"]].pop(marker["markerId"], None)
            else:
                self._markers[marker["tenantId"]][marker["markerId"]] = marker
        self._markers_since = feed["generatedAt"]

    def _read_rules(self, name: str) -> None:
        known = self._tenants.get(name)
        try:
            read = self._service.rules(name, known.etag if known else None)
        except requests.HTTPError as error:
            if error.response.status_code == 404:
                return  # deleted a moment ago: the next manifest says so
            raise
        if read is not None:
            ruleset, etag = read
            # With an empty cache: what was stored under another `cacheBust` is never served again.
            gateway: TenantGateway[str | bytes] = TenantGateway(name, cutoff=partial(self._cutoff, name))
            gateway.publish(read_rules(ruleset["rules"]), cache_bust=ruleset["cacheBust"])
            self._tenants[name] = Tenant(gateway, etag)

    # --- One request -----------------------------------------------------------------------------

    def handle(
        self,
        token: str,
        tenant_id: str,
        statement: Statement,
        *,
        logged_at: datetime | None = None,
        session: Session | None = None,
    ) -> Answer:
        """Answer a statement of a consumer. `logged_at` is the time for the log, by default now.

        Raises:
            KeyError: there is no such tenant, or not any more. Nothing is logged.
        """
        tenant = self._tenants[tenant_id]
        started_at = current_ms()
        logged_at = logged_at or datetime.now(UTC)
        session = session or Session(self._warehouse, {})
        log = partial(self._finish, tenant_id, session=session, logged_at=logged_at)
        user = self._verify(token, tenant_id)
        if user is None:
            return log(Answer("AUTH_ERROR", error=describe_refusal("AUTH_ERROR", None)), statement)
        request = session.columns | {
            "standardizedSql": statement.standardized_sql,
            "statementType": statement.statement_type,
            "tables": statement.tables,
            "tableCount": len(statement.tables),
            "isReadOnly": statement.is_read_only,
            "isDataChange": statement.is_data_change,
            "isDDL": statement.is_ddl,
            "hasParameters": bool(statement.parameter_values),
            "hasNonDeterministicFunctions": statement.has_non_deterministic_functions,
            "userName": user,
            "userTokenHash": hashlib.sha256(token.encode()).hexdigest(),
        }
        decision = tenant.gateway.decide(request)
        parameters = json.dumps(statement.parameter_values)
        query_hash = hash_query(statement.text or statement.standardized_sql, parameters)
        found = tenant.gateway.answer(decision, request, query_hash, context=session.context, at=started_at)
        extra: dict[str, Any] = {}
        if statement.control is not None and found.status != "BLOCKED":
            found = CachedAnswer(statement.control, None)
        elif found.key and (session.sees_own or session.must_run or not is_query(statement)):
            found = CachedAnswer("BYPASS", found.rule)
        answer = Answer(found.status, rule_id=found.rule.id if found.rule else None)
        if found.key:
            extra |= {"cacheKey": found.key, "missReason": found.miss_reason, "queryHash": query_hash}
        if found.result is not None:
            born_at = found.result.ready_at
            answer = replace(answer, result=found.result.content, born_at=born_at)
            extra["cacheAgeSeconds"] = (started_at - born_at) // 1000
        elif found.status == "BLOCKED":
            answer = replace(answer, error=describe_refusal("BLOCKED", answer.rule_id))
        else:
            answer = self._execute(tenant_id, session, statement, decision.fired, answer)
            if answer.result is not None:
                extra["warehouseExecutionTimeMs"] = current_ms() - started_at
                if found.key:
                    # A marker of the millisecond in which it started makes the result stale, too.
                    tenant.gateway.store(found, answer.result, as_of=started_at - 1, ready_at=started_at)
                    self._described[tenant_id].append({"cacheKey": found.key, "ruleId": answer.rule_id})
        return log(answer, statement, user=user, rule=found.rule, **extra)

    def sign_in(self, token: str, tenant_id: str, session: Session) -> str | None:
        """Begin a session. Return the user, or None if the token is not valid."""
        user = self._verify(token, tenant_id)
        self.note(tenant_id, session, "AUTH_ERROR" if user is None else "SPOOFED", "OPEN_SESSION", user=user)
        return user

    def note(
        self,
        tenant_id: str,
        session: Session,
        status: str,
        operation: str,
        *,
        user: str | None = None,
        statement: Statement | None = None,
    ) -> None:
        """Log a request beside the statements: opening, telemetry, a question about a running statement."""
        session = replace(session, columns=session.columns | {"operationType": operation})
        answer = Answer(status, result="" if status != "AUTH_ERROR" else None)
        self._finish(tenant_id, answer, statement, session=session, logged_at=datetime.now(UTC), user=user)

    def commit(self, tenant_id: str, session: Session) -> None:
        """Record what a transaction of the consumer invalidates, after its COMMIT."""
        for statement, firing in session.fired:
            self._invalidate(tenant_id, statement, [firing])
        self.roll_back(session)

    def roll_back(self, session: Session) -> None:
        """Forget a transaction of the consumer."""
        session.fired, session.sees_own = [], False

    def _verify(self, token: str, tenant_id: str) -> str | None:
        """Return the consumer whose access token this is, without asking the service; None if it is none."""
        try:
            claims = jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token).key,
                algorithms=["ES256"],
                audience="tenant-admin",
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                # The clock of the service may be ahead.
                options={"require": ["exp", "sub", "typ", "tenants"], "verify_iat": False},
            )
        except jwt.PyJWTError:
            return None
        tenants = claims["tenants"]
        if claims["typ"] != "access" or not isinstance(tenants, list) or not {tenant_id, "*"} & {*tenants}:
            return None
        # The user must acknowledge new terms of service first.
        if claims.get("tos_required"):
            return None
        return str(claims["sub"])

    def _cutoff(self, tenant_id: str, rule_id: str, _at: int) -> int | None:
        return find_cutoff(self._markers[tenant_id].values(), rule_id)

    def _execute(
        self,
        tenant_id: str,
        session: Session,
        statement: Statement,
        fired: Iterable[Firing],
        answer: Answer,
    ) -> Answer:
        """Execute a statement, and record what it invalidates.

        A rule with `requireInvalidation` is recorded before the commit: if that fails, nothing has happened.
        It is recorded again after the commit, because others may have cached the old state in between.
        """
        try:
            execution = session.warehouse.execute(statement)
        except WarehouseError as error:
            return replace(answer, cache_status="ERROR", error=error.answer)
        try:
            self._invalidate(tenant_id, statement, [firing for firing in fired if firing.required])
        except requests.RequestException:
            execution.roll_back()
            return replace(
                answer,
                cache_status="INVALIDATION_ERROR",
                error=describe_refusal("INVALIDATION_ERROR", answer.rule_id),
            )
        execution.commit()
        if session.in_transaction:
            session.fired += [(statement, firing) for firing in fired]
            session.sees_own |= statement.is_data_change or statement.is_ddl
        else:
            self._invalidate(tenant_id, statement, fired)
        return replace(answer, result=execution.result)

    def _invalidate(self, tenant_id: str, statement: Statement, fired: Iterable[Firing]) -> None:
        for firing in fired:
            for marker in self._service.invalidate(tenant_id, firing.rule_id, statement.standardized_sql):
                self._markers[tenant_id][marker["markerId"]] = marker

    # --- The log ------------------------------------------------------------------------------------

    def _finish(
        self,
        tenant_id: str,
        answer: Answer,
        statement: Statement | None,
        *,
        session: Session,
        logged_at: datetime,
        user: str | None = None,
        rule: Rule | None = None,
        **extra: Any,
    ) -> Answer:
        """Log a request, and count it."""
        self.counts[tenant_id][answer.cache_status] += 1
        entry = {
            "logId": str(uuid.uuid4()),
            "timestamp": int(logged_at.timestamp() * 1000),
            "userName": user,
            # A refusal is an answer too: drivers take 403 and 503 for something to try again.
            "statusCode": 200,
            "responseSize": len(answer.result or ""),
            "responseTimeMs": 1,
            "cacheStatus": answer.cache_status,
            "matchedRule": answer.rule_id,
            "matchedRuleName": None if rule is None else rule.name,
            "cacheTtlSeconds": None if rule is None else rule.ttl_seconds,
            **session.columns,
            **extra,
        }
        if statement is not None:
            entry |= {
                "cacheKeyVersion": KEY_VERSION,
                "standardizedSql": statement.standardized_sql,
                "parameterValues": statement.parameter_values,
                "hasParameters": bool(statement.parameter_values),
                "statementType": statement.statement_type,
                "tables": statement.tables,
                "tableCount": len(statement.tables),
                "isReadOnly": statement.is_read_only,
                "isDataChange": statement.is_data_change,
                "isDDL": statement.is_ddl,
                "hasNonDeterministicFunctions": statement.has_non_deterministic_functions,
            }
        self._log[tenant_id, f"{logged_at:logs/%Y/%m/%d/%H}"].append(entry)
        return answer

    def flush(self) -> None:
        """Write the log of the last seconds, and say where; say what is in the cache."""
        written: dict[str, list[str]] = defaultdict(list)
        for (tenant_id, prefix), entries in self._log.items():
            self._objects += 1
            body = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
            self._write_object(f"{tenant_id}/{prefix}/{self._name}-{self._objects:06}.json", body)
            written[tenant_id].append(prefix)
        self._log.clear()
        for tenant_id, prefixes in written.items():
            self._service.notify_logs(tenant_id, prefixes)
        for tenant_id, entries in self._described.items():
            if tenant_id in self._tenants:
                self._service.describe_cache(
                    tenant_id, list({row["cacheKey"]: row for row in entries}.values())
                )
        self._described.clear()


def is_query(statement: Statement) -> bool:
    """Return True if a result can be kept: a DECLARE reads, but its rows come with FETCH."""
    return statement.statement_type != "DECLARE"


def find_cutoff(markers: Iterable[dict[str, Any]], rule_id: str) -> int | None:
    """Return the time of the newest marker of a rule. A result that was born then, or before, is stale.

    It stays so when the marker expires: within `staleWhileRevalidate` a result may be older than that.
    """
    moments = [to_ms(marker["invalidatedAt"]) for marker in markers if marker["targetRuleId"] == rule_id]
    return max(moments, default=None)


def to_ms(text: str) -> int:
    """Return a time of the service in epoch ms."""
    return epoch_ms(datetime.fromisoformat(text))


def current_ms() -> int:
    """Return the time in whole milliseconds, rounded down like the times of markers."""
    return time.time_ns() // 1_000_000
