"""Every digest that a test makes has its numbers as facts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from analytics.watch.facts import PLACEHOLDER
from analytics.words.sections import make_document


@pytest.fixture(autouse=True)
def _check_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_and_check(*args: Any) -> Any:
        document = make_document(*args)
        for section in document.sections:
            assert not re.search(r"[0-9]", PLACEHOLDER.sub("", section.text))
        return document

    monkeypatch.setattr("analytics.jobs.digests.make_document", make_and_check)
