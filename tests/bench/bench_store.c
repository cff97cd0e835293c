/* bench_store STORE runs N             adds N finished runs of 8 points in 2 curves
 * bench_store STORE points N CURVES [ID]  adds a run ("series") of N points in so many curves
 * bench_store STORE chart RUN NAME     the buckets of a curve: all of it, then zooms into a tenth of what
 *                                      was shown, until it is points
 * Each prints one JSON line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/curve.h"
#include "store/run.h"
#include "store/store.h"

#define TRANSACTION_POINTS 20000
#define NAMES_MOST         100

static dt_error err = DT_ERROR_INIT;

static void must(dt_status st)
{
    if (st != DT_OK) {
        fprintf(stderr, "bench_store: %s\n", err.message);
        exit(1);
    }
}

static void add_run(dt_store *store, const char *id, const char *name, int64_t number)
{
    char recipe[512];
    dt_run run = {.id = id,
                  .name = name,
                  .created_ms = 1763718600000 + number * 1000,
                  .steps_total = 2000,
                  .recipe_path = "/home/ada/gpt.yaml",
                  .recipe_text = "# a recipe\nmodel: {layers: 4, heads: 4, embed: 128}\n",
                  .recipe_json = recipe,
                  .recipe_hash = "0123456789abcdef0123456789abcdef"};

    snprintf(recipe, sizeof(recipe),
             "{\"name\":\"%s\",\"model\":{\"kind\":\"gpt2\",\"layers\":4,\"embed\":128},"
             "\"optimizer\":{\"kind\":\"adamw\",\"lr\":%g},\"schedule\":{\"steps\":2000}}",
             name, 1e-4 * (double)(1 + number % 30));
    must(dt_store_run_add(store, &run, &err));
    must(dt_store_run_set_state(store, id, DT_RUN_RUNNING, -1, "", run.created_ms + 10, &err));
}

static double value_at(int64_t step, int64_t curve)
{
    return 1.6 + 2.6 * exp(-(double)step / 20000) + 0.1 * sin((double)(step * (curve + 1)) * 12.9);
}

static void fill_runs(dt_store *store, int64_t count)
{
    must(dt_store_begin(store, &err));
    for (int64_t i = 0; i < count; i++) {
        char id[32], name[32];

        snprintf(id, sizeof(id), "r%06lld", (long long)i);
        snprintf(name, sizeof(name), "sweep-%lld", (long long)i % 97);
        add_run(store, id, name, i);
        for (int64_t step = 250; step <= 2000; step += 250) {
            must(dt_store_metric_add(store, id, 1, step, "loss", value_at(step, i), step, &err));
            must(dt_store_metric_add(store, id, 1, step, "valid_loss", value_at(step, i), step,
                                     &err));
        }
        must(dt_store_run_set_progress(store, id, 2000, 1.6 + (double)(i % 13) / 10, 1.8, 16000,
                                       1763718600000, &err));
        must(dt_store_run_set_state(store, id, i % 7 == 0 ? DT_RUN_FAILED : DT_RUN_FINISHED,
                                    i % 7 == 0, "", 1763718700000 + i * 1000, &err));
    }
    must(dt_store_commit(store, &err));
    printf("{\"runs\": %lld}\n", (long long)count);
}

static void fill_points(dt_store *store, const char *run, int64_t count, int64_t curves)
{
    static char names[NAMES_MOST][16];
    double begun, seconds;

    for (int64_t i = 0; i < curves; i++)
        snprintf(names[i], sizeof(names[i]), i == 0 ? "loss" : "metric-%lld", (long long)i);
    add_run(store, run, "series", 0);
    begun = dt_clock_monotonic_seconds();
    must(dt_store_begin(store, &err));
    for (int64_t i = 0; i < count; i++) {
        int64_t step = i / curves, curve = i % curves;

        if (i % TRANSACTION_POINTS == TRANSACTION_POINTS - 1) {
            must(dt_store_commit(store, &err));
            must(dt_store_begin(store, &err));
        }
        must(dt_store_metric_add(store, run, 1, step, names[curve], value_at(step, curve),
                                 1763718600000 + step, &err));
    }
    must(dt_store_run_set_progress(store, run, count / curves, 1.6, 1.8, 16000, 1763718600000,
                                   &err));
    must(dt_store_commit(store, &err));
    seconds = dt_clock_monotonic_seconds() - begun;
    printf("{\"points\": %lld, \"curves\": %lld, \"seconds\": %.3f, \"points_per_second\": %.0f}\n",
           (long long)count, (long long)curves, seconds, (double)count / seconds);
}

static void read_chart(dt_store *store, const char *run, const char *name)
{
    int64_t from = 0, to = INT64_MAX, count = 2;
    dt_store_curves curves;
    dt_bucket *buckets;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    printf("{\"chart\": [");
    for (int zoom = 0; zoom < 5 && count > 1; zoom++) {
        double begun = dt_clock_monotonic_seconds();

        must(dt_store_curves_find(store, &curves, run, name, &arena, &err));
        must(dt_store_curve_buckets(store, &buckets, &count, &curves, 0, from, to, 2000, &arena,
                                    &err));
        printf("%s{\"buckets\": %lld, \"ms\": %.2f}", zoom > 0 ? ", " : "", (long long)count,
               (dt_clock_monotonic_seconds() - begun) * 1000);
        from = buckets[count / 2].first_step;
        to = from + (buckets[count - 1].last_step - buckets[0].first_step) / 10;
    }
    printf("]}\n");
    dt_arena_release(&arena);
}

int main(int argc, char **argv)
{
    dt_store *store;

    if (argc < 4 || (argc < 5 && strcmp(argv[2], "runs") != 0)) {
        fprintf(stderr,
                "usage: bench_store STORE runs N | points N CURVES [ID] | chart RUN NAME\n");
        return 2;
    }
    must(dt_store_open(&store, argv[1], &err));
    if (strcmp(argv[2], "runs") == 0)
        fill_runs(store, strtoll(argv[3], NULL, 10));
    else if (strcmp(argv[2], "points") == 0)
        fill_points(store, argc > 5 ? argv[5] : "series", strtoll(argv[3], NULL, 10),
                    strtoll(argv[4], NULL, 10));
    else
        read_chart(store, argv[3], argv[4]);
    dt_store_close(store);
    return 0;
}
