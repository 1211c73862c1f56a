"""Fill the tables of all models, so that plans show which queries read more than a page of rows."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.core.management import call_command
from django.db import connection, models
from django.urls import reverse

from analytics.models import Recommendation
from logs.layout import day_start_ms
from rules.ruleset import read_ruleset
from tenantadmin.lib.core.timestamps import now
from tests.objects import save_entries

if TYPE_CHECKING:
    from accounts.models import Tenant


#: SQL of the value of a row, by type of field: from the first row `o` and the number `n`.
_VALUES: Final[list[tuple[type[models.Field[Any, Any]], str]]] = [
    (ArrayField, "o.{0}"),
    (models.JSONField, "o.{0}"),
    (models.BinaryField, "sha256((n || '{0}')::bytea)"),
    (models.DateTimeField, "o.{0} + n * interval '1 second'"),
    (models.DateField, "o.{0} + n"),
    (models.UUIDField, "gen_random_uuid()"),
    (models.IntegerField, "o.{0} + n"),
    (models.EmailField, "n || '-' || o.{0}"),
    (models.CharField, "o.{0} || '-' || n"),
]

#: A text of this length has room for another number.
_LONG: Final = 20


def fill(all_models: Iterable[type[models.Model]], *, rows: int) -> None:
    """Make ``rows`` rows of each model. Each refers to other rows than the others of its table."""
    waiting = list(all_models)
    done: set[Any] = set()
    while waiting:
        model = next(candidate for candidate in waiting if _referred(candidate) <= done | {candidate})
        _fill(model, rows)
        waiting.remove(model)
        done.add(model)
    with connection.cursor() as cursor:
        # As VACUUM does, which cannot run in a transaction.
        cursor.execute(
            "SELECT gin_clean_pending_list(index.oid) FROM pg_class AS index JOIN pg_am ON pg_am.oid = relam "
            "WHERE amname = 'gin' AND relkind = 'i' AND relnamespace = 'public'::regnamespace"
        )
        cursor.execute("ANALYZE")


def _referred(model: type[models.Model]) -> set[Any]:
    return {field.related_model for field in _columns(model) if field.is_relation}


def _columns(model: type[models.Model]) -> list[Any]:
    """Return the fields to fill: not the key, and no reference to another package's table or to its own."""
    fields: list[Any] = [field for field in model._meta.concrete_fields if not field.auto_created]
    return [
        field
        for field in fields
        if not field.is_relation
        or (field.related_model not in {None, model} and field.related_model._meta.app_label in OURS)
    ]


def _fill(model: type[models.Model], rows: int) -> None:
    row = make_row(model)
    columns, values, joins = [], [], []
    for field in _columns(model):
        columns.append(f'"{field.column}"')
        if field.is_relation:
            related: Any = field.related_model
            key = related._meta.pk.column
            rows_of = f"SELECT {key} AS id, row_number() OVER ()::int AS n FROM {related._meta.db_table}"
            joins.append(f"JOIN ({rows_of}) AS r_{field.column} USING (n)")
            values.append(f"r_{field.column}.id")
        else:
            values.append(_sql_of(field))
    table, key = model._meta.db_table, model._meta.pk.column
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} "
            f"FROM {table} AS o CROSS JOIN generate_series(1, {rows}) AS numbers(n) {' '.join(joins)} "
            f"WHERE o.{key} = %s ON CONFLICT DO NOTHING",
            [row.pk],
        )


def _sql_of(field: Any) -> str:
    column = f'"{field.column}"'
    if field.choices:
        names = ", ".join(f"'{name}'" for name, _ in field.flatchoices)
        return f"(ARRAY[{names}])[1 + n %% {len(field.flatchoices)}]"
    if (field.max_length or _LONG) < _LONG:
        return f"left(n::text, {field.max_length})"
    pattern = next((sql for kind, sql in _VALUES if isinstance(field, kind)), "o.{0}")
    return pattern.format(column) if "'{0}'" not in pattern else pattern.format(field.column)


OURS = ("accounts", "tosapp", "rules", "logs", "analytics")
#: Tables that only join two others: they are edited where those are.
_JOINS = {"Account_owners"}

#: A new number for each row, so that rows have different values.
_numbers = count(1)

#: Functions that return a value, by type of field. Subclasses come before their base classes.
_ROW_VALUES: list[tuple[type[models.Field[Any, Any]], Callable[[int], Any]]] = [
    (ArrayField, lambda number: [str(uuid.UUID(int=number))]),
    (models.JSONField, lambda number: {"number": number, "inner": {"text": "<b>ä</b>"}}),
    (models.BinaryField, lambda number: number.to_bytes(32, "big")),
    (models.BooleanField, lambda _: True),
    (models.DateTimeField, lambda _: now()),
    (models.DateField, lambda number: dt.date(2026, 1, 1) + dt.timedelta(days=number)),
    (models.UUIDField, lambda _: uuid.uuid4()),
    (models.EmailField, lambda number: f"person-{number}@example.org"),
    (models.FloatField, lambda number: number / 1000),
    (models.IntegerField, lambda number: number),
    (models.CharField, lambda number: f"t{number}"),
    (models.TextField, lambda number: f"text {number}"),
]

