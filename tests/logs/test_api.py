"""The raw log tree and SQL over HTTP: shapes, 404s, who may read, and the audit before the data."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import pytest
from django.core.files import File
from django.db import DatabaseError, connection

from logs import held_results, queries, tree
from logs.api import query
from logs.audit import Reader
from logs.cancelling import WATCH
from logs.models import LogRead, QueryRun
from tenantadmin.lib.core.serving import UnreadBytes
from tenantadmin.lib.http.streaming import FileChunks
from tenantadmin.lib.objectstore import LocalStore, StoreError, default_store, open_store
from tenantadmin.lib.objectstore.s3 import S3Store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_object, use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

if TYPE_CHECKING:
    from tests.factories import World


@pytest.fixture
def member(world: World) -> ApiClient:
    return ApiClient(factories.sign_in(world.member))


def put(world: World, key: str, body: bytes = b'{"userName": "Ana"}') -> None:
    save_object(default_store(), f"{world.tenant.pk}/logs/{key}", body)


def names(answer: Any) -> list[str]:
    return [item["name"] for item in answer.json()["_links"]["items"]]


def test_a_day_that_is_a_symbolic_link_has_no_logs(
    world: World, member: ApiClient, object_store: Path, tmp_path: Path
) -> None:
    put(world, "2026/03/01/07/a.json")
    month = object_store / str(world.tenant.pk) / "logs/2026/03"
    (month / "01").rename(tmp_path / "elsewhere")
    (month / "01").symlink_to(tmp_path / "elsewhere")
    base = f"/tenants/{world.tenant.pk}/logs/2026/03/01"
    for path in (base, f"{base}/07", f"{base}/07/a.json"):
        assert member.get(path).status_code == 404


def test_the_tree_leads_from_the_year_to_the_stored_bytes(world: World, member: ApiClient) -> None:
    put(world, "2026/03/01/07/a.json", b'{"userName":  "Ana"}\n')
    put(world, "2026/03/01/07/b.json")
    put(world, "2026/11/30/23/c.json")
    base = f"/tenants/{world.tenant.pk}/logs"

    years = member.get(base)
    assert years.status_code == 200
    assert years.json() == {
        "tenantId": str(world.tenant.pk),
        "_links": {
            "self": {"href": base},
            "parent": {"href": f"/config/tenants/{world.tenant.pk}"},
            "items": [{"name": "2026", "href": f"{base}/2026"}],
        },
    }
    answer = member.get(f"{base}/2026")
    assert answer.status_code == 200
    assert answer.json() == {
        "tenantId": str(world.tenant.pk),
        "_links": {
            "self": {"href": f"{base}/2026"},
            "parent": {"href": f"/tenants/{world.tenant.pk}/logs"},
            "items": [
                {"name": "03", "href": f"{base}/2026/03"},
                {"name": "11", "href": f"{base}/2026/11"},
            ],
        },
    }
    href = f"{base}/2026"
    for name in ("03", "01", "07", "a.json"):
        (href,) = [
            item["href"] for item in member.get(href).json()["_links"]["items"] if item["name"] == name
        ]
    found = member.get(href)
    assert (found.status_code, found["Content-Type"], found.content) == (
        200,
        "application/json",
        b'{"userName":  "Ana"}\n',
    )
    assert member.get(f"{base}/2026/03").json()["_links"]["parent"] == {"href": f"{base}/2026"}


@pytest.mark.parametrize("body", [b"{}\n{}\n", b"", b"not json", b"\xff"])
def test_an_object_of_several_json_values_is_sent_as_lines(
    world: World, member: ApiClient, body: bytes
) -> None:
    put(world, "2026/03/01/07/a.json", body)

    answer = member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01/07/a.json")
    assert (answer.status_code, answer["Content-Type"], answer.content) == (200, "application/x-ndjson", body)


@pytest.mark.parametrize(
    "path",
    [
        "2025",
        "2026/04",
        "2026/03/02",
        "2026/03/01/08",
        "2026/03/01/07/missing.json",
        "2026/03/01/07/a.txt",
        "2026/03/01/07/..%2Fa.json",
        "2026/03/01/07/%00.json",
        "2026/03/01/07/" + "x" * 1100 + ".json",
        "2026/02/30/07/a.json",
        "2026/3",
        "2026/13",
        "2026/03/32",
        "2026/03/01/24",
        "0000",
        "26",
        "2026/",
    ],
)
def test_levels_without_data_and_malformed_segments_are_not_found(
    world: World, member: ApiClient, path: str
) -> None:
    put(world, "2026/03/01/07/a.json")

    answer = member.get(f"/tenants/{world.tenant.pk}/logs/{path}")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


def test_odd_names_are_listed_and_followed(world: World, member: ApiClient) -> None:
    odd = ["a b.json", "ü&=?#+%2F.json", "測試.json", ".json.json"]
    for name in odd:
        put(world, f"2026/03/01/07/{name}", name.encode())
    put(world, "2026/03/01/07/no-log.txt")
    put(world, "2026/03/01/07/deeper/x.json")
    put(world, "2026/03/01/junk/x.json")

    listing = member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01/07")
    assert names(listing) == sorted(odd)
    for item in listing.json()["_links"]["items"]:
        assert member.get(item["href"]).content == item["name"].encode()
    assert names(member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01")) == ["07"]


def test_without_logs_there_are_no_years(member: ApiClient, world: World) -> None:
    assert member.get(f"/tenants/{world.tenant.pk}/logs").status_code == 404
    put(world, "notes/readme.json", b"{}")
    assert member.get(f"/tenants/{world.tenant.pk}/logs").status_code == 404


def test_a_listing_hides_folders_without_logs(world: World, member: ApiClient) -> None:
    for key in (
        "2026/03/01/05/readme.txt",
        "2026/03/02/05/readme.txt",
        "2026/03/02/06/a.json",
        "2026/03/02/24/a.json",
        "2026/02/30/00/a.json",
        "2026/04/31/01/a.json",
        "2026/05/x.json",
        "2026/06/01/07/deeper/x.json",
        "2028/02/29/00/a.json",
    ):
        put(world, key)
    base = f"/tenants/{world.tenant.pk}/logs"

    found, todo = [], [f"{base}/2026", f"{base}/2028"]
    while todo:
        href = todo.pop()
        answer = member.get(href)
        assert answer.status_code == 200, href
        if href.endswith(".json"):
            found.append(href.removeprefix(base))
        else:
            todo += [item["href"] for item in answer.json()["_links"]["items"]]
    assert sorted(found) == ["/2026/03/02/06/a.json", "/2028/02/29/00/a.json"]
    for path in ("2026/02", "2026/02/30", "2026/02/30/00", "2026/03/01", "2026/05", "2027"):
        assert member.get(f"{base}/{path}").status_code == 404, path


def test_a_level_behind_very_many_other_objects_is_not_hidden(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "_MAX_SEARCHED", 2)
    for name in ("a.txt", "b.txt"):
        put(world, f"2026/03/01/07/{name}")
    put(world, "2026/03/01/08/a.txt")

    assert names(member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01")) == ["07"]


@pytest.mark.parametrize(
    ("level", "items", "requests"), [("2026", ["03", "04"], 3), ("2026/03", ["01", "02"], 3)]
)
def test_on_s3_a_listing_costs_one_request_and_one_for_each_child(
    world: World, request: pytest.FixtureRequest, level: str, items: list[str], requests: int
) -> None:
    store = open_store(request.getfixturevalue("s3_url"))
    assert isinstance(store, S3Store)
    for name in ("03/01/07/a", "03/01/07/b", "03/01/08/a", "03/02/00/a", "04/01/00/a"):
        save_object(store, f"{world.tenant.pk}/logs/2026/{name}.json", b"{}")
    asked: list[Any] = []
    store.client.meta.events.register("before-call.s3", lambda **call: asked.append(call["model"].name))

    listed = tree.list_names(
        store, tenant=world.tenant.pk, path=tuple(level.split("/")), reader=Reader("ana@example.org", "")
    )
    assert listed == items
    assert asked == ["ListObjectsV2"] * requests


def test_an_object_is_sent_as_octets_on_request(world: World, member: ApiClient) -> None:
    put(world, "2026/03/01/07/a.json", b"{}\n{}\n")
    address = f"/tenants/{world.tenant.pk}/logs/2026/03/01/07/a.json"
    octets = member.get(address, Accept="application/octet-stream")
    assert (octets["Content-Type"], octets.content) == ("application/octet-stream", b"{}\n{}\n")
    assert member.get(address, Accept="application/json")["Content-Type"] == "application/x-ndjson"


LINES = b'{"userName": "Ana", "standardizedSql": "SELECT [1, {2}] -- \\"\xc3\xa9\\""}\n' * 20_000
ARRAY = b"[" + LINES.rstrip().replace(b"\n", b",\n") + b"]\n"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(LINES, "application/x-ndjson"), (ARRAY, "application/json"), (ARRAY + b"[]", "application/x-ndjson")],
    ids=["lines", "array", "array-and-more"],
)
@pytest.mark.parametrize("where", ["file", "s3"])
def test_a_large_object_is_streamed(
    world: World,
    member: ApiClient,
    request: pytest.FixtureRequest,
    settings: Any,
    *,
    where: str,
    body: bytes,
    media_type: str,
) -> None:
    if where == "s3":
        use_store(settings, request.getfixturevalue("s3_url"))
    put(world, "2026/03/01/07/a.json", body)
    address = f"/tenants/{world.tenant.pk}/logs/2026/03/01/07/a.json"

    answer = member.get(address)
    assert (answer.status_code, answer["Content-Type"]) == (200, media_type)
    assert answer["Content-Length"] == str(len(body))
    pieces = list(answer)
    assert max(map(len, pieces)) <= 1 << 16
    assert b"".join(pieces) == body
    head = member.request("HEAD", address)
    assert (head["Content-Type"], head["Content-Length"]) == (media_type, str(len(body)))
    # The test client closes only what is read.
    assert list(head) == []
    assert LogRead.objects.count() == 2


def test_a_large_object_is_never_held_whole(world: World, member: ApiClient) -> None:
    body = b"[" + b",\n".join([b'{"userName": "%s"}' % (b"Ana" * 300)] * 16_000) + b"]"
    put(world, "2026/03/01/07/a.json", body)
    size = len(body)
    del body

    tracemalloc.start()
    answer = member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01/07/a.json")
    assert sum(map(len, answer)) == size
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer["Content-Type"] == "application/json"
    assert peak < size / 3


class _Failing(io.RawIOBase):
    """A file that fails after some bytes, or ends."""

    def __init__(self, good: int, *, error: Exception | None = None) -> None:
        self.good, self.error = good, error

    def read(self, size: int = -1) -> bytes:
        if not self.good and self.error:
            raise self.error
        part = min(size, self.good)
        self.good -= part
        return b"1" * part


def test_a_failure_before_the_first_byte_is_an_error_answer(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world, "2026/03/01/07/a.json", LINES)
    file = File(cast("IO[bytes]", _Failing(0, error=StoreError("away"))))
    file.size = len(LINES)
    monkeypatch.setattr(LocalStore, "open", lambda *_: file)

    answer = member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01/07/a.json")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal_error")
    assert file.closed
    assert LogRead.objects.count() == 1


@pytest.mark.parametrize(
    ("file", "error"),
    [
        pytest.param(_Failing(100_000, error=StoreError("away")), StoreError, id="away"),
        pytest.param(_Failing(100_000), EOFError, id="shorter"),
        pytest.param(_Failing(300_000), EOFError, id="longer"),
    ],
)
def test_a_later_failure_ends_the_answer_and_closes_the_file(file: _Failing, error: type[Exception]) -> None:
    chunks = FileChunks(cast("IO[bytes]", file), size=200_000)
    with pytest.raises(error):
        list(chunks)
    chunks.close()
    assert file.closed


def test_an_unread_file_is_closed() -> None:
    file = _Failing(200_000)
    FileChunks(cast("IO[bytes]", file), size=200_000).close()
    assert file.closed


def test_every_read_is_audited_with_reader_and_object(world: World, member: ApiClient) -> None:
    put(world, "2026/03/01/07/a.json")

    member.get(f"/tenants/{world.tenant.pk}/logs/2026/03/01/07/a.json", **{"X-Request-Id": "read-1"})

    row = LogRead.objects.get()
    assert (row.email, row.tenant_id, row.key, row.request_id, row.client_address) == (
        "member@example.org",
        world.tenant.pk,
        f"{world.tenant.pk}/logs/2026/03/01/07/a.json",
        "read-1",
        "127.0.0.1",
    )


def test_without_its_audit_row_nothing_is_read(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world, "2026/03/01/07/a.json", b'"secret"')

    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseError("no room")

    monkeypatch.setattr(LogRead, "save", fail)
    for path in ("2026", "2026/03/01/07/a.json"):
        answer = member.get(f"/tenants/{world.tenant.pk}/logs/{path}")
        assert answer.status_code == 500
        assert b"secret" not in answer.content


def test_without_its_audit_row_no_query_is_answered(world: World, member: ApiClient) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE logs_queryrun ADD CONSTRAINT full_disk CHECK (email = '') NOT VALID")

    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 'secret' AS word"})

    assert answer.status_code == 500
    assert b"secret" not in answer.content


def test_a_query_is_answered_and_audited(world: World, member: ApiClient) -> None:
    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT count(*) AS n FROM proxy_logs"})

    assert answer.status_code == 200
    assert b"".join(answer) == (
        b'{"tenantId":"%s","columns":[{"name":"n","type":"BIGINT"}],"rows":[{"n":0}],"rowCount":1,'
        b'"truncated":false}' % str(world.tenant.pk).encode()
    )
    run = QueryRun.objects.get()
    assert (run.email, run.outcome, run.rows) == ("member@example.org", "ok", 1)
    assert run.message == ""


def test_a_query_that_was_shown_while_it_ran_has_one_row(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = queries.get_engine()

    class Slow:
        def execute(self, **job: Any) -> Any:
            WATCH.look()
            run = QueryRun.objects.get()
            assert (run.outcome, run.duration_ms, run.rows) == ("running", None, None)
            return engine.execute(**job)

    monkeypatch.setattr(queries, "get_engine", Slow)
    assert member.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1 AS n"}).status_code == 200
    run = QueryRun.objects.get()
    assert (run.outcome, run.rows, run.statement) == ("ok", 1, "SELECT 1 AS n")
    # The watch writes the row of an ended query no second time.
    WATCH.look()
    assert QueryRun.objects.get().outcome == "ok"


@pytest.mark.parametrize(
    ("accept", "media_type", "body"),
    [
        ("text/csv", "text/csv; charset=utf-8", b"n\r\n1\r\n"),
        ("text/csv; for=people", "text/csv; charset=utf-8", b"n\r\n1\r\n"),
        ("text/csv; header=absent; charset=latin-1", "text/csv; charset=utf-8", b"n\r\n1\r\n"),
        ("text/csv;q=0.1, application/x-ndjson;q=0.5", "application/x-ndjson", b'{"n":1}\n'),
    ],
)
def test_the_header_accept_chooses_the_form(
    world: World, member: ApiClient, accept: str, media_type: str, body: bytes
) -> None:
    answer = member.request(
        "POST", f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1 AS n"}, headers={"Accept": accept}
    )

    assert (answer["Content-Type"], answer["X-Row-Count"], b"".join(answer)) == (media_type, "1", body)


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("text/csv", 'attachment; filename="proxy_logs.csv"'),
        ("application/vnd.apache.parquet", 'attachment; filename="proxy_logs.parquet"'),
        ("application/vnd.apache.arrow.stream", None),
        ("application/json", None),
        ("application/x-ndjson", None),
    ],
)
def test_a_file_gets_a_name(world: World, member: ApiClient, accept: str, name: str | None) -> None:
    answer = member.request(
        "POST", f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1 AS n"}, headers={"Accept": accept}
    )
    assert (answer.status_code, answer.headers.get("Content-Disposition")) == (200, name)


@pytest.mark.parametrize(
    ("accept", "body"),
    [
        ("text/csv", b"=a\r\n=1+1\r\n"),
        ("text/csv; for=machines", b"=a\r\n=1+1\r\n"),
        ("text/csv; for=people", b"'=a\r\n'=1+1\r\n"),
        ('TEXT/CSV;charset=utf-8;FOR="People"', b"'=a\r\n'=1+1\r\n"),
    ],
)
def test_csv_for_people_runs_nothing_in_a_spreadsheet(
    world: World, member: ApiClient, accept: str, body: bytes
) -> None:
    """The dashboard's "CSV for Excel" had live formulas from texts of the log."""
    answer = member.request(
        "POST",
        f"/tenants/{world.tenant.pk}/query",
        {"sql": "SELECT '=1+1' AS \"=a\""},
        headers={"Accept": accept},
    )
    assert b"".join(answer) == body


