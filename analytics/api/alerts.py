"""The alerts of a tenant."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from msgspec import Meta
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.serializers.fields import EmailField
from accounts.serializers.users import Rotation
from accounts.tenants.config import read_prices
from accounts.tenants.pricing import Pricing
from accounts.viewsets import AppViewSet, require_tenant_scope
from analytics.watch.alert_kinds import TENANT_KINDS
from analytics.watch.alerts import (
    CHANNEL_TYPES,
    MAX_ALERTS,
    MAX_CHANNELS,
    PAGERDUTY_URL,
    AlertDeliveryDocument,
    alert_etag,
    create_alert,
    delete_alert,
    describe_delivery,
    firing_of,
    list_alerts,
    list_deliveries,
    list_firings,
    read_alert,
    replace_alert,
    rotate_secret,
)
from analytics.words.alert_numbers import (
    AlertDocument,
    AlertFiringDocument,
    AlertKindDocument,
    describe_alert,
    describe_firing,
    list_kinds,
)
from analytics.words.alerts import AlertChannelTest, send_test, try_channels
from tenantadmin.lib.core.errors import Forbidden
from tenantadmin.lib.core.outgoing import MAX_URL, check_url, parse_exceptions
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import ETAG, IF_MATCH, LOCATION, ItemList, ListLinks, hrefs, item, link
from tenantadmin.lib.http.schema import STALE, refusal
from tenantadmin.lib.http.serializers import (
    JsonBooleanField,
    JsonIntegerField,
    LineField,
    OneOfField,
    StrictCharField,
    StrictRegexField,
    StrictSerializer,
    StrictUuidField,
)
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request

    from analytics.models import Alert, AlertDelivery


_MAX_NUMBER: Final = 1e300
_ROUTING_KEY: Final = r"^[A-Za-z0-9]{32}$"
_TIME: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


class JsonNumberField(serializers.FloatField):
    """A number in a JSON body. Text is refused."""

    def to_internal_value(self, data: Any) -> float:
        # A larger integer is no float.
        if isinstance(data, bool) or not isinstance(data, int | float) or not abs(data) <= _MAX_NUMBER:
            raise serializers.ValidationError("Give a number.", code="invalid")
        return float(data)


class WebhookUrlField(StrictCharField):
    """The URL of a receiver. The host is in lower case."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_URL, trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        exceptions = parse_exceptions(tuple(settings.WEBHOOK_EXCEPTIONS))
        try:
            return check_url(super().to_internal_value(data), exceptions=exceptions)
        except ValueError as error:
            raise serializers.ValidationError(str(error), code="invalid-url") from error


