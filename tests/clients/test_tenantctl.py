"""The Python client and ``tenantctl`` (clients/python), against the running service."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenantadmin_client import (
    BadRequest,
    Client,
    Conflict,
    Forbidden,
    LintFailed,
    NotFound,
    RateLimited,
    Unauthorized,
    UnknownCondition,
    check_conditions,
    cli,
    conditions,
    show,
)
from tenantadmin_client.files import FileError, commit_of, read_file, read_files, write_file
from tenantadmin_client.login import NoLogin, read_login, write_login
from tenantadmin_client.plan import compare, complete

from accounts.models import User
from rules.conditions.keys import COMBINATORS, CONDITION_KEYS
from rules.language import complete_rule
from tests import factories

if TYPE_CHECKING:
    from tests.clients.programs import Service


class Printed(NamedTuple):
    stdout: str
    stderr: str


class Tenantctl(Protocol):
    def __call__(self, *arguments: str, status: int = 0) -> Printed: ...


ROOT = Path(__file__).parents[2] / "clients" / "python"
_MAIL = {"type": "email", "to": "owner@example.org"}
RULE = {"id": "orders", "conditions": {"tables": {"containsAny": ["sales.*"]}}}


# --- Without a service --------------------------------------------------------------------------


def client_of(*answers: httpx.Response, sent: list[httpx.Request] | None = None, **options: Any) -> Client:
    """Return a client that gets a token, then these answers in turn."""
    remaining = iter(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        if sent is not None:
            sent.append(request)
        if request.url.path == "/oauth/token":
            return httpx.Response(200, json={"access_token": "t", "expires_in": 3600})
        return next(remaining)

    return Client("https://x.example", "tas_pat_x", transport=httpx.MockTransport(answer), **options)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr("tenantadmin_client.client.time.sleep", waited.append)
    return waited


def test_a_request_waits_as_long_as_the_service_says(pauses: list[float]) -> None:
    busy = httpx.Response(429, headers={"Retry-After": "7"})
    with client_of(busy, busy, httpx.Response(200, json={})) as client:
        client.request("PUT", "/x")
    assert pauses == [7, 7]


def test_it_gives_up_after_all_attempts() -> None:
    busy = httpx.Response(429, json={"error": "rate_limited", "message": "Later."})
    with (
        client_of(*[busy] * 3, attempts=3) as client,
        pytest.raises(RateLimited, match=r"rate_limited: Later\."),
    ):
        client.request("GET", "/x")


def test_a_token_that_ended_early_is_exchanged_once_more() -> None:
    refused = httpx.Response(401, json={"error": "invalid_token", "message": "Ended."})
    sent: list[httpx.Request] = []
    with client_of(refused, httpx.Response(200, json={}), sent=sent) as client:
        client.request("GET", "/x")
    assert [request.url.path for request in sent] == ["/oauth/token", "/x", "/oauth/token", "/x"]
    with client_of(refused, refused) as client, pytest.raises(Unauthorized):
        client.request("GET", "/x")


def test_a_token_is_renewed_a_minute_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("tenantadmin_client.client.time.monotonic", lambda: now)
    sent: list[httpx.Request] = []
    with client_of(*[httpx.Response(200, json={})] * 3, sent=sent) as client:
        for now in (100.0, 100 + 3600 - 60, 100 + 3600 - 59):  # noqa: B007 - the clock reads it
            client.request("GET", "/x")
    assert [request.url.path for request in sent] == ["/oauth/token", "/x", "/x", "/oauth/token", "/x"]


def test_a_broken_connection_repeats_reads_alone() -> None:
    calls = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/oauth/token":
            return httpx.Response(200, json={"access_token": "t", "expires_in": 3600})
        calls.append(request.method)
        if len(calls) % 2:
            raise httpx.ReadError("gone")
        return httpx.Response(200, json={})

    with Client("https://x.example", "p", transport=httpx.MockTransport(answer)) as client:
        client.request("GET", "/x")
        with pytest.raises(httpx.ReadError):
            client.request("PUT", "/x")
    assert calls == ["GET", "GET", "PUT"]


def test_the_keys_are_those_of_the_service() -> None:
    assert set(CONDITION_KEYS) == conditions.KEYS
    check_conditions([{"id": "a", "conditions": {key: {} for key in (*COMBINATORS, *CONDITION_KEYS)}}])


def test_a_misspelt_key_is_an_error_before_anything_is_sent() -> None:
    rule = {"id": "a", "conditions": {"any": [{"not": {"isReadonly": True}}]}}
    sent: list[httpx.Request] = []
    with client_of(sent=sent) as client, pytest.raises(UnknownCondition) as refused:
        client.put_rules("t", [rule], etag='"1"')
    assert (refused.value.path, refused.value.nearest, sent) == (
        "/rules/0/conditions/any/0/not/isReadonly",
        "isReadOnly",
        [],
    )


def test_files_have_shared_parts_and_variables(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text(
        "variables: {ttl: 60}\nrules: [{id: shared, ttlSeconds: '${ttl}'}]\n"
    )
    file = tmp_path / "a.yaml"
    file.write_text(
        "tenant: t\nvariables: {schema: sales}\nrules:\n"
        "  - include: shared.yaml\n"
        "  - {id: own, conditions: {tables: {containsAny: ['${schema}.*']}}}\n"
    )
    assert read_file(file).rules == [
        {"id": "shared", "ttlSeconds": 60},
        {"id": "own", "conditions": {"tables": {"containsAny": ["sales.*"]}}},
    ]
    assert read_files(tmp_path) == [read_file(file)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: []", "'tenant' must be"),
        ("tenant: t", "'rules' must be a list"),
        ("tenant: t\nrule: []", "there is no member 'rule'"),
        ("tenant: t\nrules: [{id: a, ttlSeconds: 1,\n ttlSeconds: 2}]", "ttlSeconds is there twice .*line 3"),
        ("tenant: t\nrules: [1]", "rule 1 must be an object"),
        ("tenant: t\nrules: [{id: '${x}'}]", "the variable 'x' has no value"),
        ("tenant: t\nrules: [{include: a.yaml}]", "the file includes itself"),
        ("tenant: [", "while parsing .*stream end.* line 1, column 10"),
        ("tenant: t\nrules: [{id: a, name: 2026-11-28}]", "/rules/0/name: a date is no value of JSON"),
        ("tenant: t\nrules: [{id: a, name: 2026-13-28}]", "month must be"),
        ("tenant: t\nrules: [{id: a, ttlSeconds: .inf}]", "/rules/0/ttlSeconds: inf is no number"),
        ("tenant: t\nrules: [{id: a, conditions: {1: x}}]", "/rules/0/conditions: the name 1 is no text"),
        ('tenant: t\nrules: [{id: a, name: "\\ud800"}]', "/rules/0/name: it holds half of a character"),
        (
            f"tenant: t\nrules: [{{id: a, ttlSeconds: 0x{'f' * 4000}}}]",
            "/rules/0/ttlSeconds: the number is too large",
        ),
        ("tenant: t\nvariables: [a]\nrules: []", "'variables' must be"),
        ("tenant: t\nrules: [&a {id: a, conditions: *a}]", "/rules/0/conditions: it contains itself"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    with pytest.raises(FileError, match=message) as refused:
        read_file(file)
    assert str(file) in str(refused.value)


@given(
    rule=st.fixed_dictionaries(
        {"id": st.just("a")},
        optional={
            "enabled": st.booleans(),
            "action": st.sampled_from(["cache", "bypass"]),
            "ttlSeconds": st.integers(1, 9),
            "invalidateRules": st.just(["b"]),
            "requireInvalidation": st.booleans(),
        },
    ),
    ttl=st.integers(1, 9),
)
def test_defaults_are_those_of_the_service(rule: dict[str, Any], ttl: int) -> None:
    assert complete(rule, ttl_seconds=ttl) == complete_rule(rule, ttl_seconds=ttl)


def test_a_difference_by_rule() -> None:
    live = [complete({"id": name}, ttl_seconds=60) for name in ("a", "b", "c")]
    difference = compare(live, [{"id": "c"}, {"id": "a", "ttlSeconds": 5}, {"id": "d"}], ttl_seconds=60)
    assert (difference.added, difference.removed, list(difference.changed), difference.reordered) == (
        ["d"],
        ["b"],
        ["a"],
        True,
    )
    assert not compare(live, [{"id": "a"}, {"id": "b"}, {"id": "c"}], ttl_seconds=60)


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_written_file_reads_back(tmp_path: Path, name: str) -> None:
    rules = [{**RULE, "description": "Grün: 'x' #1 ${schema} $${a} $$${ ${"}]
    write_file(tmp_path / name, tenant="t", rules=rules)
    assert read_file(tmp_path / name).rules == rules


def test_the_comment_of_a_file_names_its_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path / "rules.yaml") == ""

    def git(*arguments: str) -> str:
        identity = (
            "-c",
            "user.name=ann",
            "-c",
            "user.email=ann@example.org",
            "-c",
            "core.hooksPath=/dev/null",
        )
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    write_file(tmp_path / "rules.yaml", tenant="t", rules=[RULE])
    git("add", "rules.yaml")
    git("commit", "-qm", "Rules")
    commit = git("rev-parse", "HEAD")
    assert commit_of(tmp_path / "rules.yaml") == f"commit {commit}"
    write_file(tmp_path / "rules.yaml", tenant="t", rules=[])
    assert commit_of(tmp_path / "rules.yaml") == f"commit {commit}, with changes that are not committed"
    assert commit_of(tmp_path / "absent" / "rules.yaml") == ""


def test_an_import_loads_nothing_heavy() -> None:
    """Not even httpx, which takes most of the time; a client loads it."""
    code = (
        "import sys, tenantadmin_client\n"
        "heavy = {'httpx', 'pandas', 'polars', 'pyarrow', 'rich', 'sqlalchemy', 'typer', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "tenantadmin_client.Client('http://x.example', 'p')\n"
        "print(sorted((heavy - {'rich'}) & set(sys.modules)))"  # httpx loads rich where it is installed
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n['httpx']\n"


def test_texts_of_the_log_neither_format_nor_control_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show.show_table(["[red]n"], [["[/red]"], ["\x1b[2Jgone\r\n:smile:"], [None]])
    show.show_line("[bold]Grün\u202e\x07")
    printed = capsys.readouterr().out
    for text in ("[red]n", "[/red]", r"\x1b[2Jgone\r\n:smile:", r"[bold]Grün\u202e\x07"):
        assert text in printed


REPLAY: dict[str, Any] = {
    "window": {"from": "2026-03-01", "to": "2026-03-07"},
    "total": {
        "hits": {"low": 40, "high": 50},
        "savedMs": {"low": 5_400_000, "high": 9_000_000},
        "risk": {"low": 0, "high": 3},
    },
    "against": {
        "total": {
            "hits": {"low": 30, "high": 30},
            "savedMs": {"low": 61_000, "high": 61_000},
            "risk": {"low": 0, "high": 0},
        }
    },
    "billed": {
        "total": {
            "billedMs": {"low": 7_200_000, "high": 9_000_000},
            "money": {"currency": "USD", "low": "20.00", "high": "25.00"},
        },
        "against": {
            "billedMs": {"low": 10_800_000, "high": 10_800_000},
            "money": {"currency": "USD", "low": "30.00", "high": "30.00"},
        },
    },
    "publishCost": {"best": {"hour": 3, "extraMs": 999}},
}
BILLED = "    the warehouse bills: 3.0 h -> 2.0 h to 2.5 h"


@pytest.mark.parametrize(
    ("known", "bill"),
    [
        ("prices", [BILLED, "    it costs: 30.00 USD -> 20.00 to 25.00 USD"]),
        ("times", [BILLED]),
        ("nothing", []),
    ],
)
def test_a_plan_shows_hits_money_risk_and_the_cheapest_hour(
    capsys: pytest.CaptureFixture[str], known: str, bill: list[str]
) -> None:
    replay = json.loads(json.dumps(REPLAY))
    if known == "times":
        for ruleset in replay["billed"].values():
            ruleset["money"] = None
    if known == "nothing":
        del replay["billed"]
    entry = {
        "file": "a.yaml",
        "tenant": "t",
        "added": ["a"],
        "removed": ["b"],
        "changed": {"c": [{"field": "ttlSeconds", "before": None, "after": 5}]},
        "reordered": True,
        "sections": {},
        "lint": {"errors": [], "warnings": []},
        "replay": replay,
    }
    show.show_plan(entry)
    assert capsys.readouterr().out.splitlines() == [
        "a.yaml (tenant t)",
        "  + a",
        "  - b",
        "  ~ c",
        "      ttlSeconds: null -> 5",
        "  the order of the rules changes",
        "  replay of 2026-03-01 to 2026-03-07, live rules -> this file:",
        "    hits: 30 -> 40 to 50",
        "    warehouse time saved: 1.0 min -> 1.5 h to 2.5 h",
        *bill,
        "    hits that may be stale: 0 -> 0 to 3",
        "  cheapest hour to publish: 03:00 UTC, which costs 999 ms",
    ]


def test_a_plan_says_how_sure_a_sample_is(capsys: pytest.CaptureFixture[str]) -> None:
    sampled = {
        "sample": {"share": 0.8, "identities": 9, "entries": 800},
        "sampledChanges": {"total": {"hits": {"low": -2, "high": 25}}, "rules": []},
    }
    nothing: dict[str, Any] = {"added": [], "removed": [], "changed": {}}
    entry = {"file": "a.yaml", "tenant": "t", **nothing, "reordered": True, "sections": {}}
    show.show_plan({**entry, "lint": {"errors": [], "warnings": []}, "replay": {**REPLAY, **sampled}})
    assert (
        "      of a sample, 80.0% of the entries: in 95 of 100 samples the hits change by -2 to +25"
        in capsys.readouterr().out.splitlines()
    )


def test_no_two_files_of_a_folder_have_the_same_tenant(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        write_file(tmp_path / name, tenant="T" if name == "a.yaml" else "t", rules=[RULE])
    with pytest.raises(FileError, match=r"b\.yaml: .*a\.yaml has the rules of this tenant already"):
        read_files(tmp_path)
    write_file(tmp_path / "b.yaml", tenant="u", rules=[{"id": "a", "conditions": {"tabels": 1}}])
    with pytest.raises(UnknownCondition, match=r"b\.yaml: /rules/0/conditions/tabels: .*'tables'"):
        read_files(tmp_path)


def test_a_user_without_a_home_is_told_what_to_set(tmp_path: Path) -> None:
    code = (
        "import os, pwd, sys, tenantadmin_client.cli as cli\n"
        "def refuse(uid): raise KeyError(uid)\n"
        "pwd.getpwuid = refuse\n"
        "os.environ.pop('HOME', None), os.environ.pop('XDG_CONFIG_HOME', None)\n"
        "cli._client()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200", "TENANTADMIN_PAT": ""}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "There is no home directory. Set XDG_CONFIG_HOME, or TENANTADMIN_URL and TENANTADMIN_PAT.\n"
    )


def test_a_link_to_another_service_gets_no_token() -> None:
    sent: list[httpx.Request] = []
    for address in (
        "https://evil.example/x",
        "//evil.example/x",
        "http://x.example/x",
        "https://x.example:8/x",
    ):
        page = httpx.Response(200, json={"rows": [1], "_links": {"next": {"href": address}}})
        with client_of(page, sent=sent) as client, pytest.raises(ValueError, match="may not get its token"):
            list(client.pages("/x", "rows"))
    assert {request.url.host for request in sent} == {"x.example"}
    pages = [
        httpx.Response(200, json={"rows": [1], "_links": {"next": {"href": "https://x.example/x?cursor=a"}}}),
        httpx.Response(200, json={"rows": [2], "_links": {}}),
    ]
    with client_of(*pages) as client:
        assert list(client.pages("/x", "rows")) == [1, 2]


def test_the_remembered_token_stays_with_its_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TENANTADMIN_URL", "TENANTADMIN_PAT"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "tenantctl/config.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)
    write_login("https://a.example", "tas_pat_a")
    assert file.stat().st_mode & 0o777 == 0o600
    assert read_login() == ("https://a.example", "tas_pat_a")
    monkeypatch.setenv("TENANTADMIN_URL", "https://A.example/")
    assert read_login() == ("https://A.example/", "tas_pat_a")
    monkeypatch.setenv("TENANTADMIN_URL", "https://b.example")
    with pytest.raises(NoLogin, match=r"for https://a\.example\. Run `tenantctl login https://b"):
        read_login()
    monkeypatch.setenv("TENANTADMIN_PAT", "tas_pat_b")
    assert read_login() == ("https://b.example", "tas_pat_b")


# --- With the service ---------------------------------------------------------------------------


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1", "COLUMNS": "200", **more}


@pytest.fixture
def tenantctl(
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Tenantctl:
    """Run ``tenantctl`` in this process and ``tmp_path``, signed in by a stored token."""
    # The tests print this log where errors are expected.
    caplog.set_level(logging.WARNING, logger="httpx")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, status: int = 0) -> Printed:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["tenantctl", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == status, printed
        return Printed(printed.out, printed.err)

    run("login", service.url, "--pat", service.pat)
    return run


@pytest.mark.django_db(transaction=True)
def test_rules_go_from_a_file_to_the_service(tenantctl: Tenantctl, service: Service, tmp_path: Path) -> None:
    assert (tmp_path / "config/tenantctl/config.json").stat().st_mode & 0o777 == 0o600
    with Client(service.url, service.pat) as client:
        (tenant,) = client.tenants()
    tenantctl("pull", "--tenant", tenant, "rules.yaml")
    assert "no changes" in tenantctl("plan", "rules.yaml").stdout

    write_file(tmp_path / "rules.yaml", tenant=tenant, rules=[RULE, {"id": "old", "ttlSeconds": 5}])
    shown = tenantctl("plan", "--no-replay", "rules.yaml", status=2).stdout
    assert "+ orders" in shown
    assert "warning: /rules/1/ttlSeconds" in shown
    assert "published as revision 1" in tenantctl("apply", "rules.yaml", "--comment", "Quarter end").stdout
    with Client(service.url, service.pat) as client:
        (change,) = client.request("GET", f"/config/tenants/{tenant}/rules/history?limit=1").json()["changes"]
    assert change["summary"]["comment"] == "Quarter end"
    assert "nothing to change" in tenantctl("apply", "rules.yaml").stdout

    write_file(tmp_path / "rules.yaml", tenant=tenant, rules=[{**RULE, "ttlSeconds": 60}])
    (planned,) = json.loads(tenantctl("plan", "--no-replay", "--json", "rules.yaml", status=2).stdout)
    assert (planned["removed"], planned["changed"]) == (
        ["old"],
        {"orders": [{"field": "ttlSeconds", "before": 86400, "after": 60}]},
    )
    assert "HIT or MISS by orders" not in tenantctl("explain", "-t", tenant, '{"tables": ["hr.x"]}').stdout
    assert "HIT or MISS by orders" in tenantctl("explain", "-t", tenant, '{"tables": ["sales.x"]}').stdout
    stale = "orders: results from before"
    assert stale in tenantctl("invalidate", "-t", tenant, "orders", "--reason", "loaded").stdout
    assert stale in tenantctl("invalidate", "-t", tenant, "--table", "SALES.*").stdout
    assert stale in tenantctl("invalidate", "-t", tenant, "--table", "hr.people").stdout
    tables = ("invalidate", "-t", tenant, "--table", "sales.*", "--rule")
    assert stale in tenantctl(*tables, "orders").stdout
    assert "The rule 'other' cannot have results" in tenantctl(*tables, "other", status=1).stderr
    for wrong in ((), ("orders", "--rule", "orders")):
        assert "Give the id" in tenantctl("invalidate", "-t", tenant, *wrong, status=1).stderr
    counted = "SELECT count(*) AS n, 12345678901234567.10 AS exact, NULL AS none, true AS yes FROM proxy_logs"
    cells = ("3", "12345678901234567.10", "", "true")
    assert "│ {} │ {} │ {:4} │ {} │".format(*cells) in tenantctl("sql", "-t", tenant, counted).stdout
    assert '"exact":12345678901234567.10,' in tenantctl("sql", "-t", tenant, counted, "--json").stdout

    days = ("--from", "2026-02-28", "--to", "2026-03-01")
    saved = tenantctl("savings", "-t", tenant, *days).stdout
    assert "2026-02-28 to 2026-03-01, in hours" in saved
    assert "not counted: 3 (100.00%)" in saved
    monthly = json.loads(tenantctl("savings", "-t", tenant, *days, "--step", "month", "--json").stdout)
    assert [row["month"] for row in monthly["months"]] == ["2026-02", "2026-03"]
    assert "'%Y-%m-%d'" in tenantctl("savings", "-t", tenant, "--to", "1 March", status=1).stderr


@pytest.mark.django_db(transaction=True)
def test_apply_publishes_what_was_planned(tenantctl: Tenantctl, service: Service, tmp_path: Path) -> None:
    def plan(ttl: int) -> None:
        write_file(tmp_path / "rules.yaml", tenant=service.tenant, rules=[{**RULE, "ttlSeconds": ttl}])
        shown = tenantctl("plan", "--no-replay", "--json", "rules.yaml", status=2).stdout
        (tmp_path / "plan.json").write_text(shown)

    plan(60)
    with Client(service.url, service.pat) as client:
        client.put_rules(service.tenant, [RULE], etag=client.rules(service.tenant).etag)
    assert (
        "changed since the plan" in tenantctl("apply", "--plan", "plan.json", "rules.yaml", status=1).stderr
    )
    plan(90)
    assert "revision 2" in tenantctl("apply", "--plan", "plan.json", "rules.yaml").stdout
    write_file(tmp_path / "rules.yaml", tenant=service.tenant, rules=[])
    assert "Plan again" in tenantctl("apply", "--plan", "plan.json", "rules.yaml", status=1).stderr
    assert "no output of" in tenantctl("apply", "--plan", "rules.yaml", "rules.yaml", status=1).stderr


@pytest.mark.django_db(transaction=True)
def test_a_whole_tenant_is_planned_and_applied(
    tenantctl: Tenantctl, service: Service, tmp_path: Path
) -> None:
    pulled = tenantctl("pull", "--all", "--tenant", service.tenant, "tenant.json")
    assert pulled.stdout == "tenant.json: 0 rules, 0 alerts\n"
    assert "no changes" in tenantctl("plan", "--no-replay", "tenant.json").stdout
    document = json.loads((tmp_path / "tenant.json").read_text())
    document["config"]["labels"] = {"team": "bi"}
    document["alerts"] = [{"name": "late", "kind": "log-late", "channels": [_MAIL]}]
    (tmp_path / "tenant.json").write_text(json.dumps({**document, "rules": [RULE]}))
    shown = tenantctl("plan", "--no-replay", "tenant.json", status=2).stdout
    assert "  + orders\n" in shown
    assert '      labels: {} -> {"team": "bi"}\n' in shown
    assert "  + alerts: late\n" in shown
    assert f"      channels: {json.dumps([_MAIL])}\n" in shown
    plan = tenantctl("plan", "--no-replay", "--json", "tenant.json", status=2).stdout
    (tmp_path / "plan.json").write_text(plan)
    applied = tenantctl("apply", "--plan", "plan.json", "tenant.json").stdout
    assert applied == ("tenant.json: published as revision 1, 1 of config written, 1 of alerts written\n")
    assert (
        "changed since the plan" in tenantctl("apply", "--plan", "plan.json", "tenant.json", status=1).stderr
    )
    assert "nothing to change" in tenantctl("apply", "tenant.json").stdout


@pytest.mark.django_db(transaction=True)
def test_the_script_for_dbt(service: Service, tmp_path: Path) -> None:
    with Client(service.url, service.pat) as client:
        (tenant,) = client.tenants()
        rules = [
            {"id": name, "conditions": {"tables": {"containsAny": [f"{name}.*"]}}}
            for name in ("sales", "hr", "crm", "web")
        ]
        client.put_rules(tenant, rules, etag=client.rules(tenant).etag)
    (tmp_path / "target").mkdir()
    statuses = {"success": "sales", "partial success": "hr", "error": "crm", "skipped": "web"}
    nodes = {
        f"model.{schema}": {"database": database, "schema": schema, "alias": "orders"}
        for schema, database in zip(statuses.values(), ["prod", None, "prod", "prod"], strict=True)
    }
    results = [{"unique_id": f"model.{name}", "status": status} for status, name in statuses.items()]
    (tmp_path / "target/manifest.json").write_text(json.dumps({"nodes": nodes}))
    (tmp_path / "target/run_results.json").write_text(json.dumps({"results": results}))
    page = (ROOT.parents[1] / "docs/pipelines.md").read_text()
    script = page[page.index("import json\n") :].partition("```")[0]
    environment = _environment(TENANTADMIN_URL=service.url, TENANTADMIN_PAT=service.pat, TENANT=tenant)
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, check=True)
    with Client(service.url, service.pat) as client:
        listed = client.request("GET", f"/tenants/{tenant}/invalidation-markers").json()["markers"]
    assert {marker["targetRuleId"] for marker in listed} >= {"crm", "hr", "sales"}
    assert {marker["metadata"]["reason"] for marker in listed} == {"dbt run"}
    # What was skipped is not among the tables.
    (trigger,) = {marker["invalidatedBy"]["triggeredBy"] for marker in listed}
    assert "prod.crm.orders" in trigger
    assert "web.orders" not in trigger


@pytest.mark.django_db(transaction=True)
def test_the_line_for_curl(service: Service) -> None:
    with Client(service.url, service.pat) as client:
        (tenant,) = client.tenants()
        client.put_rules(tenant, [RULE], etag=client.rules(tenant).etag)
        answer = client.request(
            "POST", "/oauth/token", json={"grant_type": "pat_exchange", "pat": service.pat}
        )
    page = (ROOT.parents[1] / "docs/pipelines.md").read_text()
    line = page[page.index("curl ") :].partition("```")[0]
    environment = _environment(BASE_URL=service.url, TOKEN=answer.json()["access_token"], TENANT=tenant)
    done = subprocess.run(["sh", "-c", line], env=environment, check=True, capture_output=True)
    (marker,) = json.loads(done.stdout)["markers"]
    assert (marker["targetRuleId"], marker["metadata"]) == ("orders", {"reason": "nightly load"})


@pytest.mark.django_db(transaction=True)
def test_refusals_are_one_line_and_status_1(tenantctl: Tenantctl, service: Service, tmp_path: Path) -> None:
    with Client(service.url, service.pat) as client:
        (tenant,) = client.tenants()
    write_file(tmp_path / "bad.yaml", tenant=tenant, rules=[{"id": "a", "conditions": {"tabels": "x"}}])
    assert "Did you mean 'tables'?" in tenantctl("apply", "bad.yaml", status=1).stderr
    write_file(tmp_path / "bad.yaml", tenant=tenant, rules=[{"id": "stop", "action": "deny"}])
    refused = tenantctl("apply", "bad.yaml", status=1)
    assert "error: /rules/0" in refused.stdout
    assert tenantctl("lint", "bad.yaml", status=1).stdout.count("1 errors") == 1
    assert "No such option" in tenantctl("plan", "--absent", "bad.yaml", status=1).stderr
    assert "No such file" in tenantctl("plan", "absent.yaml", status=1).stderr
    assert tenantctl("sql", "-t", tenant, "SELEC", status=1).stderr.count("\n") == 1


@pytest.mark.django_db(transaction=True)
def test_a_token_for_queries_alone_signs_in(tenantctl: Tenantctl, service: Service) -> None:
    owner = User.objects.get(email="owner@example.org")
    pat = factories.pat_secret(owner, "logs:query", tenants=[service.tenant])
    signed_in = tenantctl("login", service.url, "--pat", pat)
    assert signed_in.stdout == "Signed in. The token may not list tenants.\n"
    assert "403" in tenantctl("savings", "-t", service.tenant, status=1).stderr
    assert "3" in tenantctl("sql", "-t", service.tenant, "SELECT count(*) AS n FROM proxy_logs").stdout


@pytest.mark.django_db(transaction=True)
def test_a_folder_is_applied_until_a_file_is_refused(
    tenantctl: Tenantctl, service: Service, tmp_path: Path
) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    stranger = "99999999-9999-4999-8999-999999999999"
    write_file(folder / "a.yaml", tenant=service.tenant, rules=[RULE])
    write_file(folder / "b.yaml", tenant=stranger, rules=[RULE])
    write_file(folder / "c.yaml", tenant=stranger.replace("9", "8"), rules=[RULE])
    refused = tenantctl("apply", "--json", "rules", status=1)
    assert [(done["tenant"], done["written"]) for done in json.loads(refused.stdout)] == [
        (service.tenant, True)
    ]
    assert refused.stderr.startswith("rules/b.yaml: stopped here")
    assert json.loads(tenantctl("apply", "--json", "rules/a.yaml").stdout)[0]["written"] is False


@pytest.mark.django_db(transaction=True)
def test_the_client(service: Service) -> None:
    with Client(service.url, service.pat) as client:
        (tenant,) = client.tenants()
        live = client.rules(tenant)
        written = client.put_rules(tenant, [RULE], etag=live.etag)
        with pytest.raises(Conflict):
            client.put_rules(tenant, [], etag=live.etag)
        with pytest.raises(LintFailed) as refused:
            client.put_rules(tenant, [{"id": "a", "action": "deny"}], etag=written.etag)
        assert [finding["code"] for finding in refused.value.errors] == ["unconditional-deny"]
        result = client.sql(tenant, "SELECT cacheStatus, 331451557290541101 AS big FROM proxy_logs")
        assert (result.row_count, result.truncated, len(result.rows())) == (3, False, 3)
        assert result.rows()[0]["big"] == 331_451_557_290_541_101
        found = list(client.requests(tenant, from_="2026-03-01", to="2026-03-01", limit=2))
        assert [row["cacheStatus"] for row in found] == ["HIT", "MISS", "MISS"]
        with pytest.raises(BadRequest):
            list(client.requests(tenant, limit=0))
        with pytest.raises(Forbidden):
            client.rules("99999999-9999-4999-8999-999999999999")
        with pytest.raises(NotFound):
            client.request("GET", "/nothing")
