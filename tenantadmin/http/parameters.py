"""What several views read from the address and say in the contract."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

#: Answers 304 to a caller that holds the present state already.
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag of the copy that the caller holds; 304 when it is still the present one.",
)
#: The tag to send back in ``If-None-Match`` or ``If-Match``.
ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    required=True,
    response=[200, 201, 304],
    description="A strong entity tag of this state.",
)
#: The number of a revision, in the address.
SEQ = OpenApiParameter("seq", {"type": "integer", "minimum": 0}, OpenApiParameter.PATH)
#: Refuses a write over a state that the caller has not seen.
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag that the caller read; 409 when the document has changed since.",
)
