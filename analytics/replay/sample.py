"""The sample of a large log: which identities are replayed, and how far its counts may be from the whole.

A cache decides each result by its own key, so a sample of identities keeps every hit of the identities in it.
The heaviest are all in it. Each of the others stands for ``weight`` like it, as in spatial sampling (SHARDS,
FAST 2015). Section "Samples" of the definition (docs/replay.md).
"""

# Queries consist of constants, numbers and quoted names.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from analytics.replay.identity import IS_EXACT, VALUE_COUNT
from analytics.reports.sql import reads_tables_sql
from logs.quoting import quote_name, quote_text, quote_texts
from rules.conditions.evaluate import matches, read_request
from rules.conditions.model import iterate_tests
from rules.dialects.words import word_sql
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.core.structs import Count, JsonStruct

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from rules.language import Rule


#: In how many parts the entries of the other identities are divided, for bounds of what a replay reads.
_SIZES: Final = 8


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose the identities of a large log.

    Attributes:
        seed: the same seed and log give the same sample.
        most: the most entries of the heaviest identities, by requests and by time. Other identities of one
            size have at most an eighth of it.
        heaviest: at least so many of the heaviest identities are in the sample, by requests and by time.
        weight: the heaviest also have at least this share of all requests, and of all time.
        share: the share of the other identities.
        least: at least so many of them of each size: with fewer, nothing tells how much they differ.
        whole_up_to: up to so many entries, all are replayed if the sample would have most of them: few heavy
            identities that are left out make the bounds wider than the counts.
        firing: the rules that may fire. What they fire on is in the sample: it ends results of others.
        tables: what the tenant says of its tables.
    """

    seed: str
    most: int
    heaviest: int = 2_000
    weight: float = 0.5
    share: float = 0.05
    least: int = 200
    whole_up_to: int = 0
    firing: Sequence[Rule] = ()
    tables: WarehouseTables = ANY_TABLES


class Sample(JsonStruct):
    """What was replayed of a large log."""

    share: float
    identities: Count
    entries: Count


#: A sample with a larger share of the entries takes almost as long as all of them.
_MOST: Final = 0.5


def draw_sample(connection: DuckDBPyConnection, sampling: Sampling) -> Sample | None:
    """Leave only the sample in the view ``log`` and in ``statement``, and return what it is.

    Return None, and change nothing, if all entries are to be replayed (``Sampling.whole_up_to``).

    An identity is the unit of a sample: a pair of a statement and its values that is exact, else the
    statement, so that requests that may ask for the same result are not parted. ``light_unit`` has the units
    that stand for others, ``size_class`` what is known of all units of one size.
    """
    _load_units(connection, sampling)
    _choose_units(connection, sampling)
    identities, entries, share = connection.execute(
        """
        SELECT count(*) FILTER (entries > 0), coalesce(sum(entries), 0)::BIGINT,
            coalesce(sum(entries) / (SELECT sum(entries) FROM unit), 1)
        FROM chosen_unit
        """
    ).fetchall()[0]
    if share > _MOST and entries <= share * sampling.whole_up_to:
        _drop(connection, *_OF_CHOICE)
        return None
    connection.execute(
        """
        CREATE OR REPLACE TABLE sampled_pair AS
        SELECT statement_key, values_key, chosen_unit.weight, chosen_unit.number AS unit
        FROM unit_of_pair JOIN chosen_unit USING (unit)
        """
    )
    # A table of the texts would take more memory than all that is made from them.
    connection.execute(
        """
        CREATE OR REPLACE VIEW log AS
        SELECT decidable.* REPLACE (sampled_pair.weight AS weight, sampled_pair.unit AS unit)
        FROM decidable JOIN sampled_pair
            ON statement_key = hash(standardizedSql) AND values_key = hash(parameterValues)
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TABLE statement AS
        SELECT statement.* REPLACE (hash(text) IN (FROM ambiguous) AS is_ambiguous) FROM statement
        WHERE hash(text) IN (SELECT statement_key FROM sampled_pair)
        """
    )
    _drop(connection, *_OF_CHOICE)
    return Sample(share=share, identities=identities, entries=entries)


_OF_CHOICE: Final = ("unit", "unit_of_pair", "ambiguous", "chosen_unit")


def _drop(connection: DuckDBPyConnection, *tables: str) -> None:
    for name in tables:
        connection.execute(f"DROP TABLE {name}")


def _load_units(connection: DuckDBPyConnection, sampling: Sampling) -> None:
    """Create ``unit_of_pair``, ``ambiguous`` (hashes of statements) and ``unit``.

    A unit ``is_kept`` if it changes what others get, or if users may share a result of it that depends on who
    asks: leaks are found on all entries. Texts are told apart by their hashes of 64 bits.
    """
    differs = reads_tables_sql(sampling.tables.personal, sampling.tables)
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE personal_list AS
        SELECT tables FROM (SELECT DISTINCT tables FROM log) WHERE {differs}
        """
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE found_pair AS
        SELECT hash(standardizedSql) AS statement, hash(parameterValues) AS values_key,
            any_value(parameterValues) AS "parameterValues", count(*) FILTER (is_counted) AS entries,
            bool_or(
                coalesce(isDataChange, false) OR coalesce(isDDL, false) OR {_fires(connection, sampling)}
            ) AS is_kept,
            bool_or(coalesce(tables IN (FROM personal_list), false)) AS is_personal,
            min(hash(userName)) FILTER (userName IS NOT NULL) AS first_user,
            max(hash(userName)) FILTER (userName IS NOT NULL) AS last_user,
            coalesce(
                min(hash(queryHash)) FILTER (cacheKey IS NOT NULL)
                    <> max(hash(queryHash)) FILTER (cacheKey IS NOT NULL),
                false
            ) AS is_ambiguous
        FROM log GROUP BY 1, 2
        """
    )
    connection.execute(
        "CREATE OR REPLACE TABLE ambiguous AS SELECT DISTINCT statement FROM found_pair WHERE is_ambiguous"
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TABLE unit_of_pair AS
        SELECT statement AS statement_key, values_key, if({IS_EXACT}, hash(statement, values_key), statement)
            AS unit, entries, is_kept, first_user, last_user, mean_ms, is_personal OR depends AS depends
        FROM (
            SELECT found_pair.*, placeholders, mean_ms, depends, {VALUE_COUNT} AS value_count
            FROM found_pair JOIN (
                SELECT hash(text) AS statement, placeholders, mean_ms,
                    {word_sql("text")} IS NOT NULL AS depends
                FROM statement
            ) USING (statement)
        )
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TABLE unit AS
        SELECT unit, sum(entries)::BIGINT AS entries, sum(entries * mean_ms)::HUGEINT AS ms,
            bool_or(is_kept) OR (bool_or(depends) AND coalesce(min(first_user) <> max(last_user), false))
                AS is_kept
        FROM unit_of_pair GROUP BY unit
        """
    )
    _drop(connection, "found_pair", "personal_list")


