/* harness: the base of every case of the op tests.
 *
 * A case fills tensors with seeded numbers that the type can hold exactly, keeps them in double
 * for the reference, runs the op, and checks each output. A bench remembers the largest error and
 * a digest of all output bits, so that one run of a case serves both accuracy and repeatability.
 *
 * Error of an element: |got - want| / (|want| + root mean square of want); it is 0 if an fp16 is
 * off by no more than half the smallest number of its type, which is the best possible there.
 */
#ifndef DT_TESTS_OPS_HARNESS_H
#define DT_TESTS_OPS_HARNESS_H

#include "base/memory.h"
#include "engine/ops/ops.h"

typedef struct bench {
    dt_device device;
    dt_arena arena;        /* numbers of one run of a case, in double */
    unsigned char *memory; /* tensors of one run */
    size_t used_bytes;
    dt_dtype act;   /* type of activations in this run */
    uint64_t draws; /* random numbers drawn so far */
    uint64_t digest;
    double worst;
    char worst_where[64];
} bench;

/* A tensor and the same numbers in double. */
typedef struct operand {
    dt_tensor tensor;
    double *value;
} operand;

void bench_open(bench *b, int threads);
void bench_begin(bench *b, dt_dtype act); /* Forgets the last run. */
void bench_close(bench *b);

double bench_uniform(bench *b); /* Returns a number in [0, 1). */
double *bench_doubles(bench *b, int64_t n);

/* dims: up to three, 0 ends the list. Random in [-size, size]. */
operand bench_random(bench *b, dt_dtype dtype, double size, int64_t d0, int64_t d1, int64_t d2);
/* An output of the same kind, first filled with NaN, so that elements that an op does not write are
 * noticed. */
dt_tensor bench_output(bench *b, dt_dtype dtype, int64_t d0, int64_t d1, int64_t d2);
/* Allocates data other than tensors that an op reads, where the device and the host can read it. */
void *bench_bytes(bench *b, const void *from, size_t bytes);
/* I32 in [low, high). */
dt_tensor bench_tokens(bench *b, int64_t low, int64_t high, int64_t d0, int64_t d1);

double bench_element(const dt_tensor *x, int64_t i);
/* Sets x[i] to value, truncated to the precision of the type. */
void bench_put(dt_tensor *x, int64_t i, double value);
const char *bench_type_name(dt_dtype dtype); /* "fp32", "bf16", "fp16" */
void bench_check(bench *b, const char *what, const dt_tensor *got, const double *want);
/* The op must succeed; fails the test with its message. */
void bench_ok(dt_status st, const dt_error *err);

#endif
