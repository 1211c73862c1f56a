"""The page that restores a deleted tenant."""

from __future__ import annotations

from typing import Any, ClassVar

from accounts.admin.pages.base import TenantActPage
from accounts.models.users import StaffRole
from accounts.tenants.lifecycle import restore_tenant


class RestoreTenantPage(TenantActPage):
    """Make a deleted tenant live again."""

    title = "Restore the tenant"
    name = "tenant.restored"
    button = "Restore"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    effect = (
        "The tenant will be live again with the configuration, rules, FQDNs and members that it had. "
        "Gateways will start with an empty cache. It is refused if another tenant has its name or an FQDN "
        "now."
    )

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        restored = restore_tenant(tenant_id=self.tenant.pk, actor=self.actor)
        return f"{self.tenant.name} is live again.", {"seq": restored.seq}
