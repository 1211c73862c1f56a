"""Staff pages of this app. Django imports this package, which registers models and tabs."""

from accounts.admin import model_admins  # noqa: F401
from accounts.admin.base import add_tab

add_tab(10, "Tenant", page="tenant")
add_tab(80, "People", page="tenant-people")
