"""The base class of all viewsets. Its actions are the operations of the contract.

An action has the name of its operation: ``get_tenant_rules`` is the ``operationId`` ``getTenantRules``. The
permissions, the contract and the tests of an operation are found by this name. The decorator `operation`
declares what a request may contain. The base class refuses everything else before the action runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast
from urllib.parse import unquote_to_bytes

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.viewsets import ViewSet

from tenantadmin.lib.core.errors import BadRequest, Detail, ValidationFailed
from tenantadmin.lib.http.budgets import REQUEST, Budget
from tenantadmin.lib.http.handler import validation_details
from tenantadmin.lib.http.serializers import unknown_name_message, validated

if TYPE_CHECKING:
    from django.http import HttpRequest
    from drf_spectacular.utils import OpenApiExample, OpenApiParameter
    from rest_framework.parsers import BaseParser
    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer, Serializer

    Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Declares an action of an `ApiViewSet` as an operation of the contract: what requests and answers have.

    Attributes:
        summary: what the action does, in one line.
        description: more about it. Default: the docstring of the action.
        path, query, headers: the parameters. ``query`` is validated, and becomes ``self.query``.
        any_query: ignore unknown query parameters, on pages for people.
        body: the serializer of the body, which is validated and becomes ``self.body``.
        document: describes a body that the action reads itself, and passes on unchanged to the function that
            validates it. Without ``body`` and ``document``, a body is refused.
        parsers: parsers to use instead of those in the settings.
        budget: the time of a request counts against this budget of the caller.
        queue: the setting that says how many works of a tenant, or an account, may wait for a worker, if it
            adds to them.
        only_reads: it changes nothing, although it is not a GET.
    """

    summary: str
    responses: Mapping[Any, Any]
    description: str = ""
    path: Sequence[OpenApiParameter] = ()
    query: type[Serializer[Any]] | None = None
    any_query: bool = False
    headers: Sequence[OpenApiParameter] = ()
    body: BaseSerializer[Any] | type[Serializer[Any]] | None = None
    document: Any = None
    parsers: tuple[type[BaseParser], ...] | None = None
    budget: Budget = REQUEST
    queue: str | None = None
    only_reads: bool = False
    examples: Sequence[OpenApiExample] = ()

    def __call__(self, action: Action) -> Action:
        action.operation = self  # type: ignore[attr-defined]
        describe = extend_schema(
            description=self.description or None,
            parameters=[*self.path, *([self.query] if self.query else []), *self.headers],
            request=self.body if self.document is None else self.document,
            responses=dict(self.responses),
            examples=list(self.examples) or None,
        )
        described: Action = describe(action)
        return described


#: Stands above an action, as a decorator.
operation: Final = Operation


