"""Messages of the API on the staff's pages: in the words of their fields, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import reverse

from accounts.admin.base import ActPage
from accounts.billing.accounts import read_account
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant


def test_a_page_says_what_its_act_will_do() -> None:
    """In the present, the sentence above a button reads as if it were done."""
    pages = [ActPage]
    for page in pages:
        pages += page.__subclasses__()
    own = [(page.__name__, vars(page).get("effect")) for page in pages]
    told = [(name, effect) for name, effect in own if effect and isinstance(effect, str)]
    assert len(told) > 15
    assert [name for name, effect in told if " will " not in effect] == []


def problem_of(answer: Any) -> str:
    """Return the text of the problem that a page shows, without the id of the request."""
    assert answer.status_code == 400
    html = answer.content.decode()
    return text_of(
        html.partition('<div class="notice bad" role="alert">')[2].partition('<p class="subtle">')[0]
    )


def test_owners_that_are_not_there(staff: Client, tenant: Tenant) -> None:
    address = reverse("admin:account-change", args=[tenant.account_id])
    etag = read_account(tenant.account_id).etag
    sent = {"plan": "team", "owners": "unknown@example.org", "name": "Acme", "etag": etag, "reason": "x"}
    answer = staff.post(address, sent)
    assert (answer.status_code, problem_of(answer)) == (400, "")
    error = "<li>There is no user &#x27;unknown@example.org&#x27;.</li>"
    assert f'<ul class="errorlist" id="id_owners_error">{error}</ul>' in answer.content.decode()
