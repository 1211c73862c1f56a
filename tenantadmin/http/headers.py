"""Security headers: some for every response, others only for HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from csp.middleware import CSPMiddleware
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    GetResponse = Callable[[HttpRequest], HttpResponseBase]

#: No page needs these features of browsers. Only pages of this service may use passkeys.
_PERMISSIONS: Final = ", ".join(
    [
        *(
            f"{feature}=()"
            for feature in (
                *("accelerometer", "autoplay", "camera", "display-capture", "geolocation"),
                *("gyroscope", "hid", "magnetometer", "microphone", "midi", "payment", "serial", "usb"),
            )
        ),
        *(f"publickey-credentials-{act}=(self)" for act in ("create", "get")),
    ]
)


def security_headers(get_response: GetResponse) -> GetResponse:
    """Add ``Cross-Origin-Resource-Policy`` to every response, and the other headers to HTML pages.

    The content policy is the setting `CONTENT_SECURITY_POLICY` of django-csp, or that of the page; pages of
    the admin site add `STAFF_SECURITY_POLICY`. Django's
    `SecurityMiddleware` adds HSTS, ``nosniff``, ``Referrer-Policy`` and ``Cross-Origin-Opener-Policy``.
    """
    # Its own call costs 15 us, which polled responses do not need.
    policy = CSPMiddleware(get_response)

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers["Cross-Origin-Embedder-Policy"] = "require-corp"
            response.headers["Permissions-Policy"] = _PERMISSIONS
            if request.path.startswith("/admin/"):
                response._csp_update = settings.STAFF_SECURITY_POLICY  # type: ignore[attr-defined]
            policy.process_response(request, response)
        return response

    return middleware
