# The exponential wait of its README, and an end.
import sys

import requests
from retrying import retry

url, method, body = sys.argv[1:4]


@retry(wait_exponential_multiplier=1000, wait_exponential_max=10000, stop_max_attempt_number=4)
def call():
    requests.request(method, url, data=body or None).raise_for_status()


call()
