"""Look up an FQDN: its owner, how long it is reserved, and the answer to a claim."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.conf import settings

from accounts.admin.base import StaffPage
from accounts.admin.finding import search_fqdns, tenants_meant
from accounts.limits import limits_of
from accounts.models import Domain, Fqdn, Tenant
from accounts.tenants.fqdns import domain_findings
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.hosts import lies_in, normalize_fqdn
from tenantadmin.lib.core.timestamps import now

#: A search for the claiming tenant shows at most this many to choose from.
_MAX_TENANTS: Final = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason to refuse a claim: status and code of the answer, and a sentence."""

    status: int
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class FoundFqdn:
    """A host name and its owner.

    Attributes:
        holder: the row of the name while a tenant owns it.
        until: set if the tenant released the name; it is reserved for that tenant until then.
        tenant: None if the owner's row is gone.
        domains: the registered domains that contain the name, verified ones first.
    """

    name: str
    holder: Fqdn | None
    tenant: Tenant | None
    until: dt.datetime | None
    platform_domain: str
    domains: Sequence[Domain]

    @property
    def allowed(self) -> Sequence[str]:
        """The accounts whose tenants may claim the name by a verified domain."""
        return list(
            dict.fromkeys(domain.account.name for domain in self.domains if domain.verified_at is not None)
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a claim: 200 without ``refusals``. The reader chooses among several ``tenants``."""

    tenants: Sequence[Tenant]
    refusals: Sequence[Refusal] = field(default=())

    @property
    def tenant(self) -> Tenant | None:
        """The tenant, if exactly one was found."""
        return self.tenants[0] if len(self.tenants) == 1 else None


def find_fqdn(text: str) -> FoundFqdn:
    """Look up a host name as typed.

    Raises:
        BadRequest: it is not a host name.
    """
    try:
        name = normalize_fqdn(text.strip())
    except ValueError as error:
        raise BadRequest(str(error)) from error
    row = Fqdn.objects.filter(name=name).first()
    until = None
    if row is not None and row.released_at is not None:
        until = row.released_at + settings.TOMBSTONE_LIFETIME
        if until <= now():
            row = until = None
    labels = name.split(".")
    around = [".".join(labels[start:]) for start in range(len(labels) - 1)]
    domains = Domain.objects.filter(name__in=around).select_related("account")
    return FoundFqdn(
        name=name,
        holder=row,
        tenant=None
        if row is None
        else Tenant.objects.select_related("account").filter(pk=row.tenant_id).first(),
        until=until,
        platform_domain=next((domain for domain in settings.PLATFORM_DOMAINS if lies_in(name, domain)), ""),
        domains=sorted(
            domains, key=lambda domain: (domain.verified_at is None, -len(domain.name), domain.account.name)
        ),
    )


def try_claim(found: FoundFqdn, search: str) -> Claim:
    """Return the answer the tenant would get if it claimed this FQDN.

    ``search`` is the tenant's id, or beginnings of its name, an FQDN, or a member's name or email.
    """
    matching = Tenant.objects.select_related("account", "config").filter(tenants_meant(search))
    tenants = list(matching[: _MAX_TENANTS + 1])
    if len(tenants) != 1:
        return Claim(tenants)
    return Claim(tenants, list(_refusals(found, tenants[0])))


def _explain_domains(found: FoundFqdn, tenant: Tenant, text: str) -> str:
    """Say which account may verify a domain of the name, where none is verified; else ``text``."""
    if found.platform_domain or not found.domains:
        return text
    own = [domain.name for domain in found.domains if domain.account_id == tenant.account_id]
    others = [
        f"{domain.account.name} ({domain.name})"
        for domain in found.domains
        if domain.account_id != tenant.account_id
    ]
    account = tenant.account.name
    said = (
        f"Its account {account} has registered {' and '.join(own)}, but not verified it. Verify it first."
        if own
        else f"Its account {account} has registered no domain of this name, but may register and verify one."
    )
    race = " The first account to verify a domain has it, and no other account can verify it then."
    registered = f" Registered by others, but not verified: {', '.join(others)}.{race}" if others else ""
    return f"{said}{registered}"


def _refusals(found: FoundFqdn, tenant: Tenant) -> list[Refusal]:
    """Return the reasons in the order in which a write of the configuration checks them."""
    if tenant.deleted_at is not None:
        return [Refusal(404, "not_found", "The tenant is deleted.")]
    names = tenant.config.document["fqdns"]
    if found.name in names:
        return []
    refusals = []
    limit = limits_of(tenant.account.plan).fqdns
    if limit is not None and len(names) >= limit:
        text = f"The plan '{tenant.account.plan}' allows {limit} FQDNs per tenant; this one has {len(names)}."
        refusals.append(Refusal(400, "plan_limit_exceeded", text))
    # The advice to verify the domain would be in vain.
    owners = "" if found.platform_domain else " and ".join(found.allowed)
    verified = [
        domain.name
        for domain in found.domains
        if domain.account_id == tenant.account_id and domain.verified_at is not None
    ]
    refusals += [
        Refusal(
            400, code, f"Its domain belongs to {owners}." if owners else _explain_domains(found, tenant, text)
        )
        for code, text in domain_findings(found.name, verified)
    ]
    if found.holder is not None and found.holder.tenant_id != tenant.pk:
        text = (
            "Another tenant holds it. It must take the name out of its configuration first."
            if found.until is None
            else "Another tenant released it. Until the time above, only that tenant may claim it."
        )
        refusals.append(Refusal(409, "fqdn_conflict", text))
    return refusals


class FqdnPage(StaffPage):
    """Look up an FQDN: its owner, how long it is reserved, and the answer to a claim."""

    title = "FQDNs"
    template_name = "backoffice/accounts/fqdn.html"

    def read(self) -> Mapping[str, Any]:
        fqdn = self.request.GET.get("q", "").strip().replace("\0", "")
        search = self.request.GET.get("tenant", "").strip().replace("\0", "")
        content: dict[str, Any] = {"fqdn": fqdn, "search": search}
        if not fqdn:
            return content
        try:
            found = find_fqdn(fqdn)
        except BadRequest as error:
            others = search_fqdns(fqdn).first()
            return {**content, "others": others} if others else {**content, "error": error}
        content["found"] = found
        if found.holder is None:
            content["others"] = [row for row in search_fqdns(fqdn).first() if row.name != found.name]
        if search:
            content["claim"] = try_claim(found, search)
        return content
