/* fill_store STORE: runs in every interesting state, with their logs, for the page's test.
 * fill_store STORE step N: continues the active run to step N; live N: another active run.
 * fill_store STORE many N: N more finished runs, each with its own learning rate, the first of them in groups.
 * fill_store STORE nodes N: an active command on two hosts with N points of what they are used for, or its later points.
 * fill_store STORE long N: a run of N points whose second attempt began in the middle, with a peak of 50.
 *
 * Names and texts contain HTML, which the page must not interpret.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"
#include "store/store.h"

#define STEPS 2000

static dt_error err = DT_ERROR_INIT;

static void must(dt_status st)
{
    if (st != DT_OK) {
        fprintf(stderr, "fill_store: %s\n", err.message);
        exit(1);
    }
}

static const char recipe_text[] =
    "# a small GPT on public text\n"
    "name: shakespeare\n"
    "ranks: 2\n"
    "strategy: ddp\n"
    "model: {layers: 4, heads: 4, embed: 128}   # <b>not bold</b>\n"
    "data: {train: corpus.txt, split: 0.1}\n"
    "batch: {sequences: 6, tokens: 64}\n"
    "optimizer: {kind: adamw, lr: 1e-3, beta2: 0.99}\n"
    "schedule: {kind: cosine, warmup_steps: 100, steps: 2000, min_lr: 1e-4}\n";
static const char recipe_json[] =
    "{\"name\":\"shakespeare\",\"nodes\":[\"localhost\"],\"ranks\":2,\"strategy\":{\"kind\":"
    "\"ddp\",\"bucket_mb\":25.0},\"model\":{\"kind\":\"gpt2\",\"layers\":4,\"heads\":4,\"embed\":"
    "128},\"optimizer\":{\"kind\":\"adamw\",\"lr\":0.001}}";

static double wobble(int64_t step)
{
    return 0.04 * sin((double)step * 12.9898) + 0.03 * sin((double)step * 78.233);
}

static void add_points(dt_store *store, const char *id, int64_t attempt, int64_t from, int64_t to,
                       int64_t start_ms)
{
    double loss = NAN, valid = NAN, speed = NAN;

    for (int64_t step = from; step <= to; step++) {
        int64_t time_ms = start_ms + step * 45;
        double rate = step < 100 ? 1e-3 * (double)step / 100
                                 : 1e-4 + 4.5e-4 * (1 + cos(3.14159 * (double)step / STEPS));

        if (step % 10 == 0 || step == to) {
            loss = 1.6 + 2.6 * exp(-(double)step / 260) + wobble(step);
            speed = 17000 + 600 * wobble(step) / 0.07;
            must(dt_store_metric_add(store, id, attempt, step, "loss", loss, time_ms, &err));
            must(dt_store_metric_add(store, id, attempt, step, "learning_rate", rate, time_ms,
                                     &err));
            must(dt_store_metric_add(store, id, attempt, step, "tokens_per_second", speed, time_ms,
                                     &err));
            must(dt_store_metric_add(store, id, attempt, step, "step_seconds", 0.045, time_ms,
                                     &err));
            must(dt_store_metric_add(store, id, attempt, step, "gradient_norm",
                                     0.6 + 5 * wobble(step), time_ms, &err));
        }
        if (step % 250 == 0 && step > 0) {
            must(dt_store_metric_add(store, id, attempt, step, "gpu_used_bytes_rank_0",
                                     5e9 + 1e6 * step, time_ms, &err));
            must(dt_store_metric_add(store, id, attempt, step, "gpu_used_bytes_rank_1", 6e9,
                                     time_ms, &err));
            valid = 1.75 + 2.4 * exp(-(double)step / 280);
            must(dt_store_metric_add(store, id, attempt, step, "valid_loss", valid, time_ms, &err));
        }
    }
    must(dt_store_run_set_progress(store, id, to, loss, valid, speed, start_ms + from * 45, &err));
}

static void add_event(dt_store *store, const char *id, int64_t sequence, int64_t rank,
                      int64_t time_ms, const char *kind, const char *json)
{
    dt_store_event event = {.attempt = 1,
                            .node = 0,
                            .sequence = sequence,
                            .rank = rank,
                            .time_ms = time_ms,
                            .kind = kind,
                            .json = json};

    must(dt_store_event_add(store, id, &event, &err));
}

static void add_checkpoints(dt_store *store, const char *folder, const char *id, int64_t to,
                            int64_t start_ms)
{
    char path[4096], name[32];

    for (int64_t step = 500; step <= to; step += 500) {
        dt_store_checkpoint checkpoint = {.attempt = 1,
                                          .step = step,
                                          .bytes = 9876543,
                                          .time_ms = start_ms + step * 45,
                                          .path = name,
                                          .digest = "9f86d081884c7d65",
                                          .valid_loss = 1.75 + 2.4 * exp(-(double)step / 280),
                                          .score = NAN,
                                          .seconds = 0.062};

        snprintf(name, sizeof(name), "step-%08lld", (long long)step);
        snprintf(path, sizeof(path), "%s/runs/%s/checkpoints/%s", folder, id, name);
        must(dt_file_make_dirs(path, 0700, &err));
        must(dt_store_checkpoint_add(store, id, &checkpoint, &err));
    }
}

static void add_ranks(dt_store *store, const char *folder, const char *id, const char *state,
                      int failed_signal, int64_t start_ms)
{
    bool over = strcmp(state, "exited") == 0;

    must(dt_store_node_set(
        store, id, 1,
        &(dt_node){.node = 0, .name = "localhost", .state = over ? "released" : "running"}, &err));
    for (int64_t rank = 0; rank < 2; rank++) {
        bool failed = failed_signal > 0 && rank == 1;
        dt_rank row = {.rank = rank,
                       .local_rank = rank,
                       .pid = 4100 + rank,
                       .device = "cpu",
                       .state = failed ? "failed" : state,
                       .exit_code = over && !failed ? 0 : -1,
                       .exit_signal = failed ? failed_signal : -1};
        char path[4096], time[DT_CLOCK_ISO_SIZE];
        dt_strbuf text;

        dt_strbuf_init(&text);
        dt_strbuf_add_fmt(&text, "%s rank %lld: GPT-2, 0.80 M parameters, vocabulary 65\n",
                          dt_clock_iso(time, start_ms), (long long)rank);
        for (int line = 1; line <= 60; line++)
            dt_strbuf_add_fmt(&text, "%s evaluated %d sequences <script>alert(1)</script>\n",
                              dt_clock_iso(time, start_ms + line * 900), line * 32);
        if (failed)
            dt_strbuf_add_fmt(&text, "%s \xff\xfe bytes that are no text \x1b[31mred\x1b[0m\n",
                              dt_clock_iso(time, start_ms + 60000));
        snprintf(path, sizeof(path), "%s/runs/%s/logs", folder, id);
        must(dt_file_make_dirs(path, 0700, &err));
        snprintf(path, sizeof(path), "%s/runs/%s/logs/rank-%lld.log", folder, id, (long long)rank);
        must(dt_file_write_atomic(path, text.data, text.length, 0600, &err));
        dt_strbuf_release(&text);
        must(dt_store_rank_set(store, id, 1, &row, &err));
    }
}

static void add_run(dt_store *store, const char *folder, const char *id, const char *name,
                    dt_run_state end, int64_t steps, int64_t start_ms, int failed_signal,
                    const char *reason)
{
    dt_run run = {.id = id,
                  .name = name,
                  .created_ms = start_ms - 1500,
                  .steps_total = STEPS,
                  .recipe_path = "/home/ada/examples/shakespeare.yaml",
                  .recipe_text = recipe_text,
                  .recipe_json = recipe_json,
                  .recipe_hash = "0123456789abcdef0123456789abcdef"};
    bool over = dt_run_state_is_terminal(end);

    must(dt_store_begin(store, &err));
    must(dt_store_run_add(store, &run, &err));
    if (end != DT_RUN_QUEUED) {
        must(dt_store_run_set_state(store, id, DT_RUN_RUNNING, -1, "", start_ms, &err));
        add_ranks(store, folder, id, over ? "exited" : "ready", failed_signal, start_ms);
        add_event(store, id, 0, 0, start_ms, "started",
                  "{\"event\":\"started\",\"rank\":0,\"pid\":4100,\"device\":\"cpu\"}");
        add_event(store, id, 1, 1, start_ms, "started",
                  "{\"event\":\"started\",\"rank\":1,\"pid\":4101,\"device\":\"cpu\"}");
        add_event(store, id, 3, -1, start_ms, "restart",
                  "{\"event\":\"restart\",\"attempt\":1,\"step\":0,\"reason\":\"no card\"}");
        add_points(store, id, 1, 0, steps, start_ms);
        add_checkpoints(store, folder, id, steps, start_ms);
    }
    if (failed_signal > 0)
        add_event(store, id, 2, 1, start_ms + steps * 45, "exited",
                  "{\"event\":\"exited\",\"rank\":1,\"code\":null,\"signal\":9,"
                  "\"signal_name\":\"SIGKILL\"}");
    if (over)
        must(dt_store_run_set_state(store, id, end, end == DT_RUN_FINISHED ? 0 : 1, reason,
                                    start_ms + steps * 45, &err));
    must(dt_store_commit(store, &err));
}

static void fill(dt_store *store, const char *folder)
{
    int64_t now = dt_clock_wall_ms();

    add_run(store, folder, "v6l1ve", "live", DT_RUN_RUNNING, 740, now - 86400000 * 4, 0, "");
    add_run(store, folder, "h7c2qa", "wikitext-baseline", DT_RUN_STOPPED, 870, now - 86400000 * 3,
            0, "stopped by a person");
    add_run(store, folder, "m4x9tr", "shakespeare", DT_RUN_FINISHED, STEPS, now - 7200000, 0, "");
    add_run(store, folder, "b1d5wn", "a <img src=x onerror=alert(1)> name & more", DT_RUN_FAILED,
            1210, now - 3000000, 9,
            "rank 1 on localhost was killed by signal 9 (SIGKILL) at step 1210\n"
            "its last line: evaluated 1920 sequences");
    add_run(store, folder, "k3v9x2", "shakespeare-bf16", DT_RUN_RUNNING, 740, now - 740 * 45, 0,
            "");
    add_run(store, folder, "p8s6ze", "gpt2-small", DT_RUN_QUEUED, 0, now, 0, "");
}

static void add_many(dt_store *store, int64_t count)
{
    int64_t now = dt_clock_wall_ms();

    must(dt_store_begin(store, &err));
    for (int64_t i = 1; i <= count; i++) {
        char id[32], name[32], recipe[128];
        dt_run run = {.id = id,
                      .name = name,
                      .created_ms = now - 86400000 * 9 + i,
                      .steps_total = STEPS,
                      .recipe_path = "/home/ada/sweep.yaml",
                      .recipe_text = recipe_text,
                      .recipe_json = recipe,
                      .recipe_hash = id,
                      .group = i <= 10   ? "rates, low"
                               : i <= 20 ? "rates, high"
                                         : ""};

        snprintf(id, sizeof(id), "sweep%03lld", (long long)i);
        snprintf(name, sizeof(name), "sweep %lld", (long long)i);
        snprintf(recipe, sizeof(recipe), "{\"ranks\":2,\"optimizer\":{\"lr\":0.%03lld}}",
                 (long long)i);
        must(dt_store_run_add(store, &run, &err));
        must(dt_store_run_set_state(store, id, DT_RUN_RUNNING, -1, "", run.created_ms, &err));
        for (int64_t step = 0; step <= 100; step += 50)
            must(dt_store_metric_add(store, id, 1, step, "loss",
                                     (double)i + 100.0 / (double)(step + 50), run.created_ms + step,
                                     &err));
        must(dt_store_run_set_progress(store, id, 100, (double)i, NAN, NAN, run.created_ms, &err));
        must(dt_store_run_set_state(store, id, DT_RUN_FINISHED, 0, "", run.created_ms + 9, &err));
    }
    must(dt_store_commit(store, &err));
}

static void add_long(dt_store *store, int64_t points)
{
    int64_t now = dt_clock_wall_ms() - 86400000, half = points / 2, attempt;
    dt_run run = {.id = "w2z5lg",
                  .name = "long",
                  .created_ms = now,
                  .steps_total = points,
                  .recipe_path = "/home/ada/long.yaml",
                  .recipe_text = recipe_text,
                  .recipe_json = recipe_json,
                  .recipe_hash = "h"};

    must(dt_store_begin(store, &err));
    must(dt_store_run_add(store, &run, &err));
    must(dt_store_run_set_state(store, run.id, DT_RUN_RUNNING, -1, "", now, &err));
    for (int64_t step = 0; step <= points; step++) {
        if (step == half + 200 && now == run.created_ms) {
            must(dt_store_run_set_state(store, run.id, DT_RUN_FAILED, 1, "lost", now + step * 45,
                                        &err));
            must(dt_store_attempt_add(store, run.id, half, points, recipe_json, "h",
                                      now + step * 45 + 60000, &attempt, &err));
            must(dt_store_run_set_state(store, run.id, DT_RUN_RUNNING, -1, "",
                                        now + step * 45 + 60000, &err));
            step = half; /* later points of it are undone */
            now += 60000 + 200 * 45;
        }
        attempt = now > run.created_ms ? 2 : 1;
        must(dt_store_metric_add(store, run.id, attempt, step, "loss",
                                 step == points / 3   ? 50
                                 : step == points / 4 ? NAN
                                                      : 2 + wobble(step),
                                 now + step * 45, &err));
        must(dt_store_metric_add(store, run.id, attempt, step, "tokens_per_second", 17000,
                                 now + step * 45, &err));
        must(dt_store_metric_add(store, run.id, attempt, step, "step_seconds", 0.045,
                                 now + step * 45, &err));
        if (step % 100 == 0)
            must(dt_store_metric_add(store, run.id, attempt, step, "held_bytes", 5e8 + step, now,
                                     &err));
    }
    must(dt_store_run_set_progress(store, run.id, points, 2, NAN, 17000, now, &err));
    must(dt_store_run_set_state(store, run.id, DT_RUN_FINISHED, 0, "", now + points * 45, &err));
    must(dt_store_commit(store, &err));
}

