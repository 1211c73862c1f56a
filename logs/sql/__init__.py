"""SQL over ``proxy_logs``: the guard, the locked child processes, the results. Imports no Django by itself.

Contract: "SQL over the log"; docs/decisions/0007-sql-guard-and-engine.md.
"""
