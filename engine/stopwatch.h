/* stopwatch: divides the time of the training thread by place (pass, input, update, ...) and part (products,
 * attention, ...), so that every moment of a step is counted once and the parts sum to the whole step.
 *
 * A switch of place or part reads the clock once and adds the time since the last switch to the place and part that
 * end. Only the thread that called dt_stopwatch_begin is timed; on other threads all functions do nothing. Ops of a GPU
 * are asynchronous: there the parts PRODUCTS and ATTENTION stay empty, and ARITHMETIC has their launches and the
 * waits for results. (Not run on a GPU yet.)
 *
 * Own       time of a rank that is not BLOCKED: what the rank itself needs, whatever the others do. The own times of
 *           several ranks are compared place by place, so no clocks have to agree
 * Units     of the backward pass: own time of each, so that a slow unit is found although the collectives of all
 *           units overlap: the sum of the own times up to a unit is when the rank arrives at its reduction. More than DT_STOPWATCH_UNITS share entries
 * Publish   dt_stopwatch_step copies the sums at the end of a step; any thread can read that copy
 * Cost      docs/performance.md
 */
#ifndef DT_ENGINE_STOPWATCH_H
#define DT_ENGINE_STOPWATCH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_time_place {
    DT_PLACE_LOOP,  /* between steps: events, the loop */
    DT_PLACE_INPUT, /* reading and drawing samples */
    DT_PLACE_FORWARD,
    DT_PLACE_BACKWARD,
    DT_PLACE_UPDATE, /* end of the reduction, norm, optimizer */
    DT_PLACE_SAVE,
    DT_PLACE_EVALUATE, /* not a part of a step */
    DT_PLACE_COUNT
} dt_time_place;

typedef enum dt_time_part {
    DT_PART_HOST,
    DT_PART_ARITHMETIC, /* ops other than the following */
    DT_PART_PRODUCTS,   /* matrix products */
    DT_PART_ATTENTION,
    DT_PART_BLOCKED, /* in a collective, or waiting for one */
    DT_PART_COUNT
} dt_time_part;

enum { DT_STOPWATCH_UNITS = 32 };

/* Sums since dt_stopwatch_begin, at the end of a step. */
typedef struct dt_stopwatch_sums {
    int64_t steps; /* 0: nothing was published */
    double seconds[DT_PLACE_COUNT][DT_PART_COUNT];
    int units; /* entries of the following */
    double backward_own[DT_STOPWATCH_UNITS];
    double products_flops, attention_flops;
    double sent_bytes;
    double best_bytes_per_second; /* fastest large message so far; 0: none */
} dt_stopwatch_sums;

/* Speed of the machine and size of a step, as a rank knows them at its start, for the least possible times. Unknown
 * numbers are 0. */
typedef struct dt_stopwatch_machine {
    double flops_per_second, memory_bytes_per_second;
    double step_bytes; /* least bytes that the arithmetic of a step reads and writes */
} dt_stopwatch_machine;

extern const char *const dt_time_place_names[DT_PLACE_COUNT];
extern const char *const dt_time_part_names[DT_PART_COUNT];

/* Time the calling thread from now on. */
void dt_stopwatch_begin(const dt_stopwatch_machine *machine);
/* Each returns the previous value, to be set again afterwards. */
int dt_stopwatch_place(int place);
int dt_stopwatch_part(int part);
/* The pass enters a unit. Does nothing in places other than FORWARD and BACKWARD. */
void dt_stopwatch_unit(int unit, int units, bool backward);
/* Count the operations of an op. */
void dt_stopwatch_flops(int part, double flops);
/* The step has ended: publish the sums. */
void dt_stopwatch_step(int64_t sent_bytes);
/* A message of `bytes` bytes took `seconds`. On any thread. */
void dt_stopwatch_message(int64_t bytes, double seconds);

/* Returns how long the calling thread was blocked so far, without evaluations; 0 if it is not timed. */
double dt_stopwatch_blocked(void);

/* Returns false if nothing was published. On any thread. */
bool dt_stopwatch_read(dt_stopwatch_sums *out, dt_stopwatch_machine *machine);

#ifdef __cplusplus
}
#endif
#endif
