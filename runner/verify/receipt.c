#include "runner/verify/receipt.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/verify/record_file.h"

#define LOOK_SECONDS 0.05

/* --- before */

/* The newest attempt that recorded the step, and its line. */
static const char *find_position(dt_receipt *io, int64_t attempts, int64_t step, dt_arena *arena)
{
    for (int64_t attempt = attempts; attempt >= 1; attempt--) {
        dt_record_file file;
        const dt_record_line *line;

        if (dt_record_file_read(&file, io->folder, attempt, 0, arena, NULL) != DT_OK)
            continue;
        line = dt_record_file_step(&file, step);
        dt_record_file_release(&file);
        if (line == NULL)
            continue;
        io->attempt = attempt;
        return line->position;
    }
    return NULL;
}

void dt_receipt_begin(dt_receipt *out, const dt_run *run, const char *path, const dt_call *call)
{
    dt_checkpoint *checkpoint = NULL;
    const dt_checkpoint_info *info;
    const char *position, *recorded;
    long long seed;

    *out = (dt_receipt){.run = run->id, .done = true};
    if (dt_run_path(&out->folder, run->id, NULL, call->arena, NULL) != DT_OK ||
        dt_checkpoint_open(&checkpoint, path, NULL) != DT_OK)
        return;
    info = dt_checkpoint_get_info(checkpoint);
    out->done = false;
    out->step = info->step;
    position =
        dt_arena_printf(call->arena, "%lld:%lld", (long long)info->epoch, (long long)info->sample);
    recorded = find_position(out, run->attempt, info->step + 1, call->arena);
    seed = json_integer_value(json_object_get(info->recipe, "seed"));
    dt_report_note(call, "receipt: after step %lld, data at epoch %lld, sample %lld (%s)",
                   (long long)info->step, (long long)info->epoch, (long long)info->sample,
                   recorded == NULL ? "no step after it is recorded"
                   : strcmp(recorded, position) == 0
                       ? "as recorded"
                       : dt_arena_printf(call->arena, "recorded: %s", recorded));
    dt_report_note(call,
                   "receipt: random numbers of seed %lld for step %lld; they have no other state",
                   seed, (long long)info->step + 1);
    dt_checkpoint_close(checkpoint);
}

/* --- after */

/* The loss of a line: the fifth field after the position, as the bits of a double; NaN bits print as nan. */
static bool read_loss(double *out, const dt_record_line *line)
{
    const char *at = line->text;
    unsigned long long bits;
    uint64_t whole;
    char *end;

    for (int field = 0; field < 4 && at != NULL; field++)
        at = (at = strchr(at, ' ')) != NULL ? at + 1 : NULL;
    if (at == NULL)
        return false;
    bits = strtoull(at, &end, 16);
    whole = bits;
    memcpy(out, &whole, sizeof(*out));
    return end == at + 16;
}

/* Compares the step of all ranks. *found: of kind DT_DIFFERENT_NOTHING if all are equal. false: the ranks or the recipe
 * have changed. */
static bool compare_ranks(dt_difference *found, const dt_receipt *receipt, int64_t attempt,
                          int64_t step, dt_arena *arena)
{
    int64_t ranks = 1;
    bool same = true;

    *found = (dt_difference){.kind = DT_DIFFERENT_NOTHING, .name = ""};
    for (int64_t rank = 0; rank < ranks && same && found->kind == DT_DIFFERENT_NOTHING; rank++) {
        dt_record_file before = {0}, now = {0};
        const dt_record_line *a = NULL, *b = NULL;
        const char *why;

        same = dt_record_file_read(&before, receipt->folder, receipt->attempt, rank, arena, NULL) ==
                   DT_OK &&
               dt_record_file_read(&now, receipt->folder, attempt, rank, arena, NULL) == DT_OK &&
               dt_record_headers_match(&why, before.header, now.header, arena) &&
               json_equal(json_object_get(before.header, "recipe"),
                          json_object_get(now.header, "recipe"));
        if (same) {
            ranks = json_integer_value(json_object_get(now.header, "ranks"));
            a = dt_record_file_step(&before, step);
            b = dt_record_file_step(&now, step);
        }
        if (a != NULL && b != NULL &&
            dt_record_line_compare(found, a, b, before.header, arena, NULL) == DT_OK)
            found->rank = rank;
        dt_record_file_release(&before);
        dt_record_file_release(&now);
    }
    return same;
}

static void print_end(dt_receipt *receipt, int64_t attempt, const dt_record_line *line,
                      const dt_call *call)
{
    dt_record_file file = {0};
    const dt_record_line *before = NULL;
    double loss = 0, recorded = 0;
    dt_difference found;

    receipt->done = true;
    if (!read_loss(&loss, line))
        return;
    if (receipt->attempt > 0 && dt_record_file_read(&file, receipt->folder, receipt->attempt, 0,
                                                    call->arena, NULL) == DT_OK)
        before = dt_record_file_step(&file, line->step);
    if (before == NULL || !read_loss(&recorded, before))
        dt_report_note(
            call, "receipt: every byte of the checkpoint was checked; step %lld is new: loss %.9g",
            (long long)line->step, loss);
    else if (!compare_ranks(&found, receipt, attempt, line->step, call->arena))
        dt_report_note(
            call,
            "receipt: every byte of the checkpoint was checked; step %lld: loss %.9g, recorded "
            "%.9g with another recipe or other ranks",
            (long long)line->step, loss, recorded);
    else if (found.kind == DT_DIFFERENT_NOTHING)
        dt_report_note(
            call,
            "receipt: every byte of the checkpoint was checked; step %lld: loss %.9g, and input, "
            "gradients, parameters and moments, equal the record to the bit",
            (long long)line->step, loss);
    else
        dt_report_note(call,
                       "receipt: DIFFERS from the record: %s (loss %.9g, recorded %.9g); see "
                       "'dtrun verify %s'",
                       dt_difference_text(&found, call->arena), loss, recorded, receipt->run);
    dt_record_file_release(&file);
}

/* Whether every rank of the attempt has recorded a step. *out: rank 0's; the caller releases it. */
static bool is_there(dt_record_file *out, const dt_receipt *receipt, int64_t attempt,
                     dt_arena *arena)
{
    int64_t ranks;

    if (dt_record_file_read(out, receipt->folder, attempt, 0, arena, NULL) != DT_OK ||
        out->count == 0)
        return false;
    ranks = json_integer_value(json_object_get(out->header, "ranks"));
    for (int64_t rank = 1; rank < ranks; rank++) {
        dt_record_file file;
        bool there =
            dt_record_file_read(&file, receipt->folder, attempt, rank, arena, NULL) == DT_OK &&
            file.count > 0;

        dt_record_file_release(&file);
        if (!there)
            return false;
    }
    return true;
}

static bool has_ended(dt_store *store, const char *run, dt_arena *arena)
{
    dt_run row;

    return dt_store_run_find(store, &row, run, arena, NULL) != DT_OK ||
           dt_run_state_is_terminal(row.state);
}

void dt_receipt_end(dt_receipt *receipt, dt_store *store, int64_t attempt, double seconds,
                    const dt_call *call)
{
    double until = dt_clock_monotonic_seconds() + seconds;
    dt_record_file file = {0};
    bool there, ended;

    while (!receipt->done) {
        ended = has_ended(store, receipt->run, call->arena); /* before the look at the file */
        there = is_there(&file, receipt, attempt, call->arena);
        if (there)
            print_end(receipt, attempt, &file.lines[0], call);
        dt_record_file_release(&file);
        if (there || ended || dt_interrupt_seen() || dt_clock_monotonic_seconds() >= until)
            return;
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
}
