"""Draw a chart of the hit rate by day in Apache Superset. Runs in Superset's own environment.

Arguments: the address of the log for SQLAlchemy. Prints the rows of the chart as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from superset.app import create_app


def main(uri: str) -> None:
    app = create_app()
    with app.app_context():
        # These need the application.
        from flask_migrate import upgrade
        from superset.extensions import db, security_manager
        from superset.models.core import Database

        upgrade()
        security_manager.sync_role_definitions()
        role = security_manager.find_role("Admin")
        security_manager.add_user("admin", "A", "B", "admin@example.org", role, password="admin")
        database = Database(database_name="log")
        database.set_sqlalchemy_uri(uri)
        db.session.add(database)
        db.session.commit()
        database_id = database.id
    sys.stdout.write(json.dumps(chart(app.test_client(), database_id)) + "\n")


def chart(client: Any, database_id: int) -> list[dict[str, Any]]:
    """Return the rows of the chart, made by Superset's REST API as its pages do."""
    token = call(
        client.post(
            "/api/v1/security/login",
            json={"username": "admin", "password": "admin", "provider": "db", "refresh": True},
        )
    )["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    tables = call(client.get(f"/api/v1/database/{database_id}/tables/?q=(schema_name:main)", headers=headers))
    assert [table["value"] for table in tables["result"]] == ["proxy_logs"], tables
    dataset = call(
        client.post(
            "/api/v1/dataset/",
            json={"database": database_id, "schema": "main", "table_name": "proxy_logs"},
            headers=headers,
        )
    )
    rate = "avg(CASE WHEN cacheStatus = 'HIT' THEN 1.0 ELSE 0 END)"
    answer = call(
        client.post(
            "/api/v1/chart/data",
            json={
                "datasource": {"id": dataset["id"], "type": "table"},
                "queries": [
                    {
                        "columns": ["day"],
                        "metrics": [{"expressionType": "SQL", "sqlExpression": rate, "label": "hit rate"}],
                        "filters": [{"col": "cacheStatus", "op": "IN", "val": ["HIT", "MISS"]}],
                        "row_limit": 1000,
                    }
                ],
                "result_format": "json",
                "result_type": "full",
            },
            headers=headers,
        )
    )
    rows: list[dict[str, Any]] = answer["result"][0]["data"]
    return rows


def call(answer: Any) -> Any:
    """Return the JSON of an answer that is no error."""
    assert answer.status_code < 300, answer.get_data(as_text=True)
    return answer.get_json()


if __name__ == "__main__":
    main(sys.argv[1])
