/* start: reads the record of all attempts, and chooses where a replay starts and ends. */
#include <string.h>

#include "base/file.h"
#include "runner/supervisor/folder/digest_file.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/verify/verify.h"

/* --- the record */

/* An attempt without a record, or whose record has no step yet, is left out. */
static dt_status read_attempt(dt_verified_attempt *out, bool *there, const char *folder,
                              int64_t attempt, dt_arena *arena, dt_error *err)
{
    const char *first = dt_arena_printf(arena, "%s/" DT_DIGEST_FOLDER "/" DT_DIGEST_NAME, folder,
                                        (long long)attempt, 0LL);
    const char *plan =
        dt_arena_printf(arena, "%s/attempt-%lld/plan.json", folder, (long long)attempt);
    dt_status st = DT_OK;

    *there = false;
    *out = (dt_verified_attempt){.attempt = attempt};
    if (!dt_file_exists(first))
        return DT_OK;
    DT_TRY(dt_plan_read(&out->plan, plan, arena, err));
    out->ranks = out->plan.world_size;
    out->files = dt_arena_alloc_array(arena, (size_t)out->ranks, sizeof(*out->files));
    for (int64_t rank = 0; rank < out->ranks; rank++) {
        st = dt_record_file_read(&out->files[rank], folder, attempt, rank, arena, err);
        if (st == DT_ERR_NOT_FOUND) { /* killed before its first step, or lost with its node */
            dt_error_clear(err);
            st = DT_OK;
        }
        DT_TRY(st);
    }
    if (out->files[0].count == 0)
        goto out;
    out->after = json_integer_value(json_object_get(out->files[0].header, "after"));
    out->last = out->files[0].lines[out->files[0].count - 1].step;
    *there = true;
out:
    return st;
}

dt_status dt_verify_record_read(dt_verified_record *out, const dt_run *run, dt_arena *arena,
                                dt_error *err)
{
    const char *folder;
    dt_status st = DT_OK;
    bool there;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_run_path(&folder, run->id, NULL, arena, err));
    out->attempts = dt_arena_alloc_array(arena, (size_t)run->attempt + 1, sizeof(*out->attempts));
    for (int64_t attempt = 1; attempt <= run->attempt; attempt++) {
        dt_verified_attempt *next = &out->attempts[out->count];

        DT_TRY(read_attempt(next, &there, folder, attempt, arena, err));
        if (there)
            out->count++;
        else
            for (int64_t rank = 0; rank < next->ranks; rank++)
                dt_record_file_release(&next->files[rank]);
    }
out:
    return st;
}

void dt_verify_record_release(dt_verified_record *record)
{
    for (int64_t i = 0; i < record->count; i++)
        for (int64_t rank = 0; rank < record->attempts[i].ranks; rank++)
            dt_record_file_release(&record->attempts[i].files[rank]);
    memset(record, 0, sizeof(*record));
}

/* --- steps that were computed twice */

static bool same_ranks(const dt_verified_attempt *a, const dt_verified_attempt *b, dt_arena *arena)
{
    const char *why;

    if (a->ranks != b->ranks)
        return false;
    for (int64_t rank = 0; rank < a->ranks; rank++)
        if (!dt_record_headers_match(&why, a->files[rank].header, b->files[rank].header, arena))
            return false;
    return true;
}

dt_status dt_verify_repeated(const char **text, int64_t *steps, const dt_verified_record *record,
                             dt_arena *arena, dt_error *err)
{
    const dt_record_span all = {.after = 0, .until = INT64_MAX};
    dt_status st = DT_OK;
    dt_records_compared found;

    *text = NULL;
    *steps = 0;
    for (int64_t i = 1; i < record->count && *text == NULL; i++) {
        const dt_verified_attempt *before = &record->attempts[i - 1], *now = &record->attempts[i];

        /* a change of the recipe computes other steps on purpose */
        if (!same_ranks(before, now, arena) ||
            !json_equal(json_object_get(before->files[0].header, "recipe"),
                        json_object_get(now->files[0].header, "recipe")))
            continue;
        DT_TRY(
            dt_records_compare(&found, before->files, now->files, before->ranks, &all, arena, err));
        *steps += found.equal / before->ranks;
        if (found.first.kind != DT_DIFFERENT_NOTHING)
            *text = dt_arena_printf(arena, "attempts %lld and %lld differ: %s",
                                    (long long)before->attempt, (long long)now->attempt,
                                    dt_difference_text(&found.first, arena));
    }
out:
    return st;
}

/* --- the choice */

typedef struct choice {
    const dt_verified_record *record;
    const dt_verified_checkpoints *checkpoints;
    int64_t most; /* starts are not after this step */
    dt_arena *arena;
    dt_verify_task best; /* attempt NULL: none */
} choice;

