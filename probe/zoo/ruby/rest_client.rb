require "rest-client"

url, method, body = ARGV
RestClient::Request.execute(method: method.downcase.to_sym, url: url, payload: body)
