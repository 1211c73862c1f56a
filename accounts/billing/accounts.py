"""Create, read, write and delete billing accounts. Every change is a revision of kind ``account``.

``POST /config/accounts``, the first sign-in and commands all use `create_account`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce

from accounts.access.resources import owns_account
from accounts.access.scopes import Scope
from accounts.billing.domains import record_removal
from accounts.diff import diff_documents, summarize_fields
from accounts.limits import Quota, use_quota
from accounts.models import Account, Membership, User
from accounts.models.billing import Plan
from accounts.models.history import RevisionAction, RevisionKind
from accounts.readers.grants import SetAccountOwners
from accounts.readers.rule import Author, change_readers
from accounts.revisions import append_revision, require_unchanged
from accounts.tenants.errors import AccountNotFound, InUse
from tenantadmin.lib.core.errors import Conflict, Detail, Forbidden, ValidationFailed
from tenantadmin.lib.core.rendering import require_etag, strong_etag
from tenantadmin.lib.core.structs import Count, Email, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, later_than, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal


class AccountDocument(JsonStruct):
    """A billing account."""

    account_id: UUID
    name: str
    plan: Annotated[str, one_of(Plan.values)]
    owners: Sequence[Email]
    billing_email: str
    created_at: Timestamp
    modified_at: Timestamp
    seq: Count


@dataclass(frozen=True, slots=True)
class AccountState:
    """An account as it is stored, and the emails of its owners."""

    account: Account
    owners: Sequence[str]

    @property
    def account_id(self) -> UUID:
        return self.account.pk

    @property
    def etag(self) -> str:
        return strong_etag("account", self.account.pk, self.account.seq)

    def document(self) -> dict[str, Any]:
        """Return the document that the history stores."""
        return {
            "name": self.account.name,
            "plan": self.account.plan,
            "owners": list(self.owners),
            "billingEmail": self.account.billing_email,
        }

    def answer(self) -> AccountDocument:
        """Return the contract's Account."""
        return AccountDocument.of(self.account, account_id=self.account.pk, owners=self.owners)


def list_accounts(principal: Principal) -> Iterator[UUID]:
    """Yield the ids of the accounts that the caller may read, by name, in bounded memory."""
    readable = principal.on_accounts.as_q(Scope.CONFIG_READ, account="pk")
    live = Account.objects.live().filter(readable)
    return live.order_by("name", "pk").values_list("pk", flat=True).iterator(chunk_size=2000)


def read_account(account_id: UUID) -> AccountState:
    """Return an account.

    Raises:
        AccountNotFound: there is no such account.
    """
    account = (
        Account.objects.live()
        .filter(pk=account_id)
        .annotate(
            owner_emails=Coalesce(
                ArrayAgg("owners__email", order_by="owners__email", filter=Q(owners__isnull=False)), []
            )
        )
        .first()
    )
    if account is None:
        raise AccountNotFound
    return AccountState(account, account.owner_emails)


def create_account(
    *,
    name: str,
    owners: Sequence[str],
    author: Author,
    plan: str = Plan.FREE,
    billing_email: str = "",
) -> AccountState:
    """Create an account and its first revision (``seq`` 0). Opens its own transaction, or joins the caller's.

    Names and emails are normalized. ``owners`` are emails of existing users.

    Raises:
        ValidationFailed: an owner does not exist.
        SecondFactorRequired: as `change_readers`.
    """
    with transaction.atomic():
        users = _find_owners(owners)
        moment = now()
        account = Account.objects.create(
            name=name,
            plan=plan,
            billing_email=billing_email,
            created_at=moment,
            modified_at=moment,
        )
        change_readers(author, SetAccountOwners(account, users))
        state = AccountState(account, sorted(user.email for user in users))
        _append(state, before={}, action=RevisionAction.CREATE, actor=author.email)
    return state


def write_account(
    *,
    account_id: UUID,
    document: Any,
    parse: Callable[[Any], Mapping[str, Any]],
    author: Author,
    expected_etag: str | None = None,
) -> AccountState:
    """Replace an account's document; an absent ``plan`` stays. Appends the revision.

    ``document`` is the body as sent; ``parse`` checks its shape. ``expected_etag`` is a value of
    ``If-Match``, or None.

    Raises:
        AccountNotFound: there is no such account.
        ValidationFailed: the document is invalid.
        Forbidden: the caller may not change the plan or the owners in this way.
        SecondFactorRequired: a platform admin changes the owners, as `change_readers`.
        Conflict: the account changed since it was read, or ``seq`` is stale.
        RateLimited: see `use_quota`.
    """
    stored = read_account(account_id)
    require_etag(stored.etag, expected=expected_etag)
    sent = parse(document)
    require_unchanged(
        {
            "accountId": (sent.get("accountId"), stored.account_id),
            "createdAt": (sent.get("createdAt"), stored.account.created_at),
        },
        sent_seq=sent.get("seq"),
        stored_seq=stored.account.seq,
    )
    owners = sent["owners"]
    values = {
        "name": sent["name"],
        "plan": sent.get("plan", stored.account.plan),
        "billing_email": sent.get("billingEmail", ""),
    }
    caller = author.principal
    if caller is not None and not caller.is_platform_admin:
        if values["plan"] != stored.account.plan:
            raise Forbidden("Only a platform admin changes the plan of an account.")
        _require_owners(caller, stored, owners=set(owners))
    if caller is not None:
        use_quota(Quota.DOCUMENTS, account_id, [*values.values(), owners])
    with transaction.atomic():
        moment = later_than(stored.account.modified_at)
        seq = stored.account.seq
        unchanged = Account.objects.live().filter(pk=account_id, seq=seq)
        if not unchanged.update(**values, seq=seq + 1, modified_at=moment):
            raise Conflict
        users = _find_owners(owners)
        account = Account.objects.get(pk=account_id)
        if {user.email for user in users} != set(stored.owners):
            change_readers(author, SetAccountOwners(account, users))
        state = AccountState(account, sorted(user.email for user in users))
        _append(state, before=stored.document(), action=RevisionAction.UPDATE, actor=author.email)
    return state


