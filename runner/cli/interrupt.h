/* interrupt: Ctrl-C and polite kills as a question that loops ask.
 *
 * After dt_interrupt_catch SIGINT, SIGTERM and SIGHUP no longer end this process: it finishes what
 * must not stay half-made, leaves the terminal as it found it, and ends by itself. Programs that
 * are started afterwards get the default behaviour back (exec resets handlers). The one flag is
 * process-wide, because signals are.
 */
#ifndef DT_RUNNER_INTERRUPT_H
#define DT_RUNNER_INTERRUPT_H

#include <stdbool.h>

void dt_interrupt_catch(void);
bool dt_interrupt_seen(void);

#endif
