/* save: saves a checkpoint with all ranks.
 *
 *   all      choose the first name that exists on no node                              agree
 *   lead     mkdir NAME.partial                                                        agree
 *   all      write and sync their files in it                                          agree
 *   all      send their parts of the index to the leads
 *   lead     write and sync index.json; sync NAME.partial; rename it to NAME; sync the parent;
 *            write and sync NAME/complete.partial; rename it to NAME/complete; sync NAME and the
 *            parent (`part` for `complete` if there are several leads)                 agree
 *
 * A failure on one rank is a failure on all at the next "agree"; the leads then remove what was
 * written. Only a killed process leaves a NAME.partial, or a NAME without a marker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/checkpoint_int.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/name.h"

/* --- one outcome for all ranks */

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

/* --- the JSON of all ranks */

/* Collective. Where `wanted`, all[world_size], zeroed by the caller, gets new references in rank
 * order; elsewhere it is not touched. */
static dt_status checkpoint_gather(json_t **tensors, const json_t *mine, bool wanted, dt_comm *comm,
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
            parsed = dt_json_parse(&tensors[root], received.data, (size_t)length,
                                   "a rank's part of the index", err);
    }
    st = parsed;
out:
    dt_strbuf_release(&written);
    dt_strbuf_release(&received);
    return st;
}

#define MAX_COPIES 1000

typedef struct save {
    const dt_checkpoint_io *io;
    const dt_checkpoint_place *place;
    const char *marker;
    const dt_checkpoint_info *info;
    dt_strategy_state *state;
    dt_comm *comm;
    dt_strbuf partial, final;
    bool begun, renamed, marked; /* stages that a lead rank has completed */
    dt_checkpoint_saved saved;
} save;

static bool is_taken(const save *run)
{
    static const char *const markers[] = {DT_CHECKPOINT_MARKER, DT_CHECKPOINT_PART};
    bool taken = false;
    dt_strbuf path;

    dt_strbuf_init(&path);
    for (int i = 0; i < 2; i++) {
        dt_strbuf_reset(&path);
        dt_strbuf_add_fmt(&path, "%s/%s/%s", run->place->parent, run->saved.directory, markers[i]);
        taken = taken || dt_file_exists(path.data);
    }
    dt_strbuf_release(&path);
    return taken;
}

static dt_status choose_name(save *run, dt_error *err)
{
    dt_checkpoint_name name = {.step = run->info->step};
    dt_status st = DT_OK;
    double taken = 1;

    while (taken > 0) {
        if (++name.copy > MAX_COPIES)
            DT_THROW(err, DT_ERR_IO, "'%s' holds %d checkpoints of step %lld; remove some",
                     run->place->parent, MAX_COPIES, (long long)run->info->step);
        dt_checkpoint_name_format(run->saved.directory, &name);
        taken = run->place->lead && is_taken(run) ? 1 : 0;
        DT_TRY(run->comm->all_reduce_f64(run->comm, &taken, 1, err));
    }
    dt_strbuf_add_fmt(&run->partial, "%s/%s" DT_CHECKPOINT_PARTIAL, run->place->parent,
                      run->saved.directory);
    dt_strbuf_add_fmt(&run->final, "%s/%s", run->place->parent, run->saved.directory);
out:
    return st;
}

/* Create the partial directory, after removing leftovers of a killed save with this name. */
static dt_status begin(save *run, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_make_dirs(run->place->parent, 0755, err));
    DT_TRY(dt_file_remove_tree(run->final.data, err));
    DT_TRY(dt_file_remove_tree(run->partial.data, err));
    run->begun = true;
    if (run->io->make_dir(run->io->self, run->partial.data, 0755) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make the directory '%s': %s", run->partial.data,
                 strerror(errno));
out:
    return st;
}

static int64_t files_bytes(const json_t *index)
{
    const json_t *file;
    int64_t bytes = 0;
    size_t i;

    json_array_foreach(json_object_get(index, "files"), i, file)
        bytes += json_integer_value(json_object_get(file, "bytes"));
    return bytes;
}

static dt_status write_index(save *run, json_t *const *fragments, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_index checked;
    json_t *index =
        dt_checkpoint_index_make(run->info, run->state->model, fragments, run->comm->world_size);
    dt_arena arena;
    dt_strbuf text, path;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&text);
    dt_strbuf_init(&path);
    if (index == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a checkpoint's index");
    dt_strbuf_add_fmt(&path, "%s/" DT_CHECKPOINT_INDEX, run->partial.data);
    /* detect chunks that leave a gap now, not when the run is resumed */
    DT_TRY(dt_checkpoint_index_parse(&checked, index, path.data, &arena, err));
    dt_json_write(&text, index);
    dt_strbuf_add_char(&text, '\n');
    DT_TRY(dt_checkpoint_sink_put(run->io, path.data, text.data, text.length, err));
    dt_digest_of(run->saved.digest, text.data, text.length);
    run->saved.bytes = files_bytes(index) + (int64_t)text.length;
out:
    json_decref(index);
    dt_arena_release(&arena);
    dt_strbuf_release(&text);
    dt_strbuf_release(&path);
    return st;
}

