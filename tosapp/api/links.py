"""The links between operations of this app."""

from __future__ import annotations

from typing import Final

from tenantadmin.lib.http.links import BODY, PATH, Step

STEPS: Final = (
    Step("publishTos", ("getTos",), {}),
    Step("publishTos", ("getHistoricalTos",), {"md5": f"{BODY}hash"}),
    Step("publishTos", ("acknowledgeTos",), {}, {"markdown": "$request.body#/markdown"}),
    Step("acknowledgeTos", ("listAcknowledgements",), {"email": f"{PATH}email"}),
    Step("getTos", ("getHistoricalTos",), {"md5": "$response.header.X-Tos-Hash"}),
)
