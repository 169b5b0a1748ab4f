// The pipeline that the clients of Azure share.
import { createDefaultHttpClient, createPipelineFromOptions, createPipelineRequest } from '@azure/core-rest-pipeline';

const [url, method, body] = process.argv.slice(2);
const request = createPipelineRequest({ url, method, body: body || undefined, allowInsecureConnection: true });
const response = await createPipelineFromOptions({}).sendRequest(createDefaultHttpClient(), request);
process.exitCode = response.status >= 200 && response.status < 300 ? 0 : 1;
