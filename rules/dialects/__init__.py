"""What the SQL of warehouses means, as far as the service has to know: words, comments and quotes."""
