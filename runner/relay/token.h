/* token: what a server wants to be shown (web/access.h). */
#ifndef DT_RUNNER_RELAY_TOKEN_H
#define DT_RUNNER_RELAY_TOKEN_H

#include "base/error.h"
#include "base/strbuf.h"

/* From DTRUN_TOKEN, or the file that DTRUN_TOKEN_FILE names; nothing is added where neither is set.
 * DT_ERR_USAGE for what is no token, or a file that others may read. */
dt_status dt_relay_token(dt_strbuf *out, dt_error *err);

#endif
