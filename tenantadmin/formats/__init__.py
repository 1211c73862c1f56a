"""How the admin site writes dates and times."""
