import { backOff } from 'exponential-backoff';

const [url, method, body] = process.argv.slice(2);
await backOff(async () => {
  const response = await fetch(url, { method, body: body || undefined });
  if (!response.ok) throw new Error(response.statusText);
  return response.text();
});
