#include "engine/checkpoint/checkpoint_int.h"

dt_status dt_checkpoint_gather(json_t **all, const json_t *mine, bool wanted, dt_comm *comm,
                               dt_error *err)
{
    dt_status st = DT_OK, parsed = DT_OK;
    dt_strbuf written, received;

    dt_strbuf_init(&written);
    dt_strbuf_init(&received);
    dt_json_write(&written, mine);
    for (int64_t root = 0; root < comm->world_size; root++) {
        int64_t length = (int64_t)written.length;

        DT_TRY(comm->broadcast(comm, &length, sizeof(length), root, err));
        dt_strbuf_reset(&received);
        if (comm->rank == root)
            dt_strbuf_add(&received, written.data, written.length);
        while ((int64_t)received.length < length)
            dt_strbuf_add_char(&received, ' '); /* make room for the broadcast value */
        DT_TRY(comm->broadcast(comm, received.data, (size_t)length, root, err));
        /* Continue after a failure: the other ranks take part in every broadcast. */
        if (wanted && parsed == DT_OK)
            parsed = dt_json_parse(&all[root], received.data, (size_t)length,
                                   "a rank's part of the index", err);
    }
    st = parsed;
out:
    dt_strbuf_release(&written);
    dt_strbuf_release(&received);
    return st;
}
