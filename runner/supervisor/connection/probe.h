/* probe: can anything be run on a node that is silent, and does the machine answer at all?
 *
 * `dtrun-reach --probe` tells by its exit code (transport/contact.h). A few may be on their way at
 * once: one that was begun while the network was cut may hang for longer than the cut.
 *
 * Threads    the loop's
 */
#ifndef DT_CONNECTION_PROBE_H
#define DT_CONNECTION_PROBE_H

#include <uv.h>

#include "runner/transport/contact.h"

typedef struct dt_node_prober dt_node_prober;

typedef void dt_node_probed_fn(void *context, dt_contact contact, double begun_seconds);

dt_node_prober *dt_node_prober_open(uv_loop_t *loop, dt_node_probed_fn *probed, void *context);
/* Runs `agent --version` there. One that cannot be tried is told as DT_CONTACT_UNKNOWN at once. now_seconds
 * is told with what comes of it, as when it was begun. */
void dt_node_prober_begin(dt_node_prober *prober, const char *node, const char *agent,
                          double now_seconds);
void dt_node_prober_forget(dt_node_prober *prober); /* those on their way: no call comes */
void dt_node_prober_close(dt_node_prober *prober);  /* forgets; accepts NULL */

#endif
