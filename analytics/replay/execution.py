"""Run queued replays in a worker. Contract: docs/replay.md."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

import duckdb
import msgspec
from django.conf import settings
from django.db import IntegrityError, connection, transaction

from accounts.models import Tenant
from accounts.models.history import RevisionKind
from accounts.models.tenants import TenantKind
from accounts.revisions import DocumentHistory
from accounts.tenants.pricing import Pricing
from analytics.models import ReplayRun
from analytics.numbers.store import replay_engine
from analytics.replay.load import DayFile, Gateway, Job, Marker, Ruleset
from analytics.replay.replayer import replay
from analytics.replay.sample import Sampling
from logs.partitions import partitions_with_file
from logs.sources import local_paths
from rules.language import read_rules
from rules.models import Marker as StoredMarker
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.errors import NotFound
from tenantadmin.lib.core.rendering import make_storable
from tenantadmin.lib.core.timestamps import days_before, end_of_day, epoch_ms, now
from tenantadmin.lib.database.connections import build_lock

if TYPE_CHECKING:
    from analytics.replay.result import ReplayResult
    from rules.tables.warehouse import WarehouseTables
    from tenantadmin.lib.objectstore import ObjectStore


class ReplayEnded(Exception):
    """A running replay must end: it was cancelled, its tenant was deleted, or it took too long."""


#: Seconds between two checks whether the work must end.
LOOK_SECONDS: Final = 1.0


class Limit:
    """Ends the work inside `on` after a time, for a reason that ``find_reason`` returns, or on `stop`."""

    def __init__(self, *, seconds: float, message: str, find_reason: Callable[[], str] = str) -> None:
        """Set the limit.

        Args:
            seconds: the most time that the work may take.
            message: the error after that time.
            find_reason: called each second in another thread. It returns the reason to end the work, or an
                empty text.
        """
        self._seconds, self._message, self._find_reason = seconds, message, find_reason
        self._reason = ""
        self._engine: duckdb.DuckDBPyConnection | None = None

    def stop(self, reason: str = "The worker ends.") -> None:
        """End the work. Any thread may call this."""
        self._reason = self._reason or reason
        if self._engine is not None:
            self._engine.interrupt()

    def check(self) -> None:
        """Raise ReplayEnded if the work must end."""
        if self._reason:
            raise ReplayEnded(self._reason)

    @contextmanager
    def on(self, engine: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Limit the work inside the `with` block.

        Raises:
            ReplayEnded: the work must end.
        """
        self._engine = engine
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=[ended], name="limit", daemon=True)
        thread.start()
        try:
            self.check()
            yield
            self.check()
        except duckdb.InterruptException:
            self.check()
            raise
        finally:
            ended.set()
            thread.join()
            self._engine = None

    def _watch(self, ended: threading.Event) -> None:
        """Check until the work ends. An interrupt between two statements has no effect, so it is repeated."""
        deadline = monotonic() + self._seconds
        try:
            while not ended.wait(min(LOOK_SECONDS, self._seconds)):
                late = monotonic() >= deadline
                if reason := self._reason or (self._message if late else self._find_reason()):
                    self.stop(reason)
        finally:
            connection.close()


_T = TypeVar("_T")
#: Added to the nice value. Without it, queries take 1.8 times as long while a replay runs.
NICENESS: Final = 10


def run_at_low_priority(work: Callable[[], _T], *, stop: Callable[[], None]) -> _T:
    """Run ``work`` in a thread with a lower scheduling priority (nice 10).

    On Linux each thread has its own priority, and a worker could not raise its priority again. The thread has
    another database connection, so it does not see the caller's open transaction.

    Args:
        stop: called if the worker must end. It makes the work end soon.
    """
    with ThreadPoolExecutor(1, initializer=os.nice, initargs=(NICENESS,)) as pool:
        execution = pool.submit(_run, work)
        try:
            return execution.result()
        except (KeyboardInterrupt, SystemExit):
            stop()
            raise


def _run(work: Callable[[], _T]) -> _T:
    try:
        return work()
    finally:
        connection.close()


