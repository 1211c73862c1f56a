"""The requests of one caller who takes what it can, from a process of its own. Imports no Django."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Event
from typing import Any

_READ_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Attack:
    """What to send, each request in a thread of its own.

    Attributes:
        readers: how many read results of 32 MiB slowly.
        bombs: how many threads explain a costly request, again and again.
        notifications: how many notifications of 1,000 hours without logs there are.
        domains: how many domains are checked.
    """

    port: int
    tenant: str
    account: str
    token: str
    notify: str
    readers: int
    bombs: int
    notifications: int
    domains: int

    def run(self, ended: Event) -> Counter[str]:
        """Send until ``ended`` is set. Return the number of answers by address and status."""
        statuses: Counter[str] = Counter()
        works = [
            *[(self._read_slowly, number) for number in range(self.readers)],
            *[(self._explain, number) for number in range(self.bombs)],
            *[(self._notify_of_logs, number) for number in range(self.notifications)],
            *[(self._check_domain, number) for number in range(self.domains)],
        ]
        threads = [
            threading.Thread(target=work, args=(number, ended, statuses), daemon=True)
            for work, number in works
        ]
        for thread in threads:
            thread.start()
        ended.wait()
        for thread in threads:
            thread.join(30)
        return statuses

    def _read_slowly(self, number: int, ended: Event, statuses: Counter[str]) -> None:
        sql = f"SELECT repeat('{number % 10}', 3200) || row_number() OVER () AS text FROM proxy_logs"
        while not ended.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self._send("POST", f"/tenants/{self.tenant}/query", {"sql": sql}, statuses)
                while answer.read(_READ_BYTES) and not ended.wait(0.25):
                    pass
                answer.close()
            ended.wait(1)

    def _explain(self, _number: int, ended: Event, statuses: Counter[str]) -> None:
        request = {"request": {"tables": [f"a{number}" for number in range(1_000)]}}
        while not ended.is_set():
            self._send("POST", f"/config/tenants/{self.tenant}/rules/explain", request, statuses).read()
            ended.wait(1)

    def _notify_of_logs(self, number: int, _ended: Event, statuses: Counter[str]) -> None:
        today = datetime.now(UTC).date()
        # More are refused: days that are not kept, and more than 1,000 that wait.
        days = [today - timedelta(days=1 + (number * 1_000 + day) % 390) for day in range(1_000)]
        body = {"prefixes": [f"logs/{day:%Y/%m/%d}/00" for day in days]}
        path = f"/tenants/{self.tenant}/logs/notifications"
        self._send("POST", path, body, statuses, token=self.notify).read()

    def _check_domain(self, number: int, _ended: Event, statuses: Counter[str]) -> None:
        path = f"/config/accounts/{self.account}/domains/d{number}.example.org/verify"
        self._send("POST", path, {}, statuses).read()

    def _send(
        self, method: str, path: str, body: Any, statuses: Counter[str], *, token: str = ""
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body), headers)
        answer = connection.getresponse()
        statuses[f"{path.rpartition('/')[2]} {answer.status}"] += 1
        return answer
