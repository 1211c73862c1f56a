"""A retailer's data warehouse on Snowflake: dashboards and analysts by day, loads by the hour."""

from __future__ import annotations

from typing import Final

from tenantadmin.demo.profile import Consumer, Profile
from tenantadmin.demo.rulesets import RETAIL_RULES
from tenantadmin.demo.statements import Persona, Statement, days_ago, month_start, number, one_of

_HOST: Final = "retail.gateway.localhost"
_SERVER: Final = "meridian-eu1.snowflakecomputing.example"

_REGION = one_of("EMEA", "North America", "APAC", "LATAM")
_CATEGORY = one_of("Kitchen", "Outdoor", "Lighting", "Garden", "Textiles", "Office")
_STORE = number(101, 180)
_CUSTOMER = number(5_000, 7_000)
_LAST_WEEK = days_ago(1, 7)
_MONTH = month_start(6)
_LIMIT = one_of(10, 20, 50, 100)

_D, _A, _P, _L, _O = (
    (Persona.DASHBOARD,),
    (Persona.ANALYST,),
    (Persona.APPLICATION,),
    (Persona.LOADER,),
    (Persona.OPERATOR,),
)

_STATEMENTS: Final = (
    Statement(
        "SELECT region, SUM(net_amount) AS revenue, COUNT(*) AS orders FROM sales.orders"
        " WHERE order_date >= ? GROUP BY region ORDER BY revenue DESC",
        _D,
        4_200,
        2_400,
        (days_ago(7, 7),),
        weight=3,
    ),
    Statement(
        "SELECT s.store_name, SUM(o.net_amount) AS revenue FROM sales.orders o"
        " JOIN sales.stores s ON s.store_id = o.store_id WHERE o.order_date = ? AND s.region = ?"
        " GROUP BY s.store_name ORDER BY revenue DESC LIMIT ?",
        _D,
        3_100,
        6_800,
        (days_ago(1, 2), _REGION, one_of(20)),
        weight=3,
    ),
    Statement(
        "SELECT DATE_TRUNC(?, o.ordered_at) AS bucket, COUNT(*) AS orders, AVG(o.net_amount) AS basket"
        " FROM sales.orders o WHERE o.ordered_at >= ? GROUP BY bucket ORDER BY bucket",
        _D,
        2_700,
        14_000,
        (one_of("hour", "day"), days_ago(1, 3)),
        weight=2,
    ),
    Statement(
        "SELECT p.category, SUM(l.quantity) AS units, SUM(l.quantity * l.unit_price) AS revenue"
        " FROM sales.order_lines l JOIN catalog.products p ON p.product_id = l.product_id"
        " WHERE l.order_date BETWEEN ? AND ? GROUP BY p.category",
        (Persona.DASHBOARD, Persona.ANALYST),
        7_900,
        3_300,
        (days_ago(28, 28), days_ago(1, 1)),
        weight=2,
    ),
    Statement(
        "SELECT channel, COUNT(DISTINCT customer_id) AS buyers FROM sales.orders"
        " WHERE order_date >= ? AND status <> ? GROUP BY channel",
        _D,
        3_600,
        900,
        (days_ago(30, 30), one_of("cancelled")),
        weight=2,
    ),
    Statement(
        "SELECT r.reason, COUNT(*) AS returns, SUM(r.refund_amount) AS refunded FROM sales.returns r"
        " WHERE r.returned_at >= ? GROUP BY r.reason ORDER BY returns DESC",
        _D,
        1_900,
        1_700,
        (days_ago(14, 14),),
    ),
    Statement(
        "WITH daily AS (SELECT order_date, SUM(net_amount) AS revenue FROM sales.orders"
        " WHERE order_date >= ? GROUP BY order_date) SELECT order_date, revenue, AVG(revenue) OVER"
        " (ORDER BY order_date ROWS BETWEEN ? PRECEDING AND CURRENT ROW) AS trend FROM daily",
        (Persona.DASHBOARD, Persona.ANALYST),
        5_400,
        9_100,
        (days_ago(90, 90), one_of(6)),
    ),
    Statement(
        "SELECT account_code, SUM(debit) - SUM(credit) AS balance FROM finance.ledger"
        " WHERE posting_month = ? GROUP BY account_code ORDER BY account_code",
        (Persona.DASHBOARD, Persona.ANALYST),
        9_800,
        41_000,
        (_MONTH,),
    ),
    Statement(
        "SELECT b.cost_center, b.amount AS budget, COALESCE(SUM(l.debit), ?) AS spent FROM finance.budgets b"
        " LEFT JOIN finance.ledger l ON l.cost_center = b.cost_center AND l.posting_month = b.month"
        " WHERE b.month = ? GROUP BY b.cost_center, b.amount",
        _A,
        12_500,
        18_000,
        (one_of(0), _MONTH),
    ),
    Statement(
        "SELECT supplier_id, COUNT(*) AS invoices, SUM(gross_amount) AS owed FROM finance.invoices"
        " WHERE paid_at IS NULL AND due_date < ? GROUP BY supplier_id HAVING SUM(gross_amount) > ?",
        _A,
        6_200,
        12_000,
        (days_ago(0, 1), one_of(1_000, 10_000)),
    ),
    Statement(
        "SELECT product_id, title, category, list_price FROM catalog.products"
        " WHERE category = ? AND discontinued = ? ORDER BY title LIMIT ?",
        (Persona.APPLICATION, Persona.ANALYST),
        240,
        22_000,
        (_CATEGORY, one_of("N"), _LIMIT),
        bound=True,
        weight=2,
    ),
    Statement(
        "SELECT p.product_id, p.title, p.list_price, d.percent_off FROM catalog.products p"
        " LEFT JOIN catalog.discounts d ON d.product_id = p.product_id WHERE p.product_id = ?",
        _P,
        85,
        700,
        (number(1_000, 1_400),),
        bound=True,
        weight=6,
    ),
    Statement(
        "SELECT category, COUNT(*) AS products, AVG(list_price) AS average_price FROM catalog.products"
        " GROUP BY category ORDER BY category",
        (Persona.DASHBOARD, Persona.APPLICATION),
        650,
        1_200,
    ),
    Statement(
        "SELECT customer_id, full_name, tier, joined_on FROM crm.customers WHERE customer_id = ?",
        _P,
        95,
        410,
        (_CUSTOMER,),
        bound=True,
        weight=4,
    ),
    Statement(
        "SELECT c.tier, COUNT(*) AS customers, AVG(v.lifetime_value) AS value FROM crm.customers c"
        " JOIN crm.customer_value v ON v.customer_id = c.customer_id WHERE c.region = ? GROUP BY c.tier",
        _A,
        8_700,
        1_100,
        (_REGION,),
    ),
    Statement(
        "SELECT order_id, ordered_at, status, net_amount FROM sales.orders"
        " WHERE customer_id = ? ORDER BY ordered_at DESC LIMIT ?",
        _P,
        210,
        2_900,
        (_CUSTOMER, one_of(10)),
        bound=True,
        weight=3,
    ),
    Statement(
        "SELECT sku, warehouse_id, on_hand - reserved AS available FROM inventory.stock_levels"
        " WHERE sku = ? AND warehouse_id = ?",
        _P,
        60,
        260,
        (number(40_000, 41_000), number(1, 9)),
        bound=True,
        weight=5,
    ),
    Statement(
        "SELECT s.sku, s.on_hand, r.reorder_point FROM inventory.stock_levels s"
        " JOIN inventory.reorder_rules r ON r.sku = s.sku"
        " WHERE s.on_hand < r.reorder_point AND s.warehouse_id = ?",
        (Persona.DASHBOARD, Persona.ANALYST),
        1_500,
        16_000,
        (number(1, 9),),
        weight=2,
    ),
    Statement(
        "SELECT campaign, SUM(spend) AS spend, SUM(clicks) AS clicks, SUM(orders) AS orders"
        " FROM marketing.attribution WHERE touch_date >= ? GROUP BY campaign ORDER BY spend DESC",
        (Persona.ANALYST, Persona.DASHBOARD),
        14_800,
        7_700,
        (days_ago(30, 30),),
    ),
    Statement(
        "SELECT a.channel, COUNT(DISTINCT a.visitor_id) AS visitors, COUNT(DISTINCT o.order_id) AS orders"
        " FROM marketing.attribution a LEFT JOIN sales.web_sessions o ON o.visitor_id = a.visitor_id"
        " WHERE a.touch_date = ? GROUP BY a.channel",
        _A,
        26_000,
        1_600,
        (_LAST_WEEK,),
    ),
    Statement(
        "SELECT email_hash, opened_at FROM marketing.newsletter_events"
        " WHERE issue = ? AND opened_at IS NOT NULL",
        _A,
        3_900,
        260_000,
        (number(300, 330),),
    ),
    Statement(
        "SELECT store_id, SUM(net_amount) AS today FROM sales.orders WHERE order_date = CURRENT_DATE"
        " GROUP BY store_id ORDER BY today DESC",
        (Persona.DASHBOARD, Persona.ANALYST),
        1_300,
        3_800,
    ),
    Statement(
        "SELECT order_id, net_amount FROM sales.orders WHERE store_id = ? ORDER BY RANDOM() LIMIT ?",
        _A,
        2_200,
        5_200,
        (_STORE, _LIMIT),
    ),
    Statement(
        "SELECT e.employee_id, e.grade, p.gross_monthly FROM hr.employees e"
        " JOIN hr.payroll p ON p.employee_id = e.employee_id WHERE e.store_id = ?",
        _A,
        900,
        8_800,
        (_STORE,),
        weight=0.3,
    ),
    Statement(
        "SELECT l.product_id, COUNT(*) AS together FROM sales.order_lines l JOIN sales.order_lines m"
        " ON m.order_id = l.order_id WHERE m.product_id = ? AND l.product_id <> ?"
        " GROUP BY l.product_id ORDER BY together DESC LIMIT ?",
        _A,
        19_500,
        2_100,
        (number(1_000, 1_040), number(1_000, 1_040), one_of(10)),
    ),
    Statement(
        "INSERT INTO sales.orders (order_id, customer_id, store_id, ordered_at, status, net_amount)"
        " SELECT order_id, customer_id, store_id, ordered_at, status, net_amount FROM staging.orders"
        " WHERE batch_id = ?",
        _L,
        6_400,
        90,
        (number(70_000, 79_000),),
        weight=3,
    ),
    Statement(
        "MERGE INTO catalog.products t USING staging.products s ON t.product_id = s.product_id"
        " WHEN MATCHED THEN UPDATE SET list_price = s.list_price, title = s.title"
        " WHEN NOT MATCHED THEN INSERT (product_id, title, list_price)"
        " VALUES (s.product_id, s.title, s.list_price)",
        _L,
        8_800,
        90,
    ),
    Statement(
        "INSERT INTO finance.ledger SELECT * FROM staging.ledger WHERE posting_month = ? AND journal = ?",
        _L,
        9_300,
        90,
        (month_start(1), one_of("sales", "payroll", "assets")),
        weight=0.4,
    ),
    Statement(
        "UPDATE inventory.stock_levels SET on_hand = on_hand - ? WHERE sku = ? AND warehouse_id = ?",
        (Persona.LOADER, Persona.APPLICATION),
        140,
        40,
        (number(1, 5), number(40_000, 41_000), number(1, 9)),
        bound=True,
    ),
    Statement(
        "INSERT INTO staging.load_audit (job, finished_at, rows_loaded) VALUES (?, CURRENT_TIMESTAMP, ?)",
        _L,
        130,
        40,
        (one_of("orders", "products", "ledger"), number(100, 90_000)),
        bound=True,
        weight=2,
    ),
    Statement("DROP TABLE sales.orders_backup", _O, 300, 0),
    Statement("ALTER TABLE sales.returns ADD COLUMN carrier VARCHAR", _O, 400, 0),
    Statement("CREATE TABLE staging.returns_import (LIKE sales.returns)", _O, 500, 40, weight=0.5),
)

