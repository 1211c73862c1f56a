"""Pages of insights: recommendations, digests, stale risk and leaks, verification of documents."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.http import HttpResponse, HttpResponseRedirect

from accounts.admin.pages.base import PART, ReasonForm, TenantActPage
from accounts.dashboard import in_dashboard
from accounts.models.users import StaffRole
from analytics.admin.insights import diff_recommendation, is_searching, read_advice, read_digest_page
from analytics.admin.pages.base import LogPage, say_published
from analytics.admin.replays import ShownReplay
from analytics.advice.deciding import (
    accept_recommendation,
    dismiss_recommendation,
    draft_recommendation,
    reopen_recommendation,
)
from analytics.advice.mining import read_mining, request_mining
from analytics.advice.recommendations import (
    read_recommendation,
    recommendation_etag,
    say_open_recommendations,
)
from analytics.advice.variants import choose_variant
from analytics.advice.wording import purpose_of
from analytics.digest.verdict.leaks import find_closed_of_days
from analytics.models import Kind, Recommendation
from analytics.published.verification import SAVINGS, DocumentKey, InvalidKey, check_key
from analytics.published.verify import verify_document
from analytics.reports.leaks import leaks_report
from analytics.reports.reading import MAX_DAYS, LogReader, Window
from analytics.reports.stale import stale_report
from rules.ruleset import read_tables
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.timestamps import days_before
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Mapping, Sequence

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from accounts.admin.pages.base import Trail


#: Titles and names of the pages below the tab *Insights*.
INSIGHTS: Final = (
    ("Recommendations", "admin:tenant-insights"),
    ("Digests", "admin:tenant-digests"),
    ("Stale risk and leaks", "admin:tenant-reports"),
    ("Verify summaries", "admin:tenant-verify"),
)


class InsightsPage(LogPage):
    """A page below the tab *Insights*."""

    insights: ClassVar[Sequence[tuple[str, str]]] = INSIGHTS


class BelowInsights(InsightsPage):
    """A page below the page of recommendations."""

    def trail(self) -> Trail:
        return [*super().trail(), ("Insights", self.to("tenant-insights"))]


class AdvicePage(InsightsPage):
    """Undecided or decided recommendations. The page polls the search."""

    title = "Recommendations"
    template_name = "backoffice/tenant/insights.html"

    def read(self) -> Mapping[str, Any]:
        is_decided = self.request.GET.get("show") == "decided"
        advice = read_advice(self.tenant.pk, is_decided=is_decided)
        return {
            "advice": advice,
            "mining": advice.mining,
            "is_searching": is_searching(advice.mining),
            "is_decided": is_decided,
        }

    def get(self, request: HttpRequest, **more: Any) -> HttpResponseBase:
        if request.GET.get(PART) != "search":
            return super().get(request, **more)
        mining = read_mining(tenant_id=self.tenant.pk)
        is_moving = is_searching(mining)
        answer = self.show("backoffice/tenant/search.html", {"mining": mining, "is_searching": is_moving})
        if not is_moving:
            # The search has ended and may have changed the whole page.
            answer["HX-Refresh"] = "true"
        return answer

    def post(self, _request: HttpRequest, **_: Any) -> HttpResponse:
        request_mining(tenant_id=self.tenant.pk, actor=self.actor)
        return HttpResponseRedirect(self.to("tenant-insights"))


class DecisionForm(ReasonForm):
    """The version of the recommendation that the reader has seen."""

    etag = forms.CharField(widget=forms.HiddenInput)


class DecisionPage(BelowInsights, TenantActPage):
    """A form that decides one recommendation, with the diff of the rules."""

    template_name = "backoffice/tenant/decide.html"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    form_class: ClassVar[type[ReasonForm]] = DecisionForm
    #: The states in which the decision is possible.
    allowed: ClassVar[Collection[str]] = Recommendation.UNDECIDED
    shows_change: ClassVar[bool] = True

    @cached_property
    def recommendation(self) -> Recommendation:
        found = read_recommendation(tenant_id=self.tenant.pk, recommendation_id=self.kwargs["recommendation"])
        choose_variant(found, self.variant)
        return found

    @property
    def variant(self) -> str | None:
        """The variant in the address; None: the recommended one."""
        return self.request.GET.get("variant")

    def initial(self) -> dict[str, Any]:
        return {"etag": recommendation_etag(self.recommendation)}

    def read(self) -> Mapping[str, Any]:
        change = diff_recommendation(self.recommendation) if self.shows_change else None
        is_possible = self.recommendation.state in self.allowed and (
            change is not None or not self.shows_change
        )
        run = self.recommendation.replay if self.shows_change else None
        purpose = purpose_of(self.recommendation.kind)
        shown = None if run is None or run.result is None else ShownReplay(run, purpose=purpose)
        return {
            "recommendation": self.recommendation,
            "change": change,
            "is_possible": is_possible,
            "shown": shown,
        }

    def which(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that every decision takes."""
        return {
            "tenant_id": self.tenant.pk,
            "recommendation_id": self.kwargs["recommendation"],
            "actor": self.actor,
            "expected_etag": values["etag"],
        }

    @property
    def after(self) -> dict[str, Any]:
        """The values that the event adds."""
        return {"recommendationId": str(self.kwargs["recommendation"])}

    def done_at(self) -> str:
        return self.to("tenant-insights")


