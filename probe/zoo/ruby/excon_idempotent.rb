# The option for retries of its README.
require "excon"

url, method, body = ARGV
Excon.defaults[:ssl_ca_file] = ENV["SSL_CERT_FILE"]
response = Excon.new(url).request(method: method, body: body, idempotent: true, expects: 200..299)
exit response.status.between?(200, 299)
