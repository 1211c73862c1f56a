"""Requests that the contract allows or forbids, and what it says of the answers. Contract: Versioning.

Half of the requests name things that exist, so that what lies behind a 404 is reached too. Each runs in a
savepoint that is rolled back: the next one finds the service as it was seeded, whatever was deleted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Err
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from tenantadmin.lib.http.published_contract import published_contract
from tests.contract import refusals

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn
    from schemathesis import Case
    from schemathesis.core.transport import Response
    from schemathesis.schemas import APIOperation, BaseSchema

    from tests.contract.seeding import Seed

    Operation = APIOperation[Any, Any, Any, Any]
    Request = Case[Any]

#: Requests per operation and kind; `make fuzz` sets more, and then they differ from run to run.
EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "0"))
#: Answers of these alone may be 502 or 503: they depend on what lies outside the service.
_MAY_BE_UNAVAILABLE: Final = frozenset(
    {"startSignIn", "requestMagicLink", "verifyMagicLink", "showMagicLink"}
)
#: The history of a tenant and of an account stays when they are deleted.
OUTLIVE_DELETION: Final = frozenset(
    [
        "blameRules",
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
#: name what does not exist or break the rules of the rule language. `negative_data_rejection` goes by what a
#: request was drawn as; `refusals` goes by what was sent. What `ignored_auth` and
#: `object_level_authorization` ask, tests/authz asks of every operation; the rest needs its coverage phase.
_CHECKS: Final = (
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.allow_header_conformance,
)


def load_contract() -> BaseSchema:
    """Return the published contract, bound to the service in this process."""
    schema = schemathesis.openapi.from_dict(json.loads(published_contract()[0]))
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


def modes(operation: Operation) -> list[GenerationMode]:
    """Return the kinds of requests there are: what takes nothing but text cannot be asked wrongly."""
    definition = operation.definition.raw
    takes = (
        any(entry["in"] != "header" for entry in definition.get("parameters", ()))
        or definition.get("requestBody")
        or definition["security"]
    )
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if takes else [GenerationMode.POSITIVE]


@st.composite
def cases(draw: DrawFn, operation: Operation, mode: GenerationMode, seed: Seed) -> Request:
    """Draw a request, then replace half of its names by names of existing things."""
    case: Request = draw(operation.as_strategy(generation_mode=mode))
    name_what_exists(draw(st.randoms(use_true_random=False)), case, seed.values)
    return case


def name_what_exists(random: Random, case: Request, values: Mapping[str, Sequence[Any]]) -> None:
    """Give most of what a request names the ids of things that exist: ``values``, by name.

    Of a request that the contract forbids in its path at most, and only where something else is wrong.
    """
    negative = case.meta is not None and case.meta.generation.mode.is_negative
    wrong_path = case.meta is not None and case.meta.is_negative_at(ParameterLocation.PATH)
    for name in () if wrong_path else case.path_parameters:
        if name in values and random.random() < 0.8:
            case.path_parameters[name] = quote(str(random.choice(values[name])), safe="")
    if negative:
        return
    for name, value in (case.query or {}).items():
        existing = _existing(values, name, value)
        if existing and random.random() < 0.5:
            case.query[name] = random.choice(existing)
    if isinstance(case.body, dict | list):
        case.body = _name_what_exists(random, case.body, values)


def send(case: Request, *, token: str | None) -> Response:
    """Send a request and hold the answer against the contract.

    Raises:
        FailureGroup: the answer is none that the contract declares for the operation.
        AssertionError: it is a failure of the service.
    """
    # In this process, schemathesis does not decompress answers.
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    response: Response = case.call(headers={"Accept-Encoding": "identity", **authorization})
    operation_id = case.operation.definition.raw["operationId"]
    if response.status_code >= 500 and not (
        response.status_code in {502, 503} and operation_id in _MAY_BE_UNAVAILABLE
    ):
        raise AssertionError(f"{response.status_code} {response.text}\n{case.as_curl_command()}")
    if response.status_code < 400:
        forbidden = list(refusals.find_forbidden(case, str(response.request.url)))
        assert not forbidden, (response.status_code, forbidden, case.as_curl_command())
    if operation_id == "getTenant" and response.status_code == 404:
        # The specification does not declare it (tests/contract/test_contract.py).
        return response
    declared = response_definition(case, response).get("headers", {})
    assert "etag" not in response.headers or "ETag" in declared, (operation_id, response.status_code)
    case.validate_response(response, checks=[*_CHECKS])
    return response


def response_definition(case: Request, response: Response) -> Mapping[str, Any]:
    """Return what the contract says of an answer; empty for a status that it does not declare."""
    definition: Mapping[str, Any] = case.operation.definition.raw["responses"].get(
        str(response.status_code), {}
    )
    return definition


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


def _existing(values: Mapping[str, Sequence[Any]], name: str, drawn: Any) -> list[Any]:
    """Return the values for a name that are of the drawn one's type."""
    return [value for value in values.get(name, ()) if isinstance(value, type(drawn))]


def _name_what_exists(random: Random, value: Any, values: Mapping[str, Sequence[Any]]) -> Any:
    if isinstance(value, dict):
        return {
            name: random.choice(existing)
            if (existing := _existing(values, name, member)) and random.random() < 0.75
            else _name_what_exists(random, member, values)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [_name_what_exists(random, member, values) for member in value]
    return value
