"""Texts, mails and messages about what `analytics.watch` found."""
