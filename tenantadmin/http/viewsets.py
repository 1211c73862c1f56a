"""The base of every viewset: its actions are the operations of the contract.

An action is named like its operation: ``get_tenant_rules`` is the ``operationId`` ``getTenantRules``. That
name finds its row of permissions, its place in the contract and its tests. The decorator `operation` says
what a request may hold; the base class refuses the rest before the action runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.viewsets import ViewSet

from tenantadmin.core.errors import BadRequest, Detail, ValidationFailed
from tenantadmin.http.handler import validation_details
from tenantadmin.http.serializers import unknown_name_message, validated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from django.http import HttpRequest
    from drf_spectacular.utils import OpenApiExample, OpenApiParameter
    from rest_framework.parsers import BaseParser
    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer, Serializer

    from tenantadmin.http.budgets import Budget

    Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Operation:
    """What an action does, in a line, and what a request for it may hold.

    ``query`` and ``body`` are read by these serializers before the action runs. ``takes_body`` says that the
    action reads the body itself; without ``body`` and ``takes_body`` a body is refused. ``any_query`` lets
    unknown query parameters through. ``parsers`` replace those of the settings. The time of a request counts
    against the caller's ``budget``.
    """

    summary: str
    query: type[Serializer[Any]] | None = None
    body: BaseSerializer[Any] | type[Serializer[Any]] | None = None
    takes_body: bool = False
    any_query: bool = False
    parsers: tuple[type[BaseParser], ...] | None = None
    budget: Budget | None = None


def operation(  # what the contract says of an operation
    *,
    summary: str,
    responses: Mapping[Any, Any],
    description: str = "",
    path: Sequence[OpenApiParameter] = (),
    query: type[Serializer[Any]] | None = None,
    any_query: bool = False,
    headers: Sequence[OpenApiParameter] = (),
    body: BaseSerializer[Any] | type[Serializer[Any]] | None = None,
    document: Any = None,
    parsers: tuple[type[BaseParser], ...] | None = None,
    budget: Budget | None = None,
    examples: Sequence[OpenApiExample] = (),
) -> Callable[[Action], Action]:
    """Declare an action of an `ApiViewSet` as an operation of the contract.

    ``path``, ``query`` and ``headers`` are its parameters. ``query`` is read before the action runs and
    becomes ``self.query``; ``body`` likewise becomes ``self.body``. ``document`` describes a body that the
    action passes on as it was sent, because the function that writes it checks it. ``description`` defaults
    to the docstring of the action.
    """

    def decorate(action: Action) -> Action:
        action.operation = Operation(  # type: ignore[attr-defined]
            summary=summary,
            query=query,
            body=body,
            takes_body=document is not None,
            any_query=any_query,
            parsers=parsers,
            budget=budget,
        )
        describe = extend_schema(
            description=description or None,
            parameters=[*path, *([query] if query else []), *headers],
            request=body if document is None else document,
            responses=dict(responses),
            examples=list(examples) or None,
        )
        described: Action = describe(action)
        return described

    return decorate


class ApiViewSet(ViewSet):
    """The operations on one resource. Its routes map methods to actions, each declared by `operation`."""

    #: Where the contract groups these operations.
    tag: ClassVar[str]
    #: OPTIONS is not an operation of the contract.
    http_method_names: ClassVar[list[str]] = [name for name in ViewSet.http_method_names if name != "options"]  # type: ignore[misc]

    #: The validated query parameters of the request.
    query: Mapping[str, Any]
    #: The validated body of the request, where the operation declares one.
    body: Any

    @classmethod
    def operation_id(cls, action: str) -> str:
        """Return the ``operationId`` of an action."""
        first, *others = action.split("_")
        return first + "".join(word.capitalize() for word in others)

    @classmethod
    def summary(cls, action: str) -> str:
        """Return what an action does, in a line."""
        declared: Operation = getattr(cls, action).operation
        return declared.summary

    @classmethod
    def is_public(cls, action: str) -> bool:  # noqa: ARG003
        """Tell whether anyone may call an action, without credentials."""
        return False

    @property
    def current_operation(self) -> Operation | None:
        """The operation that the request asks for, None where this address has no such method."""
        request: HttpRequest | Request | None = self.request
        if request is None:  # while the contract is being written
            return None
        action = self.action_map.get((request.method or "").lower())
        return None if action is None else getattr(self, action).operation

    def get_parsers(self) -> list[BaseParser]:
        asked = self.current_operation
        if asked is None or asked.parsers is None:
            return super().get_parsers()
        return [parser() for parser in asked.parsers]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let the caller through, then read what the operation declares.

        Raises:
            ApiError: the caller may not ask, or asks for what the operation does not declare.
        """
        super().initial(request, *args, **kwargs)
        asked = self.current_operation
        if asked is None:  # DRF answers 405
            return
        self.query = {} if asked.any_query else _read_query(asked.query, request)
        self.body = self._body_of(asked, request)

    def _body_of(self, asked: Operation, request: Request) -> Any:
        if asked.body is None:
            if not asked.takes_body and request.method not in {"GET", "HEAD"} and request.data:
                raise BadRequest("This operation takes no body.")
            return None
        if isinstance(asked.body, type):
            return _read_body(asked.body, request)
        return _read_items(type(asked.body.child), request)  # type: ignore[attr-defined]


def _read_body(serializer_class: type[Serializer[Any]], request: Request) -> Any:
    """Return the validated body of ``request``.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    data = request.data
    may_be_absent = getattr(serializer_class, "may_be_absent", False)
    if not isinstance(data, dict) or not (may_be_absent or _has_body(request)):
        raise ValidationFailed(details=[Detail("", "not-an-object", "Send a JSON object.")])
    return validated(serializer_class, data)


def _has_body(request: Request) -> bool:
    return request.META.get("CONTENT_LENGTH") not in {None, "", "0"}


def _read_items(serializer_class: type[Serializer[Any]], request: Request) -> list[Any]:
    """Return the validated items of a body that is an array.

    Raises:
        ValidationFailed: with the place and the cure of every finding.
    """
    if not isinstance(request.data, list):
        raise ValidationFailed(details=[Detail("", "not-a-list", "Send an array.")])
    serializer = serializer_class(data=request.data, many=True)
    if not serializer.is_valid():
        raise ValidationFailed(details=validation_details(serializer.errors))
    items: list[Any] = serializer.validated_data
    return items


def _read_query(serializer_class: type[Serializer[Any]] | None, request: Request) -> dict[str, Any]:
    """Return the validated query parameters of ``request``: unknown and repeated ones are refused.

    Raises:
        BadRequest: with each parameter's finding in ``details``.
    """
    if serializer_class is None and not request.META.get("QUERY_STRING"):
        return {}
    repeated = [name for name, values in request.query_params.lists() if len(values) > 1]
    if repeated:
        raise BadRequest(
            "A query parameter is given more than once.",
            details=[Detail(f"/{name}", "repeated-parameter", f"Send '{name}' once.") for name in repeated],
        )
    fields = serializer_class().fields if serializer_class else {}
    unknown = [name for name in request.query_params if name not in fields]
    if unknown:
        raise BadRequest(
            "A query parameter is not known.",
            details=[
                Detail(
                    f"/{name}",
                    "unknown-parameter",
                    unknown_name_message(name, fields, kind="query parameter"),
                )
                for name in unknown
            ],
        )
    if serializer_class is None:
        return {}
    serializer = serializer_class(data=request.query_params.dict())
    if not serializer.is_valid():
        raise BadRequest("A query parameter is not valid.", details=validation_details(serializer.errors))
    validated: dict[str, Any] = serializer.validated_data
    return validated
