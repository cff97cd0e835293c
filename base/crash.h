/* crash: reports the crash of a detached process in its log, where nobody else would see why it is gone.
 *
 * Threads    any; a stack that ran over is reported on the main thread only
 */
#ifndef DT_BASE_CRASH_H
#define DT_BASE_CRASH_H

#define DT_CRASH_WORDS " was ended by SIG" /* in that line */

/* From here on SIGABRT, SIGSEGV, SIGBUS, SIGFPE and SIGILL write one line to stderr before they end the process:
 * "WHO was ended by SIGSEGV; ...". Handlers that are there already (a sanitizer's) stay. `who` is borrowed for ever. */
void dt_crash_report(const char *who);

#endif
