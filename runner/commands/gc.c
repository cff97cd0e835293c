/* dtrun gc: removes old checkpoints, logs, journals and cache entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/gc/gc.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"

enum { SHOWN_MOST = 50 }; /* items of a kind in the list */

typedef struct sum {
    int64_t count, bytes;
} sum;

/* Reads the quota of `option`. Without the option, *out keeps the value of the environment. */
static dt_status read_quota(int64_t *out, const char *option, const dt_call *call, dt_error *err)
{
    const char *text = dt_arguments_get(call->args, option)->text;
    char name[32];

    if (text == NULL)
        return DT_OK;
    snprintf(name, sizeof(name), "--%s", option);
    return dt_quota_parse(out, name, text, err);
}

static dt_status read_kinds(unsigned *out, const dt_call *call, dt_error *err)
{
    *out = call->args->operands_count == 0 ? ~0u : 0;
    for (int i = 0; i < call->args->operands_count; i++) {
        const char *word = call->args->operands[i];
        int kind = 0;

        while (kind < DT_GC_KINDS && strcmp(dt_gc_kind_names[kind], word) != 0)
            kind++;
        if (kind == DT_GC_KINDS)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%s': expected checkpoints, logs, journals, cache, sweeps or leftovers",
                           word);
        *out |= 1u << kind;
    }
    return DT_OK;
}

static dt_status read_call(dt_gc *out, const dt_call *call, dt_error *err)
{
    dt_status st;

    *out = (dt_gc){.arena = call->arena,
                   .keep = dt_arguments_get(call->args, "keep")->integer,
                   .now_ms = dt_clock_wall_ms()};
    DT_TRY(dt_quotas_read(out->quota, err));
    DT_TRY(read_kinds(&out->kinds, call, err));
    DT_TRY(dt_since_parse(&out->before_ms, dt_arguments_get(call->args, "older")->text, out->now_ms,
                          err));
    DT_TRY(read_quota(&out->quota[DT_GC_CACHE], "cache-quota", call, err));
    DT_TRY(read_quota(&out->quota[DT_GC_LOGS], "log-quota", call, err));
out:
    return st;
}

static void add_up(sum *sums, sum *all, const dt_gc *gc, bool removed)
{
    memset(sums, 0, DT_GC_KINDS * sizeof(sums[0]));
    *all = (sum){0};
    for (int64_t i = 0; i < gc->count; i++) {
        const dt_gc_item *item = &gc->items[i];

        if (!(removed ? item->removed : item->wanted))
            continue;
        sums[item->kind].count++;
        sums[item->kind].bytes += item->bytes;
        all->count++;
        all->bytes += item->bytes;
    }
}

static void print_wanted(const dt_gc *gc, const sum *sums)
{
    int64_t shown[DT_GC_KINDS] = {0};
    char size[DT_FORMAT_SIZE];

    for (int64_t i = 0; i < gc->count; i++)
        if (gc->items[i].wanted && shown[gc->items[i].kind]++ < SHOWN_MOST)
            dt_report_say("  %-9s %s",
                          dt_format_bytes(size, sizeof(size), (double)gc->items[i].bytes),
                          gc->items[i].path);
    for (int kind = 0; kind < DT_GC_KINDS; kind++)
        if (shown[kind] > SHOWN_MOST)
            dt_report_say("  and %lld more of %s (--json lists all)",
                          (long long)(shown[kind] - SHOWN_MOST), dt_gc_kind_names[kind]);
    for (int kind = 0; kind < DT_GC_KINDS; kind++)
        if (sums[kind].count > 0)
            dt_report_say("%s: %lld, %s", dt_gc_kind_names[kind], (long long)sums[kind].count,
                          dt_format_bytes(size, sizeof(size), (double)sums[kind].bytes));
}