class AcceptPage(DecisionPage):
    """Publish the rules with a recommendation."""

    title = "Accept"
    name = "recommendation.accepted"
    button = "Accept and publish"
    effect = (
        "The rules will be written with this change, as a new revision. This will empty the cache. "
        "Recommendations will be searched again, and after three days the effect is measured."
    )

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        written = accept_recommendation(**self.which(values), variant=self.variant)
        message = say_published(self, f"Accepted: revision {written.seq} is in force.", written.seq)
        return message, {**self.after, "seq": written.seq}

    def done_at(self) -> str:
        return f"{super().done_at()}?show=decided"


class DraftItPage(DecisionPage):
    """Make a draft of the rules with a recommendation."""

    title = "Make a draft"
    name = "recommendation.drafted"
    button = "Make a draft"
    effect = (
        "This will make a draft. The live rules stay as they are. Replay the draft, change it, and "
        "publish it if you like."
    )
    allowed: ClassVar[Collection[str]] = (Recommendation.State.OPEN,)

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        self._draft_id = draft_recommendation(**self.which(values), variant=self.variant).pk
        return "Made a draft.", {**self.after, "draftId": str(self._draft_id)}

    def done_at(self) -> str:
        draft = getattr(self, "_draft_id", None)
        return super().done_at() if draft is None else in_dashboard(self.tenant.pk, f"drafts/{draft}")


class DismissForm(DecisionForm):
    """The last day of the dismissal, and the reason."""

    until = forms.DateField(
        label="Until",
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="It comes back on this day, or when it would save twice as much.",
    )


class DismissPage(DecisionPage):
    """Dismiss a recommendation, for good or until a day."""

    title = "Dismiss"
    name = "recommendation.dismissed"
    button = "Dismiss"
    effect = "It will not be recommended again. The tenant's owners will see the reason."
    form_class = DismissForm
    shows_change = False

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        dismiss_recommendation(**self.which(values), reason=values["reason"], until=values["until"])
        return "Dismissed.", self.after


class ReopenPage(DecisionPage):
    """Open a dismissed recommendation again."""

    title = "Open again"
    name = "recommendation.reopened"
    button = "Open again"
    effect = "It will be listed again with the recommendations to decide."
    allowed: ClassVar[Collection[str]] = (Recommendation.State.DISMISSED,)
    shows_change = False

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        reopen_recommendation(**self.which(values))
        return "Opened again.", self.after


class DigestsPage(BelowInsights):
    """A digest: the newest, or the digest of ``?period=``. Its numbers link to their SQL."""

    title = "Digest"
    template_name = "backoffice/tenant/digest.html"

    def read(self) -> Mapping[str, Any]:
        period = self.request.GET.get("period", "")[:10].replace("\0", "")
        return {
            "shown": read_digest_page(self.tenant.pk, period=period),
            "advice": say_open_recommendations(self.tenant.pk),
        }


