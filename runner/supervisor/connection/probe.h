/* probe: checks whether a silent node can run commands, and whether the machine answers at all.
 *
 * The result is the exit code of `dtrun-reach --probe` (transport/contact.h). Several probes may run at
 * once: one that began while the network was cut may hang for longer than the cut.
 *
 * Threads    call from the loop's thread
 */
#ifndef DT_CONNECTION_PROBE_H
#define DT_CONNECTION_PROBE_H

#include <uv.h>

#include "runner/transport/contact.h"

typedef struct dt_node_prober dt_node_prober;

typedef void dt_node_probed_fn(void *context, dt_contact contact, double begun_seconds);

dt_node_prober *dt_node_prober_open(uv_loop_t *loop, dt_node_probed_fn *probed, void *context);
/* Runs `agent --version` on the node. If that cannot be started, DT_CONTACT_UNKNOWN is reported
 * at once. now_seconds is passed to the callback as the start of the probe. */
void dt_node_prober_begin(dt_node_prober *prober, const char *node, const char *agent,
                          double now_seconds);
void dt_node_prober_forget(dt_node_prober *prober); /* cancels the callbacks of running probes */
void dt_node_prober_close(dt_node_prober *prober);  /* cancels the callbacks; accepts NULL */

#endif
