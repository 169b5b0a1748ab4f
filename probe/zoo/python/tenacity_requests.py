# The exponential wait with jitter of its documentation, and an end.
import sys

import requests
from tenacity import retry, stop_after_attempt, wait_random_exponential

url, method, body = sys.argv[1:4]


@retry(wait=wait_random_exponential(multiplier=1, max=60), stop=stop_after_attempt(3))
def call():
    requests.request(method, url, data=body or None).raise_for_status()


call()
