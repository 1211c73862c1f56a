"""Work that is a row of PostgreSQL until it is done: the queue of all work, and the outbox of messages."""
