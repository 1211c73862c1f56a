"""The frame of staff pages, without what a page need not wait for."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.template import Engine
from django.template.loader import get_template
from django.template.loaders.app_directories import Loader

FRAME = "unfold/layouts/skeleton.html"


def test_the_frame_loads_no_charts_and_defers_htmx() -> None:
    source = get_template(FRAME).template.source  # type: ignore[attr-defined]
    assert "chart.js" not in source
    for name in ("htmx", "simplebar"):
        assert source.count(f"{name}.js' %}}\" defer></script>") == 1


def test_another_frame_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loader, "get_contents", lambda _self, _origin: "<html></html>")
    engine = Engine(loaders=["tenantadmin.backoffice.loader.FrameLoader"])
    with pytest.raises(ImproperlyConfigured, match=r"has no <script .*chart\.js"):
        engine.get_template(FRAME)
