// With the option for statuses of its README.
import retry from 'fetch-retry';

const [url, method, body] = process.argv.slice(2);
const response = await retry(fetch)(url, { method, body: body || undefined, retryOn: [503] });
await response.text();
process.exitCode = response.ok ? 0 : 1;
