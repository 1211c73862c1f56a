"""Takes off the admin site what other packages bring and nobody here uses.

Roles, memberships and grants decide what one may do: groups would be a second answer. Of allauth only the
providers are used, and they come from the environment.
"""

from __future__ import annotations

from django.contrib import admin

for _model in list(admin.site._registry):  # there is no public list of what is registered
    if _model._meta.app_label in {"auth", "account", "socialaccount"}:
        admin.site.unregister(_model)
