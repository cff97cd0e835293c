/* cudnn_standin: a libcudnn.so.9 for tests. It knows the entry points and descriptors that
 * engine/ops/cuda/cudnn.h names, refuses what is incomplete, runs a graph operation by operation on
 * the host, counts what is not destroyed, and fails where it is told to. It exports one more
 * symbol, `dt_cudnn_standin`.
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
    int calls;                 /* that can fail */
    int living;                /* handles and descriptors that were made and not destroyed */
    int engines;               /* that there are for a graph; of these, from the first on, */
    int wavering, unbuildable; /* so many say that their bits vary, or cannot be built */
    int64_t workspace_bytes;   /* that the first one wants; others want none */
    int handles;               /* made so far */
    int runs;
    float out_factor; /* what results are multiplied with: 1, or they are wrong */
    int out_from;     /* the first query for which they are */
    float out_drift;  /* what that grows by with every run: 0, or bits vary */
    char log[1024];   /* operations in the order in which they were described, and graphs */
    /* NULL: runs at once. Else it is handed on, as to a stream. */
    void (*queue)(void *stream, void (*work)(void *), void *what);
} cudnn_standin;

#ifdef __cplusplus
}
#endif
#endif
