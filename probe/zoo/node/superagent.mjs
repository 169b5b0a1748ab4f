// The set-up of its documentation.
import request from 'superagent';

const [url, method, body] = process.argv.slice(2);
await request(method, url).send(body || undefined).retry(2);
