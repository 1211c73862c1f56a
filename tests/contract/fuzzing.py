"""A seeded service, and requests to it that the contract allows or forbids. Contract: Versioning.

Half of the requests name things that exist, so that what lies behind a 404 is reached too. Each runs in a
savepoint that is rolled back: the next one finds the service as it was seeded, whatever was deleted.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import schemathesis
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Err
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from accounts.access.scopes import ALL_SCOPES, NOT_IN_MEMBERS_PATS, Scope
from accounts.billing.domains import register_domain
from accounts.models import PermissionGrant, PersonalAccessToken
from logs.layout import day_start_ms
from rules.write import write_ruleset
from tenantadmin.http.contract import CONTRACT_FILE
from tenantadmin.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tosapp.publishing import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from hypothesis.strategies import DrawFn
    from schemathesis import Case
    from schemathesis.core.transport import Response
    from schemathesis.engine.recorder import ScenarioRecorder
    from schemathesis.schemas import APIOperation, BaseSchema

    Operation = APIOperation[Any, Any, Any, Any]
    Request = Case[Any]

#: Requests per operation and kind; `make fuzz` sets more, and then they differ from run to run.
EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "0"))
DAY: Final = date(2026, 3, 1)
TERMS: Final = "# Terms\n\nBe kind.\n"
RULES: Final[list[dict[str, Any]]] = [
    {"id": "orders", "conditions": {"userName": "a"}, "ttlSeconds": 3600},
    {"id": "items", "conditions": {"userName": "b"}},
    {"id": "written", "conditions": {"isDataChange": True}, "invalidateRules": ["orders", "items"]},
]
STATEMENTS: Final = (
    "SELECT count(*) FROM proxy_logs",
    f"SELECT * FROM proxy_logs WHERE day = '{DAY}'",
    "WITH d AS (SELECT DISTINCT day FROM proxy_logs) SELECT * FROM d",
    "SELECT 1 / 0 AS a, {'b': [1, NULL]} AS c, 1::HUGEINT AS c",
    "SELECT CAST(userName AS INTEGER) FROM proxy_logs",
    "SELECT 1; SELECT 2",
    "DESCRIBE proxy_logs",
)
#: Answers of these alone may be 502 or 503: they depend on what lies outside the service.
_MAY_BE_UNAVAILABLE: Final = frozenset(
    {"startSignIn", "requestMagicLink", "verifyMagicLink", "showMagicLink"}
)
#: The history of a tenant and of an account stays when they are deleted.
_OUTLIVE_DELETION: Final = frozenset(
    [
        "diffAccount",
        "diffConfig",
        "diffRules",
        "getAccountRevision",
        "getConfigRevision",
        "getRulesRevision",
        "listAccountHistory",
        "listConfigHistory",
        "listRulesHistory",
    ]
)
#: Of schemathesis' other checks, `positive_data_acceptance` does not hold: a request of the right shape may
#: name what does not exist or break the rules of the rule language. What `ignored_auth` and
#: `object_level_authorization` ask, tests/authz asks of every operation; the rest needs its coverage phase.
_CHECKS: Final = (
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.allow_header_conformance,
)


@dataclass(frozen=True, slots=True)
class Seed:
    """What exists, by the name of the parameter or property that may hold it, and who asks, how often."""

    values: Mapping[str, Sequence[Any]]
    tokens: Sequence[str | None]
    wildcard: str
    owner_pat: str
    #: Of a member who has not acknowledged the terms: reaches these alone.
    bridge: str


def load_contract() -> BaseSchema:
    """Return the published contract, bound to the service in this process."""
    schema = schemathesis.openapi.from_dict(json.loads(CONTRACT_FILE.read_text()))
    schema.app = WSGIHandler()
    # Refused everywhere, and written about in no schema; other tests send it.
    schema.config.generation.update(allow_x00=False)
    return schema


def operations(schema: BaseSchema) -> Iterator[Operation]:
    """Yield every operation of the contract; one that cannot be read is an error."""
    for result in schema.get_all_operations():
        if isinstance(result, Err):
            raise result.err()
        yield result.ok()


def fuzz_settings(*, examples: int, **options: Any) -> settings:
    """Return the same requests in every run, or more and other ones where ``FUZZ_EXAMPLES`` asks for them."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate] if not EXAMPLES else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        **options,
    )


