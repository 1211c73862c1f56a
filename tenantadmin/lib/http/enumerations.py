"""Names of the contract's enumerations, for drf-spectacular's ``ENUM_NAME_OVERRIDES``.

The settings import this module, so it imports nothing of DRF, which reads them.
"""

from __future__ import annotations

from typing import Final

#: Name, and the values or their dotted path. Other enumerations are named after their member.
ENUMERATIONS: Final = {
    "AdapterType": "accounts.tenants.warehouse_urls.ADAPTER_TYPES",
    "AlertDeliveryState": ["queued", "delivered", "failed", "skipped"],
    "AlertKind": "analytics.watch.alert_kinds.TENANT_KINDS",
    "AlertUnit": "analytics.watch.alert_kinds.AlertUnit.__args__",
    "Billing": "accounts.tenants.pricing.BILLINGS",
    "CacheStatus": "logs.columns.CACHE_STATUSES",
    "ChallengeType": ["TXT"],
    "DigestFrequency": "analytics.models.DigestFrequency.values",
    "DigestKind": "analytics.watch.facts.DigestKind.__args__",
    "DigestUnit": ["count", "percent", "s", "ms"],
    "DomainState": "accounts.billing.domains.DomainState.__args__",
    "EventKind": "accounts.models.events.EventKind.values",
    "FindingCode": "rules.lint.registry.FINDING_KINDS",
    "FqdnState": "accounts.tenants.fqdns.FqdnState.__args__",
    "GrantResource": "accounts.models.billing.GrantResource.values",
    "GrantablePermission": "accounts.serializers.billing.PERMISSIONS",
    "HttpMethod": "accounts.serializers.users.METHODS",
    "LeakGrade": "analytics.reports.leaks.LeakGrade.__args__",
    "MembershipRole": "accounts.models.users.MembershipRole.choices",
    "MagicLinkStatus": ["sent"],
    "MissReason": "analytics.reports.explain.MissReason.__args__",
    "OAuthErrorCode": "accounts.api.oauth.OAUTH_ERRORS",
    "PatExchangeGrantType": ["pat_exchange"],
    "Plan": "accounts.models.billing.Plan.values",
    "PrimaryRole": "accounts.models.users.PrimaryRole.choices",
    "ReplayGrade": "analytics.replay.result.ReplayGrade.__args__",
    "ReplayState": "analytics.replay.runs.REPLAY_STATES",
    "RevisionAction": "accounts.models.history.RevisionAction.values",
    "RevisionKind": "accounts.models.history.RevisionKind.values",
    "RuleAction": "rules.serializers.ACTIONS",
    "SavingsStep": "analytics.reports.savings.STEPS",
    "Scope": "accounts.serializers.users.SCOPES",
    "SummaryKind": "analytics.published.verify.DOCUMENTS",
    "TenantRevisionKind": "analytics.reports.timeline.TENANT_REVISION_KINDS",
    "TimelineStep": "analytics.reports.timeline.TimelineStep.__args__",
    "TokenRefreshGrantType": ["refresh_token"],
    "UserType": ["user"],
    "VaryColumn": "rules.language.VARY_COLUMNS",
    "VerdictState": "analytics.watch.verdict.STATES",
}
