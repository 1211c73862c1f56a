"""What a Gateway asks of the service: its access token, changes, markers, and notes about its cache."""

from __future__ import annotations

from typing import Any

import requests


class Service:
    """The service's API for one personal access token.

    The scopes are `config:read`, `cache-admin` and `logs:notify`.
    """

    def __init__(self, base_url: str, pat: str) -> None:
        self._base_url = base_url
        self._pat = pat
        self._session = requests.Session()

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send a request. An access token lasts an hour: after a 401, get another and try once more."""
        answer = self._send(method, path, **options)
        if answer.status_code == 401:
            self._renew()
            answer = self._send(method, path, **options)
        return answer

    def _send(self, method: str, path: str, **options: Any) -> requests.Response:
        return self._session.request(method, self._base_url + path, timeout=10, **options)

    def _renew(self) -> None:
        body = {"grant_type": "pat_exchange", "pat": self._pat}
        answer = self._session.post(f"{self._base_url}/oauth/token", json=body, timeout=10)
        answer.raise_for_status()
        self._session.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def manifest(self, since: str | None) -> dict[str, Any]:
        """Return the tenants that changed since the `generatedAt` of the last answer, deleted ones too.

        Without `since`: all that are not deleted.
        """
        parameters = {} if since is None else {"since": since, "includeDeleted": "true"}
        return self._read("/config/tenants/manifest", parameters)

    def markers(self, since: str | None) -> dict[str, Any]:
        """Return the markers made, changed or deleted since then. Without `since`: those that count."""
        return self._read("/config/invalidation-markers", {} if since is None else {"since": since})

    def rules(self, tenant: str, etag: str | None) -> tuple[dict[str, Any], str] | None:
        """Return a tenant's ruleset and its entity tag, or None if it is the one that the caller has."""
        answer = self.request(
            "GET", f"/config/tenants/{tenant}/rules", headers={"If-None-Match": etag} if etag else {}
        )
        if answer.status_code == 304:
            return None
        answer.raise_for_status()
        return answer.json(), answer.headers["ETag"]

    def invalidate(self, tenant: str, rule_id: str, statement: str) -> list[dict[str, Any]]:
        """Record that a rule fired. Return the markers: one for each rule that it invalidates."""
        answer = self.request(
            "POST", f"/tenants/{tenant}/rules/{rule_id}/invalidations", json={"statement": statement}
        )
        answer.raise_for_status()
        markers: list[dict[str, Any]] = answer.json()["markers"]
        return markers

    def describe_cache(self, tenant: str, entries: list[dict[str, Any]]) -> None:
        """Say what is in the cache, at most 1,000 entries at a time."""
        for start in range(0, len(entries), 1000):
            self.request(
                "PUT", f"/tenants/{tenant}/cachekeys", json=entries[start : start + 1000]
            ).raise_for_status()

    def notify_logs(self, tenant: str, prefixes: list[str]) -> None:
        """Say where log objects were written. If that is lost, the service finds them later."""
        self.request("POST", f"/tenants/{tenant}/logs/notifications", json={"prefixes": prefixes})

    def _read(self, path: str, parameters: dict[str, str]) -> dict[str, Any]:
        answer = self.request("GET", path, params=parameters)
        answer.raise_for_status()
        document: dict[str, Any] = answer.json()
        return document
