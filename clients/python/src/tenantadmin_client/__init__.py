"""Client of tenantadmin.

from tenantadmin_client import Client

with Client("https://admin.example.org", pat="tas_pat_…") as client:
    for tenant in client.tenants():
        print(tenant, client.rules(tenant).body["rules"])
"""

from tenantadmin_client.client import Client, Document, Result
from tenantadmin_client.conditions import UnknownCondition, check_conditions
from tenantadmin_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    LintFailed,
    NotFound,
    RateLimited,
    Unauthorized,
    Unavailable,
)

__all__ = [
    "ApiError",
    "BadRequest",
    "Client",
    "Conflict",
    "Document",
    "Forbidden",
    "LintFailed",
    "NotFound",
    "RateLimited",
    "Result",
    "Unauthorized",
    "Unavailable",
    "UnknownCondition",
    "check_conditions",
]
