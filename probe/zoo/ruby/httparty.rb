require "httparty"

url, method, body = ARGV
response = HTTParty.send(method.downcase, url, body: body.empty? ? nil : body)
exit response.success?
