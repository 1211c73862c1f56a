"""The frame of staff pages without the scripts that a page waited for.

django-unfold loads Chart.js into each page, and htmx before the page. On a slow line, a page stayed white
meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core.exceptions import ImproperlyConfigured
from django.template.loaders.app_directories import Loader

if TYPE_CHECKING:
    from django.template import Origin

_FRAME: Final = "unfold/layouts/skeleton.html"
#: A page with a chart loads Chart.js itself (backoffice.js).
_CHANGES: Final = (
    ("""<script src="{% static 'unfold/js/chart/chart.js' %}"></script>""", ""),
    (
        """<script src="{% static 'unfold/js/htmx/htmx.js' %}"></script>""",
        """<script src="{% static 'unfold/js/htmx/htmx.js' %}" defer></script>""",
    ),
    (
        """<script src="{% static 'unfold/js/simplebar/simplebar.js' %}"></script>""",
        """<script src="{% static 'unfold/js/simplebar/simplebar.js' %}" defer></script>""",
    ),
)


class FrameLoader(Loader):
    """Load templates of apps, and django-unfold's frame with these changes."""

    def get_contents(self, origin: Origin) -> str:
        contents = super().get_contents(origin)
        if origin.template_name == _FRAME:
            for text, other in _CHANGES:
                if text not in contents:
                    raise ImproperlyConfigured(f"{_FRAME} of this django-unfold has no {text}")
                contents = contents.replace(text, other)
        return contents
