import got from 'got';

const [url, method, body] = process.argv.slice(2);
await got(url, { method, body: body || undefined });
