#include "runner/view/runs/results.h"

#include <string.h>

/* Adds a text, each line behind "| ". */
static void add_text(dt_strbuf *out, const dt_term *term, const char *text, dt_arena *arena)
{
    for (const char *at = text, *end; at != NULL; at = end != NULL ? end + 1 : NULL) {
        end = strchr(at, '\n');
        dt_term_add(out, term, DT_STYLE_DIM, "  | ");
        dt_term_add(out, term, DT_STYLE_PLAIN, "%s",
                    dt_arena_printf(arena, "%.*s",
                                    (int)(end != NULL ? end - at : (ptrdiff_t)strlen(at)), at));
        dt_strbuf_add_char(out, '\n');
    }
}

static const char *ending_of(const dt_store_sample *sample)
{
    if (strcmp(sample->ended, "end_of_text") == 0)
        return "ended by the model";
    if (strcmp(sample->ended, "tokens") == 0)
        return "cut at the limit";
    return strcmp(sample->ended, "not_finite") == 0 ? "the outputs were not finite" : sample->ended;
}

void dt_samples_add(dt_strbuf *out, const dt_term *term, const dt_store_sample *samples,
                    int64_t count, dt_arena *arena)
{
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || samples[i].step != samples[i - 1].step)
            dt_term_add(out, term, DT_STYLE_BOLD, "step %lld\n\n", (long long)samples[i].step);
        dt_term_add(out, term, DT_STYLE_PLAIN, "  %s\n",
                    samples[i].prompt[0] != '\0' ? samples[i].prompt : "(empty prompt)");
        add_text(out, term, samples[i].text, arena);
        dt_term_add(out, term, DT_STYLE_DIM, "  %lld token%s, %s\n\n", (long long)samples[i].tokens,
                    samples[i].tokens == 1 ? "" : "s", ending_of(&samples[i]));
    }
}

json_t *dt_samples_to_json(const dt_store_sample *samples, int64_t count)
{
    json_t *out = json_array();

    for (int64_t i = 0; i < count; i++)
        json_array_append_new(
            out, json_pack("{s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "attempt",
                           (json_int_t)samples[i].attempt, "step", (json_int_t)samples[i].step,
                           "time_ms", (json_int_t)samples[i].time_ms, "index",
                           (json_int_t)samples[i].place, "prompt", dt_json_text(samples[i].prompt),
                           "text", dt_json_text(samples[i].text), "tokens",
                           (json_int_t)samples[i].tokens, "ended", dt_json_text(samples[i].ended)));
    return out;
}