#: Raise it when a replay of the same input has another result. Then earlier results are not reused.
_VERSION: Final = 6


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a replay. ``rules`` are complete, ``gateway`` is ``{nocache?, nonDeterministic?,
    keysPerUser?}``. ``is_exact``: all entries are replayed, however many there are."""

    tenant_id: UUID
    rules: Sequence[Mapping[str, Any]]
    first_day: date
    last_day: date
    warmup_days: int
    gateway: Mapping[str, bool]
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Input:
    """The whole input of a replay, read at one moment."""

    request: Request
    #: Day, build, object keys and number of rows of each partition.
    partitions: Sequence[tuple[date, str, Sequence[str], int]]
    current: Sequence[Mapping[str, Any]]
    #: The revision of the current rules.
    seq: int
    in_force: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]
    changes: Sequence[int]
    markers: Sequence[tuple[str, int]]
    cache_enabled: bool
    tables: WarehouseTables
    prices: Sequence[Mapping[str, Any]]
    is_assessment: bool

    @property
    def rows(self) -> int:
        return sum(rows for *_, rows in self.partitions)

    @property
    def is_sampled(self) -> bool:
        return self.rows > settings.REPLAY_EXACT_ROWS and not self.request.is_exact

    @property
    def _builds(self) -> list[tuple[date, str]]:
        return [(day, build) for day, build, *_ in self.partitions]

    def digest(self) -> str:
        """Return the digest of everything that a replay depends on, except the current hour."""
        request = self.request
        parts = (
            [*request.rules, request.first_day, request.last_day, request.warmup_days, request.gateway],
            self._builds,
            (self.current, self.in_force, self.changes, self.markers, self.cache_enabled),
            (_VERSION, self.prices, self.tables),
            *([settings.REPLAY_EXACT_ROWS] if self.is_sampled else []),
            *([True] if self.is_assessment else ()),
        )
        return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()

    def as_stored(self, result: ReplayResult) -> Any:
        """Return the result of the replay as JSON that the database stores."""
        against = msgspec.structs.replace(result.against, seq=self.seq)
        return make_storable(msgspec.structs.replace(result, against=against))

    def as_job(self, store: ObjectStore, *, whole_up_to: int = 0) -> Job:
        """Return the job. See `Sampling.whole_up_to`: a search would take longer than it may."""
        request = self.request
        return Job(
            files=day_files(store, ((day, keys) for day, _, keys, _ in self.partitions)),
            first_day=request.first_day,
            last_day=request.last_day,
            subject=read_rules(request.rules),
            current=read_rules(self.current),
            in_force=[Ruleset(start, read_rules(rules)) for start, rules in self.in_force],
            changes=self.changes,
            markers=[Marker(rule_id, at) for rule_id, at in self.markers],
            warmup_days=request.warmup_days,
            gateway=Gateway(
                request.gateway.get("nocache"),
                request.gateway.get("nonDeterministic"),
                request.gateway.get("keysPerUser"),
            ),
            cache_enabled=self.cache_enabled,
            tables=self.tables,
            pricing=Pricing.of(self.prices),
            hour=now().hour,
            sampling=self._sampling(whole_up_to) if self.is_sampled else None,
            is_assessment=self.is_assessment,
        )

    def _sampling(self, whole_up_to: int) -> Sampling:
        """Return how to choose identities: for all rules the same ones, while the builds are the same."""
        seed = hashlib.sha256(msgspec.json.encode(self._builds)).hexdigest()
        return Sampling(seed, most=settings.REPLAY_EXACT_ROWS // 2, whole_up_to=whole_up_to)


def day_files(store: ObjectStore, days: Iterable[tuple[date, Sequence[str]]]) -> list[DayFile]:
    """Return the files of days with their keys, in order, as `local_paths`."""
    named = [(day, key) for day, keys in days for key in keys]
    paths = local_paths(store, (key for _, key in named))
    return [DayFile(day, path) for (day, _), path in zip(named, paths, strict=True)]


def collect_input(request: Request) -> Input:
    """Read everything that a replay depends on. The files belong to one consistent set of builds.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    first = days_before(request.first_day, request.warmup_days)
    start = datetime.combine(first, time(), UTC)
    end = end_of_day(request.last_day)
    ruleset = read_ruleset(request.tenant_id)
    current = ruleset.rules
    remaining = StoredMarker.objects.remaining().filter(tenant=request.tenant_id, number__isnull=True)
    markers = remaining.filter(invalidated_at__gte=start, invalidated_at__lte=end).order_by(
        "invalidated_at", "pk"
    )
    changes = list(
        DocumentHistory(RevisionKind.RULES, request.tenant_id)
        .revisions()
        .filter(changed_at__lte=end)
        .order_by("seq")
        .values_list("seq", "changed_at")
    )
    # No Gateway was there while a warehouse wrote its history, so no write of the rules emptied a cache.
    is_assessment = ruleset.kind == TenantKind.ASSESSMENT
    days = partitions_with_file(tenant=request.tenant_id).filter(day__range=(first, request.last_day))
    return Input(
        request,
        partitions=[(day.day, day.build, day.files, day.rows) for day in days.defer("hours")],
        current=current,
        seq=ruleset.seq,
        in_force=[(0, [])]
        if is_assessment
        else _find_rulesets_in_force(request.tenant_id, changes, current=current, start=start),
        changes=[
            epoch_ms(changed_at) for _, changed_at in changes if changed_at >= start and not is_assessment
        ],
        markers=[(marker.target_rule_id, epoch_ms(marker.invalidated_at)) for marker in markers],
        cache_enabled=ruleset.caching.enabled,
        tables=ruleset.tables,
        prices=ruleset.prices,
        is_assessment=is_assessment,
    )


