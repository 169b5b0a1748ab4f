# The set-up of its documentation, with the exceptions that it retries by default.
require "date"
require "faraday"

url, method, body = ARGV
retry_options = { max: 2, interval: 0.05, interval_randomness: 0.5, backoff_factor: 2 }
connection = Faraday.new do |f|
  f.request :retry, retry_options
  f.response :raise_error
  f.adapter :net_http
end
connection.run_request(method.downcase.to_sym, url, body, nil)
