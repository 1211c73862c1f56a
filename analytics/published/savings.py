"""Verify that the kept savings of a period agree with its log."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

import duckdb

from analytics.published.documents import compare
from analytics.published.verification import BuildMoved, RunQuery, Verification
from analytics.savings.reading import compute_savings, find_again, find_source, forget, read_savings
from logs.sql.protocol import EngineUnavailable
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.objectstore import StoreError

if TYPE_CHECKING:
    from analytics.published.verification import DocumentKey
    from logs.audit import Reader
    from tenantadmin.lib.objectstore import ObjectStore

_ATTEMPTS: Final = 2


def verify_savings(store: ObjectStore, *, key: DocumentKey, reader: Reader) -> Verification:
    """Compare the savings of a day, month or year, by day, with the published query on the same builds.

    A kept document that differs is computed again on the next request.

    Raises:
        BadRequest: the period has too many log entries.
        BuildMoved: a build was replaced in both attempts.
        ApiError: the query failed.
    """
    first, last = key.days
    for _ in range(_ATTEMPTS):
        source = find_source(tenant=key.tenant, first=first, last=last, step="day")
        try:
            etag, body = read_savings(store, source, reader=reader)
            started = time.monotonic()
            savings = compute_savings(store, source, reader=reader)
        except (EngineUnavailable, StoreError, duckdb.IOException):
            if find_again(source) == source:
                raise
            continue
        if etag != source.etag or find_again(source) != source:
            continue
        comparison = compare(json.loads(body), json.loads(dump_json(savings)))
        if comparison.unequal_count:
            forget(source)
        ms = int(1000 * (time.monotonic() - started))
        return Verification(
            equal=not comparison.unequal_count,
            fields=comparison.fields,
            unequal_count=comparison.unequal_count,
            unequal=comparison.unequal,
            queries=[RunQuery(name=query.name, sql=query.sql, ms=ms) for query in savings.queries],
        )
    raise BuildMoved
