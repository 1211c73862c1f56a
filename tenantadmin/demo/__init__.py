"""The demo data of `manage.py seed_demo`: two tenants, their people and a month of generated logs.

`statements`, `profile`, `retail`, `product`, `traffic`, `cache` and `generate` only compute; `seed` and
`writer` store what they computed.
"""
