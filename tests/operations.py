"""All operations of the service, from its URL patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from tenantadmin.lib.http.viewsets import ApiViewSet


@dataclass(frozen=True, slots=True)
class Route:
    """One operation: its app, name, HTTP method and URL pattern."""

    app: str
    operation: str
    method: str
    pattern: str


def routes(patterns: Any = None, prefix: str = "") -> Iterator[Route]:
    """Yield every operation that has a route."""
    for pattern in patterns if patterns is not None else get_resolver().url_patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern):
            callback: Any = pattern.callback
            view = getattr(callback, "cls", None)
            app = view.__module__.partition(".")[0] if view is not None else ""
            if isinstance(view, type) and issubclass(view, ApiViewSet):
                for method, action in callback.actions.items():
                    if method != "head":  # DRF adds it to the first GET that is answered
                        yield Route(app, view.operation_id(action), method.upper(), address)
