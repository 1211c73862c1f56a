"""Read the stored ruleset; create, delete and restore it with its tenant. Contract: Cache rules (ruleset)."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

from cachetools import LRUCache
from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string
from msgspec import Meta

from accounts.models.history import RevisionAction, RevisionKind
from accounts.models.tenants import TenantConfig
from accounts.revisions import DocumentHistory, append_revision, read_last_document
from accounts.tenants.config import prices
from accounts.tenants.errors import TenantNotFound
from rules.conditions.patterns import fold_case
from rules.diff import StoredRule, summarize_rules
from rules.language import CachingDefaults
from rules.lint import lint_ruleset
from rules.lint.checks.actions import PER_USER_TABLE_SHARED
from rules.lint.runner import TOO_COMPLEX
from rules.models import RuleDraft, Ruleset
from rules.tables.warehouse import WarehouseTables
from tenantadmin.lib.core.errors import Detail, ValidationFailed
from tenantadmin.lib.core.rendering import dump_json, strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from accounts.models import Tenant


#: Cache of rendered rulesets by cache-bust token, at most 64 MiB. A token names one state of a ruleset.
_rendered: LRUCache[tuple[UUID, str], bytes] = LRUCache(maxsize=64 * 2**20, getsizeof=len)
_rendering = threading.Lock()


class TenantRules(JsonStruct):
    """A tenant's ruleset."""

    tenant_id: UUID
    cache_bust: Annotated[str, Meta(description="Opaque. Sorts as text and grows with every write.")]
    seq: Count
    modified_at: Timestamp
    rules: Sequence[StoredRule]


@dataclass(frozen=True, slots=True)
class RulesetState:
    """A tenant's stored ruleset, and what replays need of its configuration."""

    tenant_id: UUID
    account_id: UUID
    plan: str
    seq: int
    cache_bust: str
    modified_at: dt.datetime
    rules: Sequence[dict[str, Any]]
    caching: CachingDefaults
    tables: WarehouseTables
    prices: Sequence[Mapping[str, Any]]
    kind: str

    @property
    def etag(self) -> str:
        return _etag(self.tenant_id, self.cache_bust)

    def document(self) -> TenantRules:
        return TenantRules.of(self)


def cache_bust(*, seq: int, modified_at: dt.datetime) -> str:
    """Return the token of a revision: a new one makes Gateways start a new cache. Contract: Restore rules.

    The token is the time of the write and ``seq`` in hex of fixed width, so tokens sort as text. Each write
    of a tenant has a later time, so a token is never repeated, even if a restored backup repeats ``seq``.
    """
    milliseconds = round(modified_at.timestamp() * 1000)
    return f"{milliseconds:012x}{seq:08x}"


def _etag(tenant_id: UUID, token: str) -> str:
    return strong_etag("rules", tenant_id, token)


def ruleset_etag(tenant_id: UUID) -> str:
    """Return the entity tag of a live tenant's ruleset without reading the rules.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    return _etag(tenant_id, _cache_bust_of(tenant_id))


def render_ruleset(tenant_id: UUID) -> tuple[bytes, str]:
    """Return a live tenant's ruleset as the JSON that is sent, with its entity tag.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    token = _cache_bust_of(tenant_id)
    with _rendering:
        body = _rendered.get((tenant_id, token))
    if body is None:
        ruleset = read_ruleset(tenant_id)
        token, body = ruleset.cache_bust, dump_json(ruleset.document())
        if len(body) <= _rendered.maxsize:
            with _rendering:
                _rendered[tenant_id, token] = body
    return body, _etag(tenant_id, token)


#: Every Gateway polls this. Deleting a tenant deletes this row, so that a row is a live tenant's.
_READ_CACHE_BUST: Final = "SELECT cache_bust FROM rules_ruleset WHERE tenant_id = %s"


def _cache_bust_of(tenant_id: UUID) -> str:
    with connection.cursor() as cursor:
        cursor.execute(_READ_CACHE_BUST, [tenant_id])
        row = cursor.fetchone()
    if row is None:
        raise TenantNotFound
    return str(row[0])


