/* rest: questions to a server that speaks JSON over HTTP, one after the other over one connection.
 *
 * Tries   what a moment may mend (no connection, 429, 5xx) is asked again up to 4 times, with pauses of 0.5 to 4 s
 * Access  a token, or a name with a password; certificates and proxies as libcurl has them. An address
 *         with a password in it is refused, for it is shown and kept
 * Errors  DT_ERR_BUSY what may go better later; DT_ERR_NOT_FOUND 404; DT_ERR_USAGE any other 4xx and an address that
 *         is none; DT_ERR_CORRUPT an answer that is not JSON. With the server's own words, where it has some
 */
#ifndef DT_RUNNER_FETCH_REST_H
#define DT_RUNNER_FETCH_REST_H

#include "base/json.h"

typedef struct dt_rest dt_rest;

typedef struct dt_rest_access {
    const char *token;           /* as "Authorization: Bearer"; NULL: none */
    const char *name, *password; /* likewise */
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
/* For a query: what is not plain becomes %XX. */
void dt_rest_escape(dt_strbuf *out, const char *text);

#endif
