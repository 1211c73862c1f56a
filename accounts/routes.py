"""The address of each operation, and who may call it, declared beside its action.

``@route`` stands above ``@operation``. URL patterns, permissions and docs/permissions.md are made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import URLPattern, URLResolver, get_resolver, path

from accounts.access.scopes import Level, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from accounts.access.scopes import Scope

    Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Route:
    """The method, the path and the policy of an action.

    Attributes:
        path: as in `django.urls.path`, below the ``prefix`` of the viewset.
        name: of the path, in one of its actions.
    """

    method: str
    path: str
    policy: Policy
    name: str


def route(
    method: str,
    path: str,
    level: Level,
    scope: Scope | None = None,
    *,
    name: str = "",
    also: Scope | None = None,
    before_terms: bool = False,
    needs_fresh_proof: bool = False,
    members_only: bool = False,
    needs_no_reason: bool = False,
    notes: str = "",
) -> Callable[[Action], Action]:
    """Declare where an action of an `AppViewSet` is found, and who may call it: see `Route` and `Policy`."""
    policy = Policy(
        level=level,
        scope=scope,
        before_terms=before_terms or level is Level.PUBLIC,
        notes=notes,
        also=also,
        needs_fresh_proof=needs_fresh_proof,
        members_only=members_only,
        needs_no_reason=needs_no_reason,
    )

    def decorate(action: Action) -> Action:
        action.route = Route(method, path, policy, name)  # type: ignore[attr-defined]
        return action

    return decorate


def url_patterns(*viewsets: Any) -> list[URLPattern]:
    """Return a pattern for each path of classes of `AppViewSet`, in the order of their actions."""
    return [pattern for viewset in viewsets for pattern in _patterns_of(viewset)]


def _patterns_of(viewset: Any) -> Iterator[URLPattern]:
    actions: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for action, found in viewset.routes().items():
        actions.setdefault(found.path, {})[found.method.lower()] = action
        if found.name:
            names[found.path] = found.name
    for address, methods in actions.items():
        yield path(address, viewset.as_view(methods), name=names[address])


def policies() -> dict[str, Policy]:
    """Return the policy of each operation that has a URL, by ``operationId``."""
    return {
        viewset.operation_id(action): viewset.policy(action)
        for viewset, actions in _iterate_views(get_resolver().url_patterns)
        for action in actions
    }


def _iterate_views(patterns: list[URLPattern | URLResolver]) -> Iterator[tuple[Any, list[str]]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _iterate_views(pattern.url_patterns)
        elif hasattr(pattern.callback, "actions"):
            view: Any = pattern.callback
            # DRF adds HEAD with the action of GET.
            yield view.cls, list(view.actions.values())