class WindowForm(forms.Form):
    """The days of a report."""

    first = forms.DateField(label="First day (UTC)", widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label="Last day", widget=forms.DateInput(attrs={"type": "date"}))


class WindowPage(BelowInsights):
    """A page on the log of some days: the chosen ones, or the last ``days``.

    The page loads the figures of the last days as a part, so that a large log does not hold up the choice of
    other days.

    Attributes:
        figures: the template of the part.
        max_days: the most days that can be chosen.
    """

    template_name = "backoffice/tenant/window.html"
    days: ClassVar[int]
    max_days: ClassVar[int]
    figures: ClassVar[str]

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        is_chosen = "first" in request.GET
        form = WindowForm(request.GET if is_chosen else self._last_days())
        content: dict[str, Any] = {"form": form, "waits": not is_chosen}
        is_part = request.GET.get(PART) == "figures"
        status = 200
        if not form.is_valid():
            status = 400
        elif is_chosen or is_part:
            try:
                content |= self.read_days(**form.cleaned_data)
            except ApiError as error:
                content["error"] = error
                status = error.status
        if is_part:
            return self.show(self.figures, content)
        return self.show(self.template_name, content, status=status)

    def _last_days(self) -> dict[str, dt.date]:
        return {"first": days_before(self.last_day, self.days - 1), "last": self.last_day}

    def read_days(self, *, first: dt.date, last: dt.date) -> Mapping[str, Any]:
        """Return the context of the figures.

        Raises:
            ApiError: the days cannot be read.
        """
        raise NotImplementedError


class ReportsPage(WindowPage):
    """Stale risk and, for members, leaks."""

    title = "Stale risk and leaks"
    days = 7
    max_days = MAX_DAYS
    figures = "backoffice/tenant/reports.html"

    def read_days(self, *, first: dt.date, last: dt.date) -> Mapping[str, Any]:
        window = Window(first, last)
        log = LogReader(default_store(), self.tenant.pk, self.reader)
        shown: dict[str, Any] = {
            "stale": stale_report(log, window=window, warehouse=read_tables(self.tenant.pk))
        }
        if self.has_access:
            shown["leaks"] = leaks_report(
                log,
                window=window,
                warehouse=read_tables(self.tenant.pk),
                closed=find_closed_of_days(self.tenant.pk, first, last),
            )
        return shown


class VerifyForm(forms.Form):
    """The document to verify."""

    document = forms.ChoiceField(choices=[*Kind.choices, (SAVINGS, "Savings")])
    period = forms.CharField(
        required=False, max_length=10, help_text="2026-03-01, 2026-03 or 2026; empty for the users."
    )
    user = forms.CharField(
        label="User",
        required=False,
        max_length=1000,
        strip=False,
        help_text="For the day, month or year of one user.",
    )

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = self.cleaned_data
        if not self.errors:
            try:
                check_key(values["document"], values["period"], is_of_user=bool(values["user"]))
            except InvalidKey as error:
                self.add_error("user" if error.field == "userId" else error.field, str(error))
        return values


class VerifyPage(BelowInsights):
    """Compare a document with the published queries. Only for members, because it runs SQL over the log."""

    title = "Verify summaries"
    template_name = "backoffice/tenant/verify.html"

    def read(self) -> Mapping[str, Any]:
        return {"form": VerifyForm(initial={"document": Kind.DAY, "period": self.last_day.isoformat()})}

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        self.require_access()
        form = VerifyForm(request.POST)
        content: dict[str, Any] = {"form": form}
        status = 200 if form.is_valid() else 400
        if status == 200:
            values = form.cleaned_data
            key = DocumentKey(self.tenant.pk, values["document"], values["period"], values["user"] or None)
            try:
                verified = verify_document(default_store(), key=key, reader=self.reader)
                content |= {"verified": verified, "key": key}
            except ApiError as error:
                content["error"], status = error, error.status
        return self.show(self.template_name, content, status=status)
