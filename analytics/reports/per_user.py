"""Functions that make a result depend on the user."""

from __future__ import annotations

from typing import Final

#: Functions whose result depends on the user or the session.
PER_USER_FUNCTIONS: Final = (
    r"(?i)\b(?:(?:current_user|session_user|system_user|current_role|current_available_roles|current_secondary_roles"
    r"|current_account|invoker_role|is_role_in_session|is_member|is_account_group_member|is_srvrolemember"
    r"|is_rolemember|suser_s?name|user_name|original_login|current_setting|session_context|context_info)\b|user\s*\()"
)
