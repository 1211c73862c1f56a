"""Assess a warehouse's own history: import it, find rules, and say what they would save."""
