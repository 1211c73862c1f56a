"""How a tenant is, in one sentence. Contract: Analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from accounts.viewsets import AppViewSet
from analytics.verdict import Verdict, read_verdict
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class VerdictViewSet(AppViewSet):
    """How a tenant is."""

    tag = "Analytics"

    @operation(summary="How the tenant is, in one sentence", responses={200: Verdict})
    def get_verdict(self, request: Request, tenant: UUID) -> Response:
        """From the findings of its digests of the last seven days, and its history. Reads no log."""
        return Response(read_verdict(tenant))
