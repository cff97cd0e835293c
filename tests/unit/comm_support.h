/* comm_support: checks in a rank what every communicator must do. */
#ifndef DT_TESTS_COMM_SUPPORT_H
#define DT_TESTS_COMM_SUPPORT_H

#include <stdio.h>

#include "engine/comm/comm.h"

/* For use in a rank, where cmocka is not available: prints the line number. Needs an `int rank`. */
#define CHECK(cond)                                                                   \
    do {                                                                              \
        if (!(cond)) {                                                                \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #cond); \
            return 1;                                                                 \
        }                                                                             \
    } while (0)

/* Runs every collective in every type, over sizes from 0 to several chunks, with values whose
 * sums are exact, also with output and input in the same memory. Returns 0 if all results are
 * right on this rank. */
int check_collectives(dt_comm *comm);

#endif
