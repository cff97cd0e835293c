#include "engine/ops/cuda/attention_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define SWITCH     "DTRUN_ATTENTION"
#define MARGIN     0.98f /* part of the built-in kernel's time; a smaller gain is noise */
#define KEPT_OWN   'o'
#define KEPT_RIVAL 'c'

dt_status dt_attention_wish_read(dt_attention_wish *out, dt_error *err)
{
    static const struct {
        const char *word;
        dt_attention_wish wish;
    } words[] = {{"", DT_ATTENTION_FASTEST}, {"fastest", DT_ATTENTION_FASTEST},
                 {"own", DT_ATTENTION_OWN},  {"cudnn", DT_ATTENTION_CUDNN},
                 {"mma", DT_ATTENTION_MMA},  {"wgmma", DT_ATTENTION_WGMMA}};
    const char *text = getenv(SWITCH);

    *out = DT_ATTENTION_FASTEST;
    if (text == NULL)
        return DT_OK;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i].word) == 0) {
            *out = words[i].wish;
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_USAGE,
                   "unknown attention '%s' in " SWITCH
                   ": use own, cudnn, mma, wgmma or fastest, or leave it unset",
                   text);
}

/* --- stored choices */

static void write_key(char *out, const dt_attention_question *q)
{
    snprintf(out, DT_TUNED_KEY_MAX, "%s %s %s", q->machine, q->kind, q->name);
}

/* Finds a stored choice; returns whether there is one. Values other than these two, which dtrun
 * never writes, are ignored. */
static bool recall(const dt_attention_question *q, const char *key, bool *taken)
{
    char kept = 0;

    if (!dt_tuned_find(q->tuned, key, &kept, sizeof(kept)))
        return false;
    *taken = kept == KEPT_RIVAL;
    return kept == KEPT_RIVAL || kept == KEPT_OWN;
}

/* Stores a choice. Returns the choice that counts: another process may have stored one since. */
static bool keep(const dt_attention_question *q, const char *key, bool taken)
{
    char kept = taken ? KEPT_RIVAL : KEPT_OWN;

    dt_tuned_keep(q->tuned, key, &kept, sizeof(kept));
    (void)recall(q, key, &taken);
    return taken;
}

/* --- choosing */

static bool refuse(const dt_attention_question *q, const dt_error *err)
{
    dt_log_info("attention of %s: %s; %s is not used: %s", q->name, q->own, q->rival, err->message);
    return false;
}

static bool as_before(const dt_attention_question *q, bool taken)
{
    dt_error err = DT_ERROR_INIT;

    if (!taken) {
        dt_log_info("attention of %s: %s, as chosen before", q->name, q->own);
        return false;
    }
    if (q->build(q->context, &err) != DT_OK) {
        dt_log_warn("attention of %s: %s; %s was chosen before and is not available, so results "
                    "differ by rounding: %s",
                    q->name, q->own, q->rival, err.message);
        return false;
    }
    dt_log_info("attention of %s: forward by %s, as chosen before", q->name, q->rival);
    return true;
}

static bool as_wished(const dt_attention_question *q)
{
    dt_error err = DT_ERROR_INIT;
    float own_ms, rival_ms;

    if (q->build(q->context, &err) != DT_OK ||
        q->measure(q->context, &own_ms, &rival_ms, &err) != DT_OK)
        return refuse(q, &err);
    dt_log_info("attention of %s: forward by %s (" SWITCH "), %.3f ms, %s %.3f", q->name, q->rival,
                (double)rival_ms, q->own, (double)own_ms);
    return true;
}

bool dt_attention_choose(const dt_attention_question *q)
{
    char key[DT_TUNED_KEY_MAX];
    float own_ms = 0, rival_ms = 0;
    dt_error err = DT_ERROR_INIT;
    bool taken = false, kept;

    if (q->forced)
        return as_wished(q);
    write_key(key, q);
    if (recall(q, key, &taken))
        return as_before(q, taken);
    if (q->build(q->context, &err) == DT_OK &&
        q->measure(q->context, &own_ms, &rival_ms, &err) == DT_OK)
        taken = rival_ms < MARGIN * own_ms;
    if (err.code == DT_ERR_NOMEM) /* not stored: memory may suffice next time */
        return refuse(q, &err);
    kept = keep(q, key, taken);
    if (err.code != DT_OK)
        return refuse(q, &err);
    dt_log_info("attention of %s: %s%s; %s %.3f ms, %s %.3f%s", q->name, kept ? "forward by " : "",
                kept ? q->rival : q->own, q->rival, (double)rival_ms, q->own, (double)own_ms,
                kept != taken ? ", as chosen by another rank" : "");
    return kept;
}
