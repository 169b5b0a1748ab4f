kind = "service-router"
name = "orders"
routes = [
  {
    match { http { path_prefix = "/" } }
    destination {
      service                  = "orders"
      num_retries              = 9
      retry_on                 = ["5xx", "retriable-4xx"]
      retry_on_connect_failure = true
      retry_on_status_codes    = [404, 503]
      request_timeout          = "60s"
    }
  },
  {
    match {
      http {
        path_prefix = "/read"
        methods     = ["GET", "HEAD"]
      }
    }
    destination {
      retry_on_status_codes = [503]
    }
  },
]
