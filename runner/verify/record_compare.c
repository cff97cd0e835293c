/* record_compare: compares two lines of records, and says what differs. */
#include <stdlib.h>
#include <string.h>

#include "runner/verify/record_file.h"

/* --- one line */

/* The next field of a line, up to a space or the end. */
static bool next_field(const char **at, const char **field, size_t *length)
{
    *at += strspn(*at, " ");
    *field = *at;
    *length = strcspn(*at, " ");
    *at += *length;
    return *length > 0;
}

static bool is_unknown(const char *field, size_t length)
{
    return length == 1 && field[0] == '-';
}

static bool same_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
    return is_unknown(a, a_length) || is_unknown(b, b_length) ||
           (a_length == b_length && memcmp(a, b, a_length) == 0);
}

/* Which digest of a piece differs first: 0 the value, 1 the gradient, 2 and more the moments; -1: none. `gradient`: only
 * look at the gradient, else at all others. */
static int piece_difference(const char *a, size_t a_length, const char *b, size_t b_length,
                            bool gradient)
{
    const char *a_end = a + a_length, *b_end = b + b_length;

    for (int which = 0; a < a_end && b < b_end; which++) {
        const char *a_dot = memchr(a, '.', (size_t)(a_end - a));
        const char *b_dot = memchr(b, '.', (size_t)(b_end - b));
        const char *a_stop = a_dot != NULL ? a_dot : a_end, *b_stop = b_dot != NULL ? b_dot : b_end;

        if ((which == 1) == gradient &&
            !same_text(a, (size_t)(a_stop - a), b, (size_t)(b_stop - b)))
            return which;
        a = a_stop + 1;
        b = b_stop + 1;
    }
    return -1;
}

/* Names piece `index` of the step's round. */
static void name_piece(dt_difference *out, const json_t *header, int64_t index, dt_arena *arena)
{
    const json_t *rounds = json_object_get(header, "rounds"), *piece;
    size_t count = json_array_size(rounds);
    size_t round = count > 0 && out->step > 0 ? (size_t)(out->step - 1) % count : 0;
    const char *name;

    piece = json_array_get(json_array_get(rounds, round), (size_t)index);
    name = json_string_value(json_array_get(piece, 0));
    out->name = dt_arena_strdup(arena, name != NULL ? name : "");
    out->first = json_integer_value(json_array_get(piece, 1));
    out->elems = json_integer_value(json_array_get(piece, 2));
}

/* Looks at the pieces: their gradients, or the rest. */
static bool compare_pieces(dt_difference *out, const char *a, const char *b, const json_t *header,
                           bool gradient, dt_arena *arena)
{
    const char *a_field, *b_field;
    size_t a_length, b_length;

    for (int64_t i = 0; next_field(&a, &a_field, &a_length) && next_field(&b, &b_field, &b_length);
         i++) {
        int which = piece_difference(a_field, a_length, b_field, b_length, gradient);

        if (which < 0)
            continue;
        out->kind = which == 0   ? DT_DIFFERENT_VALUE
                    : which == 1 ? DT_DIFFERENT_GRADIENT
                                 : DT_DIFFERENT_MOMENT;
        out->moment = which - 2;
        name_piece(out, header, i, arena);
        return true;
    }
    return false;
}

dt_status dt_record_line_compare(dt_difference *out, const dt_record_line *a,
                                 const dt_record_line *b, const json_t *header, dt_arena *arena,
                                 dt_error *err)
{
    /* the fields before the pieces */
    static const dt_difference_kind kinds[] = {DT_DIFFERENT_INPUT, DT_DIFFERENT_LOSSES,
                                               DT_DIFFERENT_SENT, DT_DIFFERENT_NORM,
                                               DT_DIFFERENT_LOSS};
    enum { FIELDS = sizeof(kinds) / sizeof(kinds[0]) };
    const char *a_at = a->text, *b_at = b->text, *a_field, *b_field;
    bool differs[FIELDS];
    size_t a_length, b_length;

    *out = (dt_difference){
        .kind = DT_DIFFERENT_NOTHING, .step = a->step, .position = a->position, .name = ""};
    for (int i = 0; i < FIELDS; i++) {
        if (!next_field(&a_at, &a_field, &a_length) || !next_field(&b_at, &b_field, &b_length))
            return DT_FAIL(err, DT_ERR_CORRUPT, "the line of step %lld of a record is incomplete",
                           (long long)a->step);
        differs[i] = !same_text(a_field, a_length, b_field, b_length);
    }
    for (int i = 0; i < FIELDS; i++) {
        if (kinds[i] == DT_DIFFERENT_NORM && compare_pieces(out, a_at, b_at, header, true, arena))
            return DT_OK;
        if (differs[i]) {
            out->kind = kinds[i];
            return DT_OK;
        }
    }
    (void)compare_pieces(out, a_at, b_at, header, false, arena);
    return DT_OK;
}

