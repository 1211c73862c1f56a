"""Recommend changes of a ruleset, and measure the effect of accepted ones. See docs/advice.md.

A search (`mining`, `mine`) works in this order:

- `measure` loads the log into DuckDB and replays the current rules (`analytics.replay`).
- `requests` reads the outcome as series: a series has the requests for one result, in order of time.
- The modules in `kinds` propose changes. They estimate what a rule or a lifetime would save (`estimate`,
  `saving`), which only counts hits in series and is much faster than a replay.
- `mine` keeps the best proposals, and `measure` replays the ruleset with each. `storing` stores the result.

`recommendations` lets users decide. `effects` and `effect` measure accepted recommendations each day.
"""
