"""What a program does with the client that openapi-python-client makes from the contract.

    python round_trip.py BASE_URL PERSONAL_ACCESS_TOKEN

``contract_client`` is the generated package. `mypy --strict` checks this file against its types.
"""

from __future__ import annotations

import json
import sys
from uuid import UUID

from contract_client import AuthenticatedClient, Client
from contract_client.api.analytics import get_daily_summary, get_yearly_summary
from contract_client.api.cache import create_marker, delete_marker, list_markers
from contract_client.api.raw_logs import get_log_object, list_log_files
from contract_client.api.rules import get_tenant_rules, replace_tenant_rules, validate_rules
from contract_client.api.sign_in import exchange_token, logout, verify_magic_link
from contract_client.api.sql import query_logs
from contract_client.api.tenants import get_tenant_config, list_tenants, replace_tenant_config
from contract_client.models import (
    CacheStatus,
    Conditions,
    DailySummary,
    Error,
    ErrorCode,
    FindingCode,
    InvalidationMarker,
    ItemList,
    LogListing,
    LogoutRequest,
    MagicLinkProofRequest,
    MarkerCreateRequest,
    MarkerSummary,
    OAuthError,
    OAuthErrorCode,
    PatExchangeGrantType,
    PatExchangeRequest,
    QueryAnswer,
    QueryRequest,
    RuleAction,
    RuleLintResult,
    RuleRequest,
    TablesOperators,
    TenantConfig,
    TenantConfigRequest,
    TenantRules,
    TenantRulesRequest,
    TokenResponse,
    YearlySummary,
)
from contract_client.types import File


def main(base_url: str, pat: str) -> None:
    public = Client(base_url=base_url)

    # Sign-in: a refusal has its own type, and forms do not confuse the client.
    wrong = exchange_token.sync(
        client=public,
        body=PatExchangeRequest(
            grant_type=PatExchangeGrantType.PAT_EXCHANGE_GRANT_TYPE_PAT_EXCHANGE, pat="nonsense"
        ),
    )
    assert isinstance(wrong, OAuthError), wrong
    assert wrong.error is OAuthErrorCode.OAUTH_ERROR_CODE_INVALID_GRANT
    assert logout.sync_detailed(client=public, body=LogoutRequest(token="nonsense")).status_code == 200
    used = verify_magic_link.sync(client=public, body=MagicLinkProofRequest(token="nonsense"))
    assert isinstance(used, Error), used
    assert used.error is ErrorCode.ERROR_CODE_UNAUTHORIZED
    token = exchange_token.sync(
        client=public,
        body=PatExchangeRequest(
            grant_type=PatExchangeGrantType.PAT_EXCHANGE_GRANT_TYPE_PAT_EXCHANGE, pat=pat
        ),
    )
    assert isinstance(token, TokenResponse), token
    client = AuthenticatedClient(base_url=base_url, token=token.access_token)

    tenants = list_tenants.sync(client=client)
    assert isinstance(tenants, ItemList), tenants
    (item,) = tenants.field_links.items
    config = get_tenant_config.sync(tenant=(tenant := UUID(item.name)), client=client)
    assert isinstance(config, TenantConfig), config
    written = replace_tenant_config.sync(
        tenant=tenant,
        client=client,
        body=TenantConfigRequest(
            tenant_name=config.tenant_name, defaults=config.defaults, logging=config.logging
        ),
    )
    assert isinstance(written, TenantConfig), written

    # Rules: add one, then send back what was read with one change.
    empty = get_tenant_rules.sync_detailed(tenant=tenant, client=client)
    orders = RuleRequest(
        id="orders",
        ttl_seconds=600,
        conditions=Conditions(
            tables=TablesOperators(contains_any=["sales.orders"]),
            any_=[Conditions(user_name="Ana"), Conditions(not_=Conditions(is_read_only=False))],
        ),
    )
    added = replace_tenant_rules.sync_detailed(
        tenant=tenant,
        client=client,
        body=TenantRulesRequest(rules=[orders]),
        if_match=empty.headers["ETag"],
    )
    ruleset = added.parsed
    assert isinstance(ruleset, TenantRules), ruleset
    assert ruleset.rules[0].action is RuleAction.RULE_ACTION_CACHE
    assert ruleset.rules[0].conditions == orders.conditions
    ruleset.rules[0].ttl_seconds = 1200
    changed = replace_tenant_rules.sync_detailed(
        tenant=tenant, client=client, body=ruleset, if_match=added.headers["ETag"]
    )
    assert isinstance(changed.parsed, TenantRules), changed.parsed
    assert changed.parsed.rules[0].ttl_seconds == 1200
    stale = replace_tenant_rules.sync(
        tenant=tenant, client=client, body=changed.parsed, if_match=empty.headers["ETag"]
    )
    assert isinstance(stale, Error), stale
    assert stale.error is ErrorCode.ERROR_CODE_CONCURRENT_CHANGE
    lint = validate_rules.sync(
        client=client, body=TenantRulesRequest(rules=[RuleRequest(id="a", invalidate_rules=["gone"])])
    )
    assert isinstance(lint, RuleLintResult), lint
    assert [finding.code for finding in lint.errors] == [
        FindingCode.FINDING_CODE_DANGLING_INVALIDATE_REFERENCE
    ]

    # Summaries, SQL and raw logs.
    year = get_yearly_summary.sync(tenant=tenant, year="2026", client=client)
    assert isinstance(year, YearlySummary), year
    assert (year.total_cache_hits, year.total_hits) == (1, 3)
    day = get_daily_summary.sync(tenant=tenant, year="2026", month="03", day="01", client=client)
    assert isinstance(day, DailySummary), day
    assert [(query.cache_status, query.count) for query in day.queries] == [(CacheStatus.CACHE_STATUS_HIT, 3)]
    sql = "SELECT cacheStatus, count(*) AS n FROM proxy_logs WHERE day = '2026-03-01' GROUP BY ALL ORDER BY n"
    rows = query_logs.sync(tenant=tenant, client=client, body=QueryRequest(sql=sql))
    assert isinstance(rows, QueryAnswer), rows
    assert [row.to_dict() for row in rows.rows] == [
        {"cacheStatus": "HIT", "n": 1},
        {"cacheStatus": "MISS", "n": 2},
    ]
    refused = query_logs.sync(tenant=tenant, client=client, body=QueryRequest(sql="DESCRIBE proxy_logs"))
    assert isinstance(refused, Error), refused
    assert refused.error is ErrorCode.ERROR_CODE_QUERY_REJECTED
    files = list_log_files.sync(tenant=tenant, year="2026", month="03", day="01", hour="07", client=client)
    assert isinstance(files, LogListing), files
    (log,) = files.field_links.items
    stored = get_log_object.sync(
        tenant=tenant, year="2026", month="03", day="01", hour="07", file=log.name, client=client
    )
    assert isinstance(stored, File), stored
    assert [json.loads(line)["cacheStatus"] for line in stored.payload] == ["MISS", "HIT", "MISS"]

    # Markers.
    marker = create_marker.sync(
        tenant=tenant, client=client, body=MarkerCreateRequest(marker_id="m1", target_rule_id="orders")
    )
    assert isinstance(marker, InvalidationMarker), marker
    assert marker.ttl_seconds == 1200
    listed = list_markers.sync(tenant=tenant, client=client)
    assert isinstance(listed, MarkerSummary), listed
    assert listed.markers == [marker]
    assert delete_marker.sync_detailed(tenant=tenant, marker="m1", client=client).status_code == 200
    print("done")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
