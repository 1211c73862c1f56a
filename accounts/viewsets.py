"""The base of every app's viewsets: permissions decide who gets to an action."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from accounts.access.policy import POLICIES, On
from accounts.permissions import OperationPermission
from tenantadmin.http.viewsets import ApiViewSet

if TYPE_CHECKING:
    from rest_framework.authentication import BaseAuthentication
    from rest_framework.request import Request

    from accounts.access.principal import Principal


class AppViewSet(ApiViewSet):
    """A viewset behind `OperationPermission`, which asks the policy of the operation."""

    permission_classes = (OperationPermission,)

    @classmethod
    def is_public(cls, action: str) -> bool:
        """Tell whether anyone may call an action, without credentials."""
        return POLICIES[cls.operation_id(action)].on is On.NOTHING

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Return none for a public operation: no header is looked at."""
        request: Request | None = self.request  # None while the contract is being written
        if request is not None and all(map(self.is_public, self._possible_actions(request))):
            return []
        return super().get_authenticators()

    def _possible_actions(self, request: Request) -> list[str]:
        """Return the action asked for; all actions of the address where it has no such method."""
        action = self.action_map.get((request.method or "").lower())
        return list(self.action_map.values()) if action is None else [action]

    @property
    def principal(self) -> Principal:
        """The authenticated caller."""
        return cast("Principal", self.request.auth)
