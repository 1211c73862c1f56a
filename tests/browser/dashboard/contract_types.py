"""TypeScript declarations of the contract, which the dashboard's JSDoc names: `Contract.TenantRules`.

``python -m tests.browser.dashboard.contract_types`` prints them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tenantadmin.lib.http.published_contract import published_contract

#: The folder of the dashboard's modules.
MODULES: Final = Path(__file__).parents[3] / "tenantadmin" / "static" / "dashboard"
METHODS: Final = ("get", "post", "put", "patch", "delete")
_WORDS: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}

#: How modules call operations.
_CALLS: Final = """\
  type Input<K extends keyof Operations> = Operations[K]["input"];
  type Given<K extends keyof Operations> =
    [operation: K, input: Input<K>, options?: Options, source?: TokenSource];
  type Call = <K extends keyof Operations>(...given: Given<K>) => Promise<Operations[K]["answer"]>;
  type Send = <K extends keyof Operations>(...given: Given<K>) => Promise<Response>;
  type CallWithTag = <K extends keyof Operations>(...given: Given<K>) =>
    Promise<{ data: Operations[K]["answer"]; etag: string }>;"""


def contract() -> dict[str, Any]:
    """Return the published contract."""
    document: dict[str, Any] = json.loads(published_contract()[0])
    return document


def declarations(document: dict[str, Any]) -> str:
    """Return the text of ``contract.d.ts``: an interface of each schema, and of the operations."""
    schemas = document["components"]["schemas"]
    lines = ["declare namespace Contract {"]
    lines += [f"  type {name} = {_type(schema)};" for name, schema in schemas.items()]
    lines.append("  interface Operations {")
    for path, operations in document["paths"].items():
        for method in METHODS:
            if method in operations:
                name = json.dumps(f"{method.upper()} {path}")
                lines.append(f"    {name}: {_operation(operations[method])};")
    lines += ["  }", _CALLS, "}", ""]
    return "\n".join(lines)


def answer_schema(operation: dict[str, Any], status: str) -> dict[str, Any] | None:
    """Return the schema of the JSON that an operation answers with ``status``."""
    response = operation["responses"].get(status, {})
    schema: dict[str, Any] | None = response.get("content", {}).get("application/json", {}).get("schema")
    return schema


def _operation(operation: dict[str, Any]) -> str:
    fields = [
        f"{json.dumps(parameter['name'])}{'' if parameter.get('required') else '?'}: "
        + (
            "string | number"
            if parameter["in"] == "path"
            else f"{_type(parameter['schema'])}{'' if parameter.get('required') else ' | undefined'}"
        )
        for parameter in operation.get("parameters", [])
        if parameter["in"] in {"path", "query"}
    ]
    if body := operation.get("requestBody"):
        schema = body["content"]["application/json"]["schema"]
        fields.append(f"body{'' if body.get('required') else '?'}: {_type(schema)}")
    answers = {
        _type(schema)
        for status in operation["responses"]
        if status.startswith("2") and (schema := answer_schema(operation, status)) is not None
    }
    return f"{{ input: {{ {'; '.join(fields)} }}; answer: {' | '.join(sorted(answers)) or 'null'} }}"


def _type(schema: dict[str, Any]) -> str:
    text = _plain_type(schema)
    return f"({text} | null)" if schema.get("nullable") and text != "any" else text


def _plain_type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for key, sign in (("allOf", " & "), ("oneOf", " | ")):
        if key in schema:
            return "(" + sign.join(_type(part) for part in schema[key]) + ")"
    if "enum" in schema:
        return "(" + " | ".join(json.dumps(value) for value in schema["enum"]) + ")"
    if schema.get("type") == "array":
        return f"{_type(schema['items'])}[]"
    if schema.get("type") == "object":
        return _object(schema)
    return _WORDS.get(schema.get("type", ""), "any")


def _object(schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    fields = [
        f"{json.dumps(name)}{'' if name in required else '?'}: {_type(value)}"
        for name, value in schema.get("properties", {}).items()
    ]
    if fields:
        return f"{{ {'; '.join(fields)} }}"
    others = schema.get("additionalProperties")
    return f"Record<string, {_type(others) if isinstance(others, dict) else 'any'}>"


if __name__ == "__main__":
    print(declarations(contract()))  # noqa: T201
