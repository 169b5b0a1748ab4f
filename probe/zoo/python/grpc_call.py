# A unary call without a retry policy, or with that of gRPC's guide to retries.
import json
import sys

import grpc

target, ca, retry = (sys.argv[1:] + [""])[:3]
policy = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
options = []
if retry:
    options = [("grpc.service_config", json.dumps({"methodConfig": [{"name": [{}], "retryPolicy": policy}]}))]
if ca:
    with open(ca, "rb") as file:
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(file.read()), options)
else:
    channel = grpc.insecure_channel(target, options)
with channel:
    channel.unary_unary("/zoo.Zoo/Call")(b"")
