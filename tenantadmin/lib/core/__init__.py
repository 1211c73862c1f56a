"""Modules that every layer may import: errors, times, addresses, host names. They import no other layer."""
