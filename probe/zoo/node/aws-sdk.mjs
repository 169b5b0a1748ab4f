// It gets an object: the other calls want a document in the response.
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';

const [endpoint] = process.argv.slice(2);
const credentials = { accessKeyId: 'zoo', secretAccessKey: 'zoo' };
const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
const object = await client.send(new GetObjectCommand({ Bucket: 'bucket', Key: 'key' }));
await object.Body.transformToString();
