"""``tenantctl``: tenants in git, and questions to the service from a shell."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import sys
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import httpx
import typer

from tenantadmin_client import ApiError, Client, Forbidden, LintFailed, UnknownCondition
from tenantadmin_client.client import path_of
from tenantadmin_client.files import (
    FileError,
    RulesFile,
    commit_of,
    read_environment,
    read_files,
    write_file,
)
from tenantadmin_client.login import NoLogin, read_login, write_login
from tenantadmin_client.plan import compare
from tenantadmin_client.sections import SECTIONS, SectionError, apply_sections
from tenantadmin_client.show import (
    has_changes,
    show_error,
    show_findings,
    show_json,
    show_line,
    show_plan,
    show_savings,
    show_table,
)

#: The exit status of `plan` when there is something to apply.
CHANGES = 2
_REPLAYED_DAYS = 7
_SAVINGS_DAYS = 30

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Tenant = Annotated[str, typer.Option("--tenant", "-t", help="The id of the tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Files = Annotated[Path, typer.Argument(help="A rules file, or a folder of them.")]


class _ChangesFound(Exception):
    """`plan` found changes."""


def main() -> None:
    """Run the command line. Errors are one line, and the exit status 1, also of wrong arguments."""
    try:
        app()
    except _ChangesFound:
        raise SystemExit(CHANGES) from None
    except SystemExit as ended:
        # Click's status for wrong arguments is the one that says that there are changes.
        raise SystemExit(1 if ended.code == CHANGES else ended.code) from None
    except (FileError, SectionError, UnknownCondition, TimeoutError) as error:
        _fail(str(error))
    except LintFailed as error:
        show_findings({"errors": error.errors, "warnings": error.warnings})
        _fail(error.message)
    except ApiError as error:
        for detail in error.details:
            show_error(f"{detail.get('path', '')}: {detail.get('message', '')}")
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
        try:
            reached = f"The token reaches {len(client.tenants())} tenants."
        except Forbidden:  # It is valid, and without config:read.
            reached = "The token may not list tenants."
    try:
        write_login(url, pat)
    except NoLogin as error:
        _fail(str(error))
    show_line(f"Signed in. {reached}")


@app.command()
def pull(
    tenant: Tenant,
    file: Annotated[Path, typer.Argument(help="Where to write the rules.")],
    whole: Annotated[bool, typer.Option("--all", help="The configuration and the alerts too.")] = False,
) -> None:
    """Write the live rules of a tenant to a file, and with --all its configuration and alerts."""
    with _client() as client:
        rules = client.rules(tenant).body["rules"]
        found = {name: section.read(client, tenant).parts for name, section in SECTIONS.items() if whole}
    secrets = write_file(file, tenant=tenant, rules=rules, sections=found)
    counts = [f"{len(rules)} rules", *(f"{len(found[name])} {name}" for name in found if name != "config")]
    show_line(f"{file}: {', '.join(counts)}")
    if secrets:
        show_error(f"The file has no secrets. Set them for plan and apply: {', '.join(secrets)}")


@app.command()
def lint(path: Files, as_json: AsJson = False) -> None:
    """Check rules without writing them. The exit status is 1 if there are errors."""
    with _client() as client:
        results = {str(file.path): client.lint(file.rules or []) for file in read_files(path)}
    if as_json:
        show_json(results)
    else:
        for name, result in results.items():
            show_line(
                f"{name}: {len(result['errors'])} errors, {len(result['warnings'])} warnings", style="bold"
            )
            show_findings(result)
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
        for file in read_files(path):
            plans.append(_plan(client, file, replay=replay))
            if not as_json:
                show_plan(plans[-1])
    if as_json:
        show_json(plans)
    if not all(entry["lint"]["valid"] for entry in plans):
        raise typer.Exit(1)
    if any(has_changes(entry) for entry in plans):
        raise _ChangesFound


@app.command()
def apply(
    path: Files,
    confirm_delete: Annotated[
        list[str] | None, typer.Option(help="A rule that may go although it has an active marker.")
    ] = None,
    comment: Annotated[
        str | None, typer.Option(help="Kept in the history. By default the commit of the file in git.")
    ] = None,
    plan_file: Annotated[
        Path | None,
        typer.Option("--plan", help="What `plan --json` printed. Nothing else is published than it shows."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Publish a file, or all files of a folder; stop at the first that is refused."""
    files = read_files(path)
    plans = {} if plan_file is None else _planned(plan_file, files)
    done: list[dict[str, Any]] = []
    try:
        with _client() as client:
            for file in files:
                note = commit_of(file.path) if comment is None else comment
                planned = plans.get(file.tenant)
                done.append(_apply(client, file, planned, comment=note, confirm_deletes=confirm_delete))
                if not as_json:
                    show_line(f"{file.path}: {_state(done[-1])}")
    except (ApiError, SectionError, httpx.HTTPError):
        show_error(f"{files[len(done)].path}: stopped here; the files after it are not published.")
        raise
    finally:
        if as_json:
            show_json(done)


