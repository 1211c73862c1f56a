"""Actions, names and the sign-in form of the admin site."""
