"""What the contract forbids in a request as it was sent, whatever it was drawn as. Contract: Errors.

Names of things that exist and values of links are put into requests after they were drawn, and a query or a
path is text on the wire: whether a request was drawn as a wrong one does not say that it is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from jsonschema import FormatChecker  # type: ignore[import-untyped]
from openapi_schema_validator import OAS30WriteValidator
from schemathesis.core import NOT_SET

from tenantadmin.lib.http.published_contract import published_contract

if TYPE_CHECKING:
    from schemathesis import Case

#: Pages for people, to which links with tracking parameters lead.
_PAGES: Final = frozenset({"finishSignIn", "showMagicLink"})
#: Of the other formats the contract's readers may take more than the validator does.
_FORMATS: Final = FormatChecker(formats=["uuid"])


def find_forbidden(case: Case[Any], url: str) -> Iterator[str]:
    """Yield what in a request, sent to ``url``, has to be refused: a place each, with what stands there."""
    definition = case.operation.definition.raw
    query = parse_qs(urlsplit(url).query, keep_blank_values=True)
    parameters = {(entry["in"], entry["name"]): entry for entry in definition.get("parameters", ())}
    undeclared = query.keys() - {name for place, name in parameters if place == "query"}
    for name in undeclared if definition["operationId"] not in _PAGES else ():
        yield f"query: {name} is not declared"
    for (place, name), entry in parameters.items():
        if place == "path":
            texts = {unquote(str(case.path_parameters[name]))}
        elif place == "query":
            texts = set(query.get(name, ()))
            if not texts and entry.get("required"):
                yield f"query: {name} is absent"
        else:
            continue
        # Of several values any one may be read.
        if len(texts) == 1 and not _is_valid(_read(texts.pop(), entry["schema"]), entry["schema"]):
            yield f"{place}: {name}"
    if "requestBody" in definition:
        yield from _find_in_body(case, definition["requestBody"])


def _find_in_body(case: Case[Any], declared: Mapping[str, Any]) -> Iterator[str]:
    if case.body is NOT_SET:
        if declared.get("required"):
            yield "body: absent"
        return
    # As it is on the wire, where 1.0 is an integer too.
    body = json.loads(json.dumps(case.body), parse_float=_read_number)
    if not _is_valid(body, declared["content"]["application/json"]["schema"]):
        yield f"body: {body}"


def _read(text: str, schema: Mapping[str, Any]) -> Any:
    """Return what the text of a parameter stands for; the text itself where it stands for nothing."""
    match schema.get("type"):
        case "integer" if re.fullmatch(r"-?[0-9]+", text):
            return int(text)
        case "boolean" if text in {"true", "false"}:
            return text == "true"
    return text


def _read_number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _is_valid(value: Any, schema: Mapping[str, Any]) -> bool:
    return bool(_validator(json.dumps(schema)).is_valid(value))


@cache
def _validator(schema: str) -> OAS30WriteValidator:
    document = {"allOf": [json.loads(schema)], "components": _components()}
    return OAS30WriteValidator(document, format_checker=_FORMATS)


@cache
def _components() -> Any:
    return json.loads(published_contract()[0])["components"]
