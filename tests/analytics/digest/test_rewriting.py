"""What a language model may write: 200 hostile rewrites are refused, and honest ones are not."""

from __future__ import annotations

import pytest

from analytics.digest.rewriting import RewriteRefused, check_rewrite
from tests.analytics.digest.rewrites import DOCUMENT, HONEST, IDS, REWRITES, TEMPLATE


def test_there_are_two_hundred_of_them() -> None:
    assert len(REWRITES) >= 200


@pytest.mark.parametrize("text", REWRITES, ids=range(len(REWRITES)))
def test_a_hostile_rewrite_is_refused(text: str) -> None:
    with pytest.raises(RewriteRefused):
        check_rewrite(DOCUMENT, [text])


@pytest.mark.parametrize("text", HONEST)
def test_an_honest_rewrite_is_taken(text: str) -> None:
    check_rewrite(DOCUMENT, [text])


@pytest.mark.parametrize("texts", [[], [TEMPLATE, TEMPLATE]])
def test_another_number_of_texts_is_refused(texts: list[str]) -> None:
    with pytest.raises(RewriteRefused, match="came back"):
        check_rewrite(DOCUMENT, texts)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "A text is empty."),
        (TEMPLATE + "x" * len(TEMPLATE), "A text has twice the length of its template."),
        (f"{IDS} {{moved-9}}", "The id moved-9 is not one of this text."),
        ("{moved-1-rule} {moved-1-before} {moved-1-rate}", "The id moved-1-requests is missing."),
        (f"{IDS} 5", "A text has a digit."),
        (f"{IDS} five", "The word 'five' is a number."),
        (f"{IDS} fi-ve", "The word 'five' is a number."),
        (f"{IDS} rose", "The template does not say 'rose'."),
    ],
)
def test_the_reason_is_told(text: str, reason: str) -> None:
    with pytest.raises(RewriteRefused) as refused:
        check_rewrite(DOCUMENT, [text])
    assert str(refused.value) == reason


@pytest.mark.parametrize(
    "text",
    [
        "Your session has ended, so sign in again",
        "The password is known to others",
        "Call the help desk",
        "please reply to the sender",
        "An administrator must approve this now",
        "Accounts are suspended until they are verified",
        "Ask the vendor for a refund and pay by card",
        "Disable the rule and ignore the report",
    ],
)
def test_a_request_to_the_reader_is_refused(text: str) -> None:
    """A language model once could write what lures readers, without a digit or a link."""
    with pytest.raises(RewriteRefused, match="asks its reader for nothing"):
        check_rewrite(DOCUMENT, [f"{text}: {IDS}"])


def test_words_of_the_template_stay_allowed() -> None:
    document = {"sections": [{"id": "r", "heading": "Open", "text": "There are more open recommendations."}]}
    check_rewrite(document, ["More open recommendations are there."])


def test_a_text_of_almost_twice_the_length_is_taken() -> None:
    check_rewrite(DOCUMENT, [TEMPLATE + " ok"[:1] + "x" * (len(TEMPLATE) - 2)])
