// The set-up of its README.
import fetch from 'make-fetch-happen';

const [url, method, body] = process.argv.slice(2);
const response = await fetch(url, { method, body: body || undefined, retry: { retries: 10, randomize: true } });
await response.text();
process.exitCode = response.ok ? 0 : 1;
