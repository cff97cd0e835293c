/* index_info: writes and reads everything in index.json except files and tensors. */
#include "engine/checkpoint/index.h"

#include <math.h>
#include <string.h>

/* Names of flags, which JSON has as a list. */
typedef struct flag_names {
    const char *key;
    const char *names[5]; /* of the flags 1, 2, 4, ...; NULL-terminated */
} flag_names;

static const flag_names kept_for = {
    "kept_for", {"steps", "epoch", "best", "end"}}; /* DT_CHECKPOINT_STEPS, ... */
static const flag_names missing = {
    "missing", {"validation", "tasks", "samples"}}; /* DT_CHECKPOINT_LACKS_VALIDATION, ... */

static void flags_add(json_t *to, const flag_names *of, unsigned flags)
{
    json_t *list = json_array();

    for (size_t i = 0; of->names[i] != NULL; i++)
        if (flags & 1u << i)
            json_array_append_new(list, json_string(of->names[i]));
    json_object_set_new(to, of->key, list);
}

/* Unknown names are ignored; a missing list has no flags. */
static dt_status flags_parse(unsigned *out, const flag_names *of, const json_t *json,
                             const char *where, dt_error *err)
{
    json_t *list = json_object_get(json, of->key), *item;
    size_t at;

    *out = 0;
    if (list != NULL && !json_is_array(list))
        return DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s' is not a list", where, of->key);
    json_array_foreach(list, at, item) {
        const char *name = json_string_value(item);

        for (size_t i = 0; name != NULL && of->names[i] != NULL; i++)
            if (strcmp(name, of->names[i]) == 0)
                *out |= 1u << i;
    }
    return DT_OK;
}

static json_t *scaler_make(const dt_checkpoint_info *info)
{
    if (info->loss_scale <= 0)
        return json_null();
    return json_pack("{s:o, s:I, s:I}", "scale", dt_json_number(info->loss_scale), "clean_steps",
                     (json_int_t)info->clean_steps, "skipped_steps",
                     (json_int_t)info->skipped_steps);
}

json_t *dt_checkpoint_info_make(const dt_checkpoint_info *info)
{
    json_t *out = json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:I}", "format", DT_CHECKPOINT_FORMAT,
                            "version", DT_CHECKPOINT_VERSION, "run", info->run, "attempt",
                            (json_int_t)info->attempt, "step", (json_int_t)info->step, "epoch",
                            (json_int_t)info->epoch, "sample", (json_int_t)info->sample);

    json_object_set_new(out, "steps_total", json_integer((json_int_t)info->steps_total));
    json_object_set_new(out, "step_samples", json_integer((json_int_t)info->step_samples));
    json_object_set_new(out, "loss", dt_json_number(info->loss));
    json_object_set_new(out, "valid_loss", dt_json_number(info->valid_loss));
    if (info->best_by == DT_BEST_BY_VALID_BLEU) {
        json_object_set_new(out, "valid_bleu", dt_json_number(info->valid_bleu));
        json_object_set_new(out, "best_bleu", dt_json_number(-info->best_score));
    } else {
        json_object_set_new(out, "best_loss", dt_json_number(info->best_score));
    }
    flags_add(out, &kept_for, info->kept_for);
    if (info->missing != 0)
        flags_add(out, &missing, info->missing);
    json_object_set_new(out, "optimizer", json_string(info->optimizer));
    json_object_set_new(out, "scaler", scaler_make(info));
    json_object_set(out, "recipe", info->recipe);
    json_object_set(out, "tokenizer", info->tokenizer);
    if (info->data != NULL)
        json_object_set(out, "data", info->data);
    if (info->base != NULL)
        json_object_set(out, "base", info->base);
    return out;
}

dt_status dt_checkpoint_get_count(int64_t *out, const json_t *object, const char *key,
                                  const char *where, dt_error *err)
{
    dt_status st = dt_json_get_int(out, object, key, where, err);

    if (st == DT_OK && *out < 0)
        st = DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s' is negative", where, key);
    return st;
}