/* Adds a run as `dtrun import` does: no hash, no ranks; the metrics have the user's names and extreme values. */
static void add_imported(dt_store *store, int64_t points)
{
    int64_t now = dt_clock_wall_ms() - 86400000 * 8;
    dt_run run = {.id = "i9mprt",
                  .name = "imported",
                  .created_ms = now,
                  .steps_total = points - 1,
                  .recipe_path = "/home/ada/metrics.csv",
                  .recipe_text = "",
                  .recipe_json = "{}",
                  .recipe_hash = "",
                  .tags = "keep old",
                  .group = "from elsewhere",
                  .note = "imported from '/home/ada/metrics.csv'"};

    must(dt_store_begin(store, &err));
    must(dt_store_run_add(store, &run, &err));
    must(dt_store_run_set_state(store, run.id, DT_RUN_RUNNING, -1, "", now, &err));
    for (int64_t step = 0; step < points; step++) {
        const struct {
            const char *name;
            double value;
        } values[] = {{"train/loss", 3 - (double)step / 50},
                      {"constant_bytes", 13200000},
                      {"huge", step % 2 == 0 ? -1e308 : 1e308}};

        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
            must(dt_store_metric_add(store, run.id, 1, step, values[i].name, values[i].value, now,
                                     &err));
    }
    must(dt_store_metric_add(store, run.id, 1, 1, "once", 0.33, now, &err));
    must(dt_store_run_set_progress(store, run.id, points - 1, NAN, NAN, NAN, now, &err));
    must(dt_store_run_set_state(store, run.id, DT_RUN_FINISHED, 0, "", now + 1000, &err));
    must(dt_store_commit(store, &err));
}

