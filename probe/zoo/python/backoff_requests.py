# The set-up of its README, and an end.
import sys

import backoff
import requests

url, method, body = sys.argv[1:4]


@backoff.on_exception(backoff.expo, requests.exceptions.RequestException, max_tries=4)
def call():
    requests.request(method, url, data=body or None).raise_for_status()


call()
