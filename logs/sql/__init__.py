"""SQL over ``proxy_logs``: the guard, the sandboxed query processes and the results.

Only `service` and `source` import something of Django: the storage of the object store.

Contract: "SQL over the log"; docs/decisions/0007-sql-guard-and-engine.md.
"""
