/* notify: reports the end or the restart of a run to a webhook.
 *
 * Sends a POST with one JSON object: {"event": "finished" | "failed" | "restarted", "run", "name",
 * "attempt", "step", "loss", "valid_loss", "reason", "time"}. Up to six tries in about a minute, with
 * growing pauses; a message that cannot be delivered is logged and dropped, so a webhook never holds
 * up a run. Messages that were not sent are lost if the supervisor is killed.
 *
 * Secrets    "${env:NAME}" and "${env:NAME:-default}" in the URL are expanded for each try. The
 *            expanded URL exists only during the try and is not in any log, message or file.
 * Threads    one of its own; call the functions from one other thread
 */
#ifndef DT_SESSION_NOTIFY_H
#define DT_SESSION_NOTIFY_H

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"

typedef struct dt_notifier dt_notifier;

dt_status dt_notifier_open(dt_notifier **out, dt_error *err);
/* Queues a message. Takes `message`; copies the URL, which may hold references. Does nothing if
 * the URL is "". */
void dt_notifier_tell(dt_notifier *notifier, const char *url, json_t *message);
/* Waits until all messages are delivered, at most `seconds`. Accepts NULL. */
void dt_notifier_close(dt_notifier *notifier, double seconds);

/* Appends the text with its references expanded. DT_ERR_RECIPE if a variable is not set (named
 * in the message) or a reference has no end. */
dt_status dt_notify_expand(dt_strbuf *out, const char *text, dt_error *err);

#endif
