"""The settings of Django REST framework and of the published contract."""

from __future__ import annotations

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["tenantadmin.lib.http.permissions.DenyByDefault"],
    "DEFAULT_RENDERER_CLASSES": ["tenantadmin.lib.http.bodies.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenantadmin.lib.http.bodies.StrictJsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "tenantadmin.lib.http.bodies.OneRepresentation",
    "DEFAULT_SCHEMA_CLASS": "tenantadmin.lib.http.schema.ContractSchema",
    "EXCEPTION_HANDLER": "tenantadmin.lib.http.handler.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Tenant Administration and Analytics Service",
    "DESCRIPTION": "Administration and analytics of a SQL caching proxy: tenants, cache rules, logs, usage.",
    "VERSION": "2.0.0",
    "OAS_VERSION": "3.0.3",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATIONS": False,
    "PATH_CONVERTER_OVERRIDES": {
        "email": {
            "type": "string",
            "anyOf": [{"format": "email"}, {"enum": ["me"]}],
            "description": "An email address. `me` is the address of the caller.",
        }
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "tenantadmin.contract.add_from_apps",
        "tenantadmin.lib.http.schema.finish_contract",
    ],
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_SUFFIX": "",
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # Name, and the values or their dotted path. Other enumerations are named after their member.
    "ENUM_NAME_OVERRIDES": {
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
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # JavaScript. docs.js has the filter of operations.
    "SWAGGER_UI_SETTINGS": (
        "{deepLinking: true, filter: true, plugins: [operationFilter], onComplete: whenDocsAreShown}"
    ),
    "REDOC_DIST": "SIDECAR",
}
