"""What every layer may use: errors, times, addresses, host names. Imports nothing else of the service."""