/* A command that reports no step. Points that exist stay unchanged; "spare" has a card, and begins later. */
static void add_nodes(dt_store *store, int64_t points)
{
    static const struct {
        const char *name;
        double start, swing;
    } values[] = {{"cpu_percent", 60, 30},
                  {"run_cpu_percent", 55, 30},
                  {"memory_used_bytes", 40e9, 4e9},
                  {"memory_total_bytes", 64e9, 0},
                  {"run_memory_bytes", 30e9, 3e9},
                  {"disk_read_bytes_per_second", 2e6, 1e6},
                  {"disk_written_bytes_per_second", 9e6, 9e6},
                  {"disk_free_bytes", 412e9, 1e9},
                  {"received_bytes_per_second", 120e6, 40e6},
                  {"sent_bytes_per_second", 110e6, 40e6},
                  {"gpu_busy_percent", 85, 14},
                  {"gpu_used_bytes", 61e9, 1e9},
                  {"gpu_total_bytes", 85e9, 0},
                  {"gpu_power_watts", 420, 90},
                  {"gpu_temperature_c", 64, 6}};
    static const int64_t begun = 1764000000000;
    dt_run run = {.id = "n4odes",
                  .name = "on two hosts",
                  .created_ms = begun,
                  .recipe_path = "/home/ada/two.yaml",
                  .recipe_text = "command: train.sh\n",
                  .recipe_json = "{\"task\":\"command\"}",
                  .recipe_hash = "h"};
    dt_error known = DT_ERROR_INIT;
    char name[96];

    must(dt_store_begin(store, &err));
    if (dt_store_run_add(store, &run, &known) == DT_OK) {
        must(dt_store_run_set_state(store, run.id, DT_RUN_RUNNING, -1, "", begun, &err));
        for (int64_t node = 0; node < 2; node++)
            must(dt_store_node_set(
                store, run.id, 1,
                &(dt_node){.node = node, .name = node == 0 ? "gpu-a" : "spare", .state = "running"},
                &err));
    }
    for (int64_t at = 1; at <= points; at++)
        for (size_t i = 0; i < 2 * sizeof(values) / sizeof(values[0]); i++) {
            int64_t time_ms = begun + at * 10000, node = (int64_t)(i % 2);
            bool gpu = strncmp(values[i / 2].name, "gpu", 3) == 0;

            if (node == 1 && (gpu || at < 20))
                continue;
            snprintf(name, sizeof(name), "system/%s_node_%d%s", values[i / 2].name, (int)node,
                     gpu ? "_gpu_0" : "");
            must(dt_store_metric_add(store, run.id, 1, time_ms / 1000, name,
                                     values[i / 2].start + values[i / 2].swing * wobble(at) * 12 -
                                         (node == 1 ? values[i / 2].swing / 2 : 0),
                                     time_ms, &err));
        }
    must(dt_store_commit(store, &err));
}