def read_ruleset(tenant_id: UUID) -> RulesetState:
    """Return a live tenant's ruleset.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    # Deleting a tenant deletes this row, so every row belongs to a live tenant.
    ruleset = Ruleset.objects.select_related("tenant__account", "tenant__config").filter(pk=tenant_id).first()
    if ruleset is None:
        raise TenantNotFound
    return RulesetState(
        tenant_id=tenant_id,
        account_id=ruleset.tenant.account_id,
        plan=ruleset.tenant.account.plan,
        seq=ruleset.seq,
        cache_bust=ruleset.cache_bust,
        modified_at=ruleset.modified_at,
        rules=ruleset.rules,
        caching=CachingDefaults.of(ruleset.tenant.config.document),
        tables=WarehouseTables.of(ruleset.tenant.config.document),
        prices=prices(ruleset.tenant.config.document),
        kind=ruleset.tenant.kind,
    )


def read_caching(tenant_id: UUID) -> CachingDefaults:
    """Return the caching defaults of a tenant; the usual ones if it is deleted."""
    config = TenantConfig.objects.filter(pk=tenant_id).only("document").first()
    return CachingDefaults() if config is None else CachingDefaults.of(config.document)


def read_tables(tenant_id: UUID) -> WarehouseTables:
    """Return what the configuration of a tenant says of its tables; nothing if the tenant is deleted."""
    document = TenantConfig.objects.filter(pk=tenant_id).values_list("document", flat=True).first()
    return WarehouseTables.of(document or {})


def with_log(tables: WarehouseTables, tenant_id: UUID) -> WarehouseTables:
    """Return the tables of a tenant with the names in its log, in one query.

    This app must not import the logs app, so a setting names the function.
    """
    return replace(tables, logged=import_string(settings.LOGGED_TABLES)(tenant_id))


class RulesetDocument:
    """Creates, deletes and restores rulesets with their tenants (``settings.TENANT_DOCUMENTS``)."""

    def create(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Store an empty ruleset with its first revision."""
        Ruleset.objects.create(tenant=tenant, cache_bust=cache_bust(seq=0, modified_at=at), modified_at=at)
        append_revision(
            kind=RevisionKind.RULES,
            account_id=tenant.account_id,
            tenant_id=tenant.pk,
            seq=0,
            action=RevisionAction.CREATE,
            actor=actor,
            changed_at=at,
            summary=summarize_rules(before=(), after=()),
            document={"rules": []},
        )

    def delete(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Remove the ruleset and its drafts, and append its last revision."""
        RuleDraft.objects.filter(tenant=tenant).delete()
        ruleset = Ruleset.objects.get(pk=tenant.pk)
        ruleset.delete()
        append_revision(
            kind=RevisionKind.RULES,
            account_id=tenant.account_id,
            tenant_id=tenant.pk,
            seq=ruleset.seq + 1,
            action=RevisionAction.DELETE,
            actor=actor,
            changed_at=at,
            summary=summarize_rules(before=ruleset.rules, after=()),
            document=None,
        )

    def check_config(self, *, tenant: UUID, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Refuse a configuration that adds tables that differ per user, and whose results rules share.

        A view over such a table is one too, and another database gives names another meaning.
        """
        old, new = WarehouseTables.of(before), WarehouseTables.of(after)
        known = {fold_case(pattern) for pattern in old.personal if old.database == new.database}
        added = tuple(pattern for pattern in new.personal if fold_case(pattern) not in known)
        if not added:
            return
        rules = Ruleset.objects.values_list("rules", flat=True).get(pk=tenant)
        shared = [
            finding
            for finding in lint_ruleset(
                {"rules": rules}, tables=with_log(replace(new, per_user=added, views=()), tenant)
            ).errors
            if finding.code in {PER_USER_TABLE_SHARED.code, TOO_COMPLEX.code}
        ]
        if shared:
            raise ValidationFailed(
                "Rules share results of tables in 'warehouse.perUserTables'. First let them vary by user, or "
                "put bypass rules for the tables before them.",
                details=[
                    Detail(
                        "/warehouse/perUserTables", finding.code, f"Rule {finding.rule_id}: {finding.message}"
                    )
                    for finding in shared
                ],
            )

    def restore(self, *, tenant: Tenant, actor: str, at: dt.datetime) -> None:
        """Store the last rules again, with a new cache-bust, and append their revision."""
        restored_from, document = read_last_document(DocumentHistory(RevisionKind.RULES, tenant.pk))
        rules, seq = document["rules"], restored_from + 2
        Ruleset.objects.create(
            tenant=tenant,
            rules=rules,
            seq=seq,
            cache_bust=cache_bust(seq=seq, modified_at=at),
            modified_at=at,
        )
        append_revision(
            kind=RevisionKind.RULES,
            account_id=tenant.account_id,
            tenant_id=tenant.pk,
            seq=seq,
            action=RevisionAction.RESTORE,
            actor=actor,
            changed_at=at,
            restored_from=restored_from,
            summary=summarize_rules(before=(), after=rules),
            document=document,
        )
