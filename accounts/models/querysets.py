"""Conditions that several models share, as methods of their managers; the words that staff search by."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import CharField, F, Func, Q, Value

from tenantadmin.lib.core.timestamps import now


class Access(Protocol):
    """The scopes of a caller by tenant and account (`accounts.access.principal`)."""

    def as_q(self, scope: Any, *, tenant: str, account: str) -> Q: ...


Row = TypeVar("Row", bound=models.Model)


class DeletableQuerySet(models.QuerySet[Row]):
    """Rows that stay when they are deleted, with the time in ``deleted_at``."""

    def live(self) -> Self:
        """Return the rows that are not deleted."""
        return self.filter(deleted_at__isnull=True)


class RevocableQuerySet(models.QuerySet[Row]):
    """Grants and credentials, which are revoked or expire."""

    def not_revoked(self) -> Self:
        """Return the rows that are not revoked. They may have expired."""
        return self.filter(revoked_at__isnull=True)

    def in_force(self) -> Self:
        """Return the rows that are neither revoked nor expired."""
        return self.not_revoked().filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now()))


class PendingQuerySet(models.QuerySet[Row]):
    def open(self) -> Self:
        """Return what can be answered: neither ended nor expired, and of a live tenant."""
        return self.filter(ended_at=None, expires_at__gt=now(), tenant__deleted_at=None)

    def unanswered_first(self) -> Self:
        """Order the rows as lists show them: what was not answered first, then the newest."""
        return self.order_by(F("ended_at").desc(nulls_first=True), "-created_at", "-id")


class TenantQuerySet(DeletableQuerySet[Row]):
    def customers(self) -> Self:
        """Return the tenants that a Gateway serves: no assessments."""
        return self.filter(kind="customer")

    def assessments(self) -> Self:
        return self.filter(kind="assessment")

    def with_scope(self, scope: str, access: Access) -> Self:
        """Return the tenants on which ``access`` has ``scope``."""
        return self.filter(access.as_q(scope, tenant="pk", account="account_id"))


class MembershipQuerySet(models.QuerySet[Row]):
    def in_force(self) -> Self:
        """Return the memberships whose time is not over."""
        return self.filter(Q(ends_at__isnull=True) | Q(ends_at__gt=now()))

    def owners_of(self, tenant_id: Any) -> Self:
        """Return the memberships of a tenant's owners, in order."""
        return self.filter(tenant=tenant_id, role="owner", ends_at=None).order_by("pk")

    def owning(self) -> Self:
        """Return the memberships of owners who may act as such: active users who are no guests."""
        owners = self.filter(role="owner", ends_at=None, user__is_active=True)
        return owners.exclude(user__role="guest")


#: PostgreSQL takes a host name or an email as one word.
_BETWEEN = ".-_@+"


def words_of(field: str) -> SearchVector:
    """Return the words of a field with names of any kind."""
    apart = Func(
        F(field),
        Value(_BETWEEN),
        Value(" " * len(_BETWEEN)),
        function="translate",
        output_field=CharField(),
    )
    return SearchVector(apart, config="simple")