@app.command()
def sql(
    tenant: Tenant,
    statement: Annotated[str, typer.Argument(help="One SELECT over proxy_logs.")],
    as_json: AsJson = False,
) -> None:
    """Run one SELECT over the log of a tenant."""
    with _client() as client:
        response = client.request(
            "POST",
            path_of("tenants", tenant, "query"),
            json={"sql": statement},
            headers={"Accept": "application/json" if as_json else "text/csv"},
        )
    # Values are shown as the service writes them: a float does not have all digits of a DECIMAL.
    if as_json:
        sys.stdout.write(response.text + "\n")
        return
    csv.field_size_limit(sys.maxsize)
    names, *rows = csv.reader(io.StringIO(response.text, newline=""))
    show_table(names, rows)
    if response.headers["X-Truncated"] == "true":
        show_error("A limit of the service cut the rows.")


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
        show_json(explained)
        return
    decision = explained["decision"]
    show_line(f"{' or '.join(decision['statuses'])} by {decision['ruleId'] or 'no rule'}")
    for rule in explained["rules"]:
        show_line(f"  {rule['outcome']:<14} {rule['ruleId']}")


@app.command()
def savings(
    tenant: Tenant,
    first: Annotated[
        dt.datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="29 days before the last day.")
    ] = None,
    last: Annotated[dt.datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="Yesterday.")] = None,
    step: Annotated[str, typer.Option(help="day or month")] = "day",
    as_json: AsJson = False,
) -> None:
    """Show what the cache saves of the time that the warehouse bills, and of the money."""
    to = _yesterday() if last is None else last.date()
    start = to - dt.timedelta(days=_SAVINGS_DAYS - 1) if first is None else first.date()
    with _client() as client:
        found = client.savings(tenant, first=f"{start}", last=f"{to}", step=step)
    if as_json:
        show_json(found)
    else:
        show_savings(found, step)


@app.command()
def invalidate(
    tenant: Tenant,
    rule: Annotated[str | None, typer.Argument(help="The id of a rule.")] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="A table, or a pattern such as sales.*; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--rule", help="With --table: of this rule, and of no other; may be repeated."),
    ] = None,
    reason: Annotated[str, typer.Option(help="Kept with the markers.")] = "",
) -> None:
    """Mark what a rule, or all rules that read tables, have cached as stale."""
    if (rule is None) is not bool(table) or (only and not table):
        _fail("Give the id of a rule or at least one --table.")
    with _client() as client:
        if rule is None:
            markers = client.invalidate_tables(tenant, table or [], reason=reason, rules=only)
        else:
            name = f"tenantctl-{uuid.uuid4()}"
            markers = [client.invalidate(tenant, rule, marker=name, reason=reason)]
    for marker in markers:
        show_line(f"{marker['targetRuleId']}: results from before {marker['invalidatedAt']} are stale")
    if not markers:
        show_line("No rule caches statements on these tables.")


def _planned(path: Path, files: list[RulesFile]) -> dict[str, dict[str, Any]]:
    """Return the plans of these files, by tenant.

    Raises:
        FileError: it is no plan, or a plan of other files.
    """
    try:
        plans = {entry["tenant"]: entry for entry in json.loads(path.read_text(encoding="utf-8"))}
        digests = {tenant: (entry["digest"], entry["etag"])[0] for tenant, entry in plans.items()}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise FileError(f"{path}: this is no output of `tenantctl plan --json`") from error
    for file in files:
        if digests.get(file.tenant) != file.digest:
            raise FileError(f"{file.path}: the plan in {path} is not of these rules. Plan again.")
    return plans


