/* stop: whether somebody wants this rank to end early.
 *
 * SIGTERM stays blocked from before the first thread is started (engine.c): it is never delivered,
 * only looked for, at the ends of steps, between passes of an evaluation and while a rank gets
 * ready. Whoever acts on it together with others adds it up over the ranks first.
 */
#ifndef DT_ENGINE_CHANNEL_STOP_H
#define DT_ENGINE_CHANNEL_STOP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void dt_stop_block(void); /* blocks the signal; before any thread */
bool dt_stop_asked(void);

#ifdef __cplusplus
}
#endif
#endif
