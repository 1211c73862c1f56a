"""The checks. Each module registers its checks when it is imported.

The order of the imports and of the declarations in them is the order in docs/rules.md, and the order of
findings at the same place.
"""

from rules.lint.checks import (  # noqa: F401, I001 - imported to register, in this order
    form,
    conditions,
    actions,
    removal,
    sharing,
    meaning,
    lifetime,
)
