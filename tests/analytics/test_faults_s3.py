"""If S3 answers 500, cuts bodies off or stalls, documents stay whole, and the next run completes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.retries.standard import ExponentialBackoff

from analytics.models import Kind
from analytics.numbers.days import rebuild_day
from analytics.numbers.users import find_user_source, user_document
from tenantadmin.lib.objectstore import StoreError, default_store, open_store
from tenantadmin.lib.objectstore.s3 import S3Store
from tests.analytics import oracle
from tests.analytics.builds import (
    TENANT,
    assert_no_orphans,
    document,
    entry,
    put,
    rebuild_all,
    refresh,
    rows_of,
)
from tests.faulty_http import Fault, FaultyProxy, Request, running_proxy
from tests.objects import use_store
from tests.s3 import s3_endpoint, s3_url  # noqa: F401  # fixtures

pytestmark = pytest.mark.slow

DAY, NEXT = date(2026, 1, 1), date(2026, 1, 2)
PERIODS = ((Kind.DAY, "2026-01-01"), (Kind.MONTH, "2026-01"), (Kind.YEAR, "2026"))


@pytest.fixture(scope="module")
def proxy_and_address(s3_endpoint: str) -> Iterator[tuple[FaultyProxy, str]]:  # noqa: F811
    with running_proxy(s3_endpoint) as running:
        yield running


@pytest.fixture
def proxy(
    proxy_and_address: tuple[FaultyProxy, str],
    s3_url: str,  # noqa: F811
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> FaultyProxy:
    """A proxy between the service and the S3 store. Clients retry without a pause."""
    proxy, address = proxy_and_address
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0)
    use_store(settings, s3_url)
    return proxy


def is_listing(request: Request) -> bool:
    return request.method == "GET" and "list-type=2" in request.path


def reads_raw(request: Request) -> bool:
    return request.method == "GET" and "/logs/" in request.path and not is_listing(request)


def reads_previous_file(request: Request) -> bool:
    return request.method == "GET" and "/compacted/" in request.path and not is_listing(request)


def writes(request: Request) -> bool:
    return request.method == "PUT"


def writes_merged(request: Request) -> bool:
    return request.method == "PUT" and "/rollups/period" in request.path


def reads_rollups(request: Request) -> bool:
    return request.method == "GET" and "/rollups/" in request.path and not is_listing(request)


def stored_documents() -> list[Any]:
    return [document(kind, period) for kind, period in PERIODS]


def expected() -> list[Any]:
    rows = rows_of(DAY, NEXT)
    of_day = [row for row in rows if row["day"] == DAY.isoformat()]
    return [
        oracle.day_document(of_day),
        oracle.month_document(rows, 1),
        oracle.year_document(rows, tenant=str(TENANT), year=2026),
    ]


@pytest.mark.django_db
def test_a_store_that_keeps_failing_leaves_the_old_documents_whole(proxy: FaultyProxy) -> None:
    for day in (DAY, NEXT):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    old = expected()
    assert stored_documents() == old
    broken: list[tuple[Fault, Callable[[Request], bool]]] = [
        (Fault.ERROR, is_listing),
        (Fault.ERROR, reads_raw),
        (Fault.CUT, reads_raw),
        (Fault.CUT, reads_previous_file),
        (Fault.ERROR, writes),
        (Fault.ERROR, writes_merged),
        (Fault.ERROR, reads_rollups),
        (Fault.CUT, reads_rollups),
    ]
    put("01/late.json", entry(DAY, userName="Bo", standardizedSql="SELECT 2"), day=DAY)
    new = expected()
    for fault, applies in broken:
        with proxy.failing(fault, applies), pytest.raises(StoreError):
            refresh(default_store())
        assert proxy.failed, applies
        for seen, before, after in zip(stored_documents(), old, new, strict=True):
            assert seen in (before, after), (fault, applies)
    refresh(default_store())
    assert stored_documents() == new
    assert_no_orphans()


def first_two_of_each(*kinds: Callable[[Request], bool]) -> Callable[[Request], bool]:
    counted: Counter[Callable[[Request], bool]] = Counter()

    def applies(request: Request) -> bool:
        for kind in kinds:
            if kind(request) and counted[kind] < 2:
                counted[kind] += 1
                return True
        return False

    return applies


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fault", "kinds"),
    [(Fault.ERROR, (is_listing, reads_raw, writes, reads_rollups)), (Fault.CUT, (reads_raw,))],
)
def test_requests_are_repeated_if_the_store_fails_briefly(
    proxy: FaultyProxy, fault: Fault, kinds: tuple[Callable[[Request], bool], ...]
) -> None:
    for day in (DAY, NEXT):
        put("00/a.json", entry(day, userName="Ana"), day=day)
    with proxy.failing(fault, first_two_of_each(*kinds)):
        refresh(default_store())
    assert len(proxy.failed) == 2 * len(kinds)
    assert stored_documents() == expected()


@pytest.mark.django_db
def test_a_stalled_body_times_out(
    proxy: FaultyProxy,
    s3_url: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put("00/a.json", entry(DAY), day=DAY)
    rebuild_all()
    put("01/late.json", entry(DAY, userName="Bo"), day=DAY)
    monkeypatch.setattr(S3Store, "client_config", S3Store.client_config.merge(Config(read_timeout=0.6)))
    impatient = open_store(s3_url)

    with (
        proxy.failing(Fault.STALL, reads_raw),
        pytest.raises(StoreError, match="cut off 3 times"),
    ):
        rebuild_day(impatient, tenant=TENANT, day=DAY)
    assert len(proxy.failed) == 3
    assert document(Kind.DAY, "2026-01-01")["uniqueUsers"] == 1
    refresh(default_store())
    assert document(Kind.DAY, "2026-01-01")["uniqueUsers"] == 2


@pytest.mark.django_db
def test_a_users_document_is_never_truncated(proxy: FaultyProxy, settings: Any, tmp_path: Path) -> None:
    put("00/a.json", entry(DAY, userName="Ana"), day=DAY)
    rebuild_all()
    # Another machine, which has no copy yet.
    settings.VAR_DIR = tmp_path
    source = find_user_source(tenant=TENANT, user="Ana", period="2026")
    assert source is not None
    for fault in (Fault.ERROR, Fault.CUT):
        with proxy.failing(fault, reads_rollups), pytest.raises(StoreError):
            user_document(default_store(), source)
    assert user_document(default_store(), source)
