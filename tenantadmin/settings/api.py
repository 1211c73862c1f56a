"""The settings of Django REST framework and of the published contract."""

from __future__ import annotations

from tenantadmin.lib.http.enumerations import ENUMERATIONS

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["tenantadmin.lib.http.permissions.DenyByDefault"],
    "DEFAULT_RENDERER_CLASSES": ["tenantadmin.lib.http.bodies.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["tenantadmin.lib.http.bodies.StrictJsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "tenantadmin.lib.http.bodies.OneRepresentation",
    "DEFAULT_SCHEMA_CLASS": "tenantadmin.lib.http.schema.ContractSchema",
    "EXCEPTION_HANDLER": "tenantadmin.lib.http.handler.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Tenant Administration and Analytics Service",
    "DESCRIPTION": "Administration and analytics of a SQL caching proxy: tenants, cache rules, logs, usage.",
    "VERSION": "2.0.0",
    "OAS_VERSION": "3.0.3",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SORT_OPERATIONS": False,
    "PATH_CONVERTER_OVERRIDES": {
        "email": {
            "type": "string",
            "anyOf": [{"format": "email"}, {"enum": ["me"]}],
            "description": "An email address. `me` is the address of the caller.",
        }
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "tenantadmin.contract.add_from_apps",
        "tenantadmin.lib.http.schema.finish_contract",
    ],
    "COMPONENT_SPLIT_PATCH": False,
    "ENUM_SUFFIX": "",
    "ENUM_ADD_EXPLICIT_BLANK_NULL_CHOICE": False,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": ENUMERATIONS,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # JavaScript. docs.js has the filter of operations.
    "SWAGGER_UI_SETTINGS": (
        "{deepLinking: true, filter: true, plugins: [operationFilter], onComplete: whenDocsAreShown}"
    ),
    "REDOC_DIST": "SIDECAR",
}