def test_a_form_that_is_not_offered_is_refused_before_the_query_runs(world: World, member: ApiClient) -> None:
    answer = member.request(
        "POST", f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1"}, headers={"Accept": "image/png"}
    )
    assert (answer.status_code, answer.json()["error"]) == (406, "not_acceptable")
    assert not QueryRun.objects.exists()


def test_a_query_whose_result_could_not_be_kept_does_not_run(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "OF_CALLER", 10_000)
    monkeypatch.setattr(held_results, "OF_CALLER", 10_000)
    monkeypatch.setattr(held_results, "_HELD", UnreadBytes(per_caller=10_000, total=20_000))
    address = f"/tenants/{world.tenant.pk}/query"
    large, small = {"sql": "SELECT repeat('x', 6000) AS text"}, {"sql": "SELECT 1 AS n"}
    first = member.post(address, large)
    for body in (large, small):
        refused = member.post(address, body)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert refused.json()["message"] == "Read the answers to your earlier queries first."
    assert QueryRun.objects.count() == 1
    assert ApiClient(factories.sign_in(world.owner)).post(address, small).status_code == 200
    assert b"".join(first)
    assert member.post(address, small).status_code == 200


def test_the_schema_describes_the_columns_of_a_query(world: World, member: ApiClient) -> None:
    address = f"/tenants/{world.tenant.pk}/query"
    schema = member.get(f"{address}/schema").json()
    answer = member.post(address, {"sql": "SELECT * FROM proxy_logs"})
    columns = json.loads(b"".join(answer))["columns"]
    assert [{"name": column["name"], "type": column["type"]} for column in schema["columns"]] == columns
    assert len(columns) == 52
    assert schema["columns"][0] == {
        "name": "timestamp",
        "type": "BIGINT",
        "meaning": "request time, epoch ms",
        "unit": "epoch ms",
        "example": 1767225600000,
    }
    python_types = {"VARCHAR": str, "BIGINT": int, "INTEGER": int, "BOOLEAN": bool}
    assert all(type(column["example"]) is python_types[column["type"]] for column in schema["columns"])
    assert all(column["meaning"] for column in schema["columns"])


