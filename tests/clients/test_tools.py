"""The client of clients/python with tools of others, and in the tests of others for PEP 249."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.programs import run_tool
from tests.clients.standin import stand_in

if TYPE_CHECKING:
    from tests.clients.programs import Service

pytestmark = pytest.mark.tools


@pytest.mark.django_db(transaction=True)
def test_tools_read_the_numbers_of_the_engine(service: Service) -> None:
    ways = run_tool("tools.py", service.url, service.tenant, service.pat).splitlines()
    assert len(ways) == 10


@pytest.mark.django_db(transaction=True)
def test_the_driver_passes_the_tests_for_db_api(service: Service) -> None:
    assert run_tool("dbapi_suite.py", "log", service.url, service.tenant, service.pat) == "22\n"


def test_the_driver_passes_the_tests_for_db_api_that_make_tables() -> None:
    with stand_in() as address:
        assert run_tool("dbapi_suite.py", "tables", f"http://{address}", "tenant", "pat") == "33\n"
