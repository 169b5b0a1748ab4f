# The set-up of its documentation.
import sys

import httpx

url, method, body = sys.argv[1:4]
with httpx.Client(transport=httpx.HTTPTransport(retries=1)) as client:
    client.request(method, url, content=body or None).raise_for_status()
