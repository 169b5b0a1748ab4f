// The set-up of its README.
import axios from 'axios';
import axiosRetry from 'axios-retry';

const [url, method, data] = process.argv.slice(2);
axiosRetry(axios, { retries: 3 });
await axios({ url, method, data: data || undefined });
