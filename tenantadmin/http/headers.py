"""Security headers: some for every response, others only for HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from csp.middleware import CSPMiddleware

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

#: No page needs these features of browsers. Only pages of this service may use passkeys.
_PERMISSIONS: Final = ", ".join(
    [
        *(
            f"{feature}=()"
            for feature in (
                *("accelerometer", "autoplay", "bluetooth", "camera", "display-capture", "geolocation"),
                *("gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
            )
        ),
        *(f"publickey-credentials-{act}=(self)" for act in ("create", "get")),
    ]
)


class SecurityHeaders(CSPMiddleware):
    """Adds ``Cross-Origin-Resource-Policy`` to every response, and the other headers to HTML pages.

    The content policy is the setting `CONTENT_SECURITY_POLICY` of django-csp, or that of the page. Django's
    `SecurityMiddleware` adds HSTS, ``nosniff``, ``Referrer-Policy`` and ``Cross-Origin-Opener-Policy``.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        response.headers["Cross-Origin-Embedder-Policy"] = "require-corp"
        response.headers["Permissions-Policy"] = _PERMISSIONS
        return super().process_response(request, response)
