"""The models of analytics.

They refer to tenants by id, not by foreign key, because summaries outlive tenants.
"""

from __future__ import annotations

from analytics.models.advice import Effect, Mining, Recommendation
from analytics.models.alerts import Alert, AlertDelivery, AlertFiring, AlertKind
from analytics.models.digests import Digest, DigestFrequency, DigestMail, DigestPreference, ModelExchange
from analytics.models.replay import ReplayRun
from analytics.models.summaries import Build, DayRollup, Kind, MergedRollup, SummaryDocument, TenantHealth

__all__ = [
    "Alert",
    "AlertDelivery",
    "AlertFiring",
    "AlertKind",
    "Build",
    "DayRollup",
    "Digest",
    "DigestFrequency",
    "DigestMail",
    "DigestPreference",
    "Effect",
    "Kind",
    "MergedRollup",
    "Mining",
    "ModelExchange",
    "Recommendation",
    "ReplayRun",
    "SummaryDocument",
    "TenantHealth",
]
