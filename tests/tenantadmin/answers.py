"""What the service answers to its demo's owner. A script for `manage.py shell` of any release.

It reads `ANSWERS`: a JSON object with the `paths` to read, a `name` to write (first), and the `file` for the
answers.
"""

import json
import os
from pathlib import Path

from django.test import Client

asked = json.loads(os.environ["ANSWERS"])
demo = json.loads(Path(os.environ["VAR_DIR"], "demo.json").read_text())
client = Client(SERVER_NAME="127.0.0.1")
exchange = {"grant_type": "pat_exchange", "pat": demo["pat"]}
token = client.post("/oauth/token", exchange, content_type="application/json").json()["access_token"]
client.defaults["HTTP_AUTHORIZATION"] = f"Bearer {token}"

if asked["name"]:
    rules = f"/config/tenants/{demo['tenants'][0]['tenantId']}/rules"
    document = client.get(rules).json()
    document["rules"][0]["name"] = asked["name"]
    written = client.put(
        rules, document, content_type="application/json", headers={"If-Match": client.get(rules)["ETag"]}
    )
    assert written.status_code == 200, written.content
    drafted = client.post(f"{rules}/drafts", {"name": asked["name"]}, content_type="application/json")
    assert drafted.status_code == 201, drafted.content

answers = {}
for path in asked["paths"]:
    answer = client.get(path)
    body = answer.getvalue().decode()
    is_json = "json" in answer.get("Content-Type", "")
    answers[path] = [answer.status_code, json.loads(body) if is_json and body else body]
Path(asked["file"]).write_text(json.dumps(answers))
