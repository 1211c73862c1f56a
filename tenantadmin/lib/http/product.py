"""The template tag ``{% product %}`` of every template: mails have no request, so no context processor."""

from __future__ import annotations

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def product() -> str:
    """Return the name of the product."""
    return str(settings.PRODUCT_NAME)
