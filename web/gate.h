/* gate: checks every request before it is routed, and refuses by default.
 *
 * Purpose  pages of other sites in a browser must not read this one. The browser sends such requests from this
 *          machine, so that the client's address is no help; but it always sends the name of the server that it
 *          addresses (Host), and the site of the page that makes the request (Origin).
 * Rules    GET or HEAD, else 405; Host names this machine and the port, else 403; Origin absent or that same place,
 *          else 403
 *          On a Unix socket (port 0) the port is that of the proxy in front: any, but Origin must
 *          equal Host.
 */
#ifndef DT_WEB_GATE_H
#define DT_WEB_GATE_H

/* Returns 0 to pass, else the HTTP status, with *reason a sentence for the answer. host, origin NULL: header absent.
 * (head.h refuses requests that have one of them twice.) */
int dt_web_gate(const char *method, const char *host, const char *origin, int port,
                const char *address, const char **reason);

#endif
