"""A web server that serves one file in many ways: server.py FOLDER CERT KEY

Prints "HTTPS-PORT HTTP-PORT" and serves until it is ended; each request is a line of FOLDER/log:
"path range if-range". The answer for FOLDER/corpus.txt by each path:

/corpus.txt    with ranges and an ETag            /plain.txt   without either
/cut.txt       at most 100000 bytes a connection  /cut-plain.txt  the same, once, and no ranges
/changing.txt  another ETag every time, cut once
/busy.txt      503 twice, then good               /empty.txt   no bytes
/wrong-part.txt  a range that was not requested   /private.txt   401 without a name and password
/moved.txt -> /corpus.txt, /loop.txt -> /loop.txt, /down.txt -> http, /file.txt -> file:///
"""
import http.server
import os
import ssl
import sys
import threading

folder, cert, key = sys.argv[1:4]
data = open(os.path.join(folder, "corpus.txt"), "rb").read()
seen = {}
ports = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, headers=(), body=b"", cut=None):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None and cut < len(body):
            self.close_connection = True
            self.wfile.flush()
            self.connection.close()

    def redirect(self, where):
        self.answer(302, [("Location", where)], b"moved")

    def do_GET(self):
        path = self.path.split("?")[0]
        wanted, condition = self.headers.get("Range"), self.headers.get("If-Range")
        with open(os.path.join(folder, "log"), "a") as log:
            log.write(f"{path} {wanted or '-'} {condition or '-'}\n")
        count = seen[path] = seen.get(path, 0) + 1
        here = f"https://localhost:{ports['https']}"
        moves = {"/moved.txt": here + "/corpus.txt", "/loop.txt": here + "/loop.txt",
                 "/down.txt": f"http://localhost:{ports['http']}/corpus.txt", "/file.txt": "file:///etc/passwd"}
        if path in moves:
            return self.redirect(moves[path])
        if path == "/empty.txt":
            return self.answer(200)
        if path == "/busy.txt" and count <= 2:
            return self.answer(503, [], b"later")
        if path == "/private.txt" and self.headers.get("Authorization") is None:
            return self.answer(401, [], b"who?")
        names = ("corpus", "plain", "cut", "cut-plain", "changing", "busy", "wrong-part", "private")
        if path[1:-4] not in names:
            return self.answer(404, [], b"nothing")
        ranges = path not in ("/plain.txt", "/cut-plain.txt")
        tag = f'"{path}-{count}"' if path == "/changing.txt" else f'"{path}"'
        cut = None
        if path == "/cut.txt" or (path in ("/cut-plain.txt", "/changing.txt") and count == 1):
            cut = 100000
        if not ranges or wanted is None or (condition is not None and condition != tag):
            return self.answer(200, [("ETag", tag)] if ranges else [], data, cut)
        start = int(wanted[len("bytes="):].split("-")[0])
        if start >= len(data):
            return self.answer(416, [("Content-Range", f"bytes */{len(data)}")])
        if path == "/wrong-part.txt":
            start = 0
        self.answer(206, [("ETag", tag), ("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")],
                    data[start:], cut)


def serve(secure):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # clients that disconnect
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    ports["https" if secure else "http"] = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()


serve(True)
serve(False)
print(ports["https"], ports["http"], flush=True)
sys.stdin.read()
