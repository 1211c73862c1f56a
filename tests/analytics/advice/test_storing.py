"""What a search stores of the recommendations that it found, and that it did not keep."""

from __future__ import annotations

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from analytics.advice.mine import Advice, AdviceReport
from analytics.advice.search import store_advice
from analytics.models import Mining, Recommendation
from tests import factories

pytestmark = pytest.mark.django_db
_CONTENT = ("kind", "title", "why", "rules", "patch", "evidence", "predicted", "estimate_ms")


def test_a_recommendation_that_is_found_again_is_in_one_list(world: factories.World) -> None:
    tenant = world.tenant
    Mining.objects.create(tenant_id=tenant.pk)
    row = factories.recommendation(tenant, fingerprint="a")
    content = {name: getattr(row, name) for name in _CONTENT}
    request = SimpleNamespace(tenant_id=tenant.pk, first_day=date(2026, 3, 1), last_day=date(2026, 3, 14))

    def search(*found: str, left_out: str = "") -> None:
        advice = Advice(
            AdviceReport(not_proposed=[]),
            [{**content, "fingerprint": name} for name in found],
            [None] * len(found),
            {*left_out},
        )
        collected: Any = SimpleNamespace(request=request)
        store_advice(advice, collected=collected, seq=1, digest="")

    def listed() -> list[tuple[str, str, str]]:
        rows = Recommendation.objects.order_by("fingerprint", "state")
        return [(row.fingerprint, row.state, row.reason) for row in rows]

    others = "It was found again, but others came first: a search keeps at most 6."
    search("b", left_out="a")
    assert listed() == [("a", "superseded", others), ("b", "open", "")]
    search("b")
    assert listed() == [("a", "superseded", ""), ("b", "open", "")]
    # An earlier release left a row for each search that found it.
    older = factories.recommendation(tenant, fingerprint="a", state="superseded")
    Recommendation.objects.filter(pk=older.pk).update(mined_at="2026-01-01T00:00:00Z")
    search("a")
    assert listed() == [("a", "open", ""), ("b", "superseded", "")]
    assert Recommendation.objects.get(fingerprint="a").pk == row.pk
    # A decision stays in the history.
    Recommendation.objects.filter(pk=row.pk).update(state="dismissed", reason="no")
    search("a")
    assert listed() == [("a", "dismissed", "no"), ("a", "open", ""), ("b", "superseded", "")]
