/* interrupt: records SIGINT, SIGTERM and SIGHUP in a flag that loops poll.
 *
 * After dt_interrupt_catch these signals no longer end the process: it can finish what must not stay
 * half-done, restore the terminal, and return. Programs that it started and waits for (base/child.h) get the
 * signal too, with the default behaviour. The flag is process-wide, because signals are.
 */
#ifndef DT_RUNNER_INTERRUPT_H
#define DT_RUNNER_INTERRUPT_H

#include <stdbool.h>

void dt_interrupt_catch(void);
bool dt_interrupt_seen(void);

#endif
