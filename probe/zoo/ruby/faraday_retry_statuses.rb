# The set-up of its documentation, and the statuses that people add.
require "date"
require "faraday"

url, method, body = ARGV
retry_options = { max: 2, interval: 0.05, interval_randomness: 0.5, backoff_factor: 2, retry_statuses: [429, 500, 502, 503, 504] }
connection = Faraday.new do |f|
  f.request :retry, retry_options
  f.adapter :net_http
end
response = connection.run_request(method.downcase.to_sym, url, body, nil)
exit response.success?
