"""Clients in Python that are generated from the contract. Contract: Versioning."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tenantadmin.lib.http.published_contract import CONTRACT_FILE
from tests.clients.programs import run
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.clients.programs import Service

SCRIPT = Path(__file__).with_name("scripts") / "round_trip.py"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package ``contract_client``."""
    folder = tmp_path_factory.mktemp("generated")
    config = folder / "config.yaml"
    config.write_text("post_hooks: []\n")
    run(
        *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"),
        *("--path", str(CONTRACT_FILE), "--output-path", str(folder / "contract_client")),
        *("--config", str(config)),
    )
    (folder / "contract_client" / "py.typed").touch()
    return folder


def test_a_script_with_strict_types_fits_the_generated_client(generated: Path) -> None:
    run(
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"),
        *("--cache-dir", str(generated / "cache"), str(SCRIPT)),
        MYPYPATH=str(generated),
    )


@pytest.mark.django_db(transaction=True)
def test_the_generated_client_works(generated: Path, service: Service) -> None:
    done = run(
        *(sys.executable, "-W", "error", str(SCRIPT), service.url, service.pat), PYTHONPATH=str(generated)
    )
    assert done == "done\n"


@pytest.mark.django_db(transaction=True)
def test_generated_models_read_the_answers(tmp_path: Path, service: Service) -> None:
    run(
        *(sys.executable, "-m", "datamodel_code_generator", "--input", str(CONTRACT_FILE)),
        *("--input-file-type", "openapi", "--output", str(tmp_path / "contract_models.py")),
        *("--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11"),
        # Or a required member is never null.
        "--strict-nullable",
        # Without another package that checks addresses.
        *("--type-mappings", "email=string"),
    )
    anonymous = ApiClient()
    token: dict[str, Any] = anonymous.post(
        "/oauth/token", {"grant_type": "pat_exchange", "pat": service.pat}
    ).json()
    client = ApiClient(token["access_token"])
    rules = {"rules": [{"id": "orders", "conditions": {"any": [{"userName": {"in": ["Ana"]}}]}}]}
    assert client.put(f"/config/tenants/{service.tenant}/rules", rules).status_code == 200
    for model, path in (
        ("TenantRules", f"/config/tenants/{service.tenant}/rules"),
        ("TenantConfig", f"/config/tenants/{service.tenant}/config"),
        ("DailySummary", f"/tenants/{service.tenant}/summaries/2026/03/01"),
        ("Error", "/config/tenants/nowhere"),
    ):
        answer = client.get(path).content.decode()
        code = f"import sys, contract_models as m; m.{model}.model_validate_json(sys.argv[1])"
        run(sys.executable, "-c", code, answer, PYTHONPATH=str(tmp_path))
