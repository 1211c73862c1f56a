"""Parts of the contract that concern several apps: tags and the schema of conditions."""

from __future__ import annotations

from typing import Any, Final

from rules.contract import forbid_other_members, rule_schemas
from tenantadmin.lib.http import health  # noqa: F401  # the contract lists its errors

#: Descriptions of the tags, in the order of the contract's page.
TAGS: Final = {
    "Discovery": "This contract, and the keys that sign access tokens.",
    "Sign-in": "Signing in, and exchanging and revoking tokens.",
    "Sessions": "The sign-ins of a user that have not ended.",
    "Personal access tokens": "Credentials of programs, which exchange them for access tokens.",
    "Users": "Users, their roles and their memberships in tenants.",
    "Terms of service": "The terms of service, and who acknowledged them.",
    "Accounts": "Billing accounts, their domains and host names, and delegated permissions.",
    "Tenants": "Tenants and their configuration.",
    "Rules": "Rulesets, their drafts and lint, and which rule decides a request.",
    "History": "Every change of a document, and what else people did.",
    "Cache": "What the Gateway has in its cache, and what has become stale.",
    "Alerts": "Who hears when a number of the log crosses a threshold.",
    "Digests": "What happened in a day or a week, each number with its SQL; and who gets that by mail.",
    "Replays": "What another ruleset would have done with the requests of the log.",
    "Recommendations": "Changes of the rules that the service recommends, and what they did.",
    "Assessments": "What a cache would save, from a warehouse's own history.",
    "Reports": "Stale hits, leaks, the hours of a day, and what an invalidation would cost.",
    "Analytics": "Summaries of the log by day, month, year, rule and user.",
    "Raw logs": "The log objects as the Gateway wrote them.",
    "SQL": "Queries over the log.",
}


def add_from_apps(result: dict[str, Any], generator: Any, **_: Any) -> dict[str, Any]:  # noqa: ARG001
    """Add these parts to the contract (a hook of drf-spectacular)."""
    result["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    schemas = result["components"]["schemas"]
    schemas.update(rule_schemas())
    _accept_rules_as_read(result, schemas)
    _allow_other_statuses(schemas)
    return result


def _allow_other_statuses(schemas: dict[str, Any]) -> None:
    """Declare that a ``cacheStatus`` of the log may be any text: it is shown as the Gateway wrote it."""
    status = {"$ref": "#/components/schemas/CacheStatus"}
    for schema in schemas.values():
        for member in schema.get("properties", {}).values():
            if member.get("allOf") == [status]:
                del member["allOf"], member["nullable"]
                member["anyOf"] = [status, {"type": "string", "nullable": True}]


def _accept_rules_as_read(result: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Let a typed client send a ruleset as it was read, although a response has more required members.

    To be checked, a ruleset may come with the rules to compare it with.
    """
    sent, read, checked = (
        {"$ref": f"#/components/schemas/{name}"}
        for name in ("TenantRulesRequest", "TenantRules", "CheckedRulesRequest")
    )
    forbid_other_members(schemas)
    for item in result["paths"].values():
        for operation in item.values():
            content = operation.get("requestBody", {}).get("content", {})
            for media_type in content.values():
                if media_type["schema"] == sent:
                    media_type["schema"] = {"anyOf": [sent, read]}
                elif media_type["schema"] == checked:
                    media_type["schema"] = {"anyOf": [sent, read, checked]}
