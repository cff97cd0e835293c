/* fill_history STORE history RUNS: RUNS runs in every state, with tags, groups and names of up to 64 characters;
 *                                 60 of them are the group "width and rate", a sweep of three keys.
 * fill_history STORE metrics COUNT [ID]: a run with COUNT metrics, most with a prefix as in "train/" and "gpu/".
 * fill_history STORE group RUNS: a group of RUNS runs, "seeds", with three swept keys.
 * fill_history STORE live ID STEP: continues a run to a step.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/curve.h"
#include "store/run.h"
#include "store/store.h"

#define STEPS       2000
#define STEP_MS     45
#define DAY_MS      INT64_C(86400000)
#define SWEEP_RUNS  60
#define POINT_EVERY 10

static dt_error err = DT_ERROR_INIT;

static void must(dt_status st)
{
    if (st != DT_OK) {
        fprintf(stderr, "fill_history: %s\n", err.message);
        exit(1);
    }
}

static double wobble(int64_t step, int64_t seed)
{
    return 0.04 * sin((double)(step + 31 * seed) * 12.9898) +
           0.03 * sin((double)(step + 17 * seed) * 78.233);
}

/* A run of the history; `end` is its state, `to` the last step. */
typedef struct plan {
    const char *id, *name, *group, *tags, *note, *reason;
    dt_run_state end;
    int64_t to, created_ms, seed;
    double rate;      /* optimizer.lr */
    int width, batch; /* model.embed, batch.sequences */
    bool diverges;    /* from half of its steps on */
} plan;

/* The loss that a run of these keys would have: best at a rate of 1e-3, and better when wider. */
static double loss_at(const plan *p, int64_t step)
{
    double off = log10(p->rate) + 3, least = 1.5 + 0.25 * off * off + 60.0 / p->width;

    return least + 2.6 * exp(-(double)step / (200.0 + 2.0 * p->batch)) + wobble(step, p->seed);
}

static void add_points(dt_store *store, const plan *p, int64_t from, int64_t to)
{
    double loss = NAN, valid = NAN, speed = 9000 + 20.0 * p->batch;

    for (int64_t step = from; step <= to; step += POINT_EVERY) {
        int64_t ms = p->created_ms + step * STEP_MS;
        double rate = p->rate * (step < 100 ? (double)step / 100 : 1);

        loss = p->diverges && step > STEPS / 2 ? NAN : loss_at(p, step);
        must(dt_store_metric_add(store, p->id, 1, step, "loss", loss, ms, &err));
        must(dt_store_metric_add(store, p->id, 1, step, "learning_rate", rate, ms, &err));
        must(dt_store_metric_add(store, p->id, 1, step, "tokens_per_second",
                                 speed + 900 * wobble(step, p->seed), ms, &err));
        must(dt_store_metric_add(store, p->id, 1, step, "step_seconds", 0.045, ms, &err));
        must(dt_store_metric_add(store, p->id, 1, step, "gradient_norm",
                                 fabs(0.6 + 5 * wobble(step, p->seed)), ms, &err));
        if (step % 250 == 0 && step > 0) {
            valid = p->diverges && step > STEPS / 2 ? NAN : loss_at(p, step) + 0.12;
            must(dt_store_metric_add(store, p->id, 1, step, "valid_loss", valid, ms, &err));
        }
    }
    must(dt_store_run_set_progress(store, p->id, to, isnan(loss) ? INFINITY : loss, valid, speed,
                                   p->created_ms, &err));
}

