"""The base of every API view."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rest_framework.views import APIView

from tenantadmin.core.errors import MethodNotAllowed

if TYPE_CHECKING:
    from collections.abc import Mapping


class ApiView(APIView):
    """A view whose methods are operations of the contract.

    ``operations`` names the ``operationId`` of each method; permissions, the contract and the tests find
    everything else by that name.
    """

    operations: ClassVar[Mapping[str, str]] = {}
    #: OPTIONS is not an operation of the contract.
    http_method_names: ClassVar[list[str]] = [name for name in APIView.http_method_names if name != "options"]  # type: ignore[misc]

    def operation(self, method: str) -> str:
        """Return the ``operationId`` of ``method``; HEAD is GET without the body.

        Raises:
            MethodNotAllowed: the address has no such operation.
        """
        name = method.upper()
        try:
            return self.operations["GET" if name == "HEAD" else name]
        except KeyError:
            raise MethodNotAllowed from None

    def is_public(self, method: str) -> bool:  # noqa: ARG002
        """Tell whether anyone may call the operation of ``method``, without credentials."""
        return False

    def get_view_name(self) -> str:
        return type(self).__name__
