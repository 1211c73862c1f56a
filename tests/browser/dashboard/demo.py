"""The demo as the tests of the dashboard see it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from accounts.models import Membership, PermissionGrant, User
from tests import factories

#: For tests of how pages read, write and download. A browser does so from another origin if it is allowed.
at_both_origins = pytest.mark.parametrize("home", ["own", "other"], indirect=True)


class Demo:
    """The demo's first tenant and the people who may see it."""

    def __init__(self) -> None:
        found = json.loads((Path(django_settings.VAR_DIR) / "demo.json").read_text())
        self.tenant: str = found["tenants"][0]["tenantId"]
        self.name: str = found["tenants"][0]["name"]
        self.other: str = found["tenants"][1]["tenantId"]
        self.last_day = date.fromisoformat(found["lastDay"])
        self.owner = User.objects.get(email="owner@meridian.example")
        self.member = User.objects.get(email="member@meridian.example")
        self.admin = factories.make_user("tenant-admin@example.org")
        self.guest = factories.make_user("guest@example.org", role="guest")
        self.auditor = factories.make_user("auditor@example.org")
        PermissionGrant.objects.create(
            grantee=self.auditor,
            resource="tenant",
            resource_id=self.tenant,
            permissions=["analytics:numbers", "config:read"],
        )
        Membership.objects.create(user=self.admin, tenant_id=self.tenant, role="admin")
        Membership.objects.create(user=self.guest, tenant_id=self.tenant, role="member")
