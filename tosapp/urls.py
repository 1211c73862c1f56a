from __future__ import annotations

from django.urls import path

from tosapp.api.terms import AcknowledgementsView, HistoricalTosView, TosView

urlpatterns = [
    path("tos", TosView.as_view()),
    path("tos/<str:md5>", HistoricalTosView.as_view()),
    path("users/<email:email>/tos", AcknowledgementsView.as_view()),
]
