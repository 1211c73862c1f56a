"""``/users/{email}/sessions``: the sign-ins of a user. Contract: Authentication, 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.urls import reverse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.sessions import SessionDocument, end_session, end_sessions, list_sessions, read_session
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import REASON, HalLinks, hrefs, item, links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class SessionList(JsonStruct):
    links: HalLinks = msgspec.field(name="_links")
    sessions: list[SessionDocument]


class SessionViewSet(AppViewSet):
    """The sessions of a user."""

    tag = "Sessions"
    prefix = "users/<email:email>/sessions"

    @route(
        "GET",
        "",
        Level.USER,
        Scope.USERS_READ,
        notes="the user itself and platform admins",
        name="user-sessions",
    )
    @operation(
        summary="A user's sessions that have not ended, newest first",
        description="A session is a sign-in: its refresh token, and the access tokens minted from it.",
        responses={200: SessionList},
    )
    def list_sessions(self, request: Request, email: str) -> Response:
        sessions = list_sessions(self.principal, email=email)
        href = hrefs("user-session", email=email, session_id=0)
        found = links(
            self_href=reverse("user-sessions", kwargs={"email": email}),
            parent=reverse("user", kwargs={"email": email}),
            items=[item(str(session.id), href(session.id)) for session in sessions],
        )
        return Response(SessionList(links=found, sessions=sessions))

    @route(
        "GET",
        "/<int:session_id>",
        Level.USER,
        Scope.USERS_READ,
        notes="the user itself and platform admins",
        name="user-session",
    )
    @operation(
        summary="A session that has not ended",
        responses={200: SessionDocument},
    )
    def get_session(self, request: Request, email: str, session_id: int) -> Response:
        return Response(read_session(self.principal, email=email, session_id=session_id))

    @route(
        "DELETE",
        "/<int:session_id>",
        Level.USER,
        Scope.USERS_WRITE,
        notes="the user itself, and platform admins with a proof",
    )
    @operation(
        summary="End a session, and the access tokens minted from it",
        headers=[REASON],
        responses={200: Success},
    )
    def end_session(self, request: Request, email: str, session_id: int) -> Response:
        end_session(self.principal, email=email, session_id=session_id)
        return Response(Success(success=True, message="The session has ended."))

    @route(
        "DELETE", "", Level.USER, Scope.USERS_WRITE, notes="the user itself, and platform admins with a proof"
    )
    @operation(
        summary="Sign a user out everywhere",
        description="Ends all sessions, all access tokens and open one-time links. Personal access tokens "
        "stay, but must be exchanged again.",
        headers=[REASON],
        responses={200: Success},
    )
    def end_sessions(self, request: Request, email: str) -> Response:
        ended = end_sessions(self.principal, email=email)
        message = f"{email} is signed out everywhere. Sessions that ended: {ended}."
        return Response(Success(success=True, message=message))
