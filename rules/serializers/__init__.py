"""Serializers of rules, markers and cache metadata, a module per resource."""
