"""The list of acknowledgements on the admin site. The documents are in the object store."""

from __future__ import annotations

from django.contrib import admin

from tenantadmin.lib.http.admin import ReadOnlyAdmin
from tosapp.models import Acknowledgement


@admin.register(Acknowledgement)
class AcknowledgementAdmin(ReadOnlyAdmin):
    list_display = ("user", "hash", "acknowledged_at")
    list_select_related = ("user",)
    list_filter = ("acknowledged_at",)
    search_fields = ("user__email",)
