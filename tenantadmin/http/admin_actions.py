"""What staff do on the admin site: a page first says what follows, then the service's own functions act."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.template.response import TemplateResponse

from tenantadmin.core.errors import ApiError
from tenantadmin.core.request_context import acting_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest

    Action = Callable[[Any, HttpRequest, QuerySet[Any]], TemplateResponse | None]

logger = logging.getLogger(__name__)
#: Characters.
MAX_REASON: Final = 500
#: A confirmation says of each row what follows: more of them nobody reads.
_MOST_ROWS: Final = 100


class Refused(ApiError):
    """Staff asked for what the row does not allow."""

    status = 400
    code = "bad_request"


@dataclass(frozen=True, slots=True)
class Act:
    """Something that staff may do to rows.

    ``follows`` says what it does to any row; ``warn`` what more it does to this one; ``do`` does it, or
    raises an `ApiError`, inside a transaction that records it too.
    """

    name: str
    title: str
    done: str
    follows: str
    do: Callable[[HttpRequest, Any], None]
    warn: Callable[[HttpRequest, Any], list[str]] = field(default=lambda _request, _row: [])
    deletes: bool = False


def confirmed(act: Act) -> Action:
    """Return ``act`` as an action of the admin site that asks before it acts.

    It asks for the second factor or password first, unless that was proven a short time ago.
    """

    @admin.action(description=act.title)
    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> TemplateResponse | None:
        raise_if_reauthentication_required(request, app="allauth.mfa")
        rows = list(queryset[: _MOST_ROWS + 1])
        if len(rows) > _MOST_ROWS:
            messages.error(request, f"Choose at most {_MOST_ROWS}. Nothing was done.")
            return None
        if "confirmed" not in request.POST:
            return _ask(model_admin, request, act, rows)
        reason = request.POST.get("reason", "").strip()
        if not reason or len(reason) > MAX_REASON or "\0" in reason:
            messages.error(request, f"Give a reason of at most {MAX_REASON} characters. Nothing was done.")
            return _ask(model_admin, request, act, rows)
        with acting_for(reason):
            for row in rows:
                _run(model_admin, request, act, row)
        return None

    run.__name__ = act.name
    return run


def _ask(model_admin: Any, request: HttpRequest, act: Act, rows: list[Any]) -> TemplateResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "title": act.title,
        "act": act,
        "rows": [(row, act.warn(request, row)) for row in rows],
        "opts": model_admin.opts,
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
        "media": model_admin.media,
        "max_reason": MAX_REASON,
    }
    return TemplateResponse(request, "admin/confirm_action.html", context)


def _run(model_admin: Any, request: HttpRequest, act: Act, row: Any) -> None:
    """Do it to one row and record it, or say why not; the other rows do not depend on it."""
    try:
        with transaction.atomic():
            act.do(request, row)
            if act.deletes:
                model_admin.log_deletions(request, [row])
            else:
                model_admin.log_change(request, row, f"{act.done}.")
    except ApiError as error:
        messages.error(request, f"Refused for {row}: {error.text}")
        return
    # What an admin did on this site goes with the admin's own row; the log keeps it.
    logger.info("%s on the admin site: %s %s", request.user, act.name, row)
    messages.success(request, f"{act.done}: {row}.")


def revocation(follows: str, end: Callable[..., bool]) -> Action:
    """Return the action that revokes rows with ``revoked_at``; ``follows`` says when that acts.

    ``end`` takes a row and ``actor``, the email of who acts. It returns False if the row was revoked before.
    """

    def revoke(request: HttpRequest, row: Any) -> None:
        if not end(row, actor=str(request.user)):
            raise Refused("It was revoked before.")

    return confirmed(
        Act(
            name="revoke",
            title="Revoke",
            done="Revoked",
            follows=f"What is revoked stays so. {follows}",
            do=revoke,
            warn=_warn_of_revocation,
        )
    )


def _warn_of_revocation(_request: HttpRequest, row: Any) -> list[str]:
    return ["Was revoked before: will be refused."] if row.revoked_at is not None else []
