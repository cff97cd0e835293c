/* cudnn_standin: a libcudnn.so.9 for tests. It knows the entry points and descriptors that engine/ops/cuda/cudnn.h
 * names, refuses incomplete descriptors, runs a graph operation by operation on the host, counts what is not destroyed,
 * and fails at a given call. It exports one more symbol, `dt_cudnn_standin`.
 */
#ifndef DT_TESTS_UNIT_CUDNN_STANDIN_H
#define DT_TESTS_UNIT_CUDNN_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudnn_standin {
    size_t version;
    int fail_at;               /* the call, from 1, that returns an internal error; 0: none */
    int calls;                 /* calls that can fail */
    int living;                /* handles and descriptors that were not destroyed yet */
    int engines;               /* number of engines for a graph, of which the first */
    int wavering, unbuildable; /* ones are not deterministic, or cannot be built */
    int64_t workspace_bytes;   /* of the first engine; others need none */
    int handles;               /* made so far */
    int runs;
    float out_factor; /* factor of all results: 1, or they are wrong */
    int out_from;     /* the first query with wrong results */
    float out_drift;  /* growth of the factor with every run: 0, or bits vary */
    char log[1024];   /* operations in the order of their description, and graphs */
    /* NULL: runs at once. Else the work is queued, as on a stream. */
    void (*queue)(void *stream, void (*work)(void *), void *what);
} cudnn_standin;

#ifdef __cplusplus
}
#endif
#endif
