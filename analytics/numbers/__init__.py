"""The numbers of days, months, years and the history: they are built from the log and stored as documents."""
