"""Serializers of summaries and of insights, a module per resource."""
