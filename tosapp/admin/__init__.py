"""The admin site of this app. Django imports this package to register its models."""

from tosapp.admin import pages  # noqa: F401
