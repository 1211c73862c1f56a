"""Recommendations for the tests of staff's pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from analytics.models import Recommendation
from rules.ruleset import read_ruleset
from tests.admin.logs import DAY

if TYPE_CHECKING:
    from accounts.models import Tenant

RULE: dict[str, Any] = {"id": "ads", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
GAIN = {
    "hits": {"low": 40, "likely": 50, "high": 60},
    "savedMs": {"low": 5000, "likely": None, "high": 5000},
    "risk": {"low": 0, "high": 0},
}


def recommend(tenant: Tenant, **fields: Any) -> Recommendation:
    return Recommendation.objects.create(
        tenant_id=tenant.pk,
        **{
            "kind": "cache",
            "fingerprint": uuid4().hex,
            "rank": 0,
            "title": "Cache m.ads for a minute",
            "why": ["60 requests read m.ads."],
            "rules": [RULE],
            "patch": [{"op": "insert", "ruleId": "ads", "before": None, "rule": RULE}],
            "evidence": [
                {
                    "name": "statements",
                    "sql": "SELECT standardizedSql FROM proxy_logs",
                    "rows": [{"standardizedSql": "SELECT <b>"}],
                }
            ],
            "predicted": {"gain": GAIN},
            "estimate_ms": 5000,
            "seq": read_ruleset(tenant.pk).seq,
            "first_day": DAY,
            "last_day": DAY,
            **fields,
        },
    )
