"""Staff pages of this app. Django imports this package, which registers models and tabs."""

from accounts.admin.base import add_tab
from analytics.admin import model_admins  # noqa: F401

add_tab(70, "Builds", page="tenant-builds")
