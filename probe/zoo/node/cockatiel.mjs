// The set-up of its README.
import { ExponentialBackoff, handleAll, retry } from 'cockatiel';

const [url, method, body] = process.argv.slice(2);
await retry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() }).execute(async () => {
  const response = await fetch(url, { method, body: body || undefined });
  if (!response.ok) throw new Error(response.statusText);
  return response.text();
});
