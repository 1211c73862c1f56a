"""Note the findings of digests that were made before tenants' health had them.

It may note too many: pages ask the digests of the noted tenants what is open. Another digest of the tenant
notes it exactly.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

_NOTE_FINDINGS = """
    UPDATE analytics_tenanthealth AS health
       SET has_findings = true
     WHERE EXISTS (
        SELECT FROM analytics_digest AS digest
         WHERE digest.tenant_id = health.tenant_id
           AND digest.first_day = digest.last_day
           AND digest.last_day > health.last_day - 7
           AND (
               jsonb_path_exists(
                   digest.document, '$.sections[*] ? (@.id == "errors" || @.id == "leaks" || @.id == "stale")'
               )
               -- The hit rate, in percent, was five points below the usual one.
               OR (jsonb_path_query_first(digest.document, '$.facts[*] ? (@.id == "hit-rate-median").value')
                    #>> '{}')::float - 5
                  >= (jsonb_path_query_first(digest.document, '$.facts[*] ? (@.id == "hit-rate").value')
                    #>> '{}')::float
           )
     )
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [("analytics", "0020_findings_of_health")]

    operations: ClassVar = [migrations.RunSQL(_NOTE_FINDINGS, migrations.RunSQL.noop)]
