# It gets an object: the other calls want a document in the response.
import sys

import boto3

client = boto3.client(
    "s3",
    endpoint_url=sys.argv[1],
    region_name="us-east-1",
    aws_access_key_id="zoo",
    aws_secret_access_key="zoo",
)
client.get_object(Bucket="bucket", Key="key")["Body"].read()
