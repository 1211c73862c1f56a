"""The tests of others for PEP 249, run on the driver of clients/python with what `make clients` installs.

Arguments: ``log``, or ``tables`` for the stand-in of the service, which makes tables; the address; the
tenant; the personal access token. Prints how many tests passed.
"""

from __future__ import annotations

import sys
import unittest

import dbapi20
from tenantadmin_client import dbapi

#: What is left out, and why.
EXCLUDED = {
    "test_executemany": "only writes are run many times, and the log can only be read",
    "test_nextset": "a statement has one result, so there is no nextset",
    "test_setoutputsize": "each driver would write this test itself; no value is ever cut",
}
#: What is left out on the log, which can only be read. The stand-in runs it.
MAKES_TABLES = (
    *("test_None", "test_cursor_isolation", "test_description", "test_execute", "test_fetchall"),
    *("test_fetchmany", "test_fetchone", "test_mixedfetch", "test_rowcount"),
    *("test_setinputsizes", "test_setoutputsize_basic"),
)


class Suite(dbapi20.DatabaseAPI20Test):
    driver = dbapi


def main(kind: str, url: str, tenant: str, pat: str) -> None:
    Suite.connect_args, Suite.connect_kw_args = (url,), {"tenant": tenant, "pat": pat}
    left_out = {*EXCLUDED, *(MAKES_TABLES if kind == "log" else ())}
    names = unittest.defaultTestLoader.getTestCaseNames(Suite)
    assert left_out < set(names)
    suite = unittest.TestSuite(Suite(name) for name in names if name not in left_out)
    result = unittest.TextTestRunner().run(suite)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.stdout.write(f"{result.testsRun}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
