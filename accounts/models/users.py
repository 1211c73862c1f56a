"""People, what they may do, and what staff keep for themselves. Contract: User, Roles, Tenant membership."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models.functions import Upper
from django.utils.crypto import salted_hmac

from accounts.models.querysets import MembershipQuerySet, words_of
from tenantadmin.lib.core.emails import check_email, normalize_email
from tenantadmin.lib.core.timestamps import now


class PrimaryRole(models.TextChoices):
    """The role that decides access."""

    ADMIN = "admin"
    USER = "user"
    GUEST = "guest"


class StaffRole(models.TextChoices):
    """A staff member's role on the admin site. Admins may do everything that support may do."""

    SUPPORT = "support"
    ADMIN = "admin"


class MembershipRole(models.TextChoices):
    """What a user is in one tenant."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class UserManager(BaseUserManager["User"]):
    """Creates users under their normalized email."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """Create a user.

        Raises:
            ValueError: ``email`` is no address (`check_email`).
        """
        user = self.model(email=check_email(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def lock_or_create(self, email: str) -> tuple[User, bool]:
        """Return the user with this email, and whether it was created now, with default values. Lock its row.

        If two transactions create the same user, both get the same row. A new user has no password.
        """
        user, is_new = self.get_or_create(email=email, defaults={"password": make_password(None)})
        return self.select_for_update(no_key=True).get(pk=user.pk), is_new

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, **{**fields, "role": PrimaryRole.ADMIN})

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=normalize_email(username or ""))


class User(AbstractBaseUser):
    """A person, keyed by email. ``last_login`` is ``identity.lastLoginAt``.

    The password is for the admin site alone; the API signs people in through an identity provider or a link.
    """

    email = models.EmailField(max_length=320, unique=True)
    display_name = models.CharField(max_length=200, blank=True, default="")
    role = models.CharField(max_length=10, choices=PrimaryRole.choices, default=PrimaryRole.USER)
    #: Scopes in addition to the scopes of role and memberships (``roles.scopes``).
    scopes = ArrayField(models.CharField(max_length=40), default=list, blank=True)
    identity_provider = models.CharField(max_length=60, blank=True, default="")
    identity_subject = models.CharField(max_length=255, blank=True, default="")
    email_verified = models.BooleanField(default=False)
    #: MD5 of the terms last acknowledged; empty before the first time.
    tos = models.CharField(max_length=32, blank=True, default="")
    is_active = models.BooleanField("active", default=True)
    #: Whether the user may look, invalidate and rebuild on the admin site. It gives no right in the API.
    is_support = models.BooleanField("support", default=False, db_default=False)
    #: Access tokens name the epoch of their user. A new epoch ends them all, for good.
    epoch = models.UUIDField(default=uuid.uuid4, db_default=RandomUUID(), editable=False)
    created_at = models.DateTimeField(default=now, editable=False)
    modified_at = models.DateTimeField(default=now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering = ("email",)
        constraints = (
            models.UniqueConstraint(
                fields=["identity_provider", "identity_subject"],
                condition=~models.Q(identity_subject=""),
                name="user_identity_unique",
            ),
        )
        indexes = (
            # Who has acknowledged which terms.
            models.Index(fields=["tos", "email"], name="user_by_terms", condition=models.Q(is_active=True)),
            models.Index(
                fields=["email"],
                name="user_staff",
                condition=models.Q(role="admin") | models.Q(is_support=True),
            ),
            # What staff search by.
            models.Index(OpClass(Upper("display_name"), name="text_pattern_ops"), name="user_name_start"),
            GinIndex(SearchVector("display_name", config="simple"), name="user_words"),
            GinIndex(words_of("email"), name="user_email_words"),
        )

    def __str__(self) -> str:
        return self.email

    @property
    def staff_role(self) -> StaffRole | None:
        """The role on the admin site, or None. Platform admins have `StaffRole.ADMIN`."""
        if not self.is_active:
            return None
        if self.role == PrimaryRole.ADMIN:
            return StaffRole.ADMIN
        return StaffRole.SUPPORT if self.is_support else None

    @property
    def is_staff(self) -> bool:
        """Return True if the user may enter the admin site."""
        return self.staff_role is not None

    @property
    def is_platform_admin(self) -> bool:
        """Return True for an active platform admin."""
        return self.staff_role is StaffRole.ADMIN

    @property
    def is_superuser(self) -> bool:
        return self.is_platform_admin

    def get_session_auth_hash(self) -> str:
        """Return a value that changes with password and epoch: sessions of the admin site end with them."""
        return salted_hmac("accounts.User", f"{self.password}{self.epoch}", algorithm="sha256").hexdigest()

    def has_usable_password(self) -> bool:
        """Return True if the user has a password. Older rows have an empty text if there is none."""
        return bool(self.password) and super().has_usable_password()

    def has_perm(self, perm: str, obj: object = None) -> bool:  # noqa: ARG002
        return self.is_staff

    def has_perms(self, perm_list: Any, obj: object = None) -> bool:  # noqa: ARG002
        return self.is_staff

    def has_module_perms(self, app_label: str) -> bool:  # noqa: ARG002
        return self.is_staff


class Membership(models.Model):
    """One user's role in one tenant."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    tenant = models.ForeignKey("accounts.Tenant", on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=MembershipRole.choices)
    #: When it ends by itself: the access that staff take for a limited time. Null: it lasts.
    ends_at = models.DateTimeField(null=True, blank=True, db_index=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=["user", "tenant"], name="membership_unique"),)

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant_id}"


class AuditView(models.Model):
    """Filters of the audit that a member of staff has saved under a name."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="audit_views")
    name = models.CharField(max_length=100)
    #: The query of the page's address: ``{name: text}``.
    filters = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=["user", "name"], name="audit_view_once"),)

    def __str__(self) -> str:
        return self.name


class Snooze(models.Model):
    """A row of Home that a member of staff does not want to see for some days, or until it changes."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="snoozes")
    #: The panel of Home, and the row's key in it.
    panel = models.CharField(max_length=16)
    subject = models.CharField(max_length=64)
    until = models.DateTimeField()
    #: What the row said when it was acknowledged: a list of texts, or a number. It is shown again when it
    #: says more. Null: it was snoozed.
    seen = models.JSONField(null=True)

    class Meta:
        ordering = ("pk",)
        constraints = (models.UniqueConstraint(fields=["user", "panel", "subject"], name="snooze_once"),)

    def __str__(self) -> str:
        return f"{self.panel}: {self.subject}"
