"""Addresses, rights and answers of the staff's pages of people."""

from __future__ import annotations

import csv
import io
from typing import Any

from django.urls import reverse

from accounts.access.credentials import create_pat
from accounts.access.scopes import Scope
from accounts.models import Event, PermissionGrant, PersonalAccessToken, Tenant, User

PEOPLE = "/admin/people/"


def people_of(tenant: Tenant) -> str:
    return reverse("admin:tenant-people", args=[tenant.pk])


def of(person: User, page: str = "person") -> str:
    return reverse(f"admin:{page}", args=[person.pk])


def make_pat(owner: User, *scopes: str, tenants: list[str] | None = None, **more: Any) -> PersonalAccessToken:
    given = [Scope(scope) for scope in scopes] or [Scope.CONFIG_READ]
    pat, _ = create_pat(owner=owner, name="ci", scopes=given, tenants=tenants or (), **more)
    return pat


def make_grant(grantee: User, tenant: Tenant, by: User) -> PermissionGrant:
    return PermissionGrant.objects.create(
        grantee=grantee,
        resource="tenant",
        resource_id=tenant.pk,
        permissions=["config:read"],
        granted_by=by,
    )


def read_csv(answer: Any) -> list[dict[str, str]]:
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def acts() -> list[dict[str, Any] | None]:
    return [event.after for event in Event.objects.filter(kind="staff.acted").order_by("pk")]