def _fires(connection: DuckDBPyConnection, sampling: Sampling) -> str:
    """Return SQL for whether a rule may fire on a row of ``log``."""
    rules = [rule for rule in sampling.firing if rule.enabled and rule.invalidate_rules]
    names = sorted({test.key.name for rule in rules for test, _ in iterate_tests(rule.condition)})
    if not rules:
        return "false"
    if not names:
        return "true"
    columns = ", ".join(map(quote_name, names))
    rows = connection.execute(f"SELECT hash({columns}), {columns} FROM log GROUP BY ALL").fetchall()
    fired = [
        number
        for number, *values in rows
        if any(matches(rule.condition, read_request(dict(zip(names, values, strict=True)))) for rule in rules)
    ]
    connection.register("new_firing", pa.table({"number": pa.array(fired, pa.uint64())}))
    connection.execute("CREATE OR REPLACE TABLE firing AS FROM new_firing")
    connection.unregister("new_firing")
    return f"hash({columns}) IN (FROM firing)"


def _choose_units(connection: DuckDBPyConnection, sampling: Sampling) -> None:
    """Create ``chosen_unit``, ``light_unit`` and ``size_class`` from ``unit``.

    Units of one size (within a factor of two) are a stratum. Those with the least hashes are chosen, and
    their weight makes up for the requests of the others.
    """

    def heaviest(column: str) -> str:
        return f"""
            SELECT unit FROM (
                SELECT unit, row_number() OVER heavy AS place, sum(entries) OVER heavy AS taken,
                    sum({column}) OVER heavy - {column} AS before, sum({column}) OVER () AS whole
                FROM unit WINDOW heavy AS (ORDER BY {column} DESC, unit ROWS UNBOUNDED PRECEDING)
            )
            WHERE (place <= {sampling.heaviest} OR before < {sampling.weight} * whole)
                AND taken <= {sampling.most}
        """

    connection.execute(
        f"""
        CREATE OR REPLACE TABLE chosen_unit AS
        WITH heavy AS ({heaviest("entries")} UNION {heaviest("ms")}), placed AS (
            SELECT unit, entries, ms, hash(unit, {quote_text(sampling.seed)}) AS chance,
                if(is_kept OR unit IN (FROM heavy), NULL, floor(log2(entries))::INTEGER) AS stratum
            FROM unit WHERE entries > 0 OR is_kept
        ), ordered AS (
            SELECT *, row_number() OVER (PARTITION BY stratum ORDER BY chance, unit) AS place,
                sum(entries) OVER (
                    PARTITION BY stratum ORDER BY chance, unit ROWS UNBOUNDED PRECEDING
                ) AS taken,
                count(*) OVER (PARTITION BY stratum) AS units,
                sum(entries) OVER (PARTITION BY stratum) AS whole
            FROM placed
        )
        SELECT row_number() OVER (ORDER BY unit) AS number, unit, entries, ms, stratum, units, CASE
                WHEN stratum IS NULL THEN 1
                ELSE whole / sum(entries) OVER (PARTITION BY stratum) END::DOUBLE AS weight
        FROM ordered
        WHERE stratum IS NULL OR place <= 2 OR (
            place <= greatest(ceil({sampling.share} * units), {sampling.least})
            AND taken <= {sampling.most // _SIZES}
        )
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TABLE light_unit AS
        SELECT number AS unit, entries, stratum FROM chosen_unit WHERE stratum IS NOT NULL
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TABLE size_class AS
        SELECT stratum, count(*) AS units, 1 - count(*) / any_value(units) AS left_out,
            any_value(weight) AS weight, sum(entries)::DOUBLE AS entries,
            avg(entries) AS size, avg(ms) AS ms, sum(entries::DOUBLE ** 2) AS squares,
            sum(entries::DOUBLE ** 4) AS fourths
        FROM chosen_unit WHERE stratum IS NOT NULL GROUP BY stratum
        """
    )