class ApiViewSet(ViewSet):
    """The operations on one resource. Its routes map HTTP methods to actions that `operation` declares."""

    #: The contract groups operations by tag.
    tag: ClassVar[str]
    #: OPTIONS is not an operation of the contract.
    http_method_names: ClassVar[list[str]] = [name for name in ViewSet.http_method_names if name != "options"]  # type: ignore[misc]

    #: The validated query parameters of the request.
    query: Mapping[str, Any]
    #: The validated body of the request, if the operation declares one.
    body: Any

    @classmethod
    def operation_id(cls, action: str) -> str:
        """Return the ``operationId`` of an action."""
        first, *others = action.split("_")
        return first + "".join(word.capitalize() for word in others)

    @classmethod
    def summary(cls, action: str) -> str:
        """Return what an action does, in one line."""
        declared: Operation = getattr(cls, action).operation
        return declared.summary

    @classmethod
    def is_public(cls, action: str) -> bool:  # noqa: ARG003
        """Return True if an action needs no credentials."""
        return False

    @property
    def current_operation(self) -> Operation | None:
        """The operation of the request, or None if this address does not have the request's method."""
        request: HttpRequest | Request | None = self.request
        if request is None:  # while the contract is generated
            return None
        action = self.action_map.get((request.method or "").lower())
        return None if action is None else getattr(self, action).operation

    @property
    def only_reads(self) -> bool:
        """True if the request cannot change anything."""
        declared = self.current_operation
        return self.request.method in SAFE_METHODS or (declared is not None and declared.only_reads)

    def get_parsers(self) -> list[BaseParser]:
        declared = self.current_operation
        if declared is None or declared.parsers is None:
            return super().get_parsers()
        return [parser() for parser in declared.parsers]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the caller's permission, then validate the query parameters and the body.

        Raises:
            ApiError: the caller lacks permission, or the request does not fit the declaration.
        """
        super().initial(request, *args, **kwargs)
        declared = self.current_operation
        if declared is None:  # DRF answers 405
            return
        self.query = _read_query(declared.query, request, any_query=declared.any_query)
        self.body = self._read_declared_body(declared, request)

    def _read_declared_body(self, declared: Operation, request: Request) -> Any:
        if declared.body is None:
            if declared.document is None and request.method not in {"GET", "HEAD"} and request.data:
                raise BadRequest("This operation takes no body.")
            return None
        if isinstance(declared.body, type):
            return _read_body(declared.body, request)
        return _read_items(cast("Any", declared.body), request)


def _read_body(serializer_class: type[Serializer[Any]], request: Request) -> Any:
    """Return the validated body of ``request``.

    Raises:
        ValidationFailed: with the place and the message of every error.
    """
    data = request.data
    may_be_absent = getattr(serializer_class, "may_be_absent", False)
    if not isinstance(data, dict) or not (may_be_absent or _has_body(request)):
        raise ValidationFailed(details=[Detail("", "not-an-object", "Send a JSON object.")])
    return validated(serializer_class, data)


def _has_body(request: Request) -> bool:
    return request.META.get("CONTENT_LENGTH") not in {None, "", "0"}


def _read_items(items: Any, request: Request) -> list[Any]:
    """Return the validated items of the body, an array as the list serializer ``items`` describes it.

    Raises:
        ValidationFailed: with the place and the message of every error.
    """
    if not isinstance(request.data, list):
        raise ValidationFailed(details=[Detail("", "not-a-list", "Send an array.")])
    serializer = type(items)(data=request.data, child=type(items.child)(), max_length=items.max_length)
    if not serializer.is_valid():
        raise ValidationFailed(details=validation_details(serializer.errors))
    validated_items: list[Any] = serializer.validated_data
    return validated_items


def _read_query(
    serializer_class: type[Serializer[Any]] | None, request: Request, *, any_query: bool
) -> dict[str, Any]:
    """Return the validated query parameters of ``request``. Refuse unknown and repeated ones.

    With ``any_query``, ignore unknown ones.

    Raises:
        BadRequest: ``details`` has each bad parameter.
    """
    if serializer_class is None and not request.META.get("QUERY_STRING"):
        return {}
    if not any_query:
        try:
            unquote_to_bytes(request.META["QUERY_STRING"]).decode()
        except UnicodeDecodeError:
            raise BadRequest("The query is not UTF-8.") from None
    fields = serializer_class().fields if serializer_class else {}
    repeated = [
        name
        for name, values in request.query_params.lists()
        if len(values) > 1 and (name in fields or not any_query)
    ]
    if repeated:
        raise BadRequest(
            "A query parameter is given more than once.",
            details=[Detail(f"/{name}", "repeated-parameter", f"Send '{name}' once.") for name in repeated],
        )
    unknown = [name for name in request.query_params if name not in fields]
    if unknown and not any_query:
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
    serializer = serializer_class(
        data={name: value for name, value in request.query_params.items() if name in fields}
    )
    if not serializer.is_valid():
        raise BadRequest("A query parameter is not valid.", details=validation_details(serializer.errors))
    validated: dict[str, Any] = serializer.validated_data
    return validated
