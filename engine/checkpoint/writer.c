/* writer: saves checkpoints in the background, from a copy of the state. */
#include "engine/checkpoint/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint_int.h"

/* --- the copy */

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define KINDS       DT_STATE_KINDS
#define ALIGN_ELEMS 16                /* alignment of each piece: 64 bytes */
#define PAGE_BYTES  ((size_t)2 << 20) /* a huge page: few page faults, few TLB misses */

static int64_t aligned(int64_t elems)
{
    return (elems + ALIGN_ELEMS - 1) / ALIGN_ELEMS * ALIGN_ELEMS;
}

/* Update where each piece is copied from. A strategy exports the same pieces as at the start. */
static void find_pieces(dt_snapshot *snapshot, const dt_state_chunk *chunks, int count)
{
    bool same = count == snapshot->count;

    for (int i = 0; same && i < count; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            dt_snapshot_piece *piece = &snapshot->pieces[i * KINDS + kind];

            piece->from = dt_state_chunk_data(&chunks[i], kind);
            same = same && piece->elems == (piece->from != NULL ? chunks[i].slice.elems : 0);
        }
    }
    DT_ASSERT(same);
}

static void lay_out(dt_snapshot *snapshot)
{
    int64_t at = 0;

    for (int i = 0; i < snapshot->count; i++) {
        dt_state_chunk *chunk = &snapshot->chunks[i];

        for (int kind = 0; kind < KINDS; kind++) {
            dt_snapshot_piece *piece = &snapshot->pieces[i * KINDS + kind];
            float **to = kind == 0 ? &chunk->value : &chunk->state[kind - 1];

            if (*to == NULL)
                continue;
            piece->elems = chunk->slice.elems;
            piece->to = *to = snapshot->memory != NULL ? snapshot->memory + at : *to;
            at += aligned(chunk->slice.elems);
        }
    }
    snapshot->elems = at;
}

/* Copy past the caches, which hold what the next step needs. A third less traffic than memcpy,
 * which reads a cache line before it writes it. `to` is aligned to 16 bytes. */
static void copy_past_caches(float *to, const float *from, int64_t elems)
{
    int64_t i = 0;

#ifdef __SSE2__
    for (; i + 4 <= elems; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
    _mm_sfence();
#endif
    memcpy(to + i, from + i, (size_t)(elems - i) * sizeof(*to));
}

/* Thread `part` of `parts` copies an equal, contiguous share of all elements, across pieces. */
static void copy_part(const dt_snapshot *snapshot, int64_t part, int64_t parts)
{
    int64_t lines = snapshot->elems / ALIGN_ELEMS;
    int64_t from = lines * part / parts * ALIGN_ELEMS;
    int64_t to = lines * (part + 1) / parts * ALIGN_ELEMS;

    for (int i = 0; i < snapshot->count * KINDS; i++) {
        const dt_snapshot_piece *piece = &snapshot->pieces[i];
        int64_t begin, end, a, b;

        if (piece->elems == 0)
            continue;
        begin = piece->to - snapshot->memory;
        end = begin + piece->elems;
        a = from > begin ? from : begin;
        b = to < end ? to : end;
        if (a < b)
            copy_past_caches(snapshot->memory + a, piece->from + (a - begin), b - a);
    }
}

static void copy(const dt_snapshot *snapshot)
{
    int threads = snapshot->threads;

#pragma omp parallel for schedule(static) num_threads(threads)
    for (int part = 0; part < threads; part++)
        copy_part(snapshot, part, threads);
}

dt_status dt_snapshot_open(dt_snapshot *out, dt_strategy_state *live, int threads, dt_error *err)
{
    dt_status st = DT_OK;
    const dt_state_chunk *chunks;
    size_t bytes;
    int count;

    memset(out, 0, sizeof(*out));
    out->live = live;
    out->threads = threads;
    DT_TRY(live->strategy->export_state(live, &chunks, &count, err));
    out->chunks = calloc((size_t)count + 1, sizeof(*out->chunks));
    out->pieces = calloc((size_t)count * KINDS + 1, sizeof(*out->pieces));
    if (out->chunks == NULL || out->pieces == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a list of %d pieces", count);
    out->count = count;
    if (count > 0)
        memcpy(out->chunks, chunks, (size_t)count * sizeof(*chunks));
    lay_out(out);
    bytes = ((size_t)dt_snapshot_bytes(out) + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
    out->memory = aligned_alloc(PAGE_BYTES, bytes);
    if (out->memory == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a snapshot of %zu bytes", bytes);
    (void)madvise(out->memory, bytes, MADV_HUGEPAGE); /* a hint; failure is harmless */
    lay_out(out);
    find_pieces(out, chunks, count);
    copy(out); /* touches every page now, not in the first step that saves */
out:
    return st;
}

void dt_snapshot_close(dt_snapshot *snapshot)
{
    free(snapshot->chunks);
    free(snapshot->pieces);
    free(snapshot->memory);
    memset(snapshot, 0, sizeof(*snapshot));
}

int64_t dt_snapshot_bytes(const dt_snapshot *snapshot)
{
    return snapshot->elems * (int64_t)sizeof(float);
}

/* Copy the state. Call between steps, on the thread that trains. */
static void snapshot_take(dt_snapshot *snapshot)
{
    const dt_state_chunk *chunks;
    int count;

    dt_error_clear(&snapshot->err);
    snapshot->st =
        snapshot->live->strategy->export_state(snapshot->live, &chunks, &count, &snapshot->err);
    if (snapshot->st != DT_OK)
        return;
    find_pieces(snapshot, chunks, count);
    copy(snapshot);
}

static dt_status export_copy(dt_strategy_state *state, const dt_state_chunk **chunks, int *count,
                             dt_error *err)
{
    const dt_snapshot *snapshot = state->own;

    if (snapshot->st != DT_OK)
        return DT_FAIL(err, snapshot->st, "%s", snapshot->err.message);
    *chunks = snapshot->chunks;
    *count = snapshot->count;
    return DT_OK;
}

static const dt_strategy snapshot_strategy = {.name = "snapshot", .export_state = export_copy};

/* A strategy state that borrows the snapshot and uses `comm` for collectives. */
static dt_strategy_state snapshot_state(dt_snapshot *snapshot, dt_comm *comm)
{
    return (dt_strategy_state){.strategy = &snapshot_strategy,
                               .model = snapshot->live->model,
                               .comm = comm,
                               .own = snapshot};
}

/* --- the thread that saves it */

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
    writer->state = snapshot_state(&writer->snapshot, comm);
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
    snapshot_take(&writer->snapshot);
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
    json_decref(writer->info.base);
    *out = writer->outcome;
    return true;
}
