from celery import Celery

app = Celery("shop", broker="redis://localhost")
app.conf.task_publish_retry = False
app.conf["task_annotations"] = {"shop.tasks.mail": {"rate_limit": "10/s", "max_retries": 0}}
