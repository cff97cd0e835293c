/* crash: reports the crash of a detached process in its log, since no parent reports it.
 *
 * Threads    any; a stack that ran over is reported on the main thread only
 */
#ifndef DT_BASE_CRASH_H
#define DT_BASE_CRASH_H

#define DT_CRASH_WORDS " was ended by SIG" /* part of the reported line */

/* After this call SIGABRT, SIGSEGV, SIGBUS, SIGFPE and SIGILL write one line to stderr before they end the process:
 * "WHO was ended by SIGSEGV; ...". Existing handlers (a sanitizer's) are kept. `who` must stay valid until exit. */
void dt_crash_report(const char *who);

#endif
