"""Strategies for conditions and log rows. Values come from small pools, so that conditions often match."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from rules.conditions import CONDITION_KEYS, OPERATORS, ConditionKey, Kind
from rules.conditions.keys import Shape

#: Letters with unusual lower case, wildcards of pattern languages, quotes and line breaks.
PECULIAR = "aAbBkKſßẞσςΣİıiIÉé€😀.*%_?[]\\'\"\n\t /"

texts = st.one_of(
    st.sampled_from(["", "a", "SELECT", "select", "Ab", "it's", "a.b", "a%b", "İ", "ΑΣ", "ας", "line\nline"]),
    st.text(alphabet=PECULIAR, max_size=4),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
)
table_names = st.one_of(
    st.sampled_from(
        ["sales.orders", "sales.items", "Sales.Orders", "hr.people", "a.b.c", "orders", "a*b", ""]
    ),
    texts,
)
globs = st.one_of(
    st.sampled_from(["sales.*", "*", "*.orders", "a.*.c", "sales.orders", "*a*", "**", "s*s", "a.b*", "S*"]),
    st.text(alphabet="ab.*%\\É", max_size=5),
)
regexes = st.sampled_from(
    [
        "",
        "a",
        "^a",
        "a$",
        "^SELECT$",
        "a.b",
        "(?s)a.b",
        "(?i)select",
        "(?m)^line$",
        "^$",
        ".",
        "^.{2}$",
        r"\bline",
        r"\pL",
        r"[^a-z]",
        r"a%b",
        r"\\",
        r"it's",
        "a|b",
        "(?P<name>a)+",
        r"\C",
        r"^\pN*$",
        "É",
        "ſ",
        ".*a.*",
        "^.*$",
        r"a\.b",
    ]
)
networks = st.sampled_from(
    [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/9",
        "10.0.0.1",
        "10.0.0.128/25",
        "172.16.0.0/12",
        "::/0",
        "2001:db8::/32",
        "2001:db8::/33",
        "::ffff:10.0.0.0/104",
        "::1/128",
        "fe80::/10",
    ]
)
addresses = st.one_of(
    st.sampled_from(
        [
            "10.0.0.1",
            "10.127.255.255",
            "10.128.0.0",
            "172.31.255.255",
            "172.32.0.0",
            "010.0.0.1",
            "10.0.0.256",
            "10.0.0",
            "10.0.0.1/8",
            " 10.0.0.1",
            "10.0.0.1\n",
            "::",
            "::1",
            "::FFFF:10.0.0.1",
            "::ffff:0a00:1",
            "2001:db8::",
            "2001:DB8:8000::1",
            "2001:0db8:0000:0000:0000:0000:0000:0001",
            "fe80::1%eth0",
            "febf::1",
            "1:2:3:4:5:6:7::",
            "1:2:3:4:5:6:7:8::",
            "::1.2.3.4",
            "::1::",
            ":::",
            "unknown",
            "１0.0.0.1",
        ]
    ),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).flatmap(
        lambda address: st.sampled_from([str(address), address.exploded, address.exploded.upper()])
    ),
    texts,
)
numbers = st.one_of(
    st.integers(-3, 4), st.sampled_from([2.0, 2.5, -0.5, 1e3, 2**53, -(2**53), 2**31, 2_147_483_647])
)


def _scalars(key: ConditionKey) -> st.SearchStrategy[Any]:
    match key.kind:
        case Kind.BOOL:
            return st.booleans()
        case Kind.NUMBER:
            return numbers
        case Kind.TABLES:
            return table_names
        case Kind.IP:
            return addresses
        case Kind.TEXT:
            return texts


def _operands(key: ConditionKey, operator: str, shape: Shape) -> st.SearchStrategy[Any]:
    match shape:
        case Shape.SCALAR:
            return _scalars(key)
        case Shape.SCALARS:
            return st.lists(_scalars(key), max_size=3)
        case Shape.BOOLEAN:
            return st.booleans()
        case Shape.NUMBER:
            return numbers
        case Shape.TEXT:
            return regexes if operator == "regex" else texts
        case Shape.TEXTS:
            return st.lists(globs, max_size=3)
        case Shape.TEXT_OR_TEXTS:
            return st.one_of(networks, st.lists(networks, max_size=3))


@st.composite
def _operator_objects(draw: st.DrawFn, key: ConditionKey) -> dict[str, Any]:
    fitting = [operator for operator, spec in OPERATORS.items() if key.kind in spec.kinds]
    chosen = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2, unique=True))
    document = {
        operator.value: draw(_operands(key, operator.value, OPERATORS[operator].shape)) for operator in chosen
    }
    if key.is_textual and draw(st.booleans()):
        document["ignoreCase"] = draw(st.booleans())
    return document


@st.composite
def _leaves(draw: st.DrawFn) -> dict[str, Any]:
    key = CONDITION_KEYS[draw(st.sampled_from(sorted(CONDITION_KEYS)))]
    return {key.name: draw(st.one_of(_scalars(key), _operator_objects(key)))}


def _combine(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
    )


#: ``conditions`` objects that pass lint, with some nesting.
conditions = st.one_of(st.just({}), st.recursive(_leaves(), _combine, max_leaves=6))

_tables_texts = st.one_of(
    st.lists(table_names, max_size=3).map(json.dumps),
    st.lists(table_names, max_size=3).map(lambda names: json.dumps(names, ensure_ascii=False)),
    st.sampled_from(
        ["", "null", "{}", '"sales.orders"', '[1, null, ["a"], "sales.orders"]', "[", '["\\u0000"]']
    ),
)


def _values(key: ConditionKey) -> st.SearchStrategy[Any]:
    match key.kind:
        case Kind.TABLES:
            return _tables_texts
        case Kind.NUMBER:
            return st.one_of(st.integers(-3, 4), st.sampled_from([2**31 - 1, -(2**31)]))
        case Kind.TEXT:
            return st.one_of(texts, st.just("a\0b"))
        case _:
            return _scalars(key)


#: Rows of ``proxy_logs`` with the columns that are condition keys.
rows = st.fixed_dictionaries({name: st.none() | _values(key) for name, key in CONDITION_KEYS.items()})
