/* comm_support: what the tests of every communicator check, inside a rank. */
#ifndef DT_TESTS_COMM_SUPPORT_H
#define DT_TESTS_COMM_SUPPORT_H

#include <stdio.h>

#include "engine/comm/comm.h"

/* In a rank: no cmocka there, the line number is the story. Needs an `int rank`. */
#define CHECK(cond)                                                                   \
    do {                                                                              \
        if (!(cond)) {                                                                \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #cond); \
            return 1;                                                                 \
        }                                                                             \
    } while (0)

/* Every collective in every type over sizes from none to several chunks, with values whose sums
 * are exact: right on all ranks, also where output and input share memory. 0 where all is well. */
int check_collectives(dt_comm *comm);

#endif
