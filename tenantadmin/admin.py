"""Remove unused models of other packages from the admin site.

Permissions come from roles, memberships and grants. Django groups are not used. The providers of allauth come
from the environment, and a page of its second factors would show secrets.
"""

from __future__ import annotations

from django.contrib import admin

for _model in list(admin.site._registry):  # there is no public list of what is registered
    if _model._meta.app_label in {"auth", "account", "mfa", "socialaccount"}:
        admin.site.unregister(_model)
