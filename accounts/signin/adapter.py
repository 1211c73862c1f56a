"""Make django-allauth find its applications in the settings only, without a database query.

The adapter also drops unusable addresses before allauth lower-cases them. Lower-casing turns a
letter such as the Kelvin sign into an ASCII one, so that one person's address could become another's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp
from django.conf import settings

from tenantadmin.lib.core.emails import check_email

if TYPE_CHECKING:
    from django.http import HttpRequest


class SettingsOnlyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth is not typed
    """Looks up applications by the names of `SIGNIN_PROVIDERS`; drops unusable addresses."""

    def list_apps(
        self,
        request: HttpRequest | None,  # noqa: ARG002
        provider: str | None = None,
        client_id: str | None = None,
    ) -> list[Any]:
        return [
            SocialApp(provider=kind, **app)
            for kind, configuration in settings.SOCIALACCOUNT_PROVIDERS.items()
            for app in configuration["APPS"]
            if provider in {None, kind, app["provider_id"]} and client_id in {None, app["client_id"]}
        ]

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        found = super().get_provider(request, provider, client_id)
        addresses_of, fields_of = found.extract_email_addresses, found.extract_common_fields

        def plain_addresses(data: Any) -> list[Any]:
            return [address for address in addresses_of(data) if _is_usable(address.email)]

        def plain_fields(data: Any) -> dict[str, Any]:
            fields: dict[str, Any] = fields_of(data)
            return fields if _is_usable(fields.get("email")) else {**fields, "email": None}

        found.extract_email_addresses, found.extract_common_fields = plain_addresses, plain_fields
        return found


def _is_usable(email: object) -> bool:
    try:
        check_email(str(email))
    except ValueError:
        return False
    return True