def remove_owner(account: Account, *, user: User, author: Author) -> None:
    """Remove an owner who is about to be deleted, and append the revision.

    Unlike `write_account`, it may leave the account without an owner. The caller has locked the account.
    """
    stored = read_account(account.pk)
    change_readers(author, SetAccountOwners(account, account.owners.exclude(pk=user.pk)))
    account.seq += 1
    account.modified_at = later_than(account.modified_at)
    account.save(update_fields=["seq", "modified_at"])
    state = AccountState(account, [email for email in stored.owners if email != user.email])
    _append(state, before=stored.document(), action=RevisionAction.UPDATE, actor=author.email)


def delete_account(*, account_id: UUID, author: Author) -> None:
    """Delete an account that has no live tenants. Its history stays.

    Domains, owners and grants are deleted at once. The row itself is hidden and stays until the last
    tombstone of its tenants is removed.

    Raises:
        AccountNotFound: there is no such account.
        InUse: the account has live tenants.
        SecondFactorRequired: as `change_readers`.
    """
    stored = read_account(account_id)
    with transaction.atomic():
        # Creating a tenant locks this row too, so no tenant can appear between the count and the deletion.
        account = Account.objects.live().select_for_update().filter(pk=account_id).first()
        if account is None:
            raise AccountNotFound
        live = account.tenants.live().count()
        if live:
            raise InUse(f"The account has live tenants ({live}). Delete them first.")
        for domain in account.domains.all():
            record_removal(domain, actor=author.email)
        account.domains.all().delete()
        change_readers(author, SetAccountOwners(account, (), is_deleted=True))
        account.deleted_at = account.modified_at = later_than(account.modified_at)
        account.seq += 1
        account.save(update_fields=["deleted_at", "modified_at", "seq"])
        append_revision(
            kind=RevisionKind.ACCOUNT,
            account_id=account_id,
            tenant_id=None,
            seq=account.seq,
            action=RevisionAction.DELETE,
            actor=author.email,
            changed_at=account.modified_at,
            summary=summarize_fields(diff_documents(before=stored.document(), after={})),
            document=None,
        )


def remove_deleted_accounts() -> int:
    """Remove the rows of deleted accounts that have no tombstones of tenants left; return how many."""
    removed, _ = Account.objects.filter(deleted_at__isnull=False, tenants__isnull=True).delete()
    return removed


def _require_owners(caller: Principal, stored: AccountState, *, owners: set[str]) -> None:
    """Refuse owners that the caller may not give to an account. It is not told which addresses are users.

    Raises:
        Forbidden: the caller does not own the account, or a new owner is in no tenant whose users the caller
            may read.
    """
    if owners == set(stored.owners):
        return
    if not owns_account(caller, stored.account_id):
        raise Forbidden("Only an owner of the account or a platform admin changes its owners.")
    visible = caller.rights.own_on_tenants.as_q(Scope.USERS_READ, tenant="tenant", account="tenant__account")
    members = Membership.objects.in_force().filter(visible, tenant__deleted_at=None, user__email__in=owners)
    if owners - set(stored.owners) - set(members.values_list("user__email", flat=True)):
        raise Forbidden(
            "New owners must be members of your tenants. To add someone, invite the address first: "
            "POST /config/tenants/{tenant}/invitations."
        )


def _find_owners(emails: Sequence[str]) -> list[User]:
    found = {user.email: user for user in User.objects.filter(email__in=emails)}
    missing = [
        Detail(f"/owners/{index}", "unknown-user", f"There is no user '{email}'.")
        for index, email in enumerate(emails)
        if email not in found
    ]
    if missing:
        raise ValidationFailed(details=missing)
    return list(found.values())


def _append(state: AccountState, *, before: Mapping[str, Any], action: str, actor: str) -> None:
    after = state.document()
    append_revision(
        kind=RevisionKind.ACCOUNT,
        account_id=state.account.pk,
        tenant_id=None,
        seq=state.account.seq,
        action=action,
        actor=actor,
        changed_at=state.account.modified_at,
        summary=summarize_fields(diff_documents(before=before, after=after)),
        document=after,
    )
