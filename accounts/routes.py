"""The address of each operation, and who may call it, declared beside its action. Contract: Authentication.

``@route`` stands above ``@operation``. URL patterns, permissions and docs/permissions.md are made from it.
tests/authz/expected.py has the same table once more, by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.urls import URLPattern, URLResolver, get_resolver, path

if TYPE_CHECKING:
    from accounts.access.scopes import Level, Scope

    Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Route:
    """Declares where an action of an `AppViewSet` is found, and who may call it.

    Attributes:
        path: as in `django.urls.path`, below the ``prefix`` of the viewset.
        name: of the path, in one of its actions.
        scope, also: the scopes that a caller must have. It needs both.
        before_terms: a token with ``tos_required`` may call the operation too.
        needs_fresh_proof: a caller with the right is asked for its second factor and a reason
            (`accounts.access.assurance`).
        members_only: the scope must come from a membership, and a PAT must name the tenant, as for raw logs
            and SQL.
        needs_no_reason: the operation changes nothing, although it is not a GET. Else staff in the dashboard
            give a reason with each write on a tenant or an account.
        notes: the checks of the service function itself, for the documentation.
    """

    method: str
    path: str
    level: Level
    scope: Scope | None = None
    _: KW_ONLY
    name: str = ""
    also: Scope | None = None
    before_terms: bool = False
    needs_fresh_proof: bool = False
    members_only: bool = False
    needs_no_reason: bool = False
    notes: str = ""

    def __call__(self, action: Action) -> Action:
        action.route = self  # type: ignore[attr-defined]
        return action


#: Stands above an action, as a decorator.
route: Final = Route


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


def declared_routes() -> dict[str, Route]:
    """Return the route of each operation that has a URL, by ``operationId``."""
    return {
        viewset.operation_id(action): viewset.route_of(action)
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
