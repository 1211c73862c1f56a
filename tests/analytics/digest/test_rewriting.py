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


def test_a_text_of_almost_twice_the_length_is_taken() -> None:
    check_rewrite(DOCUMENT, [TEMPLATE + " ok"[:1] + "x" * (len(TEMPLATE) - 2)])
