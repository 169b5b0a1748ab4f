# The mode that its documentation recommends.
import sys

import boto3
from botocore.config import Config

client = boto3.client(
    "s3",
    endpoint_url=sys.argv[1],
    region_name="us-east-1",
    aws_access_key_id="zoo",
    aws_secret_access_key="zoo",
    config=Config(retries={"mode": "standard"}),
)
client.get_object(Bucket="bucket", Key="key")["Body"].read()
