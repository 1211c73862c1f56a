"""Takes off the admin site what other packages bring and nobody here uses.

Roles, memberships and grants decide what one may do: groups would be a second answer. The providers of
allauth come from the environment, and a page of its second factors would show secrets.
"""

from __future__ import annotations

from django.contrib import admin

for _model in list(admin.site._registry):  # there is no public list of what is registered
    if _model._meta.app_label in {"auth", "account", "mfa", "socialaccount"}:
        admin.site.unregister(_model)
