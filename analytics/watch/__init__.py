"""What a tenant should hear of: digests of days and weeks, the verdict, and alerts."""
