"""Does what staff do on a list of the admin site."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

from django.urls import reverse

if TYPE_CHECKING:
    from django.db.models import Model
    from django.test import Client


def act(staff: Client, name: str, *rows: Model, confirmed: bool = True, reason: str = "asked to") -> str:
    """Choose ``rows`` in their list and do ``name`` to them; returns what the page says then."""
    options = rows[0]._meta
    form: dict[str, Any] = {"action": name, "_selected_action": [str(row.pk) for row in rows]}
    if confirmed:
        form.update(confirmed="yes", reason=reason)
    address = reverse(f"admin:{options.app_label}_{options.model_name}_changelist")
    return unescape(staff.post(address, form, follow=True).content.decode())