@pytest.mark.parametrize("statement", ["SELECT 1 --" + "x" * 900_000, "\0" * 65_000, "é" * 32_769])
def test_of_a_statement_that_is_too_long_the_audit_has_the_beginning_and_a_hash(
    world: World, member: ApiClient, statement: str
) -> None:
    """A free member stored 107 MB in 14 s, for 400 days."""
    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": statement})
    assert (answer.status_code, answer.json()["error"]) == (400, "query_rejected")
    run = QueryRun.objects.get()
    stored = statement.replace("\0", "␀")
    digest = hashlib.sha256(stored.encode()).hexdigest()
    assert run.statement.endswith(f"… ({len(stored.encode())} bytes, SHA-256 {digest})")
    assert stored.startswith(run.statement.partition("…")[0])
    assert (run.outcome, len(run.statement.encode()) < 1_200) == ("query_rejected", True)


def test_a_statement_of_64_kib_is_in_the_audit(world: World, member: ApiClient) -> None:
    statement = f"SELECT 1 AS n --{'x' * 65_520}"
    assert len(statement) == 64 << 10
    assert member.post(f"/tenants/{world.tenant.pk}/query", {"sql": statement}).status_code == 200
    assert QueryRun.objects.get().statement == statement


class TestQuotaOfTheAudit:
    @pytest.fixture(autouse=True)
    def little(self, settings: Any) -> None:
        settings.RATE_LIMIT_NAMESPACE = f"test-{uuid.uuid4().hex}"
        plans = settings.PLAN_LIMITS
        settings.PLAN_LIMITS = {plan: {**plans[plan], "stored_bytes": 2_000} for plan in plans}

    def test_a_query_above_it_is_refused_and_stores_nothing(self, world: World, member: ApiClient) -> None:
        address = f"/tenants/{world.tenant.pk}/query"
        statuses = [member.post(address, {"sql": f"DROP {'x' * 500}"}).status_code for _ in range(4)]
        answer = member.post(address, {"sql": "SELECT 1" + " " * 1_000})
        assert (statuses, answer.status_code, answer.json()["error"]) == (
            [400, 400, 429, 429],
            429,
            "rate_limited",
        )
        assert 86_000 < int(answer.headers["Retry-After"]) <= 86_400
        assert QueryRun.objects.count() == 2

    def test_reads_count_too(self, world: World, member: ApiClient) -> None:
        statuses = [member.get(f"/tenants/{world.tenant.pk}/logs/2026/01/01").status_code for _ in range(9)]
        assert (statuses[0], statuses[-1]) == (404, 429)
        assert LogRead.objects.count() <= 6

    def test_pages_are_shown_above_it_and_leave_the_hash_of_their_query(self, world: World) -> None:
        statement = f"SELECT 1 AS n --{'x' * 3_000}"
        for _ in range(3):
            queries.query_rows(
                default_store(), tenant=world.tenant.pk, statement=statement, reader=Reader("a@b.example", "")
            )
        digest = hashlib.sha256(statement.encode()).hexdigest()
        assert {run.statement for run in QueryRun.objects.all()} == {f"… (3016 bytes, SHA-256 {digest})"}