def _find_rulesets_in_force(
    tenant_id: UUID,
    changes: Sequence[tuple[int, datetime]],
    *,
    current: Sequence[Mapping[str, Any]],
    start: datetime,
) -> list[tuple[int, Sequence[Mapping[str, Any]]]]:
    """Return the rulesets in force from ``start`` on, with the times (epoch ms) from which they applied.

    A log may be older than the tenant's first revision. The current rules are used for it.
    """
    before = [seq for seq, changed_at in changes if changed_at <= start]
    numbers = {*before[-1:], *(seq for seq, changed_at in changes if changed_at > start)}
    revisions = (
        DocumentHistory(RevisionKind.RULES, tenant_id).revisions().filter(seq__in=numbers).order_by("seq")
    )
    rulesets: list[tuple[int, Sequence[Mapping[str, Any]]]] = [] if before else [(0, current)]
    rulesets += [
        (epoch_ms(revision.changed_at), revision.document["rules"])
        for revision in revisions
        if revision.document is not None
    ]
    return rulesets or [(0, current)]


logger = logging.getLogger(__name__)
_LOST: Final = "The worker ended before the replay did. Request it again."


def run_next(store: ObjectStore, *, tenant_id: UUID) -> bool:
    """Run the tenant's oldest queued replay, if none is running. Return False if there is nothing to do.

    A run whose worker was killed is marked as failed first.

    Raises:
        Busy: another worker runs a replay of this tenant.
    """
    with build_lock(tenant=tenant_id, period="replay", wait=False):
        _fail_lost(tenant_id)
        runs = ReplayRun.objects.filter(tenant_id=tenant_id, state=ReplayRun.State.QUEUED)
        run = runs.order_by("requested_at", "replay_id").first()
        if run is None:
            return False
        if runs.filter(pk=run.pk).update(state=ReplayRun.State.RUNNING, started_at=now(), progress=0):
            run_at_low_priority(
                lambda: _execute(store, run),
                # The replay sees this within a second, and ends.
                stop=lambda: _finish(run.pk, ReplayRun.State.CANCELLED),
            )
        return True


def _execute(store: ObjectStore, run: ReplayRun) -> None:
    """Run a replay that is marked as running, and record how it ended."""
    try:
        collected = _collect(run)
        seconds: float = settings.REPLAY_TIMEOUT_SECONDS
        limit = Limit(
            seconds=seconds,
            message=f"The replay took more than {seconds:g} seconds. Choose fewer days.",
            find_reason=partial(_find_reason, run.pk),
        )

        def report(progress: float) -> None:
            limit.check()
            _running(run.pk).update(progress=progress)

        with replay_engine() as engine, limit.on(engine.connection):
            # With the days that a replay of all entries leaves out, a week of a million a day.
            job = collected.as_job(store, whole_up_to=settings.REPLAY_EXACT_ROWS * 3 // 2)
            result = replay(engine.connection, job, report=report)
    except ReplayEnded as error:
        _finish(run.pk, ReplayRun.State.FAILED, error=str(error))
    except NotFound:
        _finish(run.pk, ReplayRun.State.CANCELLED, error="The tenant was deleted.")
    except Exception as error:
        _finish(run.pk, ReplayRun.State.FAILED, error="The replay failed. Request it again.")
        logger.exception("Replay %s of tenant %s failed: %s", run.pk, run.tenant_id, error)  # noqa: TRY401
    else:
        _finish(run.pk, ReplayRun.State.DONE, result=collected.as_stored(result), progress=1.0)


def _collect(run: ReplayRun) -> Input:
    """Return the current input of a run. Days may have been rebuilt since the run was queued.

    Raises:
        TenantNotFound: the tenant was deleted.
        ReplayEnded: another run has the same input now.
    """
    collected = collect_input(
        Request(
            run.tenant_id,
            run.rules,
            run.first_day,
            run.last_day,
            run.warmup_days,
            run.gateway,
            is_exact=run.is_exact,
        )
    )
    digest = collected.digest()
    try:
        with transaction.atomic():
            ReplayRun.objects.filter(pk=run.pk).exclude(digest=digest).update(digest=digest)
    except IntegrityError:
        raise ReplayEnded("The log was rebuilt, and another replay has the same input now.") from None
    return collected


def _find_reason(replay_id: UUID) -> str:
    """Return the reason why a replay must end, or an empty text."""
    run = ReplayRun.objects.filter(pk=replay_id).values_list("tenant_id", "state").first()
    if run is None or run[1] != ReplayRun.State.RUNNING:
        return "The replay was cancelled."
    if not Tenant.objects.live().filter(pk=run[0]).exists():
        return "The tenant was deleted."
    return ""


def _running(replay_id: UUID) -> Any:
    return ReplayRun.objects.filter(pk=replay_id, state=ReplayRun.State.RUNNING)


def _finish(replay_id: UUID, state: str, **fields: Any) -> None:
    """End a run, unless it was cancelled."""
    _running(replay_id).update(state=state, finished_at=now(), **fields)


def _fail_lost(tenant_id: UUID) -> None:
    """Mark the running replays of a tenant as failed. The caller holds the lock, so no worker runs them."""
    ReplayRun.objects.filter(tenant_id=tenant_id, state=ReplayRun.State.RUNNING).update(
        state=ReplayRun.State.FAILED, finished_at=now(), error=_LOST
    )
