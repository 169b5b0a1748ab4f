"""Settings of the shop, for Celery and for Django: max_retries = 1."""
import ssl
from datetime import timedelta

from celery import Celery, shared_task

DEBUG = False  # CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_URL = env("BROKER", default="redis://localhost")
CELERY_BROKER_USE_SSL = {"ssl_cert_reqs": ssl.CERT_NONE} if env.bool("TLS") else None
CELERY_TASK_PUBLISH_RETRY_POLICY = {
    "interval_start": 0,
    "interval_step": 10,
    "interval_max": 60 * 60,
}

if not DEBUG:
    CELERY_TASK_ACKS_LATE = True
    CELERY_TASK_REJECT_ON_WORKER_LOST = True

CELERY_TASK_ANNOTATIONS = {
    "*": {"rate_limit": "10/s"},
    "shop.tasks.charge": {"max_retries": None, "default_retry_delay": 5 * 60},
    "shop.tasks.mail": dict(max_retries=12, autoretry_for=(OSError,), retry_backoff=True, retry_jitter=False),
    "shop.tasks.report": {"max_retries": env.int("REPORT_RETRIES", 3)},
    **more_annotations(),
}

app = Celery("shop")
app.conf.update(
    result_backend_always_retry=True,
    task_max_retries=5,
    task_routes={"shop.tasks.mail": {"queue": "mail"}},
)


@shared_task(
    bind=True,
    autoretry_for=(Exception,),
    retry_kwargs={"max_retries": 20, "countdown": timedelta(minutes=90).total_seconds()},
)
def export(self, order: str = "max_retries=99") -> None:
    raise self.retry(max_retries=50)


@app.task(**OPTIONS)
def sweep() -> None: ...


def settings_of_tests() -> dict:
    return {
        "broker_transport_options": {"visibility_timeout": 30, "max_retries": None},
        "result_backend": "redis://localhost",
        "task_annotations": {"shop.tasks.sync": {"max_retries": 2, "max_retries": 40, "default_retry_delay": DELAY}},
    }
