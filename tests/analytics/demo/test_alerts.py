"""The demo crosses thresholds: of docs/alerts.md, of a log that has stopped, and of the whole service."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F

from accounts.models import Tenant
from analytics.demo.logs import read_demo
from analytics.demo.seed import make_last_digests, seed_demo
from analytics.jobs.alerts import evaluate_service, evaluate_tenant
from analytics.models import AlertFiring, Digest, TenantHealth
from analytics.watch.alerts import create_alert
from tenantadmin.lib.objectstore import default_store

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).resolve().parents[3] / "docs" / "alerts.md"


@pytest.mark.slow
def test_the_documented_alert_fires_on_the_demo(tmp_path: Path, settings: Any) -> None:
    settings.VAR_DIR = tmp_path / "var"
    demo = read_demo()
    for _ in seed_demo(default_store(), demo, today=datetime.now(UTC).date(), days=4, share=0.3):
        pass
    call_command("rebuild")
    make_last_digests(default_store())
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    assert Digest.objects.filter(period=yesterday.isoformat()).count() == 2
    documented = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert documented is not None
    owner = {"type": "email", "to": demo.people.owner.email}
    wanted = {**json.loads(documented[1]), "channels": [owner], "enabled": True}
    first = Tenant.objects.get(name=demo.profiles[0].config["tenantName"])
    stopped = Tenant.objects.get(name=demo.people.stranger.tenant)
    create_alert(tenant_id=first.pk, wanted=wanted, actor="x")
    stranger = {"type": "email", "to": demo.people.stranger.email}
    for kind in ("log-late", "build-failed"):
        other = {"name": kind, "kind": kind, "channels": [stranger], "enabled": True}
        create_alert(tenant_id=stopped.pk, wanted=other, actor="x")
    for tenant in (first, stopped):
        evaluate_tenant(default_store(), tenant=tenant.pk)
    settings.SERVICE_ALERT_CHANNELS = ["ops@example.org"]
    evaluate_service()
    assert not AlertFiring.objects.filter(alert__tenant=None).exists()
    # An hour later: the demo gets a log only at midnight.
    TenantHealth.objects.update(updated_at=F("updated_at") - timedelta(hours=1))
    evaluate_service()
    fired = AlertFiring.objects.values_list("alert__tenant", "alert__kind")
    assert set(fired) == {
        (first.pk, wanted["kind"]),
        (stopped.pk, "log-late"),
        (stopped.pk, "build-failed"),
        (None, "log-late"),
    }
