/* notify: a run's end or restart is reported to a webhook, beside everything else.
 *
 * A POST of one JSON object: {"event": "finished" | "failed" | "restarted", "run", "name",
 * "attempt", "step", "loss", "valid_loss", "reason", "time"}. Tried six times in about a minute,
 * with growing pauses; what is not delivered is reported in the log and forgotten: a webhook never
 * holds up a run. Lost with a supervisor that is killed before it was sent.
 *
 * Secrets    "${env:NAME}" and "${env:NAME:-default}" of the URL are filled in when it is used.
 *            What comes out is held for the length of a try and is in no log, message or file.
 * Threads    one of its own; the functions from one other
 */
#ifndef DT_SESSION_NOTIFY_H
#define DT_SESSION_NOTIFY_H

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"

typedef struct dt_notifier dt_notifier;

dt_status dt_notifier_open(dt_notifier **out, dt_error *err);
/* Takes `message`; copies the URL, which may hold references. "" does nothing. */
void dt_notifier_tell(dt_notifier *notifier, const char *url, json_t *message);
/* Waits until all is told, at most so long. Accepts NULL. */
void dt_notifier_close(dt_notifier *notifier, double seconds);

/* The text with its references filled in. DT_ERR_RECIPE naming a variable that is not set, or a
 * reference without an end. */
dt_status dt_notify_expand(dt_strbuf *out, const char *text, dt_error *err);

#endif
