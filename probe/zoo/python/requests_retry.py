# The set-up of its documentation.
import sys

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

url, method, body = sys.argv[1:4]
session = requests.Session()
retries = Retry(total=3, backoff_factor=0.1, status_forcelist=[502, 503, 504], allowed_methods={"POST"})
for prefix in ("http://", "https://"):
    session.mount(prefix, HTTPAdapter(max_retries=retries))
session.request(method, url, data=body or None).raise_for_status()
