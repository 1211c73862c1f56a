"""PostgreSQL's wire protocol in front of the log, for tools that have no other driver: docs/connect-log.md.

Statements that read the log run as `POST /query` runs them. All others go to the catalog server: a
PostgreSQL that holds an empty ``proxy_logs``, and nothing else.
"""
