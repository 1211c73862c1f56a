"""``tenantctl``: rules in git, and questions to the service from a shell."""

from __future__ import annotations

import datetime as dt
import json
import sys
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import httpx
import typer
from rich.console import Console
from rich.table import Table

from tenantadmin_client import ApiError, Client, LintFailed, UnknownCondition
from tenantadmin_client.files import FileError, RulesFile, commit_of, find_files, read_file, write_file
from tenantadmin_client.login import NoLogin, read_login, write_login
from tenantadmin_client.plan import Difference, compare

#: The exit status of `plan` when there is something to apply.
CHANGES = 2
_REPLAYED_DAYS = 7

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_out = Console()
_err = Console(stderr=True)

Tenant = Annotated[str, typer.Option("--tenant", "-t", help="The id of the tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Files = Annotated[Path, typer.Argument(help="A rules file, or a folder of them.")]


def main() -> None:
    """Run the command line. Errors are one line, and the exit status 1."""
    try:
        app()
    except (FileError, UnknownCondition, TimeoutError) as error:
        _fail(str(error))
    except LintFailed as error:
        _show_findings({"errors": error.errors, "warnings": error.warnings})
        _fail(error.message)
    except ApiError as error:
        _fail(f"{error.message} ({error.status} {error.code})")
    except httpx.HTTPError as error:
        _fail(f"The service does not answer: {error}")


@app.command()
def login(
    url: Annotated[str, typer.Argument(help="The address of the service.")],
    pat: Annotated[
        str | None, typer.Option(help="A personal access token; asked for if it is absent.")
    ] = None,
) -> None:
    """Remember the service and a personal access token, in a file that only you can read."""
    pat = pat or typer.prompt("Personal access token", hide_input=True)
    with Client(url, pat) as client:
        tenants = client.tenants()
    try:
        write_login(url, pat)
    except NoLogin as error:
        _fail(str(error))
    _out.print(f"Signed in. The token reaches {len(tenants)} tenants.")


@app.command()
def pull(tenant: Tenant, file: Annotated[Path, typer.Argument(help="Where to write the rules.")]) -> None:
    """Write the live rules of a tenant to a file."""
    with _client() as client:
        rules = client.rules(tenant).body["rules"]
    write_file(file, tenant=tenant, rules=rules)
    _out.print(f"{file}: {len(rules)} rules")


@app.command()
def lint(path: Files, as_json: AsJson = False) -> None:
    """Check rules without writing them. The exit status is 1 if there are errors."""
    results = {}
    with _client() as client:
        for file in find_files(path):
            results[str(file)] = client.lint(read_file(file).rules)
    if as_json:
        _print_json(results)
    else:
        for name, result in results.items():
            _out.print(
                f"[bold]{name}[/bold]: {len(result['errors'])} errors, {len(result['warnings'])} warnings"
            )
            _show_findings(result)
    if not all(result["valid"] for result in results.values()):
        raise typer.Exit(1)


@app.command()
def plan(
    path: Files,
    as_json: AsJson = False,
    replay: Annotated[
        bool, typer.Option(help="Replay the log of the last days, which needs config:write.")
    ] = True,
) -> None:
    """Show what `apply` would change. The exit status is 2 if there are changes, else 0."""
    plans: list[dict[str, Any]] = []
    with _client() as client:
        for file in map(read_file, find_files(path)):
            difference = _compare(client, file)
            entry: dict[str, Any] = {"file": str(file.path), "tenant": file.tenant, **asdict(difference)}
            entry["lint"] = client.lint(file.rules)
            if difference and replay and entry["lint"]["valid"]:
                entry["replay"] = _replay(client, file)
            plans.append(entry)
            if not as_json:
                _show_plan(entry)
    if as_json:
        _print_json(plans)
    if not all(entry["lint"]["valid"] for entry in plans):
        raise typer.Exit(1)
    if any(entry["added"] or entry["removed"] or entry["changed"] or entry["reordered"] for entry in plans):
        raise typer.Exit(CHANGES)


@app.command()
def apply(
    path: Files,
    confirm_delete: Annotated[
        list[str] | None, typer.Option(help="A rule that may go although it has an active marker.")
    ] = None,
    comment: Annotated[
        str | None, typer.Option(help="Kept in the history. By default the commit of the file in git.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Publish the rules of a file, or of all files of a folder; stop at the first that is refused."""
    done = []
    with _client() as client:
        for file in map(read_file, find_files(path)):
            live = client.rules(file.tenant)
            written = client.put_rules(
                file.tenant,
                file.rules,
                etag=live.etag,
                if_changed=True,
                confirm_deletes=confirm_delete,
                comment=commit_of(file.path) if comment is None else comment,
            )
            entry = {
                "file": str(file.path),
                "tenant": file.tenant,
                "seq": written.body["seq"],
                "written": written.etag != live.etag,
            }
            done.append(entry)
            if not as_json:
                state = f"published as revision {entry['seq']}" if entry["written"] else "nothing to change"
                _out.print(f"{file.path}: {state}")
    if as_json:
        _print_json(done)


@app.command()
def sql(
    tenant: Tenant,
    statement: Annotated[str, typer.Argument(help="One SELECT over proxy_logs.")],
    as_json: AsJson = False,
) -> None:
    """Run one SELECT over the log of a tenant."""
    with _client() as client:
        response = client.request("POST", f"/tenants/{tenant}/query", json={"sql": statement})
    body = response.json()
    if as_json:
        _print_json(body)
        return
    table = Table(*(column["name"] for column in body["columns"]))
    for row in body["rows"]:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    _out.print(table)
    if body["truncated"]:
        _err.print("A limit of the service cut the rows.")


@app.command()
def explain(
    tenant: Tenant,
    request: Annotated[str, typer.Argument(help='A request as JSON: {"tables": ["sales.orders"]}')],
    as_json: AsJson = False,
) -> None:
    """Show what the rules do with a request."""
    try:
        values = json.loads(request)
    except ValueError as error:
        _fail(f"The request is not JSON: {error}")
    with _client() as client:
        explained = client.explain(tenant, values)
    if as_json:
        _print_json(explained)
        return
    decision = explained["decision"]
    _out.print(f"{' or '.join(decision['statuses'])} by {decision['ruleId'] or 'no rule'}")
    for rule in explained["rules"]:
        _out.print(f"  {rule['outcome']:<14} {rule['ruleId']}")


@app.command()
def invalidate(
    tenant: Tenant,
    rule: Annotated[str | None, typer.Argument(help="The id of a rule.")] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="A table, or a pattern such as sales.*; may be repeated.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Kept with the markers.")] = "",
) -> None:
    """Mark what a rule, or all rules that read tables, have cached as stale."""
    if (rule is None) is not bool(table):
        _fail("Give the id of a rule or at least one --table.")
    with _client() as client:
        if rule is None:
            markers = client.invalidate_tables(tenant, table or [], reason=reason)
        else:
            name = f"tenantctl-{uuid.uuid4()}"
            markers = [client.invalidate(tenant, rule, marker=name, reason=reason)]
    for marker in markers:
        _out.print(f"{marker['targetRuleId']}: results from before {marker['invalidatedAt']} are stale")
    if not markers:
        _out.print("No rule caches statements on these tables.")


def _compare(client: Client, file: RulesFile) -> Difference:
    live = client.rules(file.tenant).body["rules"]
    ttl = client.config(file.tenant).body["defaults"]["ttlSeconds"]
    return compare(live, file.rules, ttl_seconds=ttl)


def _replay(client: Client, file: RulesFile) -> dict[str, Any]:
    """Return the replay of the last days, or why there is none."""
    last = dt.datetime.now(dt.timezone.utc).date() - dt.timedelta(days=1)
    first = last - dt.timedelta(days=_REPLAYED_DAYS - 1)
    try:
        return client.replay(file.tenant, file.rules, first=f"{first}", last=f"{last}")
    except (ApiError, TimeoutError) as error:
        return {"error": str(error)}


def _show_plan(entry: dict[str, Any]) -> None:
    _out.print(f"[bold]{entry['file']}[/bold] (tenant {entry['tenant']})")
    for name in entry["added"]:
        _out.print(f"  [green]+ {name}[/green]")
    for name in entry["removed"]:
        _out.print(f"  [red]- {name}[/red]")
    for name, changes in entry["changed"].items():
        _out.print(f"  [yellow]~ {name}[/yellow]")
        for change in changes:
            before, after = json.dumps(change["before"]), json.dumps(change["after"])
            _out.print(f"      {change['field']}: {before} -> {after}", markup=False)
    if entry["reordered"]:
        _out.print("  the order of the rules changes")
    if not (entry["added"] or entry["removed"] or entry["changed"] or entry["reordered"]):
        _out.print("  no changes")
    _show_findings(entry["lint"])
    replay = entry.get("replay")
    if replay is None:
        return
    if "total" not in replay:
        _out.print(f"  no replay: {replay['error']}", markup=False)
        return
    new, old = replay["total"], replay["against"]["total"]
    _out.print(
        f"  replay of {replay['window']['from']} to {replay['window']['to']}: "
        f"hits {_bounds(old['hits'])} -> {_bounds(new['hits'])}, "
        f"saved {_bounds(old['savedMs'])} -> {_bounds(new['savedMs'])} ms, "
        f"stale at most {old['risk']['high']} -> {new['risk']['high']}"
    )
    best = replay["publishCost"]["best"]
    _out.print(f"  cheapest hour to publish: {best['hour']:02}:00 UTC, which costs {best['extraMs']} ms")


def _bounds(bounds: dict[str, Any]) -> str:
    return f"{bounds['low']}" if bounds["low"] == bounds["high"] else f"{bounds['low']} to {bounds['high']}"


def _show_findings(result: dict[str, Any]) -> None:
    for finding in (*result["errors"], *result["warnings"]):
        hint = f" ({finding['suggestion']}?)" if finding.get("suggestion") else ""
        _out.print(f"  {finding['severity']}: {finding['path']}: {finding['message']}{hint}", markup=False)


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _client() -> Client:
    try:
        return Client(*read_login())
    except NoLogin as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    _err.print(message, style="red", markup=False)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
