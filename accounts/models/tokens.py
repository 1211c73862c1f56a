"""Credentials: sessions, personal access tokens, one-time links. Only their SHA-256 is kept."""

from __future__ import annotations

from typing import Final, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Exists, OuterRef, Q, Value

from accounts.models.querysets import RevocableQuerySet
from accounts.models.users import User
from tenantadmin.lib.core.timestamps import now

#: The name of tokens that the dashboard makes for itself (pats.js).
OF_DASHBOARD: Final = "Dashboard, until sign-out"


class Credential(models.Model):
    """What refresh tokens and personal access tokens share."""

    #: SHA-256 of the token's text.
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    #: The first characters of the text, to recognise it by.
    prefix = models.CharField(max_length=24, editable=False)
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.prefix}…"


class RefreshToken(Credential):
    """The session of a sign-in: exchanged for access tokens until it expires or is revoked."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="refresh_tokens")
    #: The identity provider of the sign-in; empty for a one-time link.
    provider = models.CharField(max_length=60, blank=True, default="", db_default="", editable=False)
    #: The network address and the browser that signed in.
    address = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    user_agent = models.CharField(max_length=400, blank=True, default="", db_default="", editable=False)
    #: How the session was proven: ways with the time of the last proof in epoch seconds
    #: (`accounts.access.assurance`).
    amr = models.JSONField(default=dict, db_default=Value({}, models.JSONField()), editable=False)
    #: The second factor that was used. Null if none was, and after the user has removed it.
    second_factor = models.ForeignKey(
        "mfa.Authenticator", null=True, on_delete=models.SET_NULL, related_name="+", editable=False
    )
    #: True for a session that staff began to look at a customer's tenant (`accounts.signin.flow`).
    is_staff = models.BooleanField("staff", default=False, db_default=False, editable=False)

    objects = RevocableQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=["-created_at", "-id"], name="refresh_token_newest"),
            models.Index(fields=["prefix"], name="refresh_token_prefix", opclasses=["varchar_pattern_ops"]),
        )


class PatQuerySet(RevocableQuerySet["PersonalAccessToken"]):
    def in_force(self) -> Self:
        """Return the tokens that are neither revoked nor expired, nor made by a session that is."""
        sessions = RefreshToken.objects.in_force().filter(pk=OuterRef("session_id"))
        return super().in_force().filter(Q(session_id=None) | Exists(sessions))


class PersonalAccessToken(Credential):
    """A service account's credential: what it may do, on which tenants, at which endpoints."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="personal_access_tokens")
    expires_at = models.DateTimeField()
    #: Counts the secrets: each rotation makes a new one. Access tokens name the one they were minted from.
    secret_number = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    #: SHA-256 of the secret before the last rotation, and when it ends.
    previous_digest = models.BinaryField(max_length=32, null=True, unique=True, editable=False)
    previous_ends_at = models.DateTimeField(null=True, editable=False)
    #: When the owner was told by mail that it ends (`accounts.pats`).
    end_mailed_at = models.DateTimeField(null=True, editable=False)
    name = models.CharField(max_length=100)
    scopes = ArrayField(models.CharField(max_length=40))
    #: Tenant ids, or ``["*"]``.
    tenants = ArrayField(models.CharField(max_length=36), default=list, blank=True)
    #: Account ids, or ``["*"]``.
    accounts = ArrayField(models.CharField(max_length=36), default=list, blank=True)
    #: ``[{methods: [...], path: glob}]``; empty means every endpoint.
    endpoints = models.JSONField(default=list, blank=True)
    #: The token, or the session of staff, that made it. It ends with that. Processes of the previous release
    #: delete these rows without it.
    made_with = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.CASCADE,
        related_name="made",
        db_constraint=False,
        db_index=False,
        editable=False,
    )
    session = models.ForeignKey(
        RefreshToken,
        null=True,
        on_delete=models.CASCADE,
        related_name="made",
        db_constraint=False,
        db_index=False,
        editable=False,
    )

    objects = PatQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        # Which tokens name a tenant or an account, or all by a wildcard.
        indexes = (
            GinIndex(fields=["tenants"], name="pat_on_tenants"),
            GinIndex(fields=["accounts"], name="pat_on_accounts"),
            models.Index(fields=["-created_at", "-id"], name="pat_newest"),
            models.Index(
                fields=["-created_at", "-id"],
                name="pat_newest_of_people",
                condition=~models.Q(name=OF_DASHBOARD),
            ),
            models.Index(fields=["prefix"], name="pat_prefix", opclasses=["varchar_pattern_ops"]),
            models.Index(
                fields=["expires_at"],
                name="pat_end_not_mailed",
                condition=models.Q(end_mailed_at=None, revoked_at=None),
            ),
            models.Index(
                fields=["made_with"], name="pat_made_with", condition=models.Q(made_with__isnull=False)
            ),
            models.Index(
                fields=["session"], name="pat_of_session", condition=models.Q(session__isnull=False)
            ),
        )


class MagicLink(models.Model):
    """An emailed link, valid once and until it expires. Its email may not belong to a user yet."""

    #: SHA-256 of the token's text.
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    email = models.EmailField(max_length=320, db_index=True)
    #: Where signing in leads, unless verifying names another target.
    return_to = models.CharField(max_length=4096)
    created_at = models.DateTimeField(default=now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (models.Index(fields=["-created_at", "-id"], name="magic_link_newest"),)

    def __str__(self) -> str:
        return f"link for {self.email}"

    def is_open(self) -> bool:
        """Return True if the link is neither used nor expired."""
        return self.used_at is None and self.expires_at > now()
