/* slow: judges why a run is slow, and which rank slows it down. Pure functions of facts; no clock, no files.
 *
 * Facts     readings of counters that only grow: the engine's stopwatch (engine/stopwatch.h), and what the agent reads
 *           from outside (agent/process/load.h). The difference of two readings of a rank is a window. When every rank
 *           has a new window, they are judged together
 * Who       A rank's own time is the time of a step in which it does not wait in a collective. The rank with the
 *           longest own time arrives last at the collectives and waits least; the others wait for it. Own times are
 *           durations by the clock of one rank, so clocks of several nodes need not agree, and the waits of a rank
 *           never count as its own slowness, also if a collective overlaps with the backward pass
 * How much  its own time minus the median own time of the others
 * Where     the place (input, forward, backward, ...) in which its own time exceeds the median of the others most; in
 *           the backward pass also the unit, since own times are known for each unit, in the order of their reductions
 * Messages  the least time that any rank is blocked in a step: the rank that arrives last waits for nobody, so what
 *           it is blocked is the transfer alone. What others are blocked beyond that is waiting
 * Why       the first cause in dt_slow_cause that the facts show; each finding names its evidence. Without evidence it
 *           says so
 * Noise     a finding counts when DT_SLOW_OF_LAST of the last DT_SLOW_LAST judgements have it, for the same rank
 *
 * Of a program (`command`) only the facts from outside are known: ranks that wait for others sleep, and the rank that
 * they wait for does not. A rank that waits by polling looks busy; then nothing is found.
 */
#ifndef DT_RUNNER_SUPERVISOR_POLICY_SLOW_H
#define DT_RUNNER_SUPERVISOR_POLICY_SLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

enum {
    DT_SLOW_UNITS = 32,
    DT_SLOW_LAST = 3,
    DT_SLOW_OF_LAST = 2,
    DT_SLOW_FINDINGS = 8,
    DT_SLOW_PEERS = 16,
    DT_SLOW_ADDRESS = 48
};

/* In the order of the engine's places. */
typedef enum dt_slow_place {
    DT_SLOW_LOOP,
    DT_SLOW_INPUT,
    DT_SLOW_FORWARD,
    DT_SLOW_BACKWARD,
    DT_SLOW_UPDATE,
    DT_SLOW_SAVE,
    DT_SLOW_PLACES
} dt_slow_place;

/* What a step consists of. */
typedef enum dt_slow_part {
    DT_SLOW_PRODUCTS,
    DT_SLOW_ATTENTION,
    DT_SLOW_ARITHMETIC,
    DT_SLOW_MESSAGES,
    DT_SLOW_WAITING,
    DT_SLOW_READING,
    DT_SLOW_SAVING,
    DT_SLOW_HOST,
    DT_SLOW_PARTS
} dt_slow_part;

extern const char *const dt_slow_place_names[DT_SLOW_PLACES];
extern const char *const dt_slow_part_names[DT_SLOW_PARTS];

/* A connection of a rank to another node. */
typedef struct dt_slow_peer {
    char local[DT_SLOW_ADDRESS], remote[DT_SLOW_ADDRESS];
    double round_trip_seconds;
} dt_slow_peer;

/* Counters of a rank so far. Negative: unknown. */
typedef struct dt_slow_reading {
    double at_seconds; /* by the monotonic clock of its node */
    bool is_device;    /* computes on a GPU: products and attention are not known apart */

    /* of the engine; steps 0: none */
    int64_t steps;
    double own[DT_SLOW_PLACES];                   /* seconds that are not blocked */
    double blocked;                               /* seconds */
    double products, attention, arithmetic, host; /* seconds of `own`, without input and saves */
    double unit[DT_SLOW_UNITS];                   /* of own[DT_SLOW_BACKWARD] */
    int units;
    double products_flops, attention_flops, sent_bytes;
    /* rates, not sums; 0: unknown */
    double best_bytes_per_second, flops_per_second, memory_bytes_per_second, step_bytes;

    /* from outside */
    double run, delay, first_run, first_delay, limited; /* seconds */
    double busy, stolen;                                /* seconds of its processors together */
    int processor_count;
    char processors[64];
    double mhz, mhz_most; /* now */
    double heat_stops, read_bytes, written_bytes;
    /* samples of a program's first thread */
    double samples, samples_asleep;
    char asleep_in[64]; /* kernel function that it sleeps in most; "" if unknown */

    dt_slow_peer peers[DT_SLOW_PEERS]; /* of the engine */
    int peer_count;
} dt_slow_reading;

