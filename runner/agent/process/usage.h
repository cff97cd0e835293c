/* usage: reads what the processors, the memory, the disks and the network of a node are used for, and how much of it is
 * the run's.
 *
 * Source    /proc, /sys and control groups. If a control group limits the agent, as in a container or a job of Slurm,
 *           processors and memory are those of the group: its limit is what the run can use
 * Numbers   of processor time, disks and network the sums so far: the difference of two readings is a rate
 * Unknown   NAN for what this kernel does not show
 */
#ifndef DT_RUNNER_AGENT_PROCESS_USAGE_H
#define DT_RUNNER_AGENT_PROCESS_USAGE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/json.h"

typedef struct dt_usage {
    double seconds; /* of the monotonic clock */
    double processors, busy_seconds, run_seconds;
    double memory_bytes, used_bytes, run_bytes; /* run_bytes: memory that no other process shares */
    double read_bytes, written_bytes, free_bytes;
    double received_bytes, sent_bytes;
    double cost_seconds; /* processor time of the reading */
} dt_usage;

typedef struct dt_usage_question {
    const char *root;   /* "" for this machine, or a folder of a test with proc/ and sys/ */
    pid_t agent;        /* the run has its descendants */
    const char *cgroup; /* folder of the run's control group; NULL: none */
    const char *folder; /* whose file system has free_bytes */
} dt_usage_question;

void dt_usage_read(dt_usage *out, const dt_usage_question *question);

/* Returns a new reference: the values between two readings by the names of metrics (base/metric_kinds.h) without
 * "system/", such as "cpu_percent". Unknown ones are left out. */
json_t *dt_usage_values(const dt_usage *before, const dt_usage *now);

#endif