static dt_status ask(const sum *all, const dt_call *call, dt_error *err)
{
    char size[DT_FORMAT_SIZE], answer[16] = "";

    if (dt_arguments_flag(call->args, "yes"))
        return DT_OK;
    if (!isatty(STDIN_FILENO))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "stdin is not a terminal: use --yes to remove, or --dry-run");
    dt_report_say("remove all this permanently, %s? [y/N]",
                  dt_format_bytes(size, sizeof(size), (double)all->bytes));
    if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_USAGE, "nothing was removed");
}

static json_t *items_to_json(const dt_gc *gc)
{
    json_t *array = json_array();

    for (int64_t i = 0; i < gc->count; i++) {
        const dt_gc_item *item = &gc->items[i];

        if (item->wanted)
            json_array_append_new(
                array, json_pack("{ss so so sI sb}", "kind", dt_gc_kind_names[item->kind], "run",
                                 item->run != NULL ? json_string(item->run) : json_null(), "path",
                                 dt_json_text(item->path), "bytes", (json_int_t)item->bytes,
                                 "removed", (int)item->removed));
    }
    return array;
}

static dt_status report_done(const dt_gc *gc, json_t *kept, bool dry, const sum *wanted,
                             const dt_call *call, dt_error *err)
{
    char size[DT_FORMAT_SIZE];
    sum sums[DT_GC_KINDS], all;
    json_t *object;

    add_up(sums, &all, gc, true);
    if (!dry)
        dt_report_note(call, "%s freed%s", dt_format_bytes(size, sizeof(size), (double)all.bytes),
                       all.count < wanted->count ? "; some files could not be removed" : "");
    if (!call->json)
        return DT_OK;
    object = dt_report_object();
    json_object_set_new(object, "dry_run", json_boolean(dry));
    json_object_set_new(object, "bytes", json_integer(dry ? wanted->bytes : all.bytes));
    json_object_set_new(object, "items", items_to_json(gc));
    json_object_set(object, "kept", kept);
    return dt_report_json(object, err);
}

static void print_problem(const char *message)
{
    dt_report_say("dtrun gc: %s", message);
}

/* Appends what an ended run keeps on other machines, by its newest attempt: a sentence for each node. */
static dt_status list_kept(json_t *out, const dt_gc *gc, const dt_run *run, dt_error *err)
{
    dt_store_event *events;
    dt_status st = DT_OK;
    int64_t count;

    DT_TRY(dt_store_event_list(gc->store, &events, &count, run->id, 0, 0, gc->arena, err));
    for (int64_t i = 0; i < count; i++) {
        const char *text = events[i].attempt == run->attempt && strcmp(events[i].kind, "kept") == 0
                               ? dt_incident_sentence(&events[i], gc->arena)
                               : NULL;

        if (text != NULL)
            json_array_append_new(
                out, json_pack("{s:s, s:o}", "run", run->id, "text", dt_json_text(text)));
    }
out:
    return st;
}

/* Lists what commands of ended runs keep on other machines. gc removes nothing there: it may be all that there is of a
 * result. */
static dt_status find_kept(json_t **out, const dt_gc *gc, dt_error *err)
{
    dt_status st = DT_OK;
    dt_run *runs;
    int64_t count;

    *out = json_array();
    DT_TRY(dt_store_run_list(gc->store, &runs, &count, -1, 0, gc->arena, err));
    for (int64_t i = 0; i < count; i++)
        if (dt_run_state_is_terminal(runs[i].state) && dt_runs_is_command(&runs[i]) &&
            runs[i].ended_ms < gc->before_ms)
            DT_TRY(list_kept(*out, gc, &runs[i], err));
out:
    return st;
}

static void print_kept(const json_t *kept)
{
    const json_t *one;
    size_t i;

    json_array_foreach((json_t *)kept, i, one) {
        const char *run = json_string_value(json_object_get(one, "run"));

        dt_report_say("run %s keeps files on other machines: %s ('dtrun rm %s' removes them)", run,
                      json_string_value(json_object_get(one, "text")), run);
    }
}