#: The share of samples in whose bounds the exact count lies is 95 %: so many standard deviations.
_NORMAL: Final = 1.959964
#: Fewer degrees of freedom than this are no estimate at all.
_MIN_FREEDOM: Final = 2.0


def find_margins(
    connection: DuckDBPyConnection, parts: Sequence[tuple[str, int]], ids: Mapping[str, Sequence[str]]
) -> Margins:
    """Return how far the counts of a sample may be from the counts of the whole log, at 95 %.

    A count is the sum of what its units count. Those of a stratum count about in proportion to their
    requests; the margin is made from how far each is from that. One more unit is taken to count all or
    nothing: the sample may have none of what few units do.

    Args:
        parts: tables with ``rule``, ``unit`` (in ``light_unit``), ``name`` and ``y``: what each unit adds to
            a count of a rule; and 1 or -1, by which ``y`` is multiplied.
        ids: by table, the ids of the rules by index.
    """
    source = " UNION ALL ".join(
        f"SELECT list_extract({quote_texts(ids[table])}::VARCHAR[], rule + 1) AS rule, unit, name,"
        f" {sign} * y AS y FROM {table}"
        for table, sign in parts
    )
    rows = connection.execute(_VARIANCES.format(source=source)).fetchall()
    by_rule: dict[tuple[str | None, str], float] = {}
    total: dict[str, float] = {}
    for rule, is_total, name, variance, effective in rows:
        margin = _factor(effective) * sqrt(variance)
        if is_total:
            total[name] = margin
        else:
            by_rule[rule, name] = margin
    return Margins(total, by_rule)


