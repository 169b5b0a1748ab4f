import { ofetch } from 'ofetch';

const [url, method, body] = process.argv.slice(2);
await ofetch(url, { method, body: body || undefined });
