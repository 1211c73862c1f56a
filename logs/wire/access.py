"""Who connects, and their queries, with the rights, budgets, limits and audit of ``POST /query``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from cachetools import LRUCache
from django.urls import reverse

from accounts.access.credentials import exchange_pat, must_acknowledge
from accounts.access.principal import Principal
from accounts.access.rights import authenticate_token, read_rights
from accounts.access.scopes import Scope
from accounts.budgets import on_budget, require_budget, use_budget
from accounts.models import Tenant, User
from accounts.viewsets import require_operation
from logs.api.query import QueryViewSet
from logs.audit import Reader
from logs.held_results import OF_CALLER, hold, require_room
from logs.queries import describe_query, query_limits, run_query
from logs.sql.protocol import QueryFailed, QueryRejected
from logs.wire.statements import Failure
from logs.wire.translation import translate
from tenantadmin.lib.core.request_context import begin_request, describe_request, network_of, set_address
from tenantadmin.lib.http.budgets import QUERY, REQUEST
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from accounts.access.principal import Claims
    from logs.sql.protocol import QueryResult
    from tenantadmin.lib.core.serving import Disconnection

_OPERATION: Final = "query_logs"
_REMEMBERED_STATEMENTS: Final = 64
#: Bytes of a statement with its names and types: longer ones are settled again.
_LONGEST_REMEMBERED: Final = 16_384


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has connected, from where, with which program and for which tenant."""

    claims: Claims
    tenant: UUID
    address: str
    program: str
    #: The statements that have run here, as DuckDB runs them.
    _settled: LRUCache[str, tuple[str, QueryResult]] = field(
        default_factory=lambda: LRUCache(_REMEMBERED_STATEMENTS), compare=False
    )

    @classmethod
    def sign_in(cls, password: str, *, database: str, address: str, program: str) -> Caller:
        """Return the caller with a personal access token, for a tenant by its id or its name.

        Raises:
            ApiError: the token is not valid, or may not query the tenant.
            Failure: the caller may query several tenants of that name.
        """
        begin_request(None)
        set_address(lambda: address)
        with on_budget(REQUEST, caller=network_of(address)):
            principal = authenticate_token(exchange_pat(password).access_token)
            tenant = _find_tenant(principal, database)
        return cls(principal.claims, tenant, address, program)

    def query(self, statement: str, *, disconnection: Disconnection, until: ExitStack) -> QueryResult:
        """Run one statement over the log. Its result is in memory until ``until`` ends.

        Raises:
            ApiError: as `POST /query` answers.
        """
        email = self.require_rights()
        with on_budget(QUERY, caller=email, network=network_of(self.address)) as cost:
            require_room(min(query_limits().max_bytes, OF_CALLER), caller=email)
            settled, _ = self._settle(statement, disconnection)
            result = run_query(
                default_store(),
                tenant=self.tenant,
                statement=settled,
                reader=Reader(email, self.address, self.program),
                disconnection=disconnection,
            )
            hold(result, caller=email, until=until)
            cost.sent_bytes = result.nbytes
        return result

    def describe(self, statement: str, *, disconnection: Disconnection, until: ExitStack) -> QueryResult:
        """Return the columns of a statement, without its rows. It is run only if it fails, for the audit.

        Raises:
            ApiError: as `query`.
        """
        email = self.require_rights()
        with on_budget(QUERY, caller=email, network=network_of(self.address)):
            _, described = self._settle(statement, disconnection)
        if described is not None:
            return described
        return self.query(statement, disconnection=disconnection, until=until)

    def require_rights(self) -> str:
        """Return the caller's address of email, if the token is still valid and may query the tenant.

        Raises:
            ApiError: it is not, or may not, or the terms of service have changed.
        """
        begin_request(None)
        set_address(lambda: self.address)
        rights = read_rights(self.claims, is_use=True)
        must = must_acknowledge(User.objects.get(pk=rights.user_id))
        principal = Principal(claims=replace(self.claims, tos_required=must), rights=rights)
        describe_request(user=principal.email, tenant=self.tenant)
        _require_query(principal, self.tenant)
        return principal.email

    def pay(self, seconds: float) -> None:
        """Count ``seconds`` that were worked for the caller, on the budget of queries.

        Raises:
            ApiError: as `require_rights`; RateLimited if the budget is used up.
        """
        payer = {"caller": self.claims.subject, "network": network_of(self.address)}
        use_budget(QUERY, **payer, seconds=seconds)
        self.require_rights()
        require_budget(QUERY, **payer)

    def _settle(self, statement: str, disconnection: Disconnection) -> tuple[str, QueryResult | None]:
        """Return the statement that DuckDB can run, which may be a translation, and its columns.

        If there is none, return the statement itself: run, it fails with the reason.
        """
        if (settled := self._settled.get(statement)) is not None:
            return settled
        for text in _spellings(statement):
            with suppress(QueryRejected, QueryFailed):
                described = describe_query(
                    default_store(), tenant=self.tenant, statement=text, disconnection=disconnection
                )
                types = sum(len(column.name) + len(column.type) for column in described.columns)
                if len(statement) + types <= _LONGEST_REMEMBERED:
                    # Its batches are empty, and may be large.
                    self._settled[statement] = text, replace(described, batches=())
                return text, described
        return statement, None


def _spellings(statement: str) -> Iterator[str]:
    """Yield a statement, then its translation for DuckDB if the first one fails and there is one."""
    yield statement
    if (translated := translate(statement)) is not None:
        yield translated


def _find_tenant(principal: Principal, database: str) -> UUID:
    try:
        tenant = UUID(database)
    except ValueError:
        named = Tenant.objects.live().filter(name=database)
        readable = named.with_scope(Scope.LOGS_QUERY, principal.on_tenants).values_list("pk", flat=True)[:2]
        if len(readable) != 1:
            what = "several tenants" if readable else "no tenant"
            text = f"You may query {what} of this name. Give the tenant's id as the database."
            raise Failure("3D000", text, is_fatal=True) from None
        tenant = readable[0]
    _require_query(principal, tenant)
    return tenant


def _require_query(principal: Principal, tenant: UUID) -> None:
    """Refuse a caller who may not send ``POST /query``.

    Raises:
        Forbidden: with what is missing.
    """
    arguments = {"tenant": tenant}
    path = reverse("query", kwargs=arguments)
    route = QueryViewSet.route_of(_OPERATION)
    require_operation(route, principal=principal, method="POST", path=path, arguments=arguments)
