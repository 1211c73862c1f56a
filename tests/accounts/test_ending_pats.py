"""Owners hear once by mail that a personal access token ends within a week."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from accounts.access.credentials import create_pat, end_pat, rotate_pat
from accounts.access.scopes import Scope
from accounts.models import PersonalAccessToken
from accounts.pats import mail_ending_pats
from tenantadmin.lib.core.timestamps import now
from tests.sending import sending

if TYPE_CHECKING:
    from django.core.mail import EmailMultiAlternatives

    from tests.factories import World

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


def make_pat(world: World, *, ends_in: dt.timedelta, lasts: dt.timedelta) -> PersonalAccessToken:
    pat, _ = create_pat(owner=world.member, name="dbt <nightly>", scopes=[Scope.CONFIG_READ])
    ends_at = now() + ends_in
    PersonalAccessToken.objects.filter(pk=pat.pk).update(expires_at=ends_at, created_at=ends_at - lasts)
    pat.refresh_from_db()
    return pat


def test_one_mail_a_week_before_the_end(
    world: World, mailoutbox: list[EmailMultiAlternatives], settings: Any
) -> None:
    settings.DASHBOARD_URL = "https://dash.example.org/"
    pat = make_pat(world, ends_in=7 * DAY - dt.timedelta(minutes=1), lasts=30 * DAY)
    with sending():
        assert [mail_ending_pats() for _ in range(3)] == [1, 0, 0]
    (mail,) = mailoutbox
    assert (mail.to, mail.subject) == (
        ["member@example.org"],
        "Your personal access token “dbt <nightly>” ends soon",
    )
    html = str(mail.alternatives[0][0])
    for part in (str(mail.body), html):
        assert f"ends at {pat.expires_at:%Y-%m-%d %H:%M} UTC" in part
        assert f"({pat.prefix}…)" in part
        assert part.count("https://dash.example.org/#/account") == 1
    assert "“dbt <nightly>”" in str(mail.body)
    assert "dbt &lt;nightly&gt;" in html
    # A new secret does not change the end, so there is nothing new to say.
    assert rotate_pat(pat, grace=DAY, actor="x") is not None
    assert mail_ending_pats() == 0


@pytest.mark.parametrize(
    ("ends_in", "lasts"),
    [
        (7 * DAY + dt.timedelta(minutes=1), 365 * DAY),
        (-dt.timedelta(seconds=1), 365 * DAY),
        (DAY, 30 * DAY - dt.timedelta(seconds=1)),
        (DAY, DAY),
    ],
)
def test_no_mail_too_early_too_late_or_for_short_tokens(
    world: World, ends_in: dt.timedelta, lasts: dt.timedelta
) -> None:
    make_pat(world, ends_in=ends_in, lasts=lasts)
    assert mail_ending_pats() == 0


def test_no_mail_for_revoked_tokens_inactive_owners_or_without_a_mail_server(
    world: World, settings: Any
) -> None:
    assert end_pat(make_pat(world, ends_in=DAY, lasts=90 * DAY), actor="x")
    assert mail_ending_pats() == 0
    make_pat(world, ends_in=DAY, lasts=90 * DAY)
    settings.MAGIC_LINKS_ENABLED = False
    assert mail_ending_pats() == 0
    settings.MAGIC_LINKS_ENABLED = True
    world.member.is_active = False
    world.member.save()
    assert mail_ending_pats() == 0


def test_the_mail_is_put_into_the_outbox_with_the_mark(
    world: World, monkeypatch: pytest.MonkeyPatch, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    """A worker that is killed between the two leaves neither."""
    for days in (1, 2):
        make_pat(world, ends_in=days * DAY, lasts=90 * DAY)

    def die(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("accounts.mailing.outbox.put", die)
        with pytest.raises(SystemExit):
            mail_ending_pats()
    assert not PersonalAccessToken.objects.exclude(end_mailed_at=None).exists()
    with sending():
        assert mail_ending_pats() == 2
    assert len(mailoutbox) == 2
