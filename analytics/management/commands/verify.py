"""``manage.py verify --tenant ID``: compare a tenant's documents with the published queries."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any, Final
from uuid import UUID

from django.core.management.base import CommandError

from accounts.management.arguments import add_tenant
from analytics.published.verify import (
    DOCUMENTS,
    DocumentKey,
    InvalidKey,
    check_key,
    savings_keys,
    stored_keys,
    verify_document,
)
from logs.management.operators import OperatorCommand
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.terminal import visible

#: The most differences of one document that are printed.
_SHOWN: Final = 20


class Command(OperatorCommand):
    help = (
        "Compares documents with the published queries over the log, value by value. Ends with status 1 if "
        "one differs or cannot be compared. Without --period: all stored documents of the tenant, and the "
        "savings of each month."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_tenant(parser)
        parser.add_argument("--document", choices=DOCUMENTS, help="one kind of document; default: all")
        parser.add_argument("--period", help="2026-03-01, 2026-03 or 2026; needs --document")
        parser.add_argument("--user", help="the documents of a userName; needs --document and --period")

    def handle(
        self, *, tenant: UUID, document: str | None, period: str | None, user: str | None, **_: Any
    ) -> None:
        if (period is not None and document is None) or (user is not None and period is None):
            raise CommandError("--period needs --document, and --user needs both.")
        if period is not None and document is not None:
            try:
                check_key(document, period, is_of_user=user is not None)
            except InvalidKey as error:
                raise CommandError(str(error)) from error
            keys = [DocumentKey(tenant, document, period, user)]
        else:
            every = (*stored_keys(tenant), *savings_keys(tenant))
            keys = [key for key in every if document in {None, key.kind}]
        if not keys:
            raise CommandError("The tenant has no such document.")
        unequal = sum(not self._verify(key) for key in keys)
        if unequal:
            raise CommandError(f"{unequal} of {len(keys)} documents differ or cannot be compared.")
        subject = "The document is" if len(keys) == 1 else f"{len(keys)} documents are"
        self.stdout.write(f"{subject} equal to the log.")

    def _verify(self, key: DocumentKey) -> bool:
        """Print the result for one document. Return True if it agrees with the log."""
        name = visible(" ".join(filter(None, (key.kind, key.period, key.user))))
        try:
            found = verify_document(default_store(), key=key, reader=self.reader)
        except ApiError as error:
            self.stdout.write(f"{name}: {visible(error.text)}")
            return False
        verdict = "equal" if found.equal else f"{found.unequal_count} differ"
        self.stdout.write(f"{name}: {found.fields} values, {verdict}")
        for item in found.unequal[:_SHOWN]:
            self.stdout.write(visible(f"  {item.path}: {item.document!r}, and the log says {item.query!r}"))
        return found.equal
