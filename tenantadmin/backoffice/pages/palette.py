"""What the command palette of the admin site finds while the user types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.http import JsonResponse

from tenantadmin.backoffice.finding import find_for_palette

if TYPE_CHECKING:
    from django.http import HttpRequest

    from accounts.models.users import StaffRole


def palette(request: HttpRequest) -> JsonResponse:
    """Answer `palette.js` with ``{"results": [[name, address, what it is], ...]}``."""
    user: Any = request.user
    found = find_for_palette(
        request.GET.get("s", ""),
        admin.site.get_app_list(request),
        role=cast("StaffRole", user.staff_role),
    )
    return JsonResponse({"results": found})
