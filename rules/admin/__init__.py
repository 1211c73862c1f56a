"""Staff pages of this app. Django imports this package, which registers models and tabs."""

from rules.admin import model_admins  # noqa: F401