def seed_service() -> Seed:
    """Fill the database and the object store with one of everything that a path can name."""
    world = factories.make_world()
    tenant = world.tenant
    factories.make_tenant(world.account, "Fqdns")
    write_ruleset(tenant_id=tenant.pk, document={"rules": RULES}, actor=world.owner.email)
    write_ruleset(tenant_id=tenant.pk, document={"rules": RULES[:1]}, actor=world.owner.email)
    write_ruleset(tenant_id=tenant.pk, document={"rules": RULES}, actor=world.owner.email)
    wildcard = factories.pat_token(world.platform_admin, *ALL_SCOPES, tenants=["*"])
    admin = ApiClient(wildcard)
    here = f"/tenants/{tenant.pk}"
    config = admin.get(f"/config{here}/config").json()
    fqdn = f"{tenant.pk}.gateway.localhost"
    for path, body in (
        (f"/config{here}/config", {**config, "fqdns": [fqdn]}),
        (f"{here}/cachekeys/k1", {"ruleId": "orders", "tables": ["a"], "tags": {"b": "c"}}),
    ):
        _expect(200, admin.put(path, body))
    for marker in ("m1", "m2"):
        _expect(
            201,
            admin.post(f"{here}/invalidation-markers", {"markerId": marker, "targetRuleId": "orders"}),
        )
    register_domain(account_id=world.account.pk, name="example.org")
    grant = PermissionGrant.objects.create(
        grantee=world.stranger, resource="tenant", resource_id=tenant.pk, permissions=["config:read"]
    )
    terms = publish(TERMS, actor=world.platform_admin.email)
    for person in (world.owner, world.platform_admin):
        markdown = {"markdown": TERMS}
        _expect(204, ApiClient(factories.sign_in(person)).post(f"/users/{person.email}/tos", markdown))
        person.refresh_from_db()
    owner_scopes = sorted(set(Scope) - {Scope.TOS_PUBLISH, *NOT_IN_MEMBERS_PATS})
    owner_pat = factories.pat_token(world.owner, *owner_scopes, tenants=[str(tenant.pk)])
    bridge = factories.sign_in(world.member)
    _seed_logs(tenant.pk)
    emails = [world.owner.email] * 3 + [
        person.email for person in (world.owner, world.member, world.stranger, world.platform_admin)
    ]
    ids = [str(tenant.pk)] * 3 + [str(world.stranger_tenant.pk)]
    accounts = [str(world.account.pk)] * 3 + [str(world.stranger_tenant.account_id)]
    return Seed(
        values={
            "email": emails,
            "userId": ["Ana", "a/b c"],
            "owners": [emails[:1], emails[3:]],
            "grantee": emails,
            "tenant": ids,
            "tenantId": ids,
            "account": accounts,
            "accountId": accounts,
            "resourceId": [*ids, *accounts],
            "tenants": [ids[:1], ["*"], []],
            "scopes": [["config:read"], ["analytics:read", "cache-admin"], []],
            "permissions": [["config:read"], ["config:read", "config:write"]],
            "pat_id": list(PersonalAccessToken.objects.values_list("pk", flat=True)),
            "grant": [str(grant.pk)],
            "fqdn": [fqdn],
            "fqdns": [[], [fqdn], ["other.gateway.localhost"]],
            "domain": ["example.org", "example.net"],
            "md5": [terms.publication.hash],
            "markdown": [TERMS, "# Other"],
            "marker": ["m1", "m2"],
            "markerId": ["m1", "m3"],
            "rule": ["written", "orders"],
            "ruleId": ["written", "orders"],
            "targetRuleId": ["orders", "items"],
            "invalidateRules": [["orders"], []],
            "rules": [RULES, RULES[:1], []],
            "cachekey": ["k1", "k2"],
            "cacheKey": ["k1", "k2"],
            "seq": [0, 1, 2],
            "from": [0, 1],
            "to": [2, 3],
            "limit": [1, 200],
            "year": [f"{DAY:%Y}"],
            "month": [f"{DAY:%m}"],
            "day": [f"{DAY:%d}"],
            "hour": ["00"],
            "file": ["a.json"],
            "sql": STATEMENTS,
            "conditions": [{"userName": "a"}, {"statementType": {"in": ["SELECT"]}}],
        },
        tokens=[
            *[wildcard] * 5,
            *[owner_pat] * 3,
            *[factories.sign_in(world.owner)] * 3,
            *[factories.sign_in(world.platform_admin)] * 2,
            bridge,
            None,
        ],
        wildcard=wildcard,
        owner_pat=owner_pat,
        bridge=bridge,
    )


def modes(operation: Operation) -> list[GenerationMode]:
    """Return the kinds of requests there are: what takes nothing cannot be asked wrongly."""
    definition = operation.definition.raw
    takes = (
        definition.get("parameters")
        or definition.get("requestBody")
        or definition.get("security", [{}]) != [{}]
    )
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if takes else [GenerationMode.POSITIVE]


