#include "recipes/read/problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"

enum { LINE_CHARACTERS = 100, BEFORE_CARET = 60 };

void dt_problems_init(dt_problems *problems, dt_arena *arena)
{
    problems->count = problems->errors = 0;
    problems->unwritten = NULL;
    problems->arena = arena;
}

bool dt_problems_full(const dt_problems *problems)
{
    return problems->count == DT_PROBLEMS_MAX;
}

/* --- positions */

static const char *find_line(const char *text, int line)
{
    for (; line > 1; line--) {
        text += strcspn(text, "\r\n");
        if (*text == '\0')
            return NULL;
        text += text[0] == '\r' && text[1] == '\n' ? 2 : 1;
    }
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

/* Returns the bytes of the character, at least one; *shown: whether it is safe for a terminal. */
static size_t take_character(const char *text, size_t left, bool *shown)
{
    uint32_t code = 0;
    size_t bytes = dt_utf8_decode(&code, (const unsigned char *)text, left);

    *shown = bytes > 0 && code >= 0x20 && (code < 0x7f || code >= 0xa0);
    return bytes > 0 ? bytes : 1;
}

/* Returns whether the line may contain a secret, which messages must not repeat (reading.h). */
static bool has_address(const char *line, size_t length)
{
    for (size_t i = 0; i + 2 < length; i++)
        if (strncmp(line + i, "://", 3) == 0)
            return true;
    return false;
}

/* Stores the line for display, or the part around the mark of a long line. */
static void keep_line(dt_problem *problem, const char *text, dt_arena *arena)
{
    const char *line = find_line(text, problem->mark.line);
    int from = problem->mark.column > BEFORE_CARET + 10 ? problem->mark.column - BEFORE_CARET : 1;
    size_t left = line != NULL ? strcspn(line, "\r\n") : 0;
    size_t before; /* bytes before the mark */
    dt_strbuf kept;
    bool shown;

    if (left == 0 || has_address(line, left))
        return;
    dt_strbuf_init(&kept);
    dt_strbuf_add_str(&kept, from > 1 ? "..." : "");
    before = kept.length;
    for (int column = 1; left > 0 && column < from + LINE_CHARACTERS; column++) {
        size_t bytes = take_character(line, left, &shown);

        if (column >= from && shown)
            dt_strbuf_add(&kept, line, bytes);
        else if (column >= from)
            dt_strbuf_add_char(&kept, *line == '\t' ? ' ' : '?');
        if (column < problem->mark.column)
            before = kept.length;
        line += bytes;
        left -= bytes;
    }
    dt_strbuf_add_str(&kept, left > 0 ? "..." : "");
    problem->line = dt_arena_strdup(arena, kept.data);
    problem->caret = (int)dt_display_columns(kept.data, before) + 1;
    dt_strbuf_release(&kept);
}

void dt_problem_write_place(dt_strbuf *out, const dt_problem *problem)
{
    char number[16];

    if (problem->line == NULL)
        return;
    snprintf(number, sizeof(number), "%5d", problem->mark.line);
    dt_strbuf_add_fmt(out, "%s | %s\n", number, problem->line);
    dt_strbuf_add_fmt(out, "%*s | %*s^\n", (int)strlen(number), "", problem->caret - 1, "");
}

/* --- as JSON --- */

static json_t *to_json(const dt_problem *problem)
{
    json_t *object = json_object();

    json_object_set_new(object, "message", dt_json_text(problem->message));
    json_object_set_new(object, "severity", json_string(problem->warning ? "warning" : "error"));
    json_object_set_new(object, "rule", json_string(problem->rule));
    if (problem->mark.source == NULL)
        return object;
    json_object_set_new(object, "source", dt_json_text(problem->mark.source));
    if (problem->mark.line > 0) {
        json_object_set_new(object, "line", json_integer(problem->mark.line));
        json_object_set_new(object, "column", json_integer(problem->mark.column));
    }
    return object;
}

json_t *dt_problems_to_json(const dt_problems *problems)
{
    json_t *array = json_array();

    for (size_t i = 0; i < problems->count; i++)
        json_array_append_new(array, to_json(&problems->items[i]));
    return array;
}

/* --- the list --- */

dt_problem *dt_problems_add(dt_problems *problems, const dt_error *err, const char *rule,
                            bool warning, const dt_problem_source *sources, size_t sources_count)
{
    dt_problem *problem = &problems->items[problems->count];

    if (dt_problems_full(problems))
        return NULL;
    *problem = (dt_problem){.rule = rule, .warning = warning};
    problem->message = dt_arena_strdup(problems->arena, err->message);
    if (problems->unwritten != NULL &&
        dt_text_mark_read(&problem->mark, problem->message, problems->unwritten)) {
        problem->message = dt_text_without_mark(problem->message, &problem->mark);
        problem->mark = (dt_text_mark){0};
    }
    for (size_t i = 0; i < sources_count && problem->mark.source == NULL; i++)
        if (dt_text_mark_read(&problem->mark, problem->message, sources[i].name) &&
            problem->mark.line > 0)
            keep_line(problem, sources[i].text, problems->arena);
    problems->count++;
    problems->errors += !warning;
    return problem;
}

static size_t source_of(const dt_problem *problem, const dt_problem_source *sources, size_t count)
{
    size_t i = 0;

    while (i < count &&
           (problem->mark.source == NULL || strcmp(sources[i].name, problem->mark.source) != 0))
        i++;
    return i;
}

static bool stands_before(const dt_problem *a, const dt_problem *b,
                          const dt_problem_source *sources, size_t count)
{
    size_t first = source_of(a, sources, count), second = source_of(b, sources, count);

    if (first != second)
        return first < second;
    if (a->absent != b->absent)
        return b->absent;
    if (a->mark.line != b->mark.line)
        return a->mark.line < b->mark.line;
    return a->mark.column < b->mark.column;
}

/* Insertion sort: few problems, nearly sorted, and stable for those of one position. */
void dt_problems_sort(dt_problems *problems, const dt_problem_source *sources, size_t sources_count)
{
    for (size_t i = 1; i < problems->count; i++) {
        dt_problem problem = problems->items[i];
        size_t at = i;

        for (; at > 0 && stands_before(&problem, &problems->items[at - 1], sources, sources_count);
             at--)
            problems->items[at] = problems->items[at - 1];
        problems->items[at] = problem;
    }
}

const dt_problem *dt_problems_first(const dt_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        if (!problems->items[i].warning)
            return &problems->items[i];
    return NULL;
}

void dt_problems_be_strict(dt_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        problems->items[i].warning = false;
    problems->errors = problems->count;
}
