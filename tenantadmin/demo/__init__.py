"""The demo data of `manage.py seed_demo`: two tenants, their people and a month of generated logs.

What it consists of lies in `data`, which `reading` reads. `statements`, `profile`, `traffic`, `cache` and
`generate` only compute; `seed` and `writer` store what they computed.
"""
