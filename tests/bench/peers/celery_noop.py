"""The task of the Celery row. The broker's URL is in BROKER."""
import os

from celery import Celery

app = Celery('celery_noop', broker=os.environ['BROKER'])
app.conf.task_ignore_result = True


@app.task
def noop():
    pass