def test_parameters_are_values_and_never_sql(world: World, member: ApiClient) -> None:
    address = f"/tenants/{world.tenant.pk}/query"
    body = {"sql": "SELECT {{user}} AS who, '{{user}}' AS text", "parameters": {"user": "o'hara' --"}}
    rows = [{"who": "o'hara' --", "text": "o'hara' --"}]
    assert json.loads(member.post(address, body).getvalue())["rows"] == rows
    assert QueryRun.objects.get().statement == "SELECT ('o''hara'' --') AS who, 'o''hara'' --' AS text"
    refused = member.post(address, {**body, "parameters": {}})
    assert (refused.status_code, refused.json()["message"]) == (400, "Give a value for user.")
    # Without the member, braces are what they were.
    plain = member.post(address, {"sql": "SELECT '{{user}}' AS text"})
    assert json.loads(plain.getvalue())["rows"] == [{"text": "{{user}}"}]


def test_a_refused_query_is_audited_too(world: World, member: ApiClient) -> None:
    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": "DROP TABLE proxy_logs"})

    assert (answer.status_code, answer.json()["error"]) == (400, "query_rejected")
    run = QueryRun.objects.get()
    assert (run.statement, run.outcome) == ("DROP TABLE proxy_logs", "query_rejected")
    assert run.message == answer.json()["message"]
    assert run.message.startswith("DROP is not allowed")


