"""The list of acknowledgements on the admin site. The documents are in the object store."""

from __future__ import annotations

from django.contrib import admin

from accounts.admin.names import FindsPeople
from tosapp.models import Acknowledgement


@admin.register(Acknowledgement)
class AcknowledgementAdmin(FindsPeople):
    list_display = ("user", "hash", "acknowledged_at")
    list_select_related = ("user",)
    list_filter = ("acknowledged_at",)
