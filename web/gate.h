/* gate: what every request passes before it is routed; it refuses by default.
 *
 * Purpose  a page of another site that a browser shows must not read this one. A browser sends
 *          such requests from this machine, so the address says nothing; but it always sends the
 *          name that it believes to be talking to (Host), and the page that asks (Origin).
 * Rules    GET or HEAD, else 405; Host names this machine and the port, else 403; Origin absent or that same place, else 403
 *          At a Unix socket (port 0) the port is that of whoever passes it on: any, and Origin
 *          exactly Host.
 */
#ifndef DT_WEB_GATE_H
#define DT_WEB_GATE_H

/* 0: pass; else the HTTP status, and *reason a sentence for the answer. NULL: header absent. head.h refuses
 * requests that have one of them twice. */
int dt_web_gate(const char *method, const char *host, const char *origin, int port,
                const char *address, const char **reason);

#endif
