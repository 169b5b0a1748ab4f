import ky from 'ky';

const [url, method, body] = process.argv.slice(2);
await ky(url, { method, body: body || undefined }).text();
