"""Recommend changes of a ruleset, and measure the effect of accepted ones. See docs/advice.md.

A search (`search`, `mine`) works in this order:

- `measure` loads the log into DuckDB and replays the current rules (`analytics.replay`).
- `estimate` reads the outcome as series: a series has the requests for one result, in order of time.
- The modules in `kinds` propose changes (`proposal`). They estimate what a rule or a lifetime would save
  (`estimate`), which only counts hits in series and is much faster than a replay.
- `mine` keeps the best proposals, and `measure` replays the ruleset with each. `search` stores the result.

`recommend` shows recommendations, and lets users decide. `follow` measures accepted ones each day.
"""
