import sys

import requests

url, method, body = sys.argv[1:4]
requests.request(method, url, data=body or None).raise_for_status()
