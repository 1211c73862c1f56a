"""What the admin pages of tenants' rows share."""