def _plan(client: Client, file: RulesFile, *, replay: bool) -> dict[str, Any]:
    """Return what `apply` would change of a tenant."""
    live = client.rules(file.tenant)
    rules = live.body["rules"] if file.rules is None else file.rules
    defaults = file.sections.get("config", {}).get("config", {}).get("defaults", {})
    ttl = {**client.config(file.tenant).body["defaults"], **defaults}["ttlSeconds"]
    difference = compare(live.body["rules"], rules, ttl_seconds=ttl)
    entry: dict[str, Any] = {"file": str(file.path), "tenant": file.tenant, **asdict(difference)}
    entry["etag"], entry["digest"] = live.etag, file.digest
    entry["sections"] = {
        name: asdict(SECTIONS[name].compare(parts, SECTIONS[name].read(client, file.tenant)))
        for name, parts in file.sections.items()
    }
    entry["lint"] = client.lint(rules)
    if difference and replay and entry["lint"]["valid"]:
        entry["replay"] = _replay(client, file)
    return {**_without_secrets(entry), "digest": entry["digest"], "etag": entry["etag"]}


#: Shorter values of variables are no secrets, and parts of other words.
_LEAST_SECRET = 8


def _without_secrets(value: Any) -> Any:
    """Return a value with names of variables of the environment in place of their values."""
    if isinstance(value, dict):
        return {key: _without_secrets(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_secrets(part) for part in value]
    if isinstance(value, str):
        for name, secret in read_environment().items():
            if len(secret) >= _LEAST_SECRET:
                value = value.replace(secret, f"${{{name}}}")
    return value


def _apply(
    client: Client,
    file: RulesFile,
    planned: dict[str, Any] | None,
    *,
    comment: str,
    confirm_deletes: list[str] | None,
) -> dict[str, Any]:
    """Write what differs of a file, and say what was done. With a plan, only while nothing changed since.

    Raises:
        SectionError: something did. Nothing is written.
    """
    if planned and file.rules is not None and client.rules(file.tenant).etag != planned["etag"]:
        raise SectionError(f"The rules of {file.tenant} changed since the plan. Plan again.")
    sections = planned.get("sections", {}) if planned else None
    done: dict[str, Any] = {"file": str(file.path), "tenant": file.tenant}
    done["sections"] = apply_sections(
        client, file.tenant, file.sections, planned=sections, on_written=_reporter(file)
    )
    if file.rules is None:
        return done
    etag = planned["etag"] if planned else None
    return done | _publish(client, file, etag=etag, comment=comment, confirm_deletes=confirm_deletes)


def _publish(
    client: Client, file: RulesFile, *, etag: str | None, comment: str, confirm_deletes: list[str] | None
) -> dict[str, Any]:
    """Write the rules of a file if they differ from the live ones, and say what was done.

    With ``etag``, only while the live rules have this version.
    """
    etag = etag or client.rules(file.tenant).etag
    written = client.put_rules(
        file.tenant,
        file.rules or [],
        etag=etag,
        if_changed=True,
        confirm_deletes=confirm_deletes,
        comment=comment,
    )
    return {"seq": written.body["seq"], "written": written.etag != etag}


def _reporter(file: RulesFile) -> Callable[[str, str], None]:
    """Return what says of each part that it is written: a later one may be refused."""
    return lambda section, name: show_error(f"{file.path}: {section}: {name} is written", style="")


def _state(entry: dict[str, Any]) -> str:
    rules = f"published as revision {entry['seq']}" if entry.get("written") else ""
    sections = [f"{count} of {name} written" for name, count in entry["sections"].items() if count]
    return ", ".join(filter(None, [rules, *sections])) or "nothing to change"


def _replay(client: Client, file: RulesFile) -> dict[str, Any]:
    """Return the replay of the last days, or why there is none."""
    last = _yesterday()
    first = last - dt.timedelta(days=_REPLAYED_DAYS - 1)
    try:
        return client.replay(file.tenant, file.rules, first=f"{first}", last=f"{last}")
    except (ApiError, TimeoutError) as error:
        return {"error": str(error)}


def _yesterday() -> dt.date:
    return dt.datetime.now(dt.timezone.utc).date() - dt.timedelta(days=1)


def _client() -> Client:
    try:
        return Client(*read_login())
    except NoLogin as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    show_error(message)
    raise SystemExit(1)


if __name__ == "__main__":
    main()
