"""The application for Celery."""

from muybridge.workers.celery_app import app, take_turn

assert app.tasks[take_turn.name] is not None
print(take_turn.name)
