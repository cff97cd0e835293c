#include "engine/checkpoint/agree.h"

dt_status dt_checkpoint_agree(dt_comm *comm, dt_status mine, const char *doing, dt_error *err)
{
    /* number of failed ranks; sum of their ranks, which names the rank if there is only one */
    double failed[2] = {0, 0};
    dt_status st;

    if (mine != DT_OK) {
        failed[0] = 1;
        failed[1] = (double)comm->rank;
    }
    st = comm->all_reduce_f64(comm, failed, 2, err);
    if (mine != DT_OK)
        return mine;
    if (st != DT_OK || failed[0] == 0)
        return st;
    if (failed[0] > 1)
        return DT_FAIL(err, DT_ERR_IO, "%.0f ranks failed to %s; their logs say why", failed[0],
                       doing);
    return DT_FAIL(err, DT_ERR_IO, "rank %.0f failed to %s; its log says why", failed[1], doing);
}