/* The points of its earlier steps exist already, and stay unchanged. */
static void add_steps(dt_store *store, const char *id, int64_t step)
{
    must(dt_store_begin(store, &err));
    add_points(store, id, 1, 741, step, dt_clock_wall_ms() - 40000);
    must(dt_store_commit(store, &err));
}

int main(int argc, char **argv)
{
    char folder[4096];
    dt_store *store;
    const char *slash;

    if ((argc != 2 && argc != 4) || (slash = strrchr(argv[1], '/')) == NULL) {
        fprintf(stderr, "usage: fill_store FOLDER/store.db [step N | live N | many N | long N | "
                        "imported N | remove ID]\n");
        return 2;
    }
    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - argv[1]), argv[1]);
    must(dt_store_open(&store, argv[1], &err));
    if (argc == 2)
        fill(store, folder);
    else if (strcmp(argv[2], "many") == 0)
        add_many(store, strtoll(argv[3], NULL, 10));
    else if (strcmp(argv[2], "nodes") == 0)
        add_nodes(store, strtoll(argv[3], NULL, 10));
    else if (strcmp(argv[2], "imported") == 0)
        add_imported(store, strtoll(argv[3], NULL, 10));
    else if (strcmp(argv[2], "remove") == 0)
        must(dt_store_run_remove(store, argv[3], &err));
    else if (strcmp(argv[2], "long") == 0)
        add_long(store, strtoll(argv[3], NULL, 10));
    else
        add_steps(store, strcmp(argv[2], "live") == 0 ? "v6l1ve" : "k3v9x2",
                  strtoll(argv[3], NULL, 10));
    dt_store_close(store);
    return 0;
}
