"""SQL over ``proxy_logs``: the guard, the sandboxed query processes and the results. Imports no Django.

Contract: "SQL over the log"; docs/decisions/0007-sql-guard-and-engine.md.
"""
