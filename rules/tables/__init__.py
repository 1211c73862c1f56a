"""What names of tables mean: their normal form, their comparison, and what a tenant says of its tables."""
