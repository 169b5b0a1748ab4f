// A unary call without a retry policy, or with that of gRPC's guide to retries.
import { readFileSync } from 'node:fs';
import { Client, credentials } from '@grpc/grpc-js';

const [target, ca, retry] = process.argv.slice(2);
const retryPolicy = {
  maxAttempts: 4,
  initialBackoff: '0.1s',
  maxBackoff: '1s',
  backoffMultiplier: 2,
  retryableStatusCodes: ['UNAVAILABLE'],
};
const options = retry ? { 'grpc.service_config': JSON.stringify({ methodConfig: [{ name: [{}], retryPolicy }] }) } : {};
const client = new Client(target, ca ? credentials.createSsl(readFileSync(ca)) : credentials.createInsecure(), options);
const same = (bytes) => bytes;
client.makeUnaryRequest('/zoo.Zoo/Call', same, same, Buffer.alloc(0), (error) => {
  if (error) {
    console.error(error.message);
    process.exit(1);
  }
  client.close();
});
