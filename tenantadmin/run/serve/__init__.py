"""The supervisor of `manage.py serve`: web server, Celery worker and beat, and the servers they need."""
