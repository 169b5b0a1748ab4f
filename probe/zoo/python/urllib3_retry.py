# The set-up that is copied most: a total, a factor, and a list of statuses.
import sys

import urllib3

url, method, body = sys.argv[1:4]
retries = urllib3.Retry(total=3, backoff_factor=1, status_forcelist=[429, 500, 502, 503, 504])
response = urllib3.PoolManager(retries=retries).request(method, url, body=body or None)
sys.exit(not 200 <= response.status < 300)
