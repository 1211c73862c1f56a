"""The steps from a new tenant to its first hit, computed from what is stored. Contract: Tenants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.models import Fqdn, Membership, PersonalAccessToken, Revision
from accounts.models.history import RevisionKind
from accounts.tenants.config import read_config
from analytics.models import DayRollup
from analytics.reports.stale import TableSpellings
from analytics.reports.stale_sql import MAX_SPELLED
from logs.table_names import read_table_names
from rules.ruleset import read_ruleset
from rules.tables.logged import LoggedNames
from rules.tables.warehouse import WarehouseTables
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp

if TYPE_CHECKING:
    import datetime as dt
    from uuid import UUID

    from django.db.models import QuerySet

StepId: TypeAlias = Literal[
    "address", "warehouse", "token", "first-request", "first-rule", "first-hit", "people"
]


class SetupStep(JsonStruct):
    id: StepId
    done: bool
    at: Annotated[Timestamp | None, Meta(description="When it was done, where that is known.")] = None


class Setup(JsonStruct):
    """What a new tenant still needs, in the order of the first hour."""

    steps: list[SetupStep]
    ready: Annotated[
        bool, Meta(description="True when every step but `people` is done: a tenant may have one user.")
    ]
    spellings: Annotated[
        list[TableSpellings],
        Meta(
            description="Tables that the log of the last 28 days names in several ways, at most 100. "
            "Conditions of rules compare the text."
        ),
    ]
    spellings_complete: Annotated[
        bool, Meta(description="False if the log has more names of tables, or more spellings, than are kept.")
    ]


def read_setup(tenant_id: UUID) -> Setup:
    """Return the steps of a live tenant.

    ``address``: it has an FQDN. ``warehouse``: its configuration has the connection. ``token``: a personal
    access token in force lets a Gateway read its configuration and announce its log, alone or with all other
    tenants. ``first-request`` and ``first-hit``: a day of its log has one.
    ``first-rule``: a rule is enabled. ``people``: it has two members or more.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    config = read_config(tenant_id)
    rules = read_ruleset(tenant_id).rules
    revisions = Revision.objects.filter(tenant_id=tenant_id)
    days = DayRollup.objects.filter(tenant_id=tenant_id)
    tokens = PersonalAccessToken.objects.in_force().filter(
        tenants__overlap=[str(tenant_id), "*"], scopes__contains=[Scope.CONFIG_READ, Scope.LOGS_NOTIFY]
    )
    members = Membership.objects.filter(tenant_id=tenant_id, ends_at__isnull=True)
    steps = [
        _step(
            "address",
            _first(Fqdn.objects.filter(tenant_id=tenant_id, released_at__isnull=True), "claimed_at"),
        ),
        _step(
            "warehouse",
            _first(revisions.filter(kind=RevisionKind.CONFIG, document__has_key="warehouse"), "changed_at"),
            done="warehouse" in config.document,
        ),
        _step(
            "token",
            _first(tokens, "created_at"),
        ),
        SetupStep(id="first-request", done=days.exists()),
        _step(
            "first-rule",
            _first(revisions.filter(kind=RevisionKind.RULES, document__rules__0__isnull=False), "changed_at"),
            done=any(rule["enabled"] for rule in rules),
        ),
        SetupStep(id="first-hit", done=days.filter(hits__gt=0).exists()),
        SetupStep(id="people", done=members.count() > 1),
    ]
    names = read_table_names(tenant_id)
    tables = replace(WarehouseTables.of(config.document), logged=tuple(names.counts))
    found = LoggedNames(tables).spelled_otherwise()
    return Setup(
        steps=steps,
        ready=all(step.done for step in steps if step.id != "people"),
        spellings=[TableSpellings(table=name, spellings=texts) for name, texts in found[:MAX_SPELLED]],
        spellings_complete=names.complete and len(found) <= MAX_SPELLED,
    )


def _step(name: StepId, at: dt.datetime | None, *, done: bool | None = None) -> SetupStep:
    """Return a step that was done ``at`` a time. ``done`` says whether it still is."""
    is_done = at is not None if done is None else done
    return SetupStep(id=name, done=is_done, at=format_timestamp(at) if is_done and at is not None else None)


def _first(rows: QuerySet[Any], time: str) -> dt.datetime | None:
    """Return the earliest time of the rows; ``time`` names the field."""
    return rows.order_by(time).values_list(time, flat=True).first()
