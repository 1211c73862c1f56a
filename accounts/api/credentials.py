"""``/users/{email}/tokens`` and ``/users/{email}/sessions``. Contract: Authentication, 3 and 4."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.pats import (
    CreatedPatDocument,
    PatDocument,
    PatRequest,
    create_own_pat,
    list_pats,
    read_pat,
    revoke_pat,
    rotate_secret,
)
from accounts.routes import route
from accounts.serializers.users import PatBody, PatRotation
from accounts.sessions import SessionDocument, end_session, end_sessions, list_sessions, read_session
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import REASON, HalLinks, hrefs, item
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class PatList(JsonStruct):
    links: HalLinks = msgspec.field(name="_links")
    tokens: list[PatDocument]


class PersonalAccessTokenViewSet(AppViewSet):
    """The personal access tokens of a user."""

    tag = "Personal access tokens"
    prefix = "users/<email:email>/tokens"

    @route(
        "GET",
        "",
        Level.USER,
        Scope.USERS_READ,
        notes="the user itself and platform admins",
        name="user-tokens",
    )
    @operation(
        summary="A user's personal access tokens that are not revoked, newest first",
        responses={200: PatList},
    )
    def list_personal_access_tokens(self, request: Request, email: str) -> Response:
        tokens = list_pats(self.principal, email=email)
        href = hrefs("user-token", email=email, pat_id=0)
        found = self.links("user", (item(str(token.id), href(token.id)) for token in tokens))
        return Response(PatList(links=found, tokens=tokens))

    @route(
        "POST",
        "",
        Level.USER,
        Scope.USERS_WRITE,
        notes="the user itself and platform admins, with a proof for another user or a wildcard, and without "
        "`logs:read` and `logs:query` for another user; a PAT creates only PATs with no more rights than its "
        "own",
    )
    @operation(
        summary="Make a personal access token; its text is shown this once",
        description="A token that a personal access token makes ends with that one at the latest, is revoked "
        "with it, and ends when the secret that made it is rotated.",
        headers=[REASON],
        body=PatBody,
        responses={201: CreatedPatDocument, 429: refusal(429)},
        examples=[
            OpenApiExample(
                "For the Gateway of one tenant",
                value={
                    "name": "gateway",
                    "scopes": ["cache-admin", "config:read"],
                    "tenants": ["3f2b8f0c-6d2f-4f0e-9a55-0d6f6d1d9f11"],
                },
                request_only=True,
            )
        ],
    )
    def create_personal_access_token(self, request: Request, email: str) -> Response:
        wanted = PatRequest(
            name=self.body["name"],
            scopes=frozenset(Scope(name) for name in self.body["scopes"]),
            tenants=tuple(self.body.get("tenants", ())),
            accounts=tuple(self.body.get("accounts", ())),
            endpoints=tuple(self.body.get("endpoints", ())),
            expires_at=self.body.get("expiresAt"),
        )
        return Response(create_own_pat(self.principal, email=email, wanted=wanted), status=201)

    @route(
        "GET",
        "/<int:pat_id>",
        Level.USER,
        Scope.USERS_READ,
        notes="the user itself and platform admins",
        name="user-token",
    )
    @operation(
        summary="A personal access token that is not revoked, without its text",
        responses={200: PatDocument},
    )
    def get_personal_access_token(self, request: Request, email: str, pat_id: int) -> Response:
        return Response(read_pat(self.principal, email=email, pat_id=pat_id))

    @route(
        "POST",
        "/<int:pat_id>/rotate",
        Level.USER,
        Scope.USERS_WRITE,
        notes="as createPersonalAccessToken",
        name="rotate-user-token",
    )
    @operation(
        summary="Give a personal access token a new secret; its text is shown this once",
        description="The former secret, and the access tokens minted from it, are accepted for "
        "`graceSeconds`. A token has at most two secrets: rotating it again ends the older one at once.",
        headers=[REASON],
        body=PatRotation,
        responses={200: CreatedPatDocument, 429: refusal(429)},
    )
    def rotate_personal_access_token(self, request: Request, email: str, pat_id: int) -> Response:
        grace = dt.timedelta(seconds=self.body["graceSeconds"])
        return Response(rotate_secret(self.principal, email=email, pat_id=pat_id, grace=grace))

    @route(
        "DELETE",
        "/<int:pat_id>",
        Level.USER,
        Scope.USERS_WRITE,
        notes="the user itself, and platform admins with a proof",
    )
    @operation(
        summary="Revoke a personal access token and the tokens minted from it",
        headers=[REASON],
        responses={200: Success},
    )
    def revoke_personal_access_token(self, request: Request, email: str, pat_id: int) -> Response:
        revoke_pat(self.principal, email=email, pat_id=pat_id)
        return Response(Success(success=True, message="The personal access token is revoked."))


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
        found = self.links("user", (item(str(session.id), href(session.id)) for session in sessions))
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
