"""Colours, sizes of type, spaces and corners are in `tokens.css` alone, for all pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

STATIC: Final = Path(__file__).parents[2] / "tenantadmin" / "static"
TOKENS: Final = STATIC / "dashboard" / "tokens.css"
SHEETS: Final = sorted(path for path in STATIC.rglob("*.css") if path != TOKENS)
_DECLARATION: Final = re.compile(r"(?<![\w-])(--[\w-]+|[a-z-]+)\s*:\s*([^;{}]+);")
_COLOUR: Final = re.compile(
    r"#[0-9a-f]{3,8}\b|\b(rgb|hsl|oklch|oklab|lab|lch|light-dark)a?\(|\b(white|black|red|grey)\b"
)
_LENGTH: Final = re.compile(r"(?<![\w.-])-?[\d.]+(px|rem)\b")
_SPACE: Final = re.compile(r"(padding|margin)(-\w+)*|((row|column)-)?gap")
#: Why a length is no token: a hairline, or what hides an element from sight alone.
HAIRLINES: Final = {"1px", "-1px"}


def declarations(text: str) -> list[tuple[str, str]]:
    """Return the names and values of a style sheet."""
    return _DECLARATION.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def raw_values(text: str) -> list[str]:
    """Return the declarations of a style sheet that hold such a value themselves."""
    found = []
    for name, value in declarations(text):
        lengths = {match.group() for match in _LENGTH.finditer(value)} - HAIRLINES
        is_size = name in {"font-size", "font", "border-radius", "line-height"} or _SPACE.fullmatch(name)
        if _COLOUR.search(value) or (is_size and lengths):
            found.append(f"{name}: {value}")
    return found


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_no_other_sheet_has_a_value_of_its_own(sheet: Path) -> None:
    assert raw_values(sheet.read_text()) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a { color: #fff; padding: 0 3px; }", 2),
        ("a { font: 14px/1.5 var(--font); border-radius: 6px; margin: calc(2px + 1em); }", 3),
        ("a { gap: .5rem; background: light-dark(red, blue); }", 2),
        ("a { width: 20px; padding: 1px var(--space-4); color: inherit; margin: 0 auto; /* #fff */ }", 0),
    ],
)
def test_a_value_is_seen(text: str, count: int) -> None:
    assert len(raw_values(text)) == count


def test_every_token_is_declared_and_used() -> None:
    texts = [path.read_text() for path in (TOKENS, *SHEETS)]
    tokens, *others = [{name for name, _ in declarations(text) if name.startswith("--")} for text in texts]
    used = {name for text in texts for name in re.findall(r"var\((--[\w-]+)\)", text)}
    assert used - tokens.union(*others) == set()
    scripts = " ".join(path.read_text() for path in STATIC.rglob("*.js"))
    # Those of django-unfold are read by its own sheet.
    own = {name for name in tokens if not re.match(r"--(color|text|font)-", name)}
    assert {name for name in own - used if f'"{name[2:]}"' not in scripts} == set()
