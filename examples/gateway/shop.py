"""The shop. It calls the gateway as if that were the payments, and retries nothing itself."""
import json
import os
import urllib.error
import urllib.request
import uuid

payments = os.environ["PAYMENTS_URL"]


def charge(order, key):
    request = urllib.request.Request(payments + "/charges", json.dumps({"order": order}).encode(), {"Content-Type": "application/json"})
    if key:
        request.add_header("Idempotency-Key", key)
    try:
        # Longer than the gateway's total, which says more about what went wrong.
        with urllib.request.urlopen(request, timeout=20) as response:
            print(f"order {order}: {response.status} {response.read().decode()}")
    except urllib.error.HTTPError as e:
        print(f"order {order}: {e.code}, {e.headers['Forbear-Stop']} after {e.headers['Forbear-Attempts']} attempt(s)")


charge(1, str(uuid.uuid4()))  # the key is made once for each order and stored with it
charge(2, None)  # without a key a POST is not safe to send again