/* Write the marker. It is renamed into place, so a marker that exists is complete. */
static dt_status write_marker(const save *run, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf partial, path, text;

    dt_strbuf_init(&partial);
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/%s", run->final.data, run->marker);
    dt_strbuf_add_fmt(&partial, "%s" DT_CHECKPOINT_PARTIAL, path.data);
    dt_strbuf_add_fmt(&text, "%s\n", run->saved.digest);
    DT_TRY(dt_checkpoint_sink_put(run->io, partial.data, text.data, text.length, err));
    if (run->io->rename(run->io->self, partial.data, path.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s' to '%s': %s", partial.data, path.data,
                 strerror(errno));
out:
    dt_strbuf_release(&partial);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

static dt_status commit(save *run, json_t *const *fragments, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(write_index(run, fragments, err));
    DT_TRY(dt_checkpoint_io_sync_dir(run->io, run->partial.data, err));
    if (run->io->rename(run->io->self, run->partial.data, run->final.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s' to '%s': %s", run->partial.data,
                 run->final.data, strerror(errno));
    run->renamed = true;
    DT_TRY(dt_checkpoint_io_sync_dir(run->io, run->place->parent, err));
    DT_TRY(write_marker(run, err));
    DT_TRY(dt_checkpoint_io_sync_dir(run->io, run->final.data, err));
    DT_TRY(dt_checkpoint_io_sync_dir(run->io, run->place->parent, err));
    run->marked = true;
out:
    return st;
}

/* What this rank did, and then what all did. */
static dt_status agree(save *run, dt_status mine, const char *doing, dt_error *err)
{
    run->saved.failed_here = mine != DT_OK;
    return dt_checkpoint_agree(run->comm, mine, doing, err);
}

static dt_status save_steps(save *run, json_t **fragments, json_t **mine, dt_error *err)
{
    dt_status st = DT_OK;
    bool lead = run->place->lead;

    run->saved.failed_here = run->comm->rank == 0; /* until the name is known */
    DT_TRY(choose_name(run, err));
    st = lead ? begin(run, err) : DT_OK;
    DT_TRY(agree(run, st, "begin a checkpoint", err));
    st = dt_checkpoint_shard_write(mine, run->io, run->partial.data, run->state, err);
    if (st == DT_OK && run->comm->rank == 0 && run->info->tokenizer_file.name != NULL)
        st = dt_checkpoint_beside_write(*mine, run->io, run->partial.data,
                                        &run->info->tokenizer_file, err);
    DT_TRY(agree(run, st, "write its part of a checkpoint", err));
    st = checkpoint_gather(fragments, *mine, lead, run->comm, err);
    if (st == DT_OK && lead)
        st = commit(run, fragments, err);
    DT_TRY(agree(run, st, "put a checkpoint in place", err));
    DT_TRY(run->comm->broadcast(run->comm, &run->saved, sizeof(run->saved), 0, err));
out:
    return st;
}

/* Clean up after a failed save. Best effort: the first error is the one to report, and pruning
 * cleans up later. A marked part is removed too: it is useless without the other nodes' parts. */
static void take_back(const save *run)
{
    if (run->begun && !(run->marked && run->place->shared))
        (void)dt_checkpoint_remove(run->renamed ? run->final.data : run->partial.data, NULL);
}

dt_status dt_checkpoint_save_through(const dt_checkpoint_io *io, dt_checkpoint_saved *out,
                                     const dt_checkpoint_place *place,
                                     const dt_checkpoint_info *info, dt_strategy_state *state,
                                     dt_error *err)
{
    dt_status st;
    save run = {.io = io,
                .place = place,
                .marker = place->shared ? DT_CHECKPOINT_MARKER : DT_CHECKPOINT_PART,
                .info = info,
                .state = state,
                .comm = state->comm};
    json_t **fragments = NULL, *mine = NULL;

    dt_strbuf_init(&run.partial);
    dt_strbuf_init(&run.final);
    fragments = calloc((size_t)run.comm->world_size, sizeof(*fragments));
    DT_ASSERT(fragments != NULL); /* a rank that returned here would make the others wait */
    st = save_steps(&run, fragments, &mine, err);
    *out = run.saved;
    if (st != DT_OK)
        take_back(&run);
    for (int64_t i = 0; i < run.comm->world_size; i++)
        json_decref(fragments[i]);
    free(fragments);
    json_decref(mine);
    dt_strbuf_release(&run.partial);
    dt_strbuf_release(&run.final);
    return st;
}

dt_status dt_checkpoint_save(dt_checkpoint_saved *out, const dt_checkpoint_place *place,
                             const dt_checkpoint_info *info, dt_strategy_state *state,
                             dt_error *err)
{
    return dt_checkpoint_save_through(&dt_checkpoint_io_system, out, place, info, state, err);
}
