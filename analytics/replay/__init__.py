"""Replay a log: compute the outcome of its requests under a ruleset. docs/replay.md defines every number.

`replay` does it in this order, in temporary tables of a DuckDB:

- `window` and `identity` load the requests (``request``) and number their statements, values and results. The
  identity of a request is the number of its result. It is exact if the log has all literals, known if the log
  has a cache key, and otherwise open.
- `shapes` decides each distinct combination of columns by the rules (``decision``).
- `outcome` and `chain` compute which requests the cache serves (``decided``, then ``played``).
- `counts`, `risk` and `bounds` count the outcome, `calibration` compares it with the log, and `publish_cost`
  estimates the cost of emptying the cache.
- `player` does this for each possible setting of the Gateway, and `comparing` compares two rulesets: the
  `result`, with its `caveats`.

`runs` and `execution` queue and run replays in workers.
"""
