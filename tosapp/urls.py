from __future__ import annotations

from django.urls import path

from accounts import converters  # noqa: F401 - importing registers them
from tosapp.api.terms import AcknowledgementViewSet, TermsViewSet

urlpatterns = [
    path("tos", TermsViewSet.as_view({"get": "get_tos", "post": "publish_tos"}), name="tos"),
    path("tos/<str:md5>", TermsViewSet.as_view({"get": "get_historical_tos"}), name="tos-document"),
    path(
        "users/<email:email>/tos",
        AcknowledgementViewSet.as_view({"get": "list_acknowledgements", "post": "acknowledge_tos"}),
        name="user-tos",
    ),
]
