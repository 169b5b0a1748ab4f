"""The payments. The first two sends of each order get 503."""
import collections
import http.server
import json
import sys

sends = collections.Counter()


class Payments(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # the health check
        self.respond(200, "fine")

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        sends[order] += 1
        status = 503 if sends[order] <= 2 else 201
        print(f"  payments: order {order} with key {self.headers['Idempotency-Key']}: {status}")
        self.respond(status, json.dumps({"paid": order}) if status == 201 else "busy")

    def respond(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Payments).serve_forever()
