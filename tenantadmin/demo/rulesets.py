"""The rulesets of the demo tenants, in the rule language (docs/rules.md)."""

from __future__ import annotations

from typing import Any, Final

RETAIL_RULES: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "no-schema-changes",
        "name": "Schema changes go through releases",
        "description": "Only the release service may create, alter or drop.",
        "action": "deny",
        "conditions": {"isDDL": True, "userName": {"ne": "svc-releases"}},
    },
    {
        "id": "payroll-from-hr-only",
        "name": "Payroll is read from the HR network",
        "action": "deny",
        "conditions": {
            "tables": {"containsAny": ["hr.*"]},
            "not": {"clientIp": {"cidr": ["10.20.40.0/24"]}},
        },
    },
    {
        "id": "fresh-on-request",
        "name": "A nocache comment is honoured",
        "action": "bypass",
        "conditions": {"cacheOverride": "nocache"},
    },
    {
        "id": "order-loads",
        "name": "Order loads make sales figures stale",
        "conditions": {
            "statementType": {"in": ["INSERT", "UPDATE", "DELETE", "MERGE"]},
            "tables": {"containsAny": ["sales.orders", "sales.order_lines", "sales.returns"]},
        },
        "invalidateRules": ["sales-dashboards", "order-history"],
        "requireInvalidation": True,
    },
    {
        "id": "catalog-loads",
        "name": "Catalog loads make product pages stale",
        "conditions": {"isDataChange": True, "tables": {"containsAny": ["catalog.*"]}},
        "invalidateRules": ["catalog-pages"],
        "requireInvalidation": True,
    },
    {
        "id": "ledger-loads",
        "name": "Postings make finance reports stale",
        "conditions": {"isDataChange": True, "tables": {"containsAny": ["finance.*"]}},
        "invalidateRules": ["finance-reports"],
    },
    {
        "id": "live-stock",
        "name": "Stock is always live",
        "action": "bypass",
        "conditions": {"tables": {"containsAny": ["inventory.*"]}},
    },
    {
        "id": "order-history",
        "name": "A customer's orders",
        "ttlSeconds": 1_800,
        "conditions": {
            "isReadOnly": True,
            "hasParameters": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["sales.orders"]},
        },
    },
    {
        "id": "sales-dashboards",
        "name": "Sales dashboards",
        "ttlSeconds": 3_600,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["sales.orders", "sales.order_lines", "sales.returns"]},
        },
    },
    {
        "id": "finance-reports",
        "name": "Finance reports",
        "ttlSeconds": 86_400,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["finance.*"]},
        },
    },
    {
        "id": "catalog-pages",
        "name": "Product pages",
        "ttlSeconds": 21_600,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["catalog.*"]},
        },
    },
    {
        "id": "customers",
        "name": "Customer records",
        "ttlSeconds": 14_400,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["crm.*"]},
        },
    },
)

PRODUCT_RULES: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": "no-ddl-by-hand",
        "name": "No schema changes by hand",
        "action": "deny",
        "conditions": {"isDDL": True, "not": {"userName": {"in": ["svc-migrations"]}}},
    },
    {
        "id": "audit-trail-closed",
        "name": "The audit trail is for operators",
        "action": "deny",
        "conditions": {
            "tables": {"containsAny": ["audit.*"]},
            "not": {"clientIp": {"cidr": ["10.30.18.0/24"]}},
        },
    },
    {
        "id": "sessions-never-cached",
        "name": "Sessions are never cached",
        "action": "bypass",
        "conditions": {"tables": {"containsAny": ["auth.*"]}},
    },
    {
        "id": "fresh-on-request",
        "name": "A nocache comment is honoured",
        "action": "bypass",
        "conditions": {"cacheOverride": "nocache"},
    },
    {
        "id": "app-writes",
        "name": "Writes make boards stale",
        "conditions": {"isDataChange": True, "tables": {"containsAny": ["app.tasks"]}},
        "invalidateRules": ["boards"],
        "requireInvalidation": True,
    },
    {
        "id": "comment-writes",
        "name": "New comments make threads stale",
        "conditions": {"isDataChange": True, "tables": {"containsAny": ["app.comments"]}},
        "invalidateRules": ["threads"],
    },
    {
        "id": "flag-changes",
        "name": "A changed flag is seen at once",
        "conditions": {"isDataChange": True, "tables": {"containsAny": ["config.feature_flags"]}},
        "invalidateRules": ["flags-and-plans"],
        "requireInvalidation": True,
    },
    {
        "id": "event-intake",
        "name": "New events make usage reports stale",
        "conditions": {"isDataChange": True, "tables": {"containsAny": ["events.*", "billing.invoices"]}},
        "invalidateRules": ["usage-reports", "billing"],
        "requireInvalidation": True,
    },
    {
        "id": "flags-and-plans",
        "name": "Feature flags and plans",
        "ttlSeconds": 14_400,
        "conditions": {
            "isReadOnly": True,
            "tables": {"containsAny": ["config.feature_flags", "billing.plans"]},
        },
    },
    {
        "id": "threads",
        "name": "Comment threads",
        "ttlSeconds": 600,
        "conditions": {"isReadOnly": True, "tables": {"containsAny": ["app.comments"]}},
    },
    {
        "id": "boards",
        "name": "Task boards",
        "ttlSeconds": 3_600,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "hasParameters": True,
            "tables": {"containsAny": ["app.tasks"]},
        },
    },
    {
        "id": "usage-reports",
        "name": "Usage reports",
        "ttlSeconds": 21_600,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["events.product_events", "events.page_timings"]},
        },
    },
    {
        "id": "billing",
        "name": "Invoices",
        "ttlSeconds": 3_600,
        "conditions": {
            "isReadOnly": True,
            "tables": {"containsAny": ["billing.invoices"]},
        },
    },
    {
        "id": "profiles",
        "name": "Profiles and members",
        "ttlSeconds": 28_800,
        "conditions": {
            "isReadOnly": True,
            "hasNonDeterministicFunctions": False,
            "tables": {"containsAny": ["app.users", "app.workspaces"]},
        },
    },
)
