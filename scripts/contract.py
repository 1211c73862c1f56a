"""Write the contract as a text that a review can read: a line for an operation, a schema, and a field.

``make contract`` writes tests/contract/contract.txt with it. A test fails if the file is out of date.
Descriptions are left out: a review reads them in the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tenantadmin.lib.http.published_contract import CONTRACT_FILE

_LIMITS: Final = (
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "pattern"),
    "default",
)
_MARKS: Final = {"path": "", "query": "?", "header": "^"}


def describe_type(schema: dict[str, Any]) -> str:
    """Return the type of a schema on one line: ``[uuid]``, ``integer or null (minimum 0)``."""
    if "$ref" in schema:
        text = str(schema["$ref"]).rpartition("/")[2]
    elif parts := schema.get("oneOf") or schema.get("anyOf") or schema.get("allOf"):
        text = " | ".join(describe_type(part) for part in parts)
    elif "enum" in schema:
        text = " | ".join(json.dumps(value) for value in schema["enum"])
    elif schema.get("type") == "array":
        text = f"[{describe_type(schema['items'])}]"
    elif isinstance(values := schema.get("additionalProperties"), dict):
        text = f"{{string: {describe_type(values)}}}"
    else:
        text = schema.get("format") or schema.get("type") or "any"
    if "properties" in schema:
        text = f"{{{', '.join(_describe_fields(schema))}}}"
    if "not" in schema:
        text += f" but not {describe_type(schema['not'])}"
    if limits := [f"{limit} {json.dumps(schema[limit])}" for limit in _LIMITS if limit in schema]:
        text += f" ({', '.join(limits)})"
    return f"{text} or null" if schema.get("nullable") else text


def _describe_fields(schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", [])
    for name, field in schema["properties"].items():
        yield f"{name}{'' if name in required else '?'}: {describe_type(field)}"


def _describe_contents(content: dict[str, Any]) -> str:
    return " | ".join(
        describe_type(body["schema"]) + ("" if kind == "application/json" else f" as {kind}")
        for kind, body in content.items()
    )


def _describe_operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = [
        f"{_MARKS[parameter['in']]}{parameter['name']}: {describe_type(parameter['schema'])}"
        + (" (required)" if parameter.get("required") and parameter["in"] != "path" else "")
        for parameter in operation.get("parameters", [])
    ]
    if body := operation.get("requestBody"):
        optional = "" if body.get("required") else " (optional)"
        parameters.append(f"body: {_describe_contents(body['content'])}{optional}")
    answers = []
    for status, response in operation["responses"].items():
        content = _describe_contents(response.get("content", {}))
        headers = [name for name in response.get("headers", {}) if name != "X-Request-Id"]
        # All errors but a few have the same body, and the same header.
        plain = content == "Error" or not content
        text = status if plain else f"{status} {content}"
        answers.append(text if plain or not headers else f"{text} ({', '.join(headers)})")
    access = "" if operation["security"] else " (public)"
    return (
        f"{method.upper()} {path} {operation['operationId']}{access}({', '.join(parameters)})"
        f" -> {', '.join(answers)}"
    )


def describe_contract(contract: dict[str, Any]) -> Iterable[str]:
    """Return the lines of the text: operations by path, then schemas by name with a line for each field."""
    for path, item in contract["paths"].items():
        for method, operation in item.items():
            yield _describe_operation(method, path, operation)
    for name, schema in contract["components"]["schemas"].items():
        yield ""
        if "properties" not in schema or "allOf" in schema:
            yield f"{name} = {describe_type(schema)}"
            continue
        closed = " (no others)" if schema.get("additionalProperties") is False else ""
        yield f"{name}{closed}"
        yield from (f"    {field}" for field in _describe_fields(schema))


if __name__ == "__main__":
    lines = describe_contract(json.loads(CONTRACT_FILE.read_bytes()))
    sys.stdout.writelines(f"{line}\n" for line in lines)
