#include "engine/checkpoint/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint/snapshot.h"

#define LOWEST_PRIORITY 19

struct dt_checkpoint_writer {
    dt_checkpoint_place place;
    dt_checkpoint_keep keep;
    dt_snapshot snapshot;
    dt_strategy_state state; /* the strategy state that the snapshot provides */
    dt_checkpoint_info info;
    dt_checkpoint_outcome outcome; /* result of the save; owned by the thread until `done` */
    double start_seconds;
    pthread_t thread;
    bool busy, has_thread;
    atomic_bool done;
};

static void save(dt_checkpoint_writer *writer)
{
    dt_checkpoint_outcome *outcome = &writer->outcome;
    dt_error unpruned = DT_ERROR_INIT;

    outcome->st = dt_checkpoint_save(&outcome->saved, &writer->place, &writer->info, &writer->state,
                                     &outcome->err);
    if (outcome->st == DT_OK && writer->place.lead &&
        dt_checkpoint_prune(writer->place.parent, &writer->keep, &unpruned) != DT_OK)
        dt_log_warn("step %lld: cannot remove old checkpoints: %s", (long long)writer->info.step,
                    unpruned.message);
    outcome->seconds = dt_clock_monotonic_seconds() - writer->start_seconds;
    atomic_store(&writer->done, true);
}

static void *thread_main(void *argument)
{
    /* On Linux this affects only this thread: digests and writes use the processor time that
     * training leaves. */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOWEST_PRIORITY);
    save(argument);
    return NULL;
}

dt_status dt_checkpoint_writer_open(dt_checkpoint_writer **out, const dt_checkpoint_place *place,
                                    const dt_checkpoint_keep *keep, dt_strategy_state *state,
                                    dt_comm *comm, int threads, dt_error *err)
{
    dt_checkpoint_writer *writer = calloc(1, sizeof(*writer));
    dt_status st = DT_OK;

    *out = NULL;
    if (writer == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to write checkpoints");
    writer->place = *place;
    writer->keep = *keep;
    DT_TRY(dt_snapshot_open(&writer->snapshot, state, threads, err));
    writer->state = dt_snapshot_state(&writer->snapshot, comm);
    *out = writer;
    writer = NULL;
out:
    dt_checkpoint_writer_close(writer);
    return st;
}

void dt_checkpoint_writer_close(dt_checkpoint_writer *writer)
{
    dt_checkpoint_outcome unread;

    if (writer == NULL)
        return;
    (void)dt_checkpoint_writer_collect(writer, true, &unread);
    dt_snapshot_close(&writer->snapshot);
    free(writer);
}

int64_t dt_checkpoint_writer_bytes(const dt_checkpoint_writer *writer)
{
    return writer != NULL ? dt_snapshot_bytes(&writer->snapshot) : 0;
}

void dt_checkpoint_writer_start(dt_checkpoint_writer *writer, const dt_checkpoint_info *info)
{
    DT_ASSERT(!writer->busy);
    dt_snapshot_take(&writer->snapshot);
    writer->info = *info;
    writer->outcome = (dt_checkpoint_outcome){.err = DT_ERROR_INIT,
                                              .step = info->step,
                                              .valid_loss = info->valid_loss,
                                              .score = dt_checkpoint_score(info)};
    writer->start_seconds = dt_clock_monotonic_seconds();
    writer->busy = true;
    atomic_store(&writer->done, false);
    writer->has_thread = pthread_create(&writer->thread, NULL, thread_main, writer) == 0;
    if (!writer->has_thread)
        /* no thread: save here, because the other ranks' threads wait for this rank */
        save(writer);
}

bool dt_checkpoint_writer_collect(dt_checkpoint_writer *writer, bool wait,
                                  dt_checkpoint_outcome *out)
{
    if (!writer->busy || (!wait && !atomic_load(&writer->done)))
        return false;
    if (writer->has_thread)
        pthread_join(writer->thread, NULL);
    writer->busy = false;
    json_decref(writer->info.recipe);
    json_decref(writer->info.tokenizer);
    json_decref(writer->info.data);
    *out = writer->outcome;
    return true;
}