/* Ordered: the first that the facts show is reported. */
typedef enum dt_slow_cause {
    DT_SLOW_BY_LIMIT,     /* processor limit of its control group */
    DT_SLOW_BY_STEAL,     /* the host of the virtual machine */
    DT_SLOW_BY_SHARING,   /* other processes on its processors */
    DT_SLOW_BY_FREQUENCY, /* throttled processor */
    DT_SLOW_BY_INPUT,
    DT_SLOW_BY_SAVING,
    DT_SLOW_BY_NETWORK,
    DT_SLOW_BY_SLEEP,     /* it sleeps outside of collectives: no evidence why */
    DT_SLOW_BY_COMPUTING, /* it needs more processor time than the others: no evidence why */
    DT_SLOW_BY_UNKNOWN
} dt_slow_cause;

extern const char *const dt_slow_cause_names[DT_SLOW_BY_UNKNOWN + 1];

typedef struct dt_slow_finding {
    dt_slow_cause cause;
    int64_t rank;          /* -1: all ranks, or the network */
    int place;             /* dt_slow_place; -1: not one alone */
    int unit;              /* of the backward pass; -1: not one alone */
    double seconds, share; /* lost in a step (of a program: in a second), and as a part of it */
    char text[400], evidence[400];
} dt_slow_finding;

typedef struct dt_slow_rank {
    bool known, heard;
    dt_slow_reading before, last; /* of the window */
    dt_slow_reading window;       /* differences: seconds a step, of a program a second */
    double window_seconds, window_steps;
} dt_slow_rank;

typedef struct dt_slow {
    bool is_command;
    double least_seconds; /* of a window */
    int64_t rank_count;
    dt_slow_rank *ranks; /* borrowed */
    const char *(*node_of)(const void *context, int64_t rank);
    const void *context;

    /* of the last judgement */
    int64_t judgements;
    double step_seconds;         /* 0: of a program */
    double parts[DT_SLOW_PARTS]; /* mean of the ranks, seconds a step */
    double least[DT_SLOW_PARTS]; /* floors; negative: unknown */
    double waiting_seconds;      /* the longest of all ranks */
    dt_slow_finding recent[DT_SLOW_LAST][DT_SLOW_FINDINGS];
    int recent_count[DT_SLOW_LAST];
    dt_slow_finding findings[DT_SLOW_FINDINGS]; /* those that count, the worst first */
    int finding_count;
} dt_slow;

/* ranks: rank_count entries that must outlive the slow; overwritten. node_of: returns the name of the rank's node. */
void dt_slow_init(dt_slow *slow, dt_slow_rank *ranks, int64_t rank_count, bool is_command,
                  double least_seconds, const char *(*node_of)(const void *context, int64_t rank),
                  const void *context);
/* Adds a reading. Returns true if all ranks have a new window, which were judged. */
bool dt_slow_add(dt_slow *slow, int64_t rank, const dt_slow_reading *reading);

/* Reads an entry of `ranks` of an `alive` (runner/PROTOCOL.md). Fields that are missing are unknown. clock_seconds: of
 * the node. Returns false if it has nothing to judge by. */
bool dt_slow_reading_parse(dt_slow_reading *out, const json_t *facts, double clock_seconds);
/* Returns a new reference: the last judgement (docs/slow.md). */
json_t *dt_slow_to_json(const dt_slow *slow);

#endif
