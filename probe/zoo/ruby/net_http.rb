require "net/http"
require "openssl"

url, method, body = ARGV
uri = URI(url)
response = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https") do |http|
  request = Net::HTTP.const_get(method.capitalize).new(uri)
  request.body = body unless body.empty?
  http.request(request)
end
response.value
