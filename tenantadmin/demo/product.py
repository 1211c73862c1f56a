"""A product's PostgreSQL database: an application around the clock, its team by day."""

from __future__ import annotations

from typing import Final

from tenantadmin.demo.profile import Consumer, Profile
from tenantadmin.demo.rulesets import PRODUCT_RULES
from tenantadmin.demo.statements import Persona, Statement, days_ago, number, one_of

_HOST: Final = "product.gateway.localhost"
_SERVER: Final = "pg-product.internal.example"

_USER = number(1, 1_500)
_PROJECT = number(1, 120)
_STATE = one_of("open", "in_progress", "done", "archived")
_PLAN = one_of("team", "free", "business")
_LIMIT = one_of(25, 50, 100)

_D, _A, _P, _L, _O = (
    (Persona.DASHBOARD,),
    (Persona.ANALYST,),
    (Persona.APPLICATION,),
    (Persona.LOADER,),
    (Persona.OPERATOR,),
)

_STATEMENTS: Final = (
    Statement(
        "SELECT user_id, display_name, avatar_url, locale FROM app.users WHERE user_id = ?",
        _P,
        6,
        340,
        (_USER,),
        bound=True,
        weight=6,
    ),
    Statement(
        "SELECT m.user_id, u.display_name, m.role FROM app.project_members m"
        " JOIN app.users u ON u.user_id = m.user_id WHERE m.project_id = ? ORDER BY u.display_name",
        _P,
        18,
        4_100,
        (_PROJECT,),
        bound=True,
        weight=5,
    ),
    Statement(
        "SELECT task_id, title, state, assignee_id, due_on FROM app.tasks"
        " WHERE project_id = ? AND state = ? ORDER BY due_on LIMIT ?",
        _P,
        24,
        9_600,
        (_PROJECT, _STATE, _LIMIT),
        bound=True,
        weight=7,
    ),
    Statement(
        "SELECT t.state, COUNT(*) AS tasks FROM app.tasks t WHERE t.project_id = ? GROUP BY t.state",
        (Persona.APPLICATION, Persona.DASHBOARD),
        31,
        260,
        (_PROJECT,),
        bound=True,
        weight=4,
    ),
    Statement(
        "SELECT comment_id, author_id, body, created_at FROM app.comments"
        " WHERE task_id = ? ORDER BY created_at LIMIT ?",
        _P,
        15,
        5_300,
        (number(1, 4_000), one_of(50)),
        bound=True,
        weight=3,
    ),
    Statement(
        "SELECT plan, seats, price_cents FROM billing.plans WHERE active = ? ORDER BY price_cents",
        _P,
        4,
        620,
        (one_of("t"),),
        bound=True,
        weight=3,
    ),
    Statement(
        "SELECT flag, enabled, rollout_percent FROM config.feature_flags WHERE environment = ?",
        _P,
        3,
        2_100,
        (one_of("production", "staging"),),
        bound=True,
        weight=6,
    ),
    Statement(
        "SELECT s.session_id, s.user_id, s.expires_at FROM auth.sessions s WHERE s.session_hash = ?",
        _P,
        2,
        180,
        (number(100_000, 900_000),),
        bound=True,
        weight=5,
    ),
    Statement(
        "SELECT i.invoice_id, i.period_start, i.total_cents, i.status FROM billing.invoices i"
        " WHERE i.workspace_id = ? ORDER BY i.period_start DESC LIMIT ?",
        _P,
        12,
        1_900,
        (number(1, 700), one_of(12)),
        bound=True,
    ),
    Statement(
        "SELECT project_id, name, archived_at FROM app.projects WHERE workspace_id = ? AND name ILIKE ?",
        _P,
        40,
        3_700,
        (number(1, 700), one_of("web%", "api%", "ops%", "design%")),
        bound=True,
    ),
    Statement(
        "SELECT DATE_TRUNC(?, created_at) AS bucket, COUNT(*) AS signups FROM app.users"
        " WHERE created_at >= ? GROUP BY bucket ORDER BY bucket",
        _D,
        380,
        4_400,
        (one_of("day", "week"), days_ago(60, 60)),
        weight=3,
    ),
    Statement(
        "SELECT w.plan, COUNT(*) AS workspaces, SUM(w.seats) AS seats FROM app.workspaces w GROUP BY w.plan",
        _D,
        160,
        300,
        weight=3,
    ),
    Statement(
        "SELECT e.event_name, COUNT(*) AS events, COUNT(DISTINCT e.user_id) AS users"
        " FROM events.product_events e WHERE e.event_day = ?"
        " GROUP BY e.event_name ORDER BY events DESC LIMIT ?",
        _D,
        5_200,
        6_100,
        (days_ago(1, 3), one_of(40)),
        weight=3,
    ),
    Statement(
        "WITH active AS (SELECT user_id, MIN(event_day) AS first_day FROM events.product_events"
        " WHERE event_day >= ? GROUP BY user_id) SELECT first_day, COUNT(*) AS users FROM active"
        " GROUP BY first_day ORDER BY first_day",
        (Persona.DASHBOARD, Persona.ANALYST),
        8_600,
        2_200,
        (days_ago(30, 30),),
        weight=2,
    ),
    Statement(
        "SELECT status, COUNT(*) AS invoices, SUM(total_cents) AS total_cents FROM billing.invoices"
        " WHERE period_start >= ? GROUP BY status",
        (Persona.DASHBOARD, Persona.ANALYST),
        220,
        400,
        (days_ago(30, 30),),
        weight=2,
    ),
    Statement(
        "SELECT p.project_id, p.name, COUNT(t.task_id) AS overdue FROM app.projects p"
        " JOIN app.tasks t ON t.project_id = p.project_id WHERE t.due_on < ? AND t.state <> ?"
        " GROUP BY p.project_id, p.name ORDER BY overdue DESC LIMIT ?",
        _D,
        740,
        5_800,
        (days_ago(0, 0), one_of("done"), _LIMIT),
        weight=2,
    ),
    Statement(
        "SELECT page, PERCENTILE_CONT(?) WITHIN GROUP (ORDER BY load_ms) AS slow FROM events.page_timings"
        " WHERE event_day = ? GROUP BY page ORDER BY slow DESC",
        (Persona.DASHBOARD, Persona.ANALYST),
        11_400,
        7_200,
        (one_of("0.95", "0.99"), days_ago(1, 2)),
    ),
    Statement(
        "SELECT u.user_id, u.email_domain, COUNT(e.event_id) AS events FROM app.users u"
        " LEFT JOIN events.product_events e ON e.user_id = u.user_id WHERE u.created_at >= ?"
        " GROUP BY u.user_id, u.email_domain HAVING COUNT(e.event_id) < ?",
        _A,
        16_700,
        340_000,
        (days_ago(14, 28), one_of(3, 5)),
    ),
    Statement(
        "SELECT w.workspace_id, w.plan, SUM(i.total_cents) AS paid FROM app.workspaces w"
        " JOIN billing.invoices i ON i.workspace_id = w.workspace_id WHERE w.plan = ? AND i.status = ?"
        " GROUP BY w.workspace_id, w.plan ORDER BY paid DESC LIMIT ?",
        _A,
        930,
        8_300,
        (_PLAN, one_of("paid", "open"), _LIMIT),
    ),
    Statement(
        "SELECT t.assignee_id, AVG(t.closed_at - t.created_at) AS lead_time FROM app.tasks t"
        " WHERE t.closed_at >= ? GROUP BY t.assignee_id",
        _A,
        1_450,
        11_000,
        (days_ago(7, 30),),
    ),
    Statement(
        "SELECT search_term, COUNT(*) AS searches FROM events.searches WHERE hits = ? AND event_day >= ?"
        " GROUP BY search_term ORDER BY searches DESC LIMIT ?",
        _A,
        6_900,
        4_700,
        (one_of(0), days_ago(7, 7), _LIMIT),
        weight=2,
    ),
    Statement(
        "SELECT a.actor_id, a.action, a.created_at FROM audit.entries a"
        " WHERE a.created_at >= ? AND a.action = ?",
        (Persona.ANALYST, Persona.OPERATOR),
        2_600,
        52_000,
        (days_ago(1, 7), one_of("member.removed", "plan.changed", "export.started")),
    ),
    Statement(
        "SELECT user_id, last_seen_at FROM app.users WHERE last_seen_at >= CURRENT_TIMESTAMP - INTERVAL ?",
        (Persona.DASHBOARD, Persona.ANALYST),
        210,
        13_000,
        (one_of("15 minutes", "1 hour"),),
    ),
    Statement(
        "SELECT pid, state, wait_event FROM monitor.activity WHERE state <> ?",
        _O,
        8,
        2_700,
        (one_of("idle"),),
        weight=3,
    ),
    Statement(
        "UPDATE app.tasks SET state = ?, updated_at = CURRENT_TIMESTAMP WHERE task_id = ?",
        _P,
        7,
        20,
        (_STATE, number(1, 4_000)),
        bound=True,
        weight=0.5,
    ),
    Statement(
        "INSERT INTO app.comments (task_id, author_id, body, created_at) VALUES (?, ?, ?, CURRENT_TIMESTAMP)",
        _P,
        6,
        20,
        (number(1, 4_000), _USER, one_of("Done.", "Looks good to me.", "Can you have a look?")),
        bound=True,
        weight=0.5,
    ),
    Statement(
        "UPDATE config.feature_flags SET rollout_percent = ? WHERE flag = ? AND environment = ?",
        _O,
        5,
        20,
        (one_of(5, 25, 50, 100), one_of("new-board", "fast-search"), one_of("production", "staging")),
        bound=True,
        weight=2,
    ),
    Statement(
        "INSERT INTO events.product_events SELECT * FROM intake.events WHERE batch_id = ?",
        _L,
        3_300,
        40,
        (number(200_000, 290_000),),
        weight=3,
    ),
    Statement(
        "INSERT INTO billing.invoices (workspace_id, period_start, total_cents, status)"
        " SELECT workspace_id, period_start, total_cents, ? FROM intake.invoices WHERE period_start = ?",
        _L,
        850,
        40,
        (one_of("open"), days_ago(0, 0)),
    ),
    Statement(
        "DELETE FROM auth.sessions WHERE expires_at < CURRENT_TIMESTAMP",
        _L,
        90,
        20,
    ),
    Statement("DROP INDEX app.tasks_by_assignee", _O, 30, 0, weight=0.6),
    Statement("ALTER TABLE app.comments ADD COLUMN edited_at TIMESTAMP", _O, 60, 0, weight=0.6),
)

