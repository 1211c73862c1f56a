"""docker/alerts.yaml: each alert is about metrics that exist, and has a runbook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.metric_names import COUNTERS, GAUGES, HISTOGRAMS

ROOT: Final = Path(__file__).resolve().parents[2]
ALERTS: Final[list[dict[str, Any]]] = [
    rule
    for group in yaml.safe_load((ROOT / "docker/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
RUNBOOKS: Final = sorted((ROOT / "docs/runbooks").glob("*.md"))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: str(alert["alert"]))
def test_an_alert_is_complete(alert: dict[str, Any]) -> None:
    assert alert.keys() == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"[0-9]+m", alert["for"])
    assert alert["labels"]["severity"] in {"page", "ticket"}
    used = set(re.findall(r"tenantadmin_\w+", alert["expr"]))
    assert used
    assert used <= COUNTERS | HISTOGRAMS | GAUGES
    assert alert["expr"].count("(") == alert["expr"].count(")")
    runbook = ROOT / alert["annotations"]["runbook"]
    assert runbook in RUNBOOKS
    assert f"`{alert['alert']}`" in runbook.read_text()


def test_every_state_of_the_service_that_is_a_fault_has_an_alert() -> None:
    expressions = " ".join(alert["expr"] for alert in ALERTS)
    for name in (
        *("server_up", "staleness_seconds", "beat_age_seconds", "failing_builds", "sweep_age_seconds"),
        *(
            "quarantined_entries",
            "mails_total",
            "failing_jobs",
            "sql_missing_restrictions",
            "store_errors_total",
        ),
    ):
        assert f"tenantadmin_{name}" in expressions


@pytest.mark.parametrize("runbook", RUNBOOKS, ids=lambda runbook: str(runbook.stem))
def test_a_runbook_is_a_page_of_symptom_look_and_cure(runbook: Path) -> None:
    text = runbook.read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Symptom", "Look", "Cure"]
    assert len(text.splitlines()) <= 40
    assert str(runbook.relative_to(ROOT)) in {alert["annotations"]["runbook"] for alert in ALERTS}
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (runbook.parent / target).is_file(), target
