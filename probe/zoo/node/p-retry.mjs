// The set-up of its README: a 404 ends it. The README has 5 retries.
import pRetry, { AbortError } from 'p-retry';

const [url, method, body] = process.argv.slice(2);
const run = async () => {
  const response = await fetch(url, { method, body: body || undefined });
  if (response.status === 404) throw new AbortError(response.statusText);
  if (!response.ok) throw new Error(response.statusText);
  return response.text();
};
await pRetry(run, { retries: 5 });