static void add_run(dt_store *store, const plan *p)
{
    char text[512], json[512];
    dt_run run = {.id = p->id,
                  .name = p->name,
                  .state = p->end == DT_RUN_WAITING ? DT_RUN_WAITING : DT_RUN_QUEUED,
                  .created_ms = p->created_ms,
                  .steps_total = STEPS,
                  .recipe_path = "/home/ada/gpt.yaml",
                  .recipe_text = text,
                  .recipe_json = json,
                  .recipe_hash = p->id,
                  .group = p->group,
                  .tags = p->tags,
                  .note = p->note};

    snprintf(text, sizeof(text),
             "model: {layers: 4, embed: %d}\nbatch: {sequences: %d}\noptimizer: {lr: %g}\n"
             "schedule: {steps: %d}\n",
             p->width, p->batch, p->rate, STEPS);
    snprintf(json, sizeof(json),
             "{\"name\":\"%s\",\"ranks\":2,\"strategy\":{\"kind\":\"ddp\"},\"model\":{\"kind\":"
             "\"gpt2\",\"layers\":4,\"embed\":%d},\"batch\":{\"sequences\":%d},\"optimizer\":{"
             "\"kind\":\"adamw\",\"lr\":%g},\"schedule\":{\"kind\":\"cosine\",\"steps\":%d}}",
             p->name, p->width, p->batch, p->rate, STEPS);
    must(dt_store_run_add(store, &run, &err));
    if (p->end == DT_RUN_WAITING || p->end == DT_RUN_QUEUED)
        return;
    must(dt_store_run_set_state(store, p->id, DT_RUN_RUNNING, -1, "", p->created_ms, &err));
    add_points(store, p, 0, p->to);
    if (dt_run_state_is_terminal(p->end))
        must(dt_store_run_set_state(store, p->id, p->end, p->end == DT_RUN_FINISHED ? 0 : 1,
                                    p->reason != NULL ? p->reason : "",
                                    p->created_ms + p->to * STEP_MS, &err));
}

static const double rates[] = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2};
static const int widths[] = {64, 128, 256};
static const int batches[] = {8, 16, 32, 64};

static void set_keys(plan *p, int64_t at)
{
    p->rate = rates[at % 5];
    p->width = widths[at / 5 % 3];
    p->batch = batches[at / 15 % 4];
    p->seed = at;
    p->diverges = p->rate == 1e-2 && p->batch == 8;
}

static const char long_name[] = "a-name-of-sixty-four-characters-as-scripts-make-them-0123456789a";
static const char long_group[] = "ablation_of_everything_with_a_name_of_sixty-four_characters-0123";

static void fill_history(dt_store *store, int64_t count)
{
    int64_t now = dt_clock_wall_ms();

    must(dt_store_begin(store, &err));
    for (int64_t i = 0; i < count; i++) {
        bool swept = i >= count / 2 && i < count / 2 + SWEEP_RUNS;
        char id[32], name[80];
        plan p = {.id = id,
                  .name = name,
                  .end = DT_RUN_FINISHED,
                  .to = STEPS,
                  .created_ms = now - DAY_MS * 20 + i * (DAY_MS / 16)};

        snprintf(id, sizeof(id), "h%05lld", (long long)i);
        set_keys(&p, swept ? i - count / 2 : i);
        if (swept) {
            p.group = "width and rate";
            snprintf(name, sizeof(name), "sweep-%lld", (long long)(i - count / 2));
        } else {
            p.rate = p.rate == 1e-2 ? 3e-3 : p.rate;
            p.diverges = false;
            p.group = i % 9 == 0 ? long_group : i % 4 == 0 ? "baselines" : "";
            p.tags = i % 5 == 0 ? "keep paper" : i % 7 == 0 ? "debug" : "";
            snprintf(name, sizeof(name), "%s", i % 9 == 0 ? long_name : "gpt2-small");
        }
        switch (count - i) { /* the newest: one in each state */
        case 1:
            p.end = DT_RUN_WAITING;
            break;
        case 2:
            p.end = DT_RUN_QUEUED;
            break;
        case 3:
            p.end = DT_RUN_RUNNING;
            p.created_ms = now - 740 * STEP_MS;
            p.to = 740;
            break;
        case 4:
            p.end = DT_RUN_FAILED;
            p.to = 1210;
            p.reason = "rank 1 on gpu-2 was killed by signal 9 (SIGKILL) at step 1210";
            break;
        case 5: /* finished, and diverged */
            p.rate = 1e-2;
            p.diverges = true;
            break;
        case 6: /* diverges while it runs */
            p.rate = 1e-2;
            p.diverges = true;
            p.end = DT_RUN_RUNNING;
            p.created_ms = now - 1300 * STEP_MS;
            p.to = 1300;
            break;
        case 7:
            p.end = DT_RUN_STOPPED;
            p.to = 430;
            p.reason = "stopped by a person";
            p.note = "the data had a fault: see the next one";
            break;
        default:
            break;
        }
        add_run(store, &p);
    }
    must(dt_store_commit(store, &err));
}

static void fill_group(dt_store *store, int64_t count)
{
    int64_t now = dt_clock_wall_ms();

    must(dt_store_begin(store, &err));
    for (int64_t i = 0; i < count; i++) {
        char id[32], name[32];
        plan p = {.id = id,
                  .name = name,
                  .group = "seeds",
                  .end = DT_RUN_FINISHED,
                  .to = STEPS,
                  .created_ms = now - DAY_MS * 30 + i * 60000};

        snprintf(id, sizeof(id), "g%05lld", (long long)i);
        snprintf(name, sizeof(name), "seeds-%lld", (long long)i);
        set_keys(&p, i);
        add_run(store, &p);
    }
    must(dt_store_commit(store, &err));
}

