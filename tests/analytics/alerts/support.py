"""Alerts and their messages for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.access.scopes import Scope
from analytics.jobs.alerts import Reading, record_reading
from analytics.models import Alert, AlertDelivery
from tests import factories
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

WEBHOOK = {"type": "webhook", "url": "https://hooks.example.org/secret?a=b"}
SLACK = {"type": "slack", "url": "https://hooks.example.org/slack-secret"}


def make_alert(world: World, **fields: Any) -> Alert:
    given: dict[str, Any] = {
        "tenant": world.tenant,
        "name": "Errors",
        "kind": "errors",
        "threshold": 5.0,
        "window": 1,
        "channels": [WEBHOOK],
    }
    return Alert.objects.create(**{**given, **fields})


def read_number(alert: Alert, value: float | None) -> None:
    """Evaluate an alert whose number is ``value``."""
    record_reading(Alert.objects.get(pk=alert.pk), Reading(value))


def messages(alert: Alert) -> list[tuple[str, str]]:
    """Return occasion and state of each message of an alert, in the order of the crossings."""
    rows = AlertDelivery.objects.filter(alert=alert).order_by("created_at", "channel_number")
    return list(rows.values_list("occasion", "state"))


def reader(world: World) -> ApiClient:
    """Return a client that may read alerts and not change them."""
    return ApiClient(factories.pat_token(world.member, Scope.ANALYTICS_READ, tenants=[str(world.tenant.pk)]))


def writer(world: World) -> ApiClient:
    """Return a client that may read and change alerts."""
    scopes = (Scope.ANALYTICS_READ, Scope.CONFIG_WRITE)
    return ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))
