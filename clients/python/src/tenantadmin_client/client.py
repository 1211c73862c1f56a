"""The client: tokens, retries, entity tags, pages, and the operations that scripts use."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tenantadmin_client.conditions import check_conditions
from tenantadmin_client.errors import error_for

if TYPE_CHECKING:
    import httpx
    import pandas
    import polars
    import pyarrow

#: Statuses after which a request is sent again. The service did nothing.
_RETRIED = frozenset({429, 503})
#: A token is exchanged again this long before it ends, in seconds.
_MARGIN = 60
_ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class Document:
    """A document and its version. Send ``etag`` back with a write, so that no other write is lost."""

    body: dict[str, Any]
    etag: str


@dataclass(frozen=True)
class Result:
    """The rows of a query. ``truncated`` says that a limit of the service cut them.

    ``stream`` is a stream of Arrow, compressed by LZ4.
    """

    stream: bytes = field(repr=False)
    row_count: int
    truncated: bool

    @property
    def parquet(self) -> bytes:
        """The rows as a file of Parquet; needs the extra ``arrow``."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

        file = io.BytesIO()
        pq.write_table(self.arrow(), file, compression="zstd")
        return file.getvalue()

    def arrow(self) -> pyarrow.Table:
        """Return a pyarrow table; needs the extra ``arrow``."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        with pa.ipc.open_stream(self.stream) as reader:
            return reader.read_all()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dicts; needs the extra ``arrow``."""
        return self.arrow().to_pylist()

    def pandas(self) -> pandas.DataFrame:
        """Return a pandas frame; needs pandas and the extra ``arrow``."""
        return self.arrow().to_pandas()

    def polars(self) -> polars.DataFrame:
        """Return a polars frame; needs polars."""
        import polars  # noqa: PLC0415 - an extra

        return polars.read_ipc_stream(self.stream)


