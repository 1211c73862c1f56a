"""Between the web server and Django: receives whole requests, runs Django in threads, sends the responses.

Why: docs/decisions/0004-web-server-and-supervisor.md.
"""
