// Retries are off by default; true has the defaults of the library.
import { request } from 'gaxios';

const [url, method, data] = process.argv.slice(2);
await request({ url, method, data: data || undefined, retry: true });
