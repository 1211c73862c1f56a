"""The demo data of `manage.py seed_demo`: two tenants, their people and a month of generated logs.

`reading` reads the files in `data`. `statements`, `profile`, `traffic`, `gateway` and `generate` compute the
log entries without side effects. `seed`, `people`, `markers`, `writer` and `access` store everything.
"""