@st.composite
def cases(draw: DrawFn, operation: Operation, mode: GenerationMode, seed: Seed) -> Request:
    """Draw a request; half of the names in it are then those of things that exist."""
    case: Request = draw(operation.as_strategy(generation_mode=mode))
    name_what_exists(draw, case, seed)
    return case


def name_what_exists(
    draw: Callable[[st.SearchStrategy[Any]], Any], case: Request, seed: Seed, *, keep: Container[str] = ()
) -> None:
    """Give most of what a request names the ids of things that exist, but for the names in ``keep``.

    Of a request that the contract forbids in its path at most, and only where something else is wrong.
    """
    negative = case.meta is not None and case.meta.generation.mode.is_negative
    wrong_path = case.meta is not None and case.meta.is_negative_at(ParameterLocation.PATH)
    for name in () if wrong_path else case.path_parameters:
        if name in seed.values and name not in keep and draw(st.integers(0, 4)):
            value = draw(st.sampled_from(seed.values[name]))
            case.path_parameters[name] = quote(str(value), safe="")
    if negative:
        return
    for name in list(case.query or ()):
        if (
            name in seed.values
            and name not in keep
            and case.operation.definition.raw["operationId"] != "listChanges"
            and draw(st.booleans())
        ):
            case.query[name] = draw(st.sampled_from(seed.values[name]))
    case.body = _name_what_exists(draw, case.body, seed, keep)


def send(case: Request, *, token: str | None) -> Response:
    """Send a request and hold the answer against the contract.

    Raises:
        FailureGroup: the answer is none that the contract declares for the operation.
        AssertionError: it is a failure of the service.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response: Response = case.call(headers=headers)
    check(case, response)
    return response


def check(
    case: Request, response: Response, *, recorder: ScenarioRecorder | None = None, linked: bool = False
) -> None:
    """Hold an answer against the contract; see `send`.

    ``recorder`` knows what was asked before; ``linked`` says that something of the request is from there.
    """
    operation_id = case.operation.definition.raw["operationId"]
    if response.status_code >= 500 and not (
        response.status_code in {502, 503} and operation_id in _MAY_BE_UNAVAILABLE
    ):
        raise AssertionError(f"{response.status_code} {response.text}\n{case.as_curl_command()}")
    wanted = [*_CHECKS]
    if _is_wrong(case) and not linked:
        wanted.append(checks.negative_data_rejection)
    if recorder is not None:
        wanted.append(checks.ensure_resource_availability)
        if operation_id not in _OUTLIVE_DELETION:
            wanted.append(checks.use_after_free)
    case.validate_response(response, checks=wanted, recorder=recorder)


def _is_wrong(case: Request) -> bool:
    """Tell whether something in a request is wrong that should be refused for it.

    Not the token, which is replaced; nor a form: its empty values are absent ones (RFC 6749, 3.2), and that
    of a browser is answered by a page.
    """
    places = (ParameterLocation.PATH, ParameterLocation.QUERY, ParameterLocation.BODY)
    return (
        case.media_type != "application/x-www-form-urlencoded"
        and case.meta is not None
        and any(case.meta.is_negative_at(place) for place in places)
    )


@contextmanager
def undone() -> Iterator[None]:
    """Roll back what is written inside."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def one_connection() -> Iterator[None]:
    """Let requests run in the test's own transaction, as Django's test client does."""
    signals = request_started, request_finished
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


def _name_what_exists(
    draw: Callable[[st.SearchStrategy[Any]], Any], value: Any, seed: Seed, keep: Container[str]
) -> Any:
    if isinstance(value, dict):
        return {
            name: member
            if name in keep
            else draw(st.sampled_from(seed.values[name]))
            if name in seed.values and draw(st.integers(0, 3))
            else _name_what_exists(draw, member, seed, ())
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_name_what_exists(draw, member, seed, ()) for member in value]
    return value


def _seed_logs(tenant_id: Any) -> None:
    cache.clear()
    entries = [
        {
            "timestamp": day_start_ms(DAY) + 60_000 * number,
            "userName": ("Ana", "a/b c")[number % 2],
            "standardizedSql": f"SELECT {number % 3}",
            "cacheStatus": ("HIT", "MISS", "PASSTHROUGH", "BYPASS", "ERROR")[number % 5],
            "cacheKey": f"k{number % 4}",
            "matchedRule": "orders" if number % 2 else None,
            "responseSize": 100 + number,
            "responseTimeMs": 7 * number,
            "warehouseExecutionTimeMs": 11 * number,
        }
        for number in range(40)
    ]
    default_store().write(f"{tenant_id}/logs/{DAY:%Y/%m/%d}/00/a.json", json.dumps(entries).encode())
    call_command("rebuild", tenant=tenant_id)


def _expect(status: int, answer: Any) -> None:
    assert answer.status_code == status, answer.content
