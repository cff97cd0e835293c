#!/usr/bin/python3
"""Overloads the page: more connections than places, slow and hostile clients, few descriptors.

After each case the health check must answer; at the end the server uses as little memory as before.
usage: crowd.py DTRUN FOLDER    (XDG_STATE_HOME is set, and its store has a long curve in run 'aa')
"""
import http.client
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

DTRUN, FOLDER = sys.argv[1:3]
PATIENCE = 120  # long enough to distinguish a hang from a slow machine
START = time.monotonic()


class Server:
    def __init__(self, descriptors=1024):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        self.process = subprocess.Popen([DTRUN, 'serve', '--listen', '127.0.0.1:0'], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, preexec_fn=few)
        link = self.process.stdout.readline().strip()
        self.port = int(link.split('//')[1].split('/')[0].split(':')[1])
        self.secret = link.partition('token=')[2]

    def connect(self):
        s = socket.socket()
        s.settimeout(PATIENCE)
        s.connect(('127.0.0.1', self.port))
        return s

    def head(self, path):
        return (f'GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n'
                f'Authorization: Bearer {self.secret}\r\n\r\n').encode()

    def ask(self, path):
        """Returns the status; tries again if the overload cost this connection."""
        for _ in range(20):
            try:
                c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
                c.request('GET', path, headers={'Authorization': 'Bearer ' + self.secret})
                answer = c.getresponse()
                answer.read()
                return answer.status
            except (ConnectionError, http.client.HTTPException):
                continue
            finally:
                c.close()
        return None

    def lives(self, after):
        status = self.ask('/healthz')
        if status != 200:
            sys.exit(f'after {after}: the health check says {status}')
        print(f'{time.monotonic() - START:6.1f} s: lives after {after}', flush=True)

    def status(self, key):
        with open(f'/proc/{self.process.pid}/status') as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key + ':'))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(PATIENCE) != 0:
            sys.exit(f'the server ended with {self.process.returncode}')


def hold(server, count):
    """Opens this many connections that request nothing; leaves out those that the kernel puts off."""
    held = []
    for _ in range(count):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(('127.0.0.1', server.port))
        held.append(s)
    return held


def drop(held):
    for s in held:
        s.close()


def all_end_in_one_round(server):
    for count in (64, 65, 130, 300):
        held = hold(server, count)
        server.lives(f'{count} came')
        os.kill(server.process.pid, signal.SIGSTOP)
        drop(held)
        os.kill(server.process.pid, signal.SIGCONT)
        server.lives(f'{count} left at once')


def a_thousand(server):
    held = hold(server, 1000)
    server.lives('1000 came and stay')
    drop(held)
    server.lives('1000 left')
    for _ in range(1000):
        server.connect().close()
    server.lives('1000 came and went')


def slow_askers(server):
    """Sends one byte a second for ever: such clients only occupy their places."""
    held = [server.connect() for _ in range(40)]
    for round_ in range(3):
        for s in held:
            try:
                s.send(server.head('/')[round_:round_ + 1])
            except OSError:
                pass
        server.lives(f'byte {round_ + 1} of 40 slow requests')
    drop(held)


def never_readers(server):
    held = []
    for _ in range(60):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(PATIENCE)
        s.connect(('127.0.0.1', server.port))
        s.sendall(server.head('/api/v1/runs/aa/metrics?most=100000'))
        held.append(s)
    server.lives('60 asked for much and do not read')
    drop(held)


def resets(server):
    for _ in range(200):
        s = server.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        s.sendall(server.head('/api/v1/runs/aa/metrics'))
        s.close()
    server.lives('200 resets')


def half_closed(server):
    for _ in range(100):
        s = server.connect()
        s.sendall(server.head('/healthz')[:-2])
        s.shutdown(socket.SHUT_WR)
        s.close()
    server.lives('100 half requests')


def many_who_want_much(server):
    wanted = '/api/v1/runs/aa/metrics?most=100000'
    got = []
    threads = [threading.Thread(target=lambda: got.append(server.ask(wanted))) for _ in range(8)]
    for t in threads:
        t.start()
    server.lives('8 ask for much')
    for t in threads:
        t.join()
    if any(status not in (200, 503) for status in got):
        sys.exit(f'who asked for much got {got}')


def main():
    server = Server()
    for crowd in (all_end_in_one_round, a_thousand, slow_askers, never_readers, resets, half_closed,
                  many_who_want_much):
        crowd(server)
    largest, now, threads = (server.status(key) for key in ('VmHWM', 'VmRSS', 'Threads'))
    print(f'resident: {largest} kB at most, {now} kB now; {threads} threads')
    # 128 places of a stack, a request's head and a part of an answer, four handles of 2 MB: below 40 MB
    if largest > 50_000:
        sys.exit(f'{largest} kB were resident')
    server.end()

    server = Server(descriptors=64)
    held = hold(server, 100)
    server.lives('100 came where 64 descriptors are allowed')
    drop(held)
    server.lives('they left')
    server.end()


main()