/* --- all ranks */

/* A difference earlier in the chain of cause and effect comes first. */
static bool is_before(const dt_difference *a, const dt_difference *b)
{
    if (b->kind == DT_DIFFERENT_NOTHING)
        return true;
    return a->step != b->step ? a->step < b->step : a->kind < b->kind;
}

static bool is_within(const dt_record_span *span, const dt_record_line *line)
{
    return line->step > span->after && line->step <= span->until;
}

dt_status dt_records_compare(dt_records_compared *out, const dt_record_file *recorded,
                             const dt_record_file *replayed, int64_t ranks,
                             const dt_record_span *span, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    out->first.name = "";
    for (int64_t rank = 0; rank < ranks; rank++)
        for (int64_t i = 0; i < recorded[rank].count; i++) {
            const dt_record_line *line = &recorded[rank].lines[i], *other;
            dt_difference found;

            if (!is_within(span, line))
                continue;
            out->recorded++;
            other = dt_record_file_find(&replayed[rank], line);
            if (other == NULL)
                continue;
            DT_TRY(dt_record_line_compare(&found, line, other, recorded[rank].header, arena, err));
            found.rank = rank;
            if (found.kind == DT_DIFFERENT_NOTHING)
                out->equal++;
            else if (is_before(&found, &out->first))
                out->first = found;
        }
out:
    return st;
}

/* --- words */

const char *dt_difference_text(const dt_difference *difference, dt_arena *arena)
{
    static const char *const things[] = {
        [DT_DIFFERENT_NOTHING] = "nothing",
        [DT_DIFFERENT_INPUT] = "the input",
        [DT_DIFFERENT_LOSSES] = "the loss that this rank computed, before the ranks added theirs",
        [DT_DIFFERENT_SENT] = "a gradient that this rank computed and sent",
        [DT_DIFFERENT_NORM] = "the gradient norm",
        [DT_DIFFERENT_LOSS] = "the loss of all ranks",
    };
    static const char *const parts[] = {[DT_DIFFERENT_GRADIENT] = "the summed gradient",
                                        [DT_DIFFERENT_VALUE] = "the value",
                                        [DT_DIFFERENT_MOMENT] = "a moment"};
    long long first = difference->first, end = difference->first + difference->elems;

    if (difference->name[0] != '\0')
        return dt_arena_printf(
            arena, "step %lld, rank %lld: %s%s of '%s', in elements %lld to %lld",
            (long long)difference->step, (long long)difference->rank, parts[difference->kind],
            difference->kind != DT_DIFFERENT_MOMENT ? ""
            : difference->moment == 0               ? " (the first)"
                                                    : " (the second)",
            difference->name, first, end - 1);
    return dt_arena_printf(arena, "step %lld, rank %lld: %s", (long long)difference->step,
                           (long long)difference->rank, things[difference->kind]);
}

/* --- headers */

bool dt_record_headers_match(const char **why, const json_t *a, const json_t *b, dt_arena *arena)
{
    static const char *const keys[] = {"version",   "ranks",      "rank",    "seed", "device",
                                       "processor", "arithmetic", "threads", "mesh", "nodes",
                                       "strategy",  "precision",  "rounds"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *was = json_object_get(a, keys[i]), *is = json_object_get(b, keys[i]);
        char *was_text, *is_text;

        if (json_equal(was, is))
            continue;
        was_text = json_dumps(was, JSON_ENCODE_ANY | JSON_COMPACT);
        is_text = json_dumps(is, JSON_ENCODE_ANY | JSON_COMPACT);
        *why = strcmp(keys[i], "rounds") == 0
                   ? "the record covers other parts of the parameters in a step"
                   : dt_arena_printf(arena, "%s was %s, is %s", keys[i],
                                     was_text != NULL ? was_text : "unknown",
                                     is_text != NULL ? is_text : "unknown");
        free(was_text);
        free(is_text);
        return false;
    }
    return true;
}
