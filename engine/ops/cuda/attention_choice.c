#include "engine/ops/cuda/attention_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#include "base/banned.h"

#define SWITCH    "DTRUN_ATTENTION"
#define MARGIN    0.98f /* of our time; less is noise */
#define NAME_MAX  96
#define VERSION   "%zu.%zu.%zu"
#define PARTS(v)  (v) / 10000, (v) / 100 % 100, (v) % 100
#define KEPT_OWN  'o'
#define KEPT_THEM 'c'

dt_status dt_attention_wish_read(dt_attention_wish *out, dt_error *err)
{
    const char *text = getenv(SWITCH);

    *out = DT_ATTENTION_FASTEST;
    if (text == NULL || text[0] == '\0' || strcmp(text, "fastest") == 0)
        return DT_OK;
    if (strcmp(text, "own") == 0)
        *out = DT_ATTENTION_OWN;
    else if (strcmp(text, "cudnn") == 0)
        *out = DT_ATTENTION_CUDNN;
    else
        return DT_FAIL(err, DT_ERR_USAGE,
                       "unknown attention '%s' in " SWITCH
                       ": use own, cudnn or fastest, or leave it unset",
                       text);
    return DT_OK;
}

/* --- what is kept */

static void write_name(char *out, const dt_cudnn_shape *s)
{
    snprintf(out, NAME_MAX, "%lld x %lld x %lld x %lld %s", (long long)s->batch, (long long)s->t,
             (long long)s->heads, (long long)s->d, dt_dtype_name(s->dtype));
}

static void write_key(char *out, const dt_attention_question *q, const char *name)
{
    snprintf(out, DT_TUNED_KEY_MAX, "%s cudnn %zu; attention forward %s", q->machine, q->version,
             name);
}

/* Of another kind than these two: nobody has written it, so it is not taken. */
static bool recall(const dt_attention_question *q, const char *key, dt_attention_wish *out)
{
    char kept = 0;

    if (!dt_tuned_find(q->tuned, key, &kept, sizeof(kept)))
        return false;
    *out = kept == KEPT_THEM ? DT_ATTENTION_CUDNN : DT_ATTENTION_OWN;
    return kept == KEPT_THEM || kept == KEPT_OWN;
}

/* Gives what another process has kept since, if one has. */
static dt_attention_wish keep(const dt_attention_question *q, const char *key,
                              dt_attention_wish way)
{
    char kept = way == DT_ATTENTION_CUDNN ? KEPT_THEM : KEPT_OWN;

    dt_tuned_keep(q->tuned, key, &kept, sizeof(kept));
    (void)recall(q, key, &way);
    return way;
}

/* --- choosing */

static dt_attention_wish refuse(const dt_attention_question *q, const char *name,
                                const dt_error *err)
{
    dt_log_info("attention of %s: ours; cuDNN " VERSION " is not used: %s", name, PARTS(q->version),
                err->message);
    return DT_ATTENTION_OWN;
}

static dt_attention_wish as_before(const dt_attention_question *q, const char *name,
                                   dt_attention_wish way)
{
    dt_error err = DT_ERROR_INIT;

    if (way == DT_ATTENTION_OWN) {
        dt_log_info("attention of %s: ours, as was found before", name);
        return way;
    }
    if (q->build(q->context, &err) != DT_OK) {
        dt_log_warn("attention of %s: ours, and not cuDNN " VERSION
                    "'s as was found before, so results differ by rounding: %s",
                    name, PARTS(q->version), err.message);
        return DT_ATTENTION_OWN;
    }
    dt_log_info("attention of %s: forward by cuDNN " VERSION ", as was found before", name,
                PARTS(q->version));
    return way;
}

static dt_attention_wish as_wished(const dt_attention_question *q, const char *name)
{
    dt_error err = DT_ERROR_INIT;
    float own_ms, cudnn_ms;

    if (q->build(q->context, &err) != DT_OK ||
        q->measure(q->context, &own_ms, &cudnn_ms, &err) != DT_OK)
        return refuse(q, name, &err);
    dt_log_info("attention of %s: forward by cuDNN " VERSION " (" SWITCH "), %.3f ms, ours %.3f",
                name, PARTS(q->version), (double)cudnn_ms, (double)own_ms);
    return DT_ATTENTION_CUDNN;
}

dt_attention_wish dt_attention_choose(const dt_attention_question *q)
{
    char name[NAME_MAX], key[DT_TUNED_KEY_MAX];
    dt_attention_wish way = DT_ATTENTION_OWN, kept;
    float own_ms = 0, cudnn_ms = 0;
    dt_error err = DT_ERROR_INIT;

    write_name(name, &q->shape);
    if (q->wish == DT_ATTENTION_CUDNN)
        return as_wished(q, name);
    write_key(key, q, name);
    if (recall(q, key, &way))
        return as_before(q, name, way);
    if (q->build(q->context, &err) == DT_OK &&
        q->measure(q->context, &own_ms, &cudnn_ms, &err) == DT_OK)
        way = cudnn_ms < MARGIN * own_ms ? DT_ATTENTION_CUDNN : DT_ATTENTION_OWN;
    if (err.code == DT_ERR_NOMEM) /* the card is full today */
        return refuse(q, name, &err);
    kept = keep(q, key, way);
    if (err.code != DT_OK)
        return refuse(q, name, &err);
    dt_log_info("attention of %s: %s; cuDNN " VERSION " %.3f ms, ours %.3f%s", name,
                kept == DT_ATTENTION_CUDNN ? "forward by cuDNN" : "ours", PARTS(q->version),
                (double)cudnn_ms, (double)own_ms, kept != way ? ", as another rank has found" : "");
    return kept;
}