static dt_status collect(dt_call *call, dt_error *err)
{
    bool dry = dt_arguments_flag(call->args, "dry-run");
    sum sums[DT_GC_KINDS], wanted;
    json_t *kept = NULL;
    dt_status st;
    dt_gc gc;

    DT_TRY(read_call(&gc, call, err));
    DT_TRY(dt_store_open_to_read(&gc.store, NULL, err));
    DT_TRY(dt_gc_scan(&gc, err));
    DT_TRY(find_kept(&kept, &gc, err));
    add_up(sums, &wanted, &gc, false);
    if (!call->json) {
        print_kept(kept);
        print_wanted(&gc, sums);
    }
    if (wanted.count == 0)
        dt_report_note(call, "nothing to remove");
    if (!dry && wanted.count > 0) {
        DT_TRY(ask(&wanted, call, err));
        DT_TRY(dt_gc_remove(&gc, print_problem, err));
        if (gc.problems > 0)
            call->exit_code = DT_EXIT_SYSTEM;
    }
    DT_TRY(report_done(&gc, kept, dry || wanted.count == 0, &wanted, call, err));
out:
    json_decref(kept);
    json_decref(gc.contents);
    dt_store_close(gc.store);
    return st;
}

static const dt_option options[] = {
    {.name = "dry-run",
     .letter = 'n',
     .kind = DT_OPTION_FLAG,
     .help = "print what would be removed, remove nothing"},
    {.name = "yes", .letter = 'y', .kind = DT_OPTION_FLAG, .help = "do not ask"},
    {.name = "older",
     .kind = DT_OPTION_TEXT,
     .value = "TIME",
     .fallback = "30d",
     .help = "only runs that ended, and cache entries last used, more than 12h or 30d ago, or "
             "before 2026-11-20"},
    {.name = "keep",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "1",
     .low = 1,
     .high = 1e6,
     .help = "keep the newest N checkpoints of each run; the best one is always kept"},
    {.name = "cache-quota",
     .kind = DT_OPTION_TEXT,
     .value = "SIZE",
     .help = "keep at most this much cache, as in 20GB; the oldest entries are removed first"},
    {.name = "log-quota",
     .kind = DT_OPTION_TEXT,
     .value = "SIZE",
     .help = "keep at most this much of the logs of ended runs"},
    {0},
};

const dt_command dt_command_gc = {
    .name = "gc",
    .summary = "remove old checkpoints, logs, journals and cache",
    .operands = "[checkpoints|logs|journals|cache|sweeps|leftovers]",
    .takes = DT_OPERAND_WORD,
    .runs = DT_RUNS_LOCAL,
    .operands_max = DT_GC_KINDS,
    .options = options,
    .notes =

        "Lists what would be removed, with sizes, and asks. Without an operand, all of these:\n"
        "\n"
        "checkpoints  of ended runs, except the newest and the best; none if those are damaged\n"
        "logs         of ended runs: the output of ranks and supervisors\n"
        "journals     of ended runs that have nothing left on any node. A damaged history is\n"
        "             repaired from the journals, so a journal is removed only if the history is\n"
        "             undamaged and has all of its rows\n"
        "cache        programs, data, digests and files of commands that no run uses and that\n"
        "             were not used in the last day\n"
        "sweeps       folders of ended sweeps; their groups can no longer be resumed, but their\n"
        "             runs stay\n"
        "leftovers    of an interrupted removal\n"
        "\n"
        "Runs of commands that keep files on other machines are named; 'dtrun rm' removes such a\n"
        "run with these files. --json lists them as kept.\n"
        "Files of active runs, of other users, and files that a fork is copying are not touched.\n"
        "The history stays; 'dtrun rm' removes runs.\n"
        "\n"
        "Quotas also work automatically: if DTRUN_CACHE_QUOTA or DTRUN_LOG_QUOTA (for example\n"
        "20GB) is set when a run is launched, its supervisor removes the excess when the run\n"
        "ends, and logs what it removed.\n",
    .run = collect,
};
