"""The admin site of this app. Django imports this package to register its models."""

from rules.admin import model_admins  # noqa: F401
