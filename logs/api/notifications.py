"""Notifications that raw log objects came. Contract: Raw logs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from drf_spectacular.utils import OpenApiExample
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from logs.notifications import notify_of_days
from logs.serializers import LogNotification
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class NotedDays(JsonStruct):
    """The days that will be built again."""

    tenant_id: UUID
    days: Annotated[list[dt.date], Meta(description="In order, each once.")]


class NotificationViewSet(AppViewSet):
    """Notifications of a Gateway about the raw logs that it writes."""

    tag = "Raw logs"

    @route(
        "POST",
        "tenants/<uuid:tenant>/logs/notifications",
        Level.TENANT,
        Scope.LOGS_NOTIFY,
        name="log-notifications",
    )
    @operation(
        summary="Say that raw logs came",
        description="A Gateway calls this after it has written objects. Their days become stale at once, and "
        "are built again within a minute. A notification that is lost only delays that. Days before the "
        "tenant's `retentionDays` and after tomorrow are refused.",
        queue="BUILD_QUEUE",
        body=LogNotification,
        responses={202: NotedDays},
        examples=[
            OpenApiExample("Two hours", value={"prefixes": ["logs/2026/11/23/04", "logs/2026/11/23/05"]})
        ],
    )
    def notify_logs(self, request: Request, tenant: UUID) -> Response:
        days = notify_of_days(tenant=tenant, days=self.body["prefixes"])
        return Response(NotedDays(tenant_id=tenant, days=days), status=202)