class Client:
    """A session with the service.

    Args:
        url: the address of the service.
        pat: a personal access token. It is exchanged for short-lived tokens.
        attempts: how often a request is sent where the service asks for a pause (429, 503) or is away.
        timeout: of one attempt, in seconds.
        transport: for tests.
    """

    def __init__(
        self,
        url: str,
        pat: str,
        *,
        attempts: int = 5,
        timeout: float = 60,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        # Loading httpx takes five times as long as everything else here, and not every import makes a client.
        import httpx  # noqa: PLC0415

        self._http = httpx.Client(base_url=url.rstrip("/"), timeout=timeout, transport=transport)
        self._pat = pat
        self._attempts = attempts
        self._token = ""
        self._token_ends = 0.0

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request with a valid token. Send it again where the service asks to wait.

        ``path`` may be an address of this service, such as a link of an answer.

        Raises:
            ValueError: it is an address of another service, which would get the token.
            ApiError: the service refused it; the class says how.
            httpx.TransportError: the service did not answer in all attempts.
        """
        response = self._send(method, path, json=json, params=params, headers=headers)
        if response.status_code == 401 and self._token_ends:
            # The token was ended early, for example because rights changed.
            self._token_ends = 0.0
            response = self._send(method, path, json=json, params=params, headers=headers)
        if response.is_error:
            raise error_for(response)
        return response

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {**(options.pop("headers") or {}), "Authorization": f"Bearer {self._access_token()}"}
        return self._attempt(method, path, headers=headers, **options)

    def _access_token(self) -> str:
        if time.monotonic() > self._token_ends - _MARGIN:
            body = {"grant_type": "pat_exchange", "pat": self._pat}
            response = self._attempt("POST", "/oauth/token", json=body)
            if response.is_error:
                raise error_for(response)
            granted = response.json()
            self._token = granted["access_token"]
            self._token_ends = time.monotonic() + max(granted["expires_in"], 2 * _MARGIN)
        return self._token

    def _attempt(self, method: str, path: str, **options: Any) -> httpx.Response:
        import httpx  # noqa: PLC0415

        address = self._http.base_url.join(path)
        if _origin(address) != _origin(self._http.base_url):
            raise ValueError(f"{address} is no address of {self._http.base_url}, and may not get its token.")
        options = {name: value for name, value in options.items() if value is not None}
        for attempt in range(1, self._attempts + 1):
            try:
                response = self._http.request(method, path, **options)
            except httpx.TransportError as error:
                # A write may have been done, unless there was no connection.
                if attempt == self._attempts or not (
                    method == "GET" or isinstance(error, httpx.ConnectError)
                ):
                    raise
                time.sleep(_pause(attempt, ""))
                continue
            if response.status_code not in _RETRIED or attempt == self._attempts:
                return response
            time.sleep(_pause(attempt, response.headers.get("Retry-After", "")))
        raise AssertionError("the last attempt returns or raises")

    def pages(self, path: str, member: str, *, params: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Yield the elements of ``member`` of a list and of all its further pages.

        ``items`` means the entries of ``_links``.
        """
        body = self.request("GET", path, params=params).json()
        while True:
            yield from body["_links"]["items"] if member == "items" else body[member]
            following = body["_links"].get("next")
            if following is None:
                return
            body = self.request("GET", following["href"]).json()

    def tenants(self) -> list[str]:
        """Return the ids of the tenants in the token's scope."""
        return [item["name"] for item in self.pages("/config/tenants", "items")]

    def config(self, tenant: str) -> Document:
        """Return a tenant's configuration."""
        return self._document(path_of("config", "tenants", tenant, "config"))

    def rules(self, tenant: str) -> Document:
        """Return a tenant's ruleset."""
        return self._document(_rules(tenant))

    def put_rules(
        self,
        tenant: str,
        rules: list[dict[str, Any]],
        *,
        etag: str,
        if_changed: bool = False,
        confirm_deletes: list[str] | None = None,
        comment: str = "",
    ) -> Document:
        """Replace a tenant's rules. With ``if_changed``, equal rules are not written.

        Args:
            etag: of the ruleset that these rules replace.
            confirm_deletes: ids of rules that may go although they have active markers.
            comment: why the rules change, at most 500 characters. The history keeps it.

        Raises:
            UnknownCondition: a condition key is misspelt; nothing was sent.
            LintFailed: lint refused the rules.
            Conflict: the rules changed since they were read.
        """
        check_conditions(rules)
        params = {"ifChanged": "true"} if if_changed else {}
        if confirm_deletes:
            params["confirmDeletes"] = ",".join(confirm_deletes)
        if comment:
            params["comment"] = comment
        response = self.request(
            "PUT", _rules(tenant), json={"rules": rules}, params=params, headers={"If-Match": etag}
        )
        return Document(response.json(), response.headers["ETag"])

    def lint(self, rules: list[dict[str, Any]]) -> dict[str, Any]:
        """Return ``{valid, errors, warnings}`` of rules, without a tenant.

        Raises:
            UnknownCondition: a condition key is misspelt; nothing was sent.
        """
        check_conditions(rules)
        path = "/config/rules/validate"
        headers = {"Authorization": f"Bearer {self._access_token()}"}
        response = self._attempt("POST", path, json={"rules": rules}, headers=headers)
        if response.is_success or (response.status_code == 400 and "valid" in response.json()):
            result: dict[str, Any] = response.json()
            return result
        raise error_for(response)

    def replay(
        self,
        tenant: str,
        rules: list[dict[str, Any]] | None = None,
        *,
        draft: str | None = None,
        first: str,
        last: str,
        wait: float = 600,
    ) -> dict[str, Any]:
        """Replay rules, or a draft of that id, over the log of some days. Return the finished replay.

        Raises:
            TimeoutError: it is not finished after ``wait`` seconds.
            ApiError: it was refused or failed.
        """
        if rules is not None:
            check_conditions(rules)
        replayed = {"draftId": draft} if rules is None else {"rules": rules}
        path = path_of("tenants", tenant, "replays")
        replay = self._json("POST", path, json={"from": first, "to": last, **replayed})
        ends = time.monotonic() + wait
        pause = 0.2
        while replay["state"] in {"queued", "running"}:
            if time.monotonic() > ends:
                raise TimeoutError(f"the replay {replay['replayId']} is still {replay['state']}")
            time.sleep(pause)
            pause = min(2 * pause, 5)
            replay = self._json("GET", f"{path}/{replay['replayId']}")
        return replay

    def savings(self, tenant: str, *, first: str, last: str, step: str = "day") -> dict[str, Any]:
        """Return what the cache saves of the warehouse's bill from the day ``first`` to ``last``.

        ``step`` is ``day`` or ``month``: which rows the answer has. docs/savings.md explains them.
        """
        params = {"from": first, "to": last, "step": step}
        return self._json("GET", path_of("tenants", tenant, "savings"), params=params)

    def explain(self, tenant: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the rules do with a request, which maps condition keys to values."""
        return self._json("POST", f"{_rules(tenant)}/explain", json={"request": request})

    def sql(self, tenant: str, statement: str) -> Result:
        """Run one SELECT over the log of a tenant."""
        response = self.request(
            "POST",
            path_of("tenants", tenant, "query"),
            json={"sql": statement},
            headers={"Accept": _ARROW},
        )
        return Result(
            response.content,
            row_count=int(response.headers["X-Row-Count"]),
            truncated=response.headers["X-Truncated"] == "true",
        )

    def requests(self, tenant: str, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield the requests of the log, newest first unless ``sort`` is given.

        ``filters`` are the parameters of the contract; ``from_`` is ``from``.
        """
        params = {name.rstrip("_"): value for name, value in filters.items()}
        return self.pages(path_of("tenants", tenant, "requests"), "requests", params=params)

    def invalidate(self, tenant: str, rule: str, *, marker: str, reason: str = "") -> dict[str, Any]:
        """Mark what a rule has cached as stale. ``marker`` is a new id, unique in the tenant."""
        body: dict[str, Any] = {"markerId": marker, "targetRuleId": rule}
        if reason:
            body["metadata"] = {"reason": reason}
        return self._json("POST", path_of("tenants", tenant, "invalidation-markers"), json=body)

    def invalidate_tables(
        self,
        tenant: str,
        tables: list[str],
        *,
        reason: str | None = None,
        rules: list[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Mark the cached results of tables as stale; return the markers.

        ``tables`` are names or patterns such as ``sales.*``. With ``rules``, only these of the rules that can
        have such results get a marker.
        """
        body: dict[str, Any] = {"tables": tables}
        if reason:
            body["reason"] = reason
        if rules:
            body["ruleIds"] = rules
        return list(self._json("POST", path_of("tenants", tenant, "invalidations"), json=body)["markers"])

    def _json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        body: dict[str, Any] = self.request(method, path, **options).json()
        return body

    def _document(self, path: str) -> Document:
        response = self.request("GET", path)
        return Document(response.json(), response.headers["ETag"])


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _rules(tenant: str) -> str:
    return path_of("config", "tenants", tenant, "rules")


def path_of(*segments: str) -> str:
    """Return a path. Segments may hold any character."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def _pause(attempt: int, retry_after: str) -> float:
    """Return how long to wait, in seconds: what the service says, else longer each time."""
    if retry_after.isdecimal():
        return min(float(retry_after), 60)
    return float(min(0.25 * 2**attempt, 10) * random.uniform(0.5, 1))  # noqa: S311 - no secret
