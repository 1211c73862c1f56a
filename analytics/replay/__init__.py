"""Replay a log: compute the outcome of its requests under a ruleset. docs/replay.md defines every number.

`compare.replay` does it in this order, in temporary tables of a DuckDB:

- `load` reads the requests (``request``) and numbers their statements, values and results. The identity of a
  request is the number of its result. It is exact if the log has all literals, known if the log has a cache
  key, and otherwise open.
- `rules` decides each distinct combination of columns by the rules (``decision``), and learns the settings of
  the Gateway.
- `play` computes which requests the cache serves (``decided``, then ``cache_outcome``); of a ruleset that is
  compared with the current one, only for the statements on which they may differ (``touched``).
- `count` counts the outcome, with bounds, hits at risk and the bill.
- `compare` compares the rules in force with the log, and two rulesets: the `result`, with its caveats.

`figures` and `words` say what the result means. `runs` and `execution` queue and run replays in workers.
"""
