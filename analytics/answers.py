"""A document as an answer: 404 without data, 304 for a reader that has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.response import Response

from analytics.store import read_document, read_etag
from analytics.userdocs import user_document, user_etag
from tenantadmin.http.errors import NotFound
from tenantadmin.http.etags import not_modified
from tenantadmin.objectstore import default_store

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from analytics.models import Kind

_NO_DATA = "There is no log entry in this period."


def answer_stored(request: Request, *, tenant: UUID, kind: Kind, period: str) -> Response:
    """Answer with a tenant's stored document; its body is read only where it is sent.

    Raises:
        NotFound: the period has no entry.
    """
    etag = read_etag(tenant=tenant, kind=kind, period=period)
    if etag is None:
        raise NotFound(_NO_DATA)
    unchanged = not_modified(request, etag)
    if unchanged is not None:
        return unchanged
    document = read_document(tenant=tenant, kind=kind, period=period)
    if document is None:
        raise NotFound(_NO_DATA)
    return Response(document.body, headers={"ETag": document.etag})


def answer_user(request: Request, *, tenant: UUID, user: str, period: str) -> Response:
    """Answer with a user's document, derived from the rollups where it is not remembered.

    Raises:
        NotFound: the user has no entry in the period.
    """
    etag = user_etag(tenant=tenant, user=user, period=period)
    body = user_document(default_store(), tenant=tenant, user=user, period=period, etag=etag)
    if body is None:
        raise NotFound(_NO_DATA)
    return not_modified(request, etag) or Response(body, headers={"ETag": etag})
