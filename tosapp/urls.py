from __future__ import annotations

from accounts import converters  # noqa: F401 - importing registers them
from accounts.routes import url_patterns
from tosapp.api.terms import AcknowledgementViewSet, TermsViewSet

urlpatterns = url_patterns(
    TermsViewSet,
    AcknowledgementViewSet,
)