#: Values of fields for which any value of their type is not enough.
_SPECIAL: dict[tuple[str, str], Any] = {
    ("Digest", "document"): {
        "kind": "day",
        "period": "2026-03-01",
        "from": "2026-03-01",
        "to": "2026-03-01",
        "quiet": True,
        "facts": [],
        "names": [],
        "sections": [{"id": "totals", "heading": "Totals", "text": "Inner text"}],
    },
    ("Digest", "rewritten"): None,
    ("Alert", "currency"): "USD",
    ("AlertFiring", "currency"): "USD",
    ("Alert", "channels"): [{"type": "slack", "url": "https://hooks.example.org/secret"}],
    # A token that no other one has made.
    ("PersonalAccessToken", "made_with"): None,
    ("AlertDelivery", "channel"): {"type": "slack", "url": "https://hooks.example.org/secret"},
}


def our_models() -> list[type[models.Model]]:
    """Return the models of our apps."""
    return [
        model
        for label in OURS
        for model in apps.get_app_config(label).get_models()
        if model.__name__ not in _JOINS
    ]


def make_row(model: type[models.Model], **given: Any) -> Any:
    """Create a row with a value in every field, and the rows to which it refers."""
    number = next(_numbers)
    for field in model._meta.concrete_fields:
        if field.name not in given and field.attname not in given and not field.auto_created:
            given[field.name] = _value_for(field, number)
    row = model._default_manager.create(**given)
    for many in model._meta.many_to_many:
        getattr(row, many.name).add(make_row(many.related_model))
    return row


def _value_for(field: models.Field[Any, Any], number: int) -> Any:
    if (key := (field.model.__name__, field.name)) in _SPECIAL:
        return _SPECIAL[key]
    if field.is_relation:
        assert isinstance(field.related_model, type)
        return make_row(field.related_model)
    if field.choices:
        return field.flatchoices[0][0]
    return next(make(number) for kind, make in _ROW_VALUES if isinstance(field, kind))


DAY = dt.date(2026, 3, 1)
START = day_start_ms(DAY)
LOG_RULE: dict[str, Any] = {
    "id": "orders",
    "conditions": {"tables": {"containsAny": ["sales.orders"]}},
    "ttlSeconds": 60,
}
ENTRY = {
    "userName": "ana",
    "tables": '["sales.orders"]',
    "standardizedSql": "SELECT <b>",
    "cacheStatus": "HIT",
}


def put_log(tenant: Tenant, *entries: dict[str, Any]) -> None:
    """Store entries, a second apart, and build their day."""
    numbered = [
        {"logId": f"log-{number}", "timestamp": START + 1000 * number, "cacheStatus": "PASSTHROUGH"} | entry
        for number, entry in enumerate(entries)
    ]
    save_entries(tenant.pk, DAY, numbered)
    call_command("rebuild", tenant=tenant.pk)


def to(name: str, tenant: Tenant, **more: Any) -> str:
    """Return the address of a page of a tenant."""
    return reverse(f"admin:{name}", kwargs={"tenant": tenant.pk, **more})


RULE: dict[str, Any] = {"id": "ads", "conditions": {"isReadOnly": True}, "ttlSeconds": 60}
GAIN = {
    "hits": {"low": 40, "likely": 50, "high": 60},
    "savedMs": {"low": 5000, "likely": None, "high": 5000},
    "risk": {"low": 0, "high": 0},
}


def recommend(tenant: Tenant, **fields: Any) -> Recommendation:
    return Recommendation.objects.create(
        tenant_id=tenant.pk,
        **{
            "kind": "cache",
            "fingerprint": uuid4().hex,
            "rank": 0,
            "title": "Cache m.ads for a minute",
            "why": ["60 requests read m.ads."],
            "rules": [RULE],
            "patch": [{"op": "insert", "ruleId": "ads", "before": None, "rule": RULE}],
            "evidence": [
                {
                    "name": "statements",
                    "sql": "SELECT standardizedSql FROM proxy_logs",
                    "rows": [{"standardizedSql": "SELECT <b>"}],
                }
            ],
            "predicted": {"gain": GAIN},
            "estimate_ms": 5000,
            "seq": read_ruleset(tenant.pk).seq,
            "first_day": DAY,
            "last_day": DAY,
            **fields,
        },
    )