_PGX, _JDBC, _PSQL = "pgx/5.6.0", "PostgreSQL JDBC Driver 42.7.3", "psql (16.2)"
_METABASE, _DBEAVER = "Metabase/0.50.10", "DBeaver 24.1.0 - Main"

_CONSUMERS: Final = (
    Consumer("svc-web", Persona.APPLICATION, "10.30.4.11", _PGX, 8),
    Consumer("svc-api", Persona.APPLICATION, "10.30.4.12", _PGX, 6),
    Consumer("svc-mobile", Persona.APPLICATION, "10.30.4.13", _PGX, 4),
    Consumer("svc-notifications", Persona.APPLICATION, "10.30.4.14", _PGX, 2),
    Consumer("svc-board-usage", Persona.DASHBOARD, "10.30.8.21", _METABASE, 3),
    Consumer("svc-board-billing", Persona.DASHBOARD, "10.30.8.22", _METABASE),
    Consumer("Maya Feld", Persona.DASHBOARD, "10.30.16.31", _METABASE),
    Consumer("Kofi Mensah", Persona.DASHBOARD, "10.30.16.32", _METABASE),
    Consumer("Ilse de Wit", Persona.DASHBOARD, "10.30.16.33", _METABASE),
    Consumer("Ravi Menon", Persona.DASHBOARD, "10.30.16.34", _METABASE),
    Consumer("Søren Falk", Persona.DASHBOARD, "10.30.16.35", _METABASE),
    Consumer("Alma Reyes", Persona.ANALYST, "10.30.17.41", _JDBC, 2),
    Consumer("Bao Tran", Persona.ANALYST, "10.30.17.42", _DBEAVER, 2),
    Consumer("Clara Weiss", Persona.ANALYST, "10.30.17.43", _DBEAVER),
    Consumer("Dmitri Orlov", Persona.ANALYST, "10.30.17.44", _PSQL),
    Consumer("Esther Okoro", Persona.ANALYST, "10.30.17.45", _JDBC),
    Consumer("Finn O'Dea", Persona.ANALYST, "10.30.17.46", _PSQL),
    Consumer("Gül Aydın", Persona.ANALYST, "10.30.17.47", _DBEAVER),
    Consumer("Hugo Prat", Persona.ANALYST, "10.30.17.48", _JDBC),
    Consumer("svc-intake", Persona.LOADER, "10.30.2.51", _JDBC, 4),
    Consumer("svc-invoicing", Persona.LOADER, "10.30.2.52", _JDBC),
    Consumer("svc-migrations", Persona.OPERATOR, "10.30.18.61", _PSQL, 0.5),
    Consumer("Lena Storm", Persona.OPERATOR, "10.30.18.62", _PSQL, 2),
    Consumer("Yusuf Karim", Persona.OPERATOR, "10.30.18.63", _PSQL),
    Consumer("Wren Ashby", Persona.OPERATOR, "10.30.18.64", _DBEAVER),
)

PRODUCT: Final = Profile(
    name="Product database",
    host=_HOST,
    adapter_type="postgresql",
    server_hostname=_SERVER,
    speaks_http=False,
    entries=54_000,
    config={
        "tenantName": "Product database",
        "fqdns": [_HOST],
        "warehouse": {
            "adapterType": "postgresql",
            "serverHostname": _SERVER,
            "port": 5432,
            "database": "product",
            "schema": "app",
            "credentialRef": "vault:demo/product-database",
        },
        "defaults": {"cacheEnabled": True, "ttlSeconds": 3_600},
        "logging": {"retentionDays": 90, "storeParameterValues": True},
        "labels": {"environment": "demo", "team": "product"},
    },
    rules=PRODUCT_RULES,
    statements=_STATEMENTS,
    consumers=_CONSUMERS,
)
