"""The steps of a new tenant. Contract: Tenants and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from analytics.setup import Setup, read_setup
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class SetupViewSet(AppViewSet):
    """The first hour of a tenant."""

    tag = "Tenants"

    @route("GET", "tenants/<uuid:tenant>/setup", Level.TENANT, Scope.CONFIG_READ, name="setup")
    @operation(summary="What a tenant needs before its first hit", responses={200: Setup})
    def get_setup(self, request: Request, tenant: UUID) -> Response:
        """Computed with each request from the configuration, the rules, tokens, members and the log."""
        return Response(read_setup(tenant))
