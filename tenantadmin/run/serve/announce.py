"""The text that `manage.py serve` prints when the service is ready: addresses, sign-in, commands to try."""

from __future__ import annotations

import http.client
import json
import shlex
import shutil
import threading
import urllib.error
import urllib.request
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

_POLL_SECONDS = 0.2
_COUNT_BY_STATUS = (
    "SELECT cacheStatus, count(*) AS entries FROM proxy_logs "
    "WHERE day = '{day}' GROUP BY ALL ORDER BY entries DESC"
)


def wait_until_it_answers(url: str, *, stopping: threading.Event) -> bool:
    """Wait for any HTTP answer from `url`. Return False if `stopping` is set first."""
    while not stopping.is_set():
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - an http address of our own
                # Granian warns of an answer that is not read.
                answer.read()
                return True
        except urllib.error.HTTPError as error:
            error.close()
            return True
        except (OSError, http.client.HTTPException):
            stopping.wait(_POLL_SECONDS)
    return False


def describe(url: str, *, demo_file: Path, var_dir: Path | None = None) -> str:
    """Return the text for the person who started the service.

    `seed_demo` writes `demo_file`: `{adminEmail, adminPassword, ownerEmail, pat, tenants,
    lastDay}`, tenants as `{tenantId, name}`. Older files have no owner.
    Pass `var_dir` if it is not the default: commands in another shell need it.
    """
    lines = ["", f"  The service answers at {url}", f"  Contract: {url}/   Docs: {url}/docs"]
    if not demo_file.exists():
        return "\n".join([*lines, "  Demo data: stop it and run  make run", "", ""])
    demo: dict[str, Any] = json.loads(demo_file.read_text())
    tenant = demo["tenants"][0]["tenantId"]
    # Older files have no lastDay. Their data end on the day before the file was written.
    written_on = datetime.fromtimestamp(demo_file.stat().st_mtime, tz=UTC).date()
    day = date.fromisoformat(demo.get("lastDay") or (written_on - timedelta(days=1)).isoformat())
    if owner := demo.get("ownerEmail"):
        lines.append(f"  Dashboard: {url}/dashboard/   {owner}, by a mailed link: the page says where it is")
    lines += [
        f"  Admin site: {url}/admin/   {demo['adminEmail']} / {demo['adminPassword']}",
        "",
        "  For the tour in docs/tour.md, paste into another shell:",
        "",
        f"export DJANGO_DEBUG=true URL={url} PAT={demo['pat']} TENANT={tenant} DAY={day}"
        + (f" VAR_DIR={shlex.quote(str(var_dir))}" if var_dir else ""),
        "",
        "  Three commands to try, in any shell:",
        "",
    ]
    for title, command in try_commands(url, pat=demo["pat"], tenant=tenant, day=day):
        lines += [f"  # {title}", command, ""]
    return "\n".join([*lines, ""])


def try_commands(url: str, *, pat: str, tenant: str, day: date) -> list[tuple[str, str]]:
    """Return titles and shell commands. Each command exchanges the PAT for an access token first."""
    command = _curl if shutil.which("curl") else _python
    query = {"sql": _COUNT_BY_STATUS.format(day=day.isoformat())}
    return [
        ("The tenants that the token reaches", command(url, "/config/tenants", pat=pat)),
        (
            f"The usage of {day}, the last day with demo data",
            command(url, f"/tenants/{tenant}/summaries/{day:%Y/%m/%d}", pat=pat),
        ),
        (
            "SQL over the log of that day",
            command(url, f"/tenants/{tenant}/query", pat=pat, body=query),
        ),
    ]


def _curl(url: str, path: str, *, pat: str, body: dict[str, str] | None = None) -> str:
    exchange = f"curl -s {url}/oauth/token -d grant_type=pat_exchange -d pat={pat}"
    token = f"""$({exchange} | sed 's/.*"access_token": *"\\([^"]*\\)".*/\\1/')"""
    command = f'curl -s {url}{path} -H "Authorization: Bearer {token}"'
    if body is None:
        return command
    return f"{command} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"


def _python(url: str, path: str, *, pat: str, body: dict[str, str] | None = None) -> str:
    """Return the command for a machine without curl."""
    program = (
        "import json; from urllib.request import Request, urlopen; "
        "send = lambda path, body, **more: urlopen(Request("
        f'"{url}" + path, body and json.dumps(body).encode(), '
        '{"Content-Type": "application/json", **more})).read().decode(); '
        f'token = json.loads(send("/oauth/token", {{"grant_type": "pat_exchange", "pat": "{pat}"}})); '
        f"print(send({json.dumps(path)}, {json.dumps(body) if body else None}, "
        'Authorization="Bearer " + token["access_token"]))'
    )
    return f"python3 -c {shlex.quote(program)}"
