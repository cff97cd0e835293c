/* load: reads from outside what slows a process down: the processor time that it got and did not get, the processors
 * that it may use, and the disk.
 *
 * Source    /proc and /sys alone. No tracing: everything is readable by the user of the process
 * Numbers   sums so far, of all threads that exist; the difference of two readings is what counts
 * Unknown   -1 for a file that this kernel does not have or does not show
 */
#ifndef DT_RUNNER_AGENT_PROCESS_LOAD_H
#define DT_RUNNER_AGENT_PROCESS_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json.h"

enum { DT_LOAD_PROCESSORS = 1024 };

typedef struct dt_process_load {
    double run_seconds;       /* on a processor */
    double delay_seconds;     /* could run, but had no processor */
    double first_run_seconds; /* the same of its first thread */
    double first_delay_seconds;
    double limited_seconds;            /* stopped by the processor limit of its control group */
    int64_t read_bytes, written_bytes; /* by the disk */
    char processors[64];               /* that it may use, as in Cpus_allowed_list: "0-3,7" */
    int processor_count;
    /* of these processors together */
    double busy_seconds,
        stolen_seconds;   /* all processes; taken by the host of this virtual machine */
    double mhz, mhz_most; /* mean now, and the most that they can do */
    int64_t heat_stops;   /* times that heat throttled them */
} dt_process_load;

/* root: "" for this machine, or a folder of a test with proc/ and sys/. Returns false if there is no such process. */
bool dt_process_load_read(dt_process_load *out, pid_t pid, const char *root);
/* Returns a new reference with the same names. */
json_t *dt_process_load_json(const dt_process_load *load);

/* What the first thread of a process does at this moment. */
typedef struct dt_process_sample {
    char state;     /* letter of /proc: R, S, D ...; '?': unknown */
    char wchan[64]; /* kernel function that it sleeps in; "" if unknown */
} dt_process_sample;

void dt_process_sample_read(dt_process_sample *out, pid_t pid, const char *root);

/* Returns a new reference for a node: {"received_bytes", "sent_bytes", "sent_segments", "resent_segments"} of all its
 * network interfaces but the loopback, and of TCP. */
json_t *dt_network_load_json(const char *root);

/* Reads the bytes so far of the interfaces that are devices, so that a bridge or a bond does not count them again; of all
 * but the loopback if none is one, as in a container. Returns false if they are unknown. */
bool dt_network_bytes(double *received, double *sent, const char *root);

#endif