@dataclass(frozen=True, slots=True)
class Margins:
    """Half the width of the bounds of counts by name: of all rules together, and by rule id and name."""

    total: Mapping[str, float]
    by_rule: Mapping[tuple[str | None, str], float]

    def of(self, rule_id: str | None, name: str) -> float:
        return self.by_rule.get((rule_id, name), 0.0)


def _factor(effective: float) -> float:
    """Return how many standard deviations the bounds are wide: the quantile of Student's distribution.

    Few units that differ much from the others say little about the variance: ``effective`` is their number,
    (sum d²)² / sum d⁴ of the differences.
    """
    freedom = max(effective - 1, _MIN_FREEDOM)
    z = _NORMAL
    # The expansion of Cornish and Fisher.
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


#: The counts and times, of which some units add all that they can, and others nothing.
RARE_COUNTS: Final = ("hits", "high_hits", "misses", "extraMisses")
RARE_TIMES: Final = ("saved_ms", "high_saved_ms", "spent_ms", "extraMs")
#: Units that add nothing to a count need not be in ``{{source}}``: their part follows from ``size_class``.
_VARIANCES: Final = f"""
    WITH part AS ({{source}}), counted AS (
        SELECT rule, false AS is_total, name, unit, sum(y) AS y FROM part GROUP BY ALL
        UNION ALL SELECT NULL, true, name, unit, sum(y) FROM part GROUP BY ALL
    ), rated AS (
        SELECT counted.*, light_unit.stratum, light_unit.entries::DOUBLE AS x,
            sum(y) OVER (PARTITION BY rule, is_total, name, light_unit.stratum) / size_class.entries AS ratio
        FROM counted JOIN light_unit USING (unit) JOIN size_class USING (stratum)
    ), moment AS (
        SELECT rule, is_total, name, stratum, any_value(ratio) AS ratio,
            sum((y - ratio * x) ** 2 - (ratio * x) ** 2) AS second,
            sum((y - ratio * x) ** 4 - (ratio * x) ** 4) AS fourth
        FROM rated GROUP BY rule, is_total, name, stratum
    ), difference AS (
        SELECT rule, is_total, name, units, weight ** 2 * left_out AS factor,
            CASE WHEN name IN {RARE_COUNTS} THEN size WHEN name IN {RARE_TIMES} THEN ms ELSE 0 END AS unseen,
            greatest(second + ratio ** 2 * squares, 0) + unseen ** 2 AS second,
            greatest(fourth + ratio ** 4 * fourths, 0) + unseen ** 4 AS fourth
        FROM moment JOIN size_class USING (stratum) WHERE left_out > 0 AND units > 1
    )
    SELECT rule, is_total, name, sum(factor * second * units / (units - 1)) AS variance,
        sum(factor * second) ** 2 / sum(factor ** 2 * fourth) AS effective
    FROM difference GROUP BY rule, is_total, name
    HAVING variance > 0 AND sum(factor ** 2 * fourth) > 0
"""