/* --- many metrics */

/* Writes the name of metric `at` of `count`: dtrun's own first, then some without a prefix, then sections. */
static void metric_name(char *out, size_t size, int64_t at, int64_t count)
{
    static const char *const own[] = {"loss", "learning_rate", "tokens_per_second", "step_seconds",
                                      "gradient_norm"};
    static const char *const sections[] = {"train", "gpu", "layers", "eval"};
    int64_t plain = 5 + count / 20, share = (count - plain) / 4 + 1;

    if (at < 5)
        snprintf(out, size, "%s", own[at]);
    else if (at < plain)
        snprintf(out, size, "my_metric_%02lld", (long long)at);
    else
        snprintf(out, size, "%s/%03lld/a_value_of_it", sections[(at - plain) / share],
                 (long long)((at - plain) % share));
}

static void add_metric_points(dt_store *store, const char *id, int64_t count, int64_t from,
                              int64_t to, int64_t start_ms)
{
    char name[64];

    for (int64_t step = from; step <= to; step++)
        for (int64_t at = 0; at < count; at++) {
            metric_name(name, sizeof(name), at, count);
            must(dt_store_metric_add(store, id, 1, step, name,
                                     at < 2 ? 2 + wobble(step, at) : 1 + at + wobble(step, at),
                                     start_ms + step * STEP_MS, &err));
        }
    must(dt_store_run_set_progress(store, id, to, 2 + wobble(to, 0), NAN, 9000, start_ms, &err));
}

#define METRIC_STEPS 1000

static void fill_metrics(dt_store *store, int64_t count, const char *id)
{
    int64_t now = dt_clock_wall_ms() - METRIC_STEPS * STEP_MS;
    dt_run run = {.id = id,
                  .name = "many metrics",
                  .created_ms = now,
                  .steps_total = STEPS,
                  .recipe_path = "/home/ada/gpt.yaml",
                  .recipe_text = "model: {layers: 4}\n",
                  .recipe_json = "{\"model\":{\"layers\":4}}",
                  .recipe_hash = "h",
                  .group = "",
                  .tags = "wide"};

    must(dt_store_begin(store, &err));
    must(dt_store_run_add(store, &run, &err));
    must(dt_store_run_set_state(store, id, DT_RUN_RUNNING, -1, "", now, &err));
    add_metric_points(store, id, count, 0, METRIC_STEPS, now);
    must(dt_store_commit(store, &err));
}

/* Adds a point of "loss" at each step from the present step of the run. */
static void live(dt_store *store, const char *id, int64_t to)
{
    dt_arena arena;
    dt_run run;

    dt_arena_init(&arena, 0);
    must(dt_store_run_find(store, &run, id, &arena, &err));
    must(dt_store_begin(store, &err));
    for (int64_t step = run.step + 1; step <= to; step++)
        must(dt_store_metric_add(store, id, 1, step, "loss", 2 + wobble(step, 0),
                                 run.created_ms + step * STEP_MS, &err));
    must(dt_store_run_set_progress(store, id, to, 2 + wobble(to, 0), NAN, NAN, run.created_ms,
                                   &err));
    must(dt_store_commit(store, &err));
    dt_arena_release(&arena);
}

int main(int argc, char **argv)
{
    dt_store *store;

    if (argc < 4 || (strcmp(argv[2], "live") == 0 && argc != 5)) {
        fprintf(stderr, "usage: fill_history STORE history RUNS | metrics COUNT [ID] | group RUNS"
                        " | live ID STEP\n");
        return 2;
    }
    must(dt_store_open(&store, argv[1], &err));
    if (strcmp(argv[2], "history") == 0)
        fill_history(store, strtoll(argv[3], NULL, 10));
    else if (strcmp(argv[2], "metrics") == 0)
        fill_metrics(store, strtoll(argv[3], NULL, 10), argc > 4 ? argv[4] : "m0metr");
    else if (strcmp(argv[2], "group") == 0)
        fill_group(store, strtoll(argv[3], NULL, 10));
    else
        live(store, argv[3], strtoll(argv[4], NULL, 10));
    dt_store_close(store);
    return 0;
}
