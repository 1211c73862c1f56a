"""Fields and checks of forms on staff pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.urls import reverse
from django.utils.html import format_html

from accounts.signin.staff.sessions import PART_PARAMETER

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


class CompletedInput(forms.TextInput):
    """A field that completes ``people`` (to an email), ``tenants`` or ``accounts`` from words of their names.

    The page's htmx fills the list of choices (`accounts.admin.pages.suggestions`).
    """

    def __init__(self, kind: str, **attrs: Any) -> None:
        self.kind = kind
        super().__init__({"autocomplete": "off", **attrs})

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        choices = f"{name}-choices"
        more = {
            "list": choices,
            # So this request does not save the session, which would overwrite what a form saved meanwhile.
            "hx-get": f"{reverse('admin:suggestions', args=[self.kind])}?{PART_PARAMETER}=choices",
            "hx-trigger": "input changed delay:200ms",
            "hx-target": f"next #{choices}",
            "hx-sync": "this:replace",
        }
        field = super().render(name, value, {**(attrs or {}), **more}, renderer)
        return format_html('{}<datalist id="{}"></datalist>', field, choices)


def split_ids(text: str) -> frozenset[str]:
    """Return the ids in a comma-separated text."""
    return frozenset(filter(None, (part.strip() for part in text.split(","))))
