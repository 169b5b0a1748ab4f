import sys

import urllib3

url, method, body = sys.argv[1:4]
response = urllib3.request(method, url, body=body or None)
sys.exit(not 200 <= response.status < 300)
