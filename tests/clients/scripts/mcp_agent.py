"""A scripted agent: calls the tools of ``tenantadmin-mcp`` in a fixed order. Runs with clients/python alone.

Arguments: ``stdio`` or the address of the server, the personal access token, the tenant, the id of a logged
request. Prints what each call answered, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

RULES = [{"id": "orders", "varyBy": [], "conditions": {"isReadOnly": True}, "ttlSeconds": 60}]
DAYS = {"first": "2026-03-01", "last": "2026-03-01"}


async def main(address: str, pat: str, tenant: str, log_id: str) -> None:
    if address == "stdio":
        command = str(Path(sys.executable).with_name("tenantadmin-mcp"))
        environment = {**os.environ, "TENANTADMIN_PAT": pat}
        transport: Any = stdio_client(StdioServerParameters(command=command, env=environment))
    else:
        headers = {"Authorization": f"Bearer {pat}"}
        transport = streamable_http_client(address, http_client=httpx2.AsyncClient(headers=headers))
    async with Client(transport) as client:
        answers = await ask(client, tenant, log_id)
    sys.stdout.write(json.dumps(answers) + "\n")


async def ask(client: Any, tenant: str, log_id: str) -> dict[str, Any]:
    """Return the answers by tool, and the names of all tools and resources."""
    answers: dict[str, Any] = {
        "version": client.server_info.version,
        "tools": {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools},
        "prompts": {
            prompt.name: {argument.name: argument.description for argument in prompt.arguments}
            for prompt in (await client.list_prompts()).prompts
        },
        "prompt": (await client.get_prompt("review-rules", {"tenant": tenant})).messages[0].content.text,
        "rules": (await client.read_resource("docs://rules")).contents[0].text,
    }
    try:
        schema = await client.read_resource(f"schema://{tenant}")
        answers["schema"] = json.loads(schema.contents[0].text)
    except MCPError:
        answers["schema"] = None

    async def call(tool: str, **arguments: Any) -> Any:
        result = await client.call_tool(tool, arguments)
        text = result.content[0].text
        answers[tool] = {"error": text} if result.is_error else json.loads(text)
        answers["sizes"].append([tool, len(text)])
        return answers[tool]

    async def call_all(tool: str, **arguments: Any) -> list[Any]:
        """Return all pages of an answer, or what was refused."""
        pages = [await call(tool, tenant=tenant, **arguments)]
        while (start := pages[-1].get("next")) is not None:
            pages.append(await call(tool, tenant=tenant, start=start, **arguments))
        answers[tool] = pages[0]
        return pages

    answers["sizes"] = []
    await call("list_tenants", start=None)
    await call_all("overview")
    year = await call_all("savings", first="2025-03-01", last="2026-03-01")
    answers["days"] = [day for page in year for day in page.get("days", [])]
    await call_all("savings", **DAYS, step=None)
    await call_all("traffic", **DAYS, status=None, rule=None, cursor=None, limit=None)
    columns = "standardizedSql, userName, 12345678901234567.10 AS exact, 0.50 AS half"
    await call_all("sql", statement=f"SELECT {columns} FROM proxy_logs ORDER BY 1")
    await call_all("explain", log_id=log_id)
    await call_all("recommendations")
    parts = await call_all("overview", part="rules")
    answers["live"] = [rule for page in parts for rule in page["rules"].get("rules", [])]
    draft = await call("draft_rules", tenant=tenant, name="By an agent", rules=[*RULES, *answers["live"]])
    draft_id = draft.get("draftId", "none")
    await call_all("diff_draft", draft=draft_id)
    await call("replay_draft", tenant=tenant, draft=draft_id, **DAYS)
    replay_id = answers["replay_draft"].get("replayId")
    await call_all("replay_draft", draft=draft_id, replay=replay_id, **DAYS)
    return answers


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
