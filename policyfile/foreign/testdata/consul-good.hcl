Kind = "service-router"
Name = "orders"
Routes = [
  {
    Match { HTTP { PathPrefix = "/" } }
    Destination {
      Service        = "orders"
      RequestTimeout = "10s"
    }
  },
  {
    Destination {
      Service        = "reader"
      RequestTimeout = "10s"
    }
  },
]