class AlertChannelBody(StrictSerializer):
    """Where messages go: ``email`` has ``to``, a member's address; ``pagerduty`` ``key``; others ``url``."""

    type = OneOfField(choices=CHANNEL_TYPES)
    to = EmailField(required=False)
    url = WebhookUrlField(
        required=False,
        help_text=f"`https` alone, and a public host. Of `pagerduty` by default {PAGERDUTY_URL}.",
    )
    key = StrictRegexField(_ROUTING_KEY, required=False, help_text="The routing key of `pagerduty`.")

    def validate(self, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        kind = attrs["type"]
        if kind == "pagerduty":
            attrs = {"url": PAGERDUTY_URL, **attrs}
        wanted = {"email": {"to"}, "pagerduty": {"url", "key"}}.get(kind, {"url"})
        problems = {name: [f"A channel of the type '{kind}' needs it."] for name in wanted - attrs.keys()}
        for name in attrs.keys() - wanted - {"type"}:
            problems[name] = [f"A channel of the type '{kind}' does not have it."]
        if problems:
            raise serializers.ValidationError(problems)
        return attrs


class AlertQuietHoursBody(StrictSerializer):
    """A time of each day, in UTC, in which no message is sent."""

    from_ = StrictRegexField(_TIME, help_text="`HH:MM`")
    to = StrictRegexField(_TIME, help_text="`HH:MM`; earlier than `from` if a midnight is between.")

    def validate(self, attrs: Mapping[str, Any]) -> Mapping[str, Any]:
        if attrs["from"] == attrs["to"]:
            raise serializers.ValidationError({"to": ["Give another time than `from`."]})
        return attrs


class AlertBody(StrictSerializer):
    """An alert. The list of alerts has the defaults and units of ``threshold`` and ``window`` by kind."""

    name = LineField(max_length=100)
    kind = OneOfField(choices=TENANT_KINDS)
    threshold = JsonNumberField(required=False)
    window = JsonIntegerField(required=False, min_value=1, max_value=168)
    channels = serializers.ListField(child=AlertChannelBody(), min_length=1, max_length=MAX_CHANNELS)
    quietHours = AlertQuietHoursBody(required=False, allow_null=True)
    enabled = JsonBooleanField(required=False, default=True)


class AlertTestBody(AlertBody):
    """An alert as it would be created, or as it would replace another."""

    alertId = StrictUuidField(
        required=False, help_text="The alert that it would replace. Its secrets sign webhooks."
    )


class AlertRotation(Rotation):
    """How long messages have a signature by the former secret too."""


_EXAMPLE: Final = OpenApiExample(
    "A fallen hit rate",
    value={
        "name": "Hit rate",
        "kind": "hit-rate-fell",
        "threshold": 10,
        "window": 24,
        "channels": [
            {"type": "email", "to": "grace@example.org"},
            {"type": "webhook", "url": "https://hooks.example.org/alerts"},
        ],
    },
    request_only=True,
)


class AlertList(ItemList):
    """The alerts of a tenant, and the kinds that it may have."""

    alerts: list[AlertDocument]
    kinds: list[AlertKindDocument]
    currency: Annotated[
        str | None, Meta(description="The currency of thresholds in `money`. Null if no price is set.")
    ]
    limit: Annotated[int, Meta(description="How many alerts a tenant may have.")]


class AlertHistory(JsonStruct):
    links: ListLinks = msgspec.field(name="_links")
    firings: list[AlertFiringDocument]


class AlertDeliveries(JsonStruct):
    links: ListLinks = msgspec.field(name="_links")
    deliveries: list[AlertDeliveryDocument]


class AlertChannelTests(JsonStruct):
    """What became of the test messages, in the order of the channels."""

    tests: list[AlertChannelTest]


class AlertViewSet(AppViewSet):
    """The alerts of a tenant."""

    tag = "Alerts"
    prefix = "tenants/<uuid:tenant>/alerts"

    @route("GET", "", Level.TENANT, Scope.ANALYTICS_READ, name="alerts")
    @operation(summary="The alerts of a tenant, newest first", responses={200: AlertList})
    def list_alerts(self, request: Request, tenant: UUID) -> Response:
        """With the kinds of alerts, their units, defaults and limits."""
        alerts = list_alerts(tenant)
        href = hrefs("alert", tenant=tenant, alertId=tenant)
        return Response(
            AlertList(
                links=self.links("tenant", (item(alert.name, href(alert.pk)) for alert in alerts)),
                alerts=[self._describe(alert) for alert in alerts],
                kinds=list_kinds(),
                currency=Pricing.of(read_prices(tenant)).currency,
                limit=MAX_ALERTS,
            )
        )

    @route("POST", "", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(
        summary="Create an alert",
        body=AlertBody,
        headers=[ETAG, LOCATION],
        responses={201: AlertDocument},
        examples=[_EXAMPLE],
    )
    def create_alert(self, request: Request, tenant: UUID) -> Response:
        """It is evaluated at once, after each build of a day, and every ten minutes.

        A mail is sent to members alone, and only after they have signed in.
        """
        alert = create_alert(tenant_id=tenant, wanted=self.body, actor=self.principal.email)
        location = reverse("alert", kwargs={"tenant": tenant, "alertId": alert.pk})
        return self._respond(alert, status=201, Location=location)

    @route("GET", "/<uuid:alertId>", Level.TENANT, Scope.ANALYTICS_READ, name="alert")
    @operation(summary="Read an alert", headers=[ETAG], responses={200: AlertDocument})
    def get_alert(self, request: Request, tenant: UUID, alertId: UUID) -> Response:  # noqa: N803
        """Its definition, and whether it fires. The `ETag` changes with the definition alone."""
        return self._respond(read_alert(tenant_id=tenant, alert_id=alertId))

    @route("PUT", "/<uuid:alertId>", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(
        summary="Replace an alert",
        body=AlertBody,
        headers=[IF_MATCH, ETAG],
        responses={200: AlertDocument, 409: STALE},
        examples=[_EXAMPLE],
    )
    def replace_alert(self, request: Request, tenant: UUID, alertId: UUID) -> Response:  # noqa: N803
        """If it is switched off while it fires, the firing ends without a message."""
        alert = replace_alert(
            tenant_id=tenant,
            alert_id=alertId,
            wanted=self.body,
            actor=self.principal.email,
            expected_etag=request.headers.get("If-Match"),
        )
        return self._respond(alert)

    @route("DELETE", "/<uuid:alertId>", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(
        summary="Delete an alert with its history",
        headers=[IF_MATCH],
        responses={200: Success, 409: STALE},
    )
    def delete_alert(self, request: Request, tenant: UUID, alertId: UUID) -> Response:  # noqa: N803
        """Its queued messages are not sent."""
        delete_alert(
            tenant_id=tenant,
            alert_id=alertId,
            actor=self.principal.email,
            expected_etag=request.headers.get("If-Match"),
        )
        return Response(Success(success=True, message="The alert is deleted."))

    @route("POST", "/<uuid:alertId>/test", Level.TENANT, Scope.CONFIG_WRITE, name="alert-test")
    @operation(
        summary="Send a test message to each channel of an alert",
        queue="ALERT_TEST_LIMIT",
        responses={
            202: AlertDeliveries,
            429: refusal(429, "The tenant has sent too many tests."),
        },
    )
    def test_alert(self, request: Request, tenant: UUID, alertId: UUID) -> Response:  # noqa: N803
        """The messages are sent within seconds. `deliveries` of the alert says how that ended."""
        sent = send_test(tenant_id=tenant, alert_id=alertId, actor=self.principal.email)
        return Response(self._deliveries(tenant, alertId, sent), status=202)

    @route("POST", "/test", Level.TENANT, Scope.CONFIG_WRITE, name="alert-channels-test")
    @operation(
        summary="Send a test message to each channel before an alert is created or replaced",
        queue="ALERT_TEST_LIMIT",
        body=AlertTestBody,
        responses={
            200: AlertChannelTests,
            429: refusal(429, "The tenant has sent too many tests, or one is still being sent."),
        },
        examples=[_EXAMPLE],
    )
    def test_alert_channels(self, request: Request, tenant: UUID) -> Response:
        """It answers within seconds what each receiver answered, and stores nothing.

        Without `alertId`, webhooks have a signature that no receiver can verify yet.
        """
        wanted = {name: value for name, value in self.body.items() if name != "alertId"}
        tests = try_channels(
            tenant_id=tenant,
            wanted=wanted,
            actor=self.principal.email,
            alert_id=self.body.get("alertId"),
        )
        return Response(AlertChannelTests(tests=tests))

    @route("POST", "/<uuid:alertId>/rotate", Level.TENANT, Scope.CONFIG_WRITE, name="alert-rotate")
    @operation(
        summary="Give an alert a new secret for its webhooks",
        body=AlertRotation,
        responses={200: AlertDocument},
    )
    def rotate_alert_secret(self, request: Request, tenant: UUID, alertId: UUID) -> Response:  # noqa: N803
        """For `graceSeconds`, the former secret signs messages too. An older one ends at once."""
        alert = rotate_secret(
            tenant_id=tenant,
            alert_id=alertId,
            grace=timedelta(seconds=self.body["graceSeconds"]),
            actor=self.principal.email,
        )
        return Response(self._describe(alert))

    @route("GET", "/history", Level.TENANT, Scope.ANALYTICS_READ, name="alert-history")
    @operation(
        summary="When the alerts of a tenant fired, newest first, at most 200",
        responses={200: AlertHistory},
    )
    def list_alert_history(self, request: Request, tenant: UUID) -> Response:
        """Firings are kept for 90 days after their end."""
        own_links = ListLinks(
            self_=link(reverse("alert-history", kwargs={"tenant": tenant})),
            parent=link(reverse("alerts", kwargs={"tenant": tenant})),
        )
        firings = [describe_firing(firing) for firing in list_firings(tenant)]
        return Response(AlertHistory(links=own_links, firings=firings))

    @route("GET", "/<uuid:alertId>/deliveries", Level.TENANT, Scope.ANALYTICS_READ, name="alert-deliveries")
    @operation(
        summary="The messages of an alert, newest first, at most 200",
        responses={200: AlertDeliveries},
    )
    def list_alert_deliveries(self, request: Request, tenant: UUID, alertId: UUID) -> Response:  # noqa: N803
        """Each is tried for 24 hours. Messages are kept for 90 days."""
        return Response(
            self._deliveries(tenant, alertId, list_deliveries(tenant_id=tenant, alert_id=alertId))
        )

    def _deliveries(self, tenant: UUID, alert_id: UUID, found: list[AlertDelivery]) -> AlertDeliveries:
        own = {"tenant": tenant, "alertId": alert_id}
        return AlertDeliveries(
            links=ListLinks(
                self_=link(reverse("alert-deliveries", kwargs=own)),
                parent=link(reverse("alert", kwargs=own)),
            ),
            deliveries=[describe_delivery(delivery) for delivery in found],
        )

    def _respond(self, alert: Alert, *, status: int = 200, **headers: str) -> Response:
        return Response(self._describe(alert), status=status, headers={"ETag": alert_etag(alert), **headers})

    def _describe(self, alert: Alert) -> AlertDocument:
        return describe_alert(alert, firing=firing_of(alert), shows_secrets=self._may_write)

    @property
    def _may_write(self) -> bool:
        """True if the caller may see URLs and the secret of webhooks. Staff in the dashboard may not."""
        if self.principal.claims.is_staff:
            return False
        try:
            require_tenant_scope(self.principal, tenant_id=self.kwargs["tenant"], scope=Scope.CONFIG_WRITE)
        except Forbidden:
            return False
        return True
