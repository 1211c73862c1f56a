"""Notifications that raw log objects came. Contract: Raw logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.viewsets import AppViewSet
from logs.notifications import notify
from logs.serializers import LogNotification, NotedDays
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class NotificationViewSet(AppViewSet):
    """What a Gateway says about the raw logs that it writes."""

    tag = "Raw logs"

    @operation(
        summary="Say that raw logs came",
        description="A Gateway calls this after it has written objects. Their days become stale at once, and "
        "are built again within a minute. A notification that is lost only delays that.",
        body=LogNotification,
        responses={202: NotedDays},
        examples=[
            OpenApiExample("Two hours", value={"prefixes": ["logs/2026/11/23/04", "logs/2026/11/23/05"]})
        ],
    )
    def notify_logs(self, request: Request, tenant: UUID) -> Response:
        days = sorted(set(self.body["prefixes"]))
        notify(tenant=tenant, days=days)
        return Response({"tenantId": str(tenant), "days": [day.isoformat() for day in days]}, status=202)
