"""The permission of DRF's settings. Imports no view, because DRF imports this with its own views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission

if TYPE_CHECKING:
    from rest_framework.request import Request
    from rest_framework.views import APIView


class DenyByDefault(BasePermission):
    """The permission of a view that sets none: refuse every request."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        return False