@pytest.mark.parametrize(
    ("text", "message", "kept"),
    [
        ("SELECT 1\0", "The statement contains a NUL character. Remove it. (line 1, column 9)", "SELECT 1␀"),
        (
            "SELECT '\ud800'",
            "The statement contains an unpaired surrogate. Remove it. (line 1, column 9)",
            "SELECT '?'",
        ),
        (" ", "The statement is empty. Send one SELECT over proxy_logs.", " "),
    ],
)
def test_a_statement_that_is_no_text_is_rejected_and_audited(
    world: World, member: ApiClient, text: str, message: str, kept: str
) -> None:
    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": text})

    assert (answer.status_code, answer.json()["error"]) == (400, "query_rejected")
    assert answer.json()["message"] == message
    run = QueryRun.objects.get()
    assert (run.statement, run.outcome, run.message) == (kept, "query_rejected", message)


def test_another_key_that_is_no_text_is_refused(world: World, member: ApiClient) -> None:
    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 1", "\ud800\0": 1})

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_json")


@pytest.mark.parametrize(
    "body", [{}, {"sql": 5}, {"sql": None}, {"sql": "SELECT 1", "limit": 5}, [], {"SQL": "SELECT 1"}]
)
def test_a_query_body_is_the_statement_alone(world: World, member: ApiClient, body: Any) -> None:
    assert member.post(f"/tenants/{world.tenant.pk}/query", body).status_code == 400
    assert not QueryRun.objects.exists()


def test_querying_needs_membership(world: World, anonymous: ApiClient) -> None:
    address = f"/tenants/{world.tenant.pk}/query"
    body = {"sql": "SELECT 1 AS a FROM proxy_logs"}

    assert anonymous.post(address, body).status_code == 401
    for user in (world.stranger, world.platform_admin):
        assert ApiClient(factories.sign_in(user)).post(address, body).status_code == 403
    unknown = "/tenants/99999999-9999-4999-8999-999999999999/query"
    assert ApiClient(factories.sign_in(world.owner)).post(unknown, body).status_code == 403
    assert not QueryRun.objects.exists()
