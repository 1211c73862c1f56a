"""Every digest that a test makes has wordings that differ by words alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from analytics.digest.document import make_document
from analytics.digest.facts import PLACEHOLDER


@pytest.fixture(autouse=True)
def _check_wordings(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_and_check(*args: Any) -> Any:
        document, sections = make_document(*args)
        for usual, *others in (wordings for section in sections for wordings in section.sentences):
            ids = sorted(PLACEHOLDER.findall(usual))
            for other in others:
                assert other != usual
                assert sorted(PLACEHOLDER.findall(other)) == ids, other
            assert not re.search(r"[0-9]", PLACEHOLDER.sub("", " ".join([usual, *others])))
        return document, sections

    monkeypatch.setattr("analytics.digest.making.make_document", make_and_check)
