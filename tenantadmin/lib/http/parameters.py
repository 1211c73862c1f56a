"""Parameters of the contract that several views share."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

#: A caller that has the current document gets 304.
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag of the copy that the caller holds; 304 when it is still the present one.",
)
#: The caller sends this tag back in ``If-None-Match`` or ``If-Match``.
ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    response=[200, 201, 304],
    description="A strong entity tag of this state.",
)
#: The address of a new resource, or the next address of a browser.
LOCATION = OpenApiParameter(
    "Location",
    OpenApiTypes.URI_REF,
    OpenApiParameter.HEADER,
    required=True,
    response=[201, 202, 302, 303],
    description="The address to go on at.",
)
#: Why the caller does this, for the event.
REASON = OpenApiParameter(
    "X-Reason",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Why, percent-encoded, at most 500 characters; the event keeps it. Platform admins must give "
    "it where the service requires a second factor of staff: 403 `second_factor_required` without it.",
)
#: The number of a revision.
SEQ = OpenApiParameter("seq", {"type": "integer", "minimum": 0}, OpenApiParameter.PATH)
#: Prevents a caller from overwriting a change that it has not seen.
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag that the caller read; 409 when the document has changed since.",
)
