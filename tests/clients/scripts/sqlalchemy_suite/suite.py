"""All tests of SQLAlchemy for dialects."""

from sqlalchemy.testing.suite import *  # noqa: F403
