"""Actions of the admin site that show a confirmation page before they call the service's functions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import transaction
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.request_context import MAX_REASON, REASON_HELP, acting_for
from tenantadmin.lib.http.formats import with_moments

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse

    AdminAction = Callable[[Any, HttpRequest, QuerySet[Any]], HttpResponse | None]

logger = logging.getLogger(__name__)
#: The form field of a row's page, to which the reader then returns: the row's record, or `TO_PAGE`.
FROM_RECORD: Final = "from_record"
#: The value for the page that staff have for the row (`ReadOnlyAdmin.page_address`).
TO_PAGE: Final = "page"
#: At most this many rows at once: the confirmation page lists the warnings of each.
_MAX_ROWS: Final = 100


class Refused(ApiError):
    """The state of a row does not allow the action."""

    status = 400
    code = "bad_request"


@dataclass(frozen=True, slots=True)
class ConfirmedAction:
    """An action of the admin site with a confirmation page.

    Attributes:
        effect: what the action does to each row.
        refusal: returns why a row is refused, or an empty text. A refused row's page does not offer it, and
            it is asked again about the newest row before the action.
        warn: returns warnings about a row.
        lock: locks what `refusal` reads, until the transaction ends.
        do: performs the action on a row or raises `ApiError`, in a transaction that also records it.
            Returns False if another request had done it already.
    """

    name: str
    title: str
    done: str
    effect: str
    do: Callable[[HttpRequest, Any], bool | None]
    refusal: Callable[[HttpRequest, Any], str] = field(default=lambda _request, _row: "")
    warn: Callable[[HttpRequest, Any], list[str]] = field(default=lambda _request, _row: [])
    lock: Callable[[], None] = field(default=lambda: None)
    deletes: bool = False

    @property
    def is_destructive(self) -> bool:
        """True if what it ends does not come back: the button is red."""
        return self.deletes or self.name == "revoke"


def with_confirmation(action: ConfirmedAction) -> AdminAction:
    """Return ``action`` as an action of the admin site with a confirmation page.

    It asks for the second factor or password first, unless that was proven a short time ago.
    """

    @admin.action(description=action.title)
    def run(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        raise_if_reauthentication_required(request, app="allauth.mfa")
        rows = list(queryset[: _MAX_ROWS + 1])
        if len(rows) > _MAX_ROWS:
            messages.error(request, f"Choose at most {_MAX_ROWS}. Nothing was done.")
            return None
        if "confirmed" not in request.POST:
            return _ask(model_admin, request, action, rows)
        reason = request.POST.get("reason", "").strip()
        if not reason or len(reason) > MAX_REASON or "\0" in reason:
            messages.error(request, f"Give a reason of at most {MAX_REASON} characters. Nothing was done.")
            return _ask(model_admin, request, action, rows)
        with acting_for(reason):
            for row in rows:
                _run(model_admin, request, action, row)
        return _back_to_record(model_admin, request, queryset)

    run.__name__ = action.name
    run.refusal = action.refusal  # type: ignore[attr-defined]  # read by `is_offered`
    return run


def is_offered(run: AdminAction, request: HttpRequest, row: Any) -> bool:
    """Return True unless the action ``run`` would be refused for ``row``."""
    return not run.refusal(request, row)  # type: ignore[attr-defined]  # made by `with_confirmation`


def _back_to_record(
    model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]
) -> HttpResponseRedirect | None:
    """Return a redirect to the row's page if the action began there; None leads to the list."""
    row = queryset.first() if FROM_RECORD in request.POST else None
    if row is None:
        return None
    if request.POST[FROM_RECORD] == TO_PAGE:
        return HttpResponseRedirect(model_admin.page_address(row))
    page = f"admin:{model_admin.opts.app_label}_{model_admin.opts.model_name}_change"
    return HttpResponseRedirect(reverse(page, args=[row.pk]))


def _ask(
    model_admin: Any, request: HttpRequest, action: ConfirmedAction, rows: list[Any]
) -> TemplateResponse:
    context = {
        **model_admin.admin_site.each_context(request),
        "title": action.title,
        "action": action,
        "rows": [(row, _warnings(request, action, row)) for row in rows],
        "from_record": FROM_RECORD,
        "returns_to": request.POST.get(FROM_RECORD, ""),
        "opts": model_admin.opts,
        "action_checkbox_name": ACTION_CHECKBOX_NAME,
        "media": model_admin.media,
        "max_reason": MAX_REASON,
        "reason_help": REASON_HELP,
    }
    return TemplateResponse(request, "admin/confirm_action.html", context)


def _warnings(request: HttpRequest, action: ConfirmedAction, row: Any) -> list[str]:
    refusal = action.refusal(request, row)
    return [f"{refusal}: will be refused."] if refusal else action.warn(request, row)


def _run(model_admin: Any, request: HttpRequest, action: ConfirmedAction, row: Any) -> None:
    """Perform the action on one row and record it, or show why it is refused. Other rows are independent."""
    try:
        with transaction.atomic():
            action.lock()
            # Others may have changed or deleted the row since it was shown.
            newest = model_admin.get_queryset(request).filter(pk=row.pk).first()
            if refusal := "Was deleted" if newest is None else action.refusal(request, newest):
                raise Refused(f"{refusal}.")
            if action.do(request, newest) is False:
                raise Refused("Somebody else was faster.")
            if action.deletes:
                model_admin.log_deletions(request, [row])
            else:
                model_admin.log_change(request, row, f"{action.done}.")
    except ApiError as error:
        error.settle()
        messages.error(request, with_moments(f"Refused for {row}: {error.text}"))
        return
    # Django deletes its log entries together with the admin's row. The service's log keeps this line.
    logger.info("%s on the admin site: %s %s", request.user, action.name, row)
    messages.success(request, f"{action.done}: {row}.")


def revocation(effect: str, end: Callable[..., bool]) -> AdminAction:
    """Return the action that revokes rows with ``revoked_at``. ``effect`` says what ends, and when.

    ``end`` takes a row and ``actor``, an email. It returns False if the row was revoked before.
    """

    return with_confirmation(
        ConfirmedAction(
            name="revoke",
            title="Revoke",
            done="Revoked",
            effect=f"It will be revoked for good. {effect}",
            do=lambda request, row: end(row, actor=str(request.user)),
            refusal=lambda _, row: "" if row.revoked_at is None else "Was revoked before",
        )
    )
