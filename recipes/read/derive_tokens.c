/* derive_tokens: sets the type of token ids from the index of the training files (recipes/read/reading.h). */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/foreign/databin.h"
#include "recipes/read/reading.h"

/* Looks at the first match of a pattern; *out is empty without a match. */
static void look_beside(dt_databin *out, dt_status *st, const char *item, dt_error *err)
{
    glob_t found = {0};

    *out = (dt_databin){.kind = DT_TOKENS_AUTO};
    if (strstr(item, "://") != NULL)
        return;
    if (strpbrk(item, "*?[") == NULL)
        *st = dt_databin_look(out, item, err);
    else if (glob(item, 0, NULL, &found) == 0 && found.gl_pathc > 0)
        *st = dt_databin_look(out, found.gl_pathv[0], err);
    globfree(&found);
}

static void derive_text(dt_reading *reading, const char *path, const char *text)
{
    DT_ASSERT(dt_field_set_text(reading->recipe, dt_field_find(path), text, NULL) == DT_OK);
    dt_reading_derived(reading, path, text, "data.train");
}

static dt_status derive(dt_reading *reading)
{
    dt_databin found;
    dt_status st = DT_OK;
    char vocab[32];

    look_beside(&found, &st, reading->recipe->data.train.items[0], reading->err);
    if (st != DT_OK) {
        dt_text_mark_prefix(reading->err, dt_reading_mark(reading, "data.train"));
        return st;
    }
    if (found.kind == DT_TOKENS_AUTO)
        return DT_OK;
    derive_text(reading, "data.tokens", dt_databin_word(found.kind));
    if (found.vocab > 0 && !dt_reading_given(reading, "model.vocab")) {
        snprintf(vocab, sizeof(vocab), "%lld", (long long)found.vocab);
        derive_text(reading, "model.vocab", vocab);
    }
    return DT_OK;
}

dt_status dt_reading_derive_tokens(dt_reading *reading)
{
    const dt_recipe *recipe = reading->recipe;
    dt_status st;

    if (recipe->data.train.count == 0 || dt_reading_given(reading, "data.tokens") ||
        reading->troubled[dt_reading_row("data.train")])
        return DT_OK;
    st = derive(reading);
    if (st == DT_OK)
        return DT_OK;
    dt_reading_trouble(reading, "data.train");
    return dt_reading_report(reading, st, "data");
}