static void offer(choice *c, const dt_verified_attempt *attempt, const char *path, int64_t step)
{
    if (step > c->most || step >= attempt->last || step < attempt->after ||
        (c->best.attempt != NULL &&
         (attempt->attempt < c->best.attempt->attempt ||
          (attempt->attempt == c->best.attempt->attempt && step <= c->best.from))))
        return;
    c->best = (dt_verify_task){.attempt = attempt, .path = path, .from = step};
}

static const dt_verified_checkpoint *checkpoint_at(const choice *c, const char *path)
{
    for (int64_t i = 0; i < c->checkpoints->count; i++)
        if (strcmp(c->checkpoints->items[i].path, path) == 0)
            return &c->checkpoints->items[i];
    return NULL;
}

/* The beginning of an attempt, and the checkpoints that it saved. */
static void offer_all(choice *c, const dt_verified_attempt *attempt)
{
    const char *from = attempt->plan.resume_from;
    const dt_verified_checkpoint *begin = checkpoint_at(c, from);

    if (from[0] == '\0' || (begin != NULL && begin->damage == NULL))
        offer(c, attempt, from, attempt->after);
    for (int64_t i = 0; i < c->checkpoints->count; i++) {
        const dt_verified_checkpoint *one = &c->checkpoints->items[i];

        if (one->damage == NULL && one->attempt == attempt->attempt)
            offer(c, attempt, one->path, one->step);
    }
}

/* The first damaged checkpoint of an attempt with a record. */
static const dt_verified_checkpoint *first_damaged(const choice *c)
{
    for (int64_t i = 0; i < c->checkpoints->count; i++)
        for (int64_t k = 0; k < c->record->count; k++)
            if (c->checkpoints->items[i].damage != NULL &&
                c->checkpoints->items[i].attempt == c->record->attempts[k].attempt)
                return &c->checkpoints->items[i];
    return NULL;
}

static dt_status refuse(const choice *c, const dt_verify_wish *wish, dt_error *err)
{
    const dt_verified_record *record = c->record;
    int64_t oldest = -1, last = 0;

    for (int64_t i = 0; i < record->count; i++)
        if (record->attempts[i].last > last)
            last = record->attempts[i].last;
    for (int64_t i = 0; i < c->checkpoints->count && oldest < 0; i++)
        if (c->checkpoints->items[i].damage == NULL)
            oldest = c->checkpoints->items[i].step;
    if (wish->from >= last)
        return DT_FAIL(err, DT_ERR_NOT_FOUND,
                       "no step after %lld is recorded: the last is step %lld",
                       (long long)wish->from, (long long)last);
    if (oldest < 0)
        return DT_FAIL(
            err, DT_ERR_NOT_FOUND,
            "no undamaged checkpoint is on disk to replay the recorded steps from, up to "
            "step %lld",
            (long long)last);
    return DT_FAIL(
        err, DT_ERR_NOT_FOUND,
        "no undamaged checkpoint to start from is on disk%s: the oldest is of step %lld, "
        "the last recorded step is %lld",
        wish->from >= 0 ? " at or before that step" : "", (long long)oldest, (long long)last);
}

dt_status dt_verify_choose(dt_verify_task *out, const dt_verified_record *record,
                           const dt_verified_checkpoints *checkpoints, const dt_verify_wish *wish,
                           dt_arena *arena, dt_error *err)
{
    choice c = {.record = record, .checkpoints = checkpoints, .most = INT64_MAX, .arena = arena};
    const dt_verified_checkpoint *damaged = wish->from < 0 ? first_damaged(&c) : NULL;
    int64_t base;

    if (wish->from >= 0)
        c.most = wish->from;
    else if (damaged != NULL)
        c.most = damaged->step - 1;
    for (int64_t i = 0; i < record->count; i++) {
        const dt_verified_attempt *attempt = &record->attempts[i];

        if ((wish->from < 0 || wish->from < attempt->last) &&
            (damaged == NULL || damaged->attempt == attempt->attempt))
            offer_all(&c, attempt);
    }
    if (c.best.attempt == NULL && damaged != NULL) { /* of what is whole, then */
        c.most = INT64_MAX;
        damaged = NULL;
        for (int64_t i = 0; i < record->count; i++)
            offer_all(&c, &record->attempts[i]);
    }
    if (c.best.attempt == NULL)
        return refuse(&c, wish, err);
    base = wish->from > c.best.from ? wish->from : c.best.from;
    c.best.until = wish->steps < INT64_MAX - base ? base + wish->steps : INT64_MAX;
    if (damaged != NULL)
        c.best.until = damaged->step;
    if (c.best.until > c.best.attempt->last)
        c.best.until = c.best.attempt->last;
    *out = c.best;
    return DT_OK;
}
