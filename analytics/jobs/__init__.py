"""Jobs that make what a tenant hears of: they read facts, say them, and store both."""
