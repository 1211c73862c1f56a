"""The models of analytics.

They refer to tenants by id, not by foreign key, because summaries outlive tenants.
"""

from __future__ import annotations

from analytics.models.advice import Effect, Mining, Recommendation, ReplayRun
from analytics.models.assessments import Assessment
from analytics.models.summaries import Build, DayRollup, Kind, MergedRollup, SummaryDocument, TenantHealth
from analytics.models.watch import (
    Alert,
    AlertDelivery,
    AlertFiring,
    AlertKind,
    Digest,
    DigestFrequency,
    DigestMail,
    DigestPreference,
    ModelExchange,
)

__all__ = [
    "Alert",
    "AlertDelivery",
    "AlertFiring",
    "AlertKind",
    "Assessment",
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
