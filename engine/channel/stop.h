/* stop: tells whether this rank has been asked to end early.
 *
 * SIGTERM stays blocked from before the first thread is started (engine.c): it is never delivered,
 * only polled, at the ends of steps, between passes of an evaluation and during startup.
 * Ranks that must act on it together first sum it up over the ranks.
 */
#ifndef DT_ENGINE_CHANNEL_STOP_H
#define DT_ENGINE_CHANNEL_STOP_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

void dt_stop_block(void); /* blocks the signal; call it before starting threads */
bool dt_stop_asked(void);

#ifdef __cplusplus
}
#endif
#endif
