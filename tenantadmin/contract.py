"""Add the links between operations of all apps to the contract."""

from __future__ import annotations

from typing import Any, Final

from accounts.api.links import STEPS as ACCOUNTS
from analytics.api.links import STEPS as ANALYTICS
from logs.api.links import STEPS as LOGS
from rules.api.links import STEPS as RULES
from tenantadmin.http.links import add_links
from tosapp.api.links import STEPS as TOS

STEPS: Final = (*ACCOUNTS, *RULES, *LOGS, *TOS, *ANALYTICS)


def link_operations(result: dict[str, Any], generator: Any, **_: Any) -> dict[str, Any]:  # noqa: ARG001
    """Add the links of all apps to the contract (a hook of drf-spectacular)."""
    add_links(result["paths"], STEPS)
    return result