_JDBC, _PYTHON, _GO = (
    "JDBC/3.16.1 (Linux 5.15) JAVA/17.0.9",
    "PythonConnector/3.12.0 (Linux) CPython/3.11.8",
    "Go/1.11.0 (linux-amd64) gc/go1.22",
)
_TABLEAU, _BROWSER = (
    "Tableau/2024.2 ODBC/3.3.2",
    "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0",
)

_CONSUMERS: Final = (
    Consumer("svc-board-sales", Persona.DASHBOARD, "10.20.8.11", _TABLEAU, 3),
    Consumer("svc-board-stores", Persona.DASHBOARD, "10.20.8.12", _TABLEAU, 2),
    Consumer("svc-board-finance", Persona.DASHBOARD, "10.20.8.13", _TABLEAU),
    Consumer("Ines Calder", Persona.DASHBOARD, "10.20.16.21", _BROWSER),
    Consumer("Tomas Venn", Persona.DASHBOARD, "10.20.16.22", _BROWSER),
    Consumer("Amara Holt", Persona.DASHBOARD, "10.20.16.23", _BROWSER),
    Consumer("Jun Sato", Persona.DASHBOARD, "10.20.16.24", _BROWSER),
    Consumer("Priya Raman", Persona.ANALYST, "10.20.17.31", _PYTHON, 2),
    Consumer("Lukas Brandt", Persona.ANALYST, "10.20.17.32", _PYTHON, 2),
    Consumer("Noor Aziz", Persona.ANALYST, "10.20.17.33", _JDBC),
    Consumer("Elif Demir", Persona.ANALYST, "10.20.17.34", _JDBC),
    Consumer("Mateo Ríos", Persona.ANALYST, "10.20.17.35", _PYTHON),
    Consumer("Freya Lund", Persona.ANALYST, "10.20.17.36", _TABLEAU),
    Consumer("Chidi Obi", Persona.ANALYST, "10.20.17.37", _TABLEAU),
    Consumer("Zoë Marchand", Persona.ANALYST, "10.20.17.38", _JDBC),
    Consumer("Hana Kowal", Persona.ANALYST, "10.20.40.41", _JDBC),
    Consumer("Peter Quist", Persona.ANALYST, "10.20.40.42", _JDBC, 0.5),
    Consumer("svc-storefront", Persona.APPLICATION, "10.20.4.51", _GO, 5),
    Consumer("svc-checkout", Persona.APPLICATION, "10.20.4.52", _GO, 3),
    Consumer("svc-helpdesk", Persona.APPLICATION, "10.20.4.53", _JDBC),
    Consumer("svc-loads", Persona.LOADER, "10.20.2.61", _PYTHON, 4),
    Consumer("svc-catalog-sync", Persona.LOADER, "10.20.2.62", _PYTHON),
    Consumer("svc-releases", Persona.OPERATOR, "10.20.2.71", _GO),
    Consumer("Greta Moss", Persona.OPERATOR, "10.20.18.72", _JDBC, 2),
    Consumer("Omar Kassis", Persona.OPERATOR, "10.20.18.73", _JDBC),
)

RETAIL: Final = Profile(
    name="Retail warehouse",
    host=_HOST,
    adapter_type="snowflake",
    server_hostname=_SERVER,
    speaks_http=True,
    entries=62_000,
    config={
        "tenantName": "Retail warehouse",
        "fqdns": [_HOST],
        "warehouse": {
            "adapterType": "snowflake",
            "serverHostname": _SERVER,
            "database": "RETAIL",
            "warehouseName": "REPORTING_M",
            "credentialRef": "vault:demo/retail-warehouse",
        },
        "defaults": {"cacheEnabled": True, "ttlSeconds": 86_400},
        "logging": {"retentionDays": 400, "storeParameterValues": True},
        "labels": {"environment": "demo", "team": "data-platform"},
    },
    rules=RETAIL_RULES,
    statements=_STATEMENTS,
    consumers=_CONSUMERS,
)
