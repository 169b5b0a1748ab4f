// The set-up of its README with exponential backoff.
import axios from 'axios';
import axiosRetry from 'axios-retry';

const [url, method, data] = process.argv.slice(2);
axiosRetry(axios, { retries: 3, retryDelay: axiosRetry.exponentialDelay });
await axios({ url, method, data: data || undefined });
