/* rest: questions to a server that speaks JSON over HTTP, one after the other over one connection.
 *
 * Tries   what a moment may mend (no connection, 408, 429, 5xx) is asked again up to 4 times, with pauses of 0.5 to
 *         4 s, or as long as the server's Retry-After says. None follows where that is more than a minute, or where
 *         the time of a try (120 s) has gone
 * Access  a token, or a name with a password; certificates and proxies as libcurl has them. An address
 *         with a password in it is refused, for it is shown and kept. Nobody is told anything by a redirection
 * Errors  DT_ERR_BUSY what may go better later; DT_ERR_NOT_FOUND 404; DT_ERR_USAGE any other 4xx and an address that
 *         is none; DT_ERR_CORRUPT an answer that is not JSON, or of more than 64 MB. With the server's own words, where
 *         it has some
 */
#ifndef DT_RUNNER_FETCH_REST_H
#define DT_RUNNER_FETCH_REST_H

#include "base/json.h"

typedef struct dt_rest dt_rest;

typedef struct dt_rest_access {
    const char *token;           /* as "Authorization: Bearer"; NULL: none */
    const char *name, *password; /* likewise */
    const char *remedy; /* what to do where the server refuses them; NULL: nothing is said */
    int tries;          /* 0: as above */
    double try_seconds; /* 0: as above */
} dt_rest_access;

/* base: "http://host:port/path"; what is asked for stands below it. */
dt_status dt_rest_open(dt_rest **out, const char *base, const dt_rest_access *access,
                       dt_error *err);
void dt_rest_close(dt_rest *rest); /* accepts NULL */

/* GET; new reference. */
dt_status dt_rest_get(dt_rest *rest, json_t **answer, const char *path, dt_error *err);
/* POST; takes `body`. *answer as above. */
dt_status dt_rest_post(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                       dt_error *err);
/* The same without a second try: DT_ERR_BUSY says that the server may have carried it out. */
dt_status dt_rest_post_once(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                            dt_error *err);
/* Sleeps as before another try; false without a pause: there have been enough. */
bool dt_rest_pause(const dt_rest *rest, int tries);
/* For a query: what is not plain becomes %XX. */
void dt_rest_escape(dt_strbuf *out, const char *text);

#endif
