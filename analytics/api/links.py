"""The links to and between operations of this app."""

from __future__ import annotations

from typing import Final

from tenantadmin.lib.http.links import BODY, FIRST, PATH, Step

STEPS: Final = (
    Step("getTenant", ("getYearlySummary", "getUsersSummary"), {"tenant": f"{BODY}tenantId"}),
    Step("createDraft", ("requestReplay",), {"tenant": f"{BODY}tenantId"}, {"draftId": f"{BODY}draftId"}),
    Step("getTenant", ("listReplays",), {"tenant": f"{BODY}tenantId"}),
    Step("listReplays", ("getReplay",), {"tenant": f"{PATH}tenant", "replayId": FIRST}),
    Step(
        "requestReplay",
        ("getReplay", "cancelReplay"),
        {"tenant": f"{BODY}tenantId", "replayId": f"{BODY}replayId"},
    ),
    Step("getTenant", ("listRecommendations", "requestRecommendations"), {"tenant": f"{BODY}tenantId"}),
    Step(
        "listRecommendations",
        ("getRecommendation",),
        {"tenant": f"{PATH}tenant", "recommendationId": FIRST},
    ),
    Step(
        "getYearlySummary",
        ("getMonthlySummary", "getRuleEffectiveness", "getCacheOpportunities", "getWeeklyDigest"),
        {"tenant": f"{PATH}tenant", "year": f"{PATH}year"},
    ),
    Step(
        "getMonthlySummary",
        ("getDailySummary",),
        {"tenant": f"{PATH}tenant", "year": f"{PATH}year", "month": f"{PATH}month"},
    ),
    Step(
        "getDailySummary",
        ("getDailyDigest",),
        {
            "tenant": f"{PATH}tenant",
            "year": f"{PATH}year",
            "month": f"{PATH}month",
            "day": f"{PATH}day",
        },
    ),
    Step(
        "getUsersSummary",
        ("getUserYearlySummary", "getUserMonthlySummary", "getUserDailySummary"),
        {"tenant": f"{PATH}tenant", "userId": f"{BODY}users/0/userId"},
    ),
)