static dt_status scaler_parse(dt_checkpoint_info *out, const json_t *json, const char *where,
                              dt_error *err)
{
    const json_t *scaler = json_object_get(json, "scaler");
    dt_status st = DT_OK;

    if (scaler == NULL || json_is_null(scaler))
        return DT_OK;
    DT_TRY(dt_json_get_number(&out->loss_scale, scaler, "scale", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->clean_steps, scaler, "clean_steps", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->skipped_steps, scaler, "skipped_steps", where, err));
    if (!(out->loss_scale > 0))
        DT_THROW(err, DT_ERR_CORRUPT, "%s: the loss scale is not above 0", where);
out:
    return st;
}

static dt_status number_or_none(double *out, const json_t *json, const char *key, const char *where,
                                dt_error *err)
{
    *out = NAN;
    return json_object_get(json, key) != NULL ? dt_json_get_number(out, json, key, where, err)
                                              : DT_OK;
}

static dt_status best_parse(dt_checkpoint_info *out, const json_t *json, const char *where,
                            dt_error *err)
{
    double loss, bleu;
    dt_status st = DT_OK;

    DT_TRY(number_or_none(&loss, json, "best_loss", where, err));
    DT_TRY(number_or_none(&bleu, json, "best_bleu", where, err));
    DT_TRY(number_or_none(&out->valid_bleu, json, "valid_bleu", where, err));
    out->best_by =
        json_object_get(json, "best_bleu") != NULL ? DT_BEST_BY_VALID_BLEU : DT_BEST_BY_VALID_LOSS;
    out->best_score = out->best_by == DT_BEST_BY_VALID_BLEU ? -bleu : loss;
out:
    return st;
}

dt_status dt_checkpoint_info_parse(dt_checkpoint_info *out, const json_t *json, const char *where,
                                   dt_error *err)
{
    dt_status st = DT_OK;
    const char *format;
    int64_t version;

    DT_TRY(dt_json_get_string(&format, json, "format", where, err));
    DT_TRY(dt_json_get_int(&version, json, "version", where, err));
    if (strcmp(format, DT_CHECKPOINT_FORMAT) != 0 || version != DT_CHECKPOINT_VERSION)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "%s: unsupported format '%.40s' version %lld (expected '%s' version %d)", where,
                 format, (long long)version, DT_CHECKPOINT_FORMAT, DT_CHECKPOINT_VERSION);
    DT_TRY(dt_json_get_string(&out->run, json, "run", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->attempt, json, "attempt", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->step, json, "step", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->epoch, json, "epoch", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->sample, json, "sample", where, err));
    DT_TRY(dt_json_get_number(&out->loss, json, "loss", where, err));
    DT_TRY(dt_json_get_number(&out->valid_loss, json, "valid_loss", where, err));
    DT_TRY(dt_json_get_int_or(&out->steps_total, json, "steps_total", 0, where, err));
    DT_TRY(dt_json_get_int_or(&out->step_samples, json, "step_samples", 0, where, err));
    DT_TRY(best_parse(out, json, where, err));
    DT_TRY(flags_parse(&out->kept_for, &kept_for, json, where, err));
    if (out->kept_for == 0)
        out->kept_for = DT_CHECKPOINT_STEPS;
    DT_TRY(flags_parse(&out->missing, &missing, json, where, err));
    DT_TRY(dt_json_get_string_or(&out->optimizer, json, "optimizer", "adamw", where, err));
    DT_TRY(scaler_parse(out, json, where, err));
    DT_TRY(dt_json_get_object(&out->recipe, json, "recipe", where, err));
    DT_TRY(dt_json_get_object(&out->tokenizer, json, "tokenizer", where, err));
    if (json_object_get(json, "data") != NULL)
        DT_TRY(dt_json_get_object(&out->data, json, "data", where, err));
    if (json_object_get(json, "base") != NULL)
        DT_TRY(dt_json_get_object(&out->base, json, "base", where, err));
out:
    return st;
}
