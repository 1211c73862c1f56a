"""docker/kubernetes: the manifests follow the schemas of Kubernetes, and refer only to what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from tenantadmin.lib.core.queues import QUEUES
from tenantadmin.settings.variables import env

FOLDER: Final = Path(__file__).resolve().parents[2] / "docker" / "kubernetes"
KUSTOMIZATION: Final = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
DOCUMENTS: Final[list[dict[str, Any]]] = [
    document
    for name in KUSTOMIZATION["resources"]
    for document in yaml.safe_load_all((FOLDER / name).read_text())
]
#: The Secrets that an operator makes; docs/operating.md says what is in them.
SECRETS: Final = {"tenantadmin", "tenantadmin-sql", "tenantadmin-sql-store"}


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [document for document in DOCUMENTS if document["kind"] in kinds]


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = document["spec"]["template"]["spec"]
    return pod


WORKLOADS: Final = of_kind("Deployment", "Job")


def names(documents: list[dict[str, Any]]) -> list[str]:
    return [document["metadata"]["name"] for document in documents]


def test_the_folder_has_no_other_file() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {*KUSTOMIZATION["resources"], "kustomization.yaml"}


@pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda document: f"{document['kind']} {document['metadata']['name']}"
)
def test_a_manifest_follows_its_schema(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, "1.33", strict=True)


def test_there_is_everything() -> None:
    assert names(of_kind("Deployment")) == ["web", "worker", "beat", "sql"]
    assert names(of_kind("Job")) == ["migrate"]
    assert set(names(of_kind("PodDisruptionBudget"))) == {"web", "worker", "sql"}
    assert "nothing" in names(of_kind("NetworkPolicy"))


@pytest.mark.parametrize("document", WORKLOADS, ids=lambda document: document["metadata"]["name"])
def test_a_pod_is_locked_down_limited_and_configured(document: dict[str, Any]) -> None:
    pod = pod_of(document)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/var/lib/tenantadmin", "/tmp"}
    sources = container["envFrom"]
    maps = {source["configMapRef"]["name"] for source in sources if "configMapRef" in source}
    secrets = {source["secretRef"]["name"] for source in sources if "secretRef" in source}
    assert maps <= set(names(of_kind("ConfigMap")))
    assert secrets <= SECRETS


def test_every_process_has_a_probe() -> None:
    for document in of_kind("Deployment"):
        assert "livenessProbe" in pod_of(document)["containers"][0], document["metadata"]["name"]
    probes = {
        name: pod_of(document)["containers"][0]["livenessProbe"]
        for name, document in zip(names(WORKLOADS), WORKLOADS, strict=True)
        if name in {"worker", "beat"}
    }
    for name, probe in probes.items():
        assert probe["exec"]["command"] == ["python", "-m", "tenantadmin.run.alive", name]


def test_a_probe_that_restarts_a_pod_asks_for_nothing_outside_of_it() -> None:
    paths = {
        document["metadata"]["name"]: probe["httpGet"]["path"]
        for document in of_kind("Deployment")
        if "httpGet" in (probe := pod_of(document)["containers"][0]["livenessProbe"])
    }
    assert paths == {"web": "/health", "sql": "/health/live"}


def test_the_sql_service_has_no_key_of_the_service() -> None:
    (sql,) = (document for document in WORKLOADS if document["metadata"]["name"] == "sql")
    (container,) = pod_of(sql)["containers"]
    assert container["envFrom"] == [
        {"configMapRef": {"name": "tenantadmin-store"}},
        {"secretRef": {"name": "tenantadmin-sql"}},
        {"secretRef": {"name": "tenantadmin-sql-store"}},
    ]


def test_beat_is_one() -> None:
    (beat,) = (document for document in WORKLOADS if document["metadata"]["name"] == "beat")
    assert (beat["spec"]["replicas"], beat["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_variables_are_known() -> None:
    known = {*env.dump(), "AWS_DEFAULT_REGION"}
    for document in of_kind("ConfigMap"):
        assert set(document["data"]) <= known


def test_workers_serve_all_queues() -> None:
    (worker,) = (document for document in WORKLOADS if document["metadata"]["name"] == "worker")
    assert "--queues" not in pod_of(worker)["containers"][0]["command"]
    assert len(QUEUES) == 5
