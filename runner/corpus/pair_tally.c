/* pair_tally: counts the sentence pairs that were read and left out. */
#include "runner/corpus/pairs_int.h"

void dt_pair_tally_broken(dt_pair_tally *out, const char *path, int64_t line, const char *why)
{
    if (out->broken++ < DT_PAIRS_NAMED)
        dt_strbuf_add_fmt(&out->broken_words, "%s%s:%lld (%s)", out->broken > 1 ? ", " : "", path,
                          (long long)line, why);
}

/* Passes a pair to the sink and counts it. `paths`: the file of each side, or one file and NULL. */
dt_status dt_pair_tally_add(dt_pair_tally *out, const dt_pair_text *pair, const char *const *paths,
                            int64_t line, const dt_pair_sink *sink, dt_error *err)
{
    static const char *const sides[] = {"source", "target"};
    dt_language side = DT_SOURCE;
    bool empty = false;
    dt_status st = sink->add_text(sink->context, pair, &side, &empty, err);
    const char *path = paths[side] != NULL ? paths[side] : paths[0];

    if (st == DT_ERR_USAGE) {
        dt_error_prefix(err, "%s:%lld: the %s", path, (long long)line, sides[side]);
        if (err != NULL)
            err->code = DT_ERR_RECIPE;
        return DT_ERR_RECIPE;
    }
    if (st != DT_OK)
        return st;
    if (empty) {
        dt_pair_tally_broken(out, path, line,
                             paths[1] != NULL    ? "it is empty"
                             : side == DT_SOURCE ? "the source is empty"
                                                 : "the target is empty");
        return DT_OK;
    }
    out->pairs++;
    out->bytes += (int64_t)(pair->length[0] + pair->length[1]);
    return DT_OK;
}
