import axios from 'axios';

const [url, method, data] = process.argv.slice(2);
await axios({ url, method, data: data || undefined });
