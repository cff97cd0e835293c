/* report: collects the probes and faults of the nodes. */
#include <stdarg.h>
#include <stdio.h>

#include "runner/node_setup/probe/probe_int.h"

enum { FAULTS_PER_NODE = 8 };

int64_t dt_probe_faults_max(int64_t nodes)
{
    return (nodes + 1) * FAULTS_PER_NODE;
}

void dt_probe_add_fault(dt_probe_report *report, dt_arena *arena, const char *node, bool fatal,
                        dt_status status, const char *fmt, ...)
{
    dt_probe_fault *fault = &report->faults[report->fault_count];
    char text[2048];
    va_list args;

    if (report->fault_count == dt_probe_faults_max(report->count))
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    *fault = (dt_probe_fault){node, fatal, status, dt_arena_strdup(arena, text)};
    report->fault_count++;
    report->fatal_count += fatal;
}

void dt_probe_release(dt_probe_report *report)
{
    for (int64_t i = 0; report->probes != NULL && i < report->count; i++)
        json_decref(report->probes[i].facts);
    *report = (dt_probe_report){0};
}
