/* fuzz_convert: any bytes as a command line, as a script of Slurm or as a file of Python's assignments (ways.h). They
 * are refused with a message, or become a recipe that the reader accepts or refuses with a message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/text.h"
#include "recipes/read/reader.h"
#include "runner/convert/convert_int.h"
#include "runner/convert/tool.h"
#include "tests/fuzz/ways.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_refused(dt_status st, const dt_error *err)
{
    DT_ASSERT(st == DT_ERR_USAGE || st == DT_ERR_IO || st == DT_ERR_NOT_FOUND ||
              st == DT_ERR_UNSUPPORTED); /* the last three: a file that the input names */
    DT_ASSERT(err->code == st && err->message[0] != '\0' && dt_text_is_utf8(err->message));
}

/* The result is YAML in any case; whether it is a recipe depends on the numbers in it. */
static void check_draft(dt_draft *draft, dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;
    dt_recipe_source source = {.path = "/r/imported.yaml"};
    dt_problems problems;
    dt_recipe recipe;
    dt_strbuf text;

    dt_draft_account(draft);
    dt_strbuf_init(&text);
    dt_problems_init(&problems, arena);
    dt_draft_write(&text, draft);
    DT_ASSERT(dt_text_is_utf8(text.data));
    source.text = text.data;
    (void)dt_recipe_read_all(&recipe, &source, &problems, arena, &err);
    for (size_t i = 0; i < problems.count; i++)
        DT_ASSERT(strcmp(problems.items[i].rule, "syntax") != 0);
    dt_strbuf_release(&text);
}

static void try_tool(const char *text, size_t size, const dt_convert_tool *tool)
{
    const dt_convert_tool *found = NULL;
    dt_error err = DT_ERROR_INIT;
    dt_script script;
    dt_draft draft;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_script_init(&script, "script", &arena);
    dt_draft_init(&draft, "it", &arena);
    st = dt_script_read(&script, text, size, &err);
    if (st == DT_OK)
        st = dt_tools_convert(&found, &draft, &script, NULL, tool, NULL, &err);
    if (st != DT_OK)
        check_refused(st, &err);
    else if (found != NULL)
        check_draft(&draft, &arena);
    dt_arena_release(&arena);
}

static void try_command(const char *text, size_t size)
{
    try_tool(text, size, &dt_tool_command);
}

static void try_fairseq(const char *text, size_t size)
{
    try_tool(text, size, &dt_tool_fairseq);
}

static void try_llmc(const char *text, size_t size)
{
    try_tool(text, size, &dt_tool_llmc);
}

static void try_slurm(const char *text, size_t size)
{
    dt_error err = DT_ERROR_INIT;
    dt_draft draft;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_draft_init(&draft, "slurm", &arena);
    st = dt_slurm_convert(&draft, text, size, "job.sh", NULL, &err);
    if (st != DT_OK)
        check_refused(st, &err);
    else
        check_draft(&draft, &arena);
    dt_arena_release(&arena);
}

static void try_python(const char *text, size_t size)
{
    dt_error err = DT_ERROR_INIT;
    dt_python_file file;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_python_init(&file, &arena);
    st = dt_python_read(&file, text, size, "config.py", &err);
    if (st != DT_OK)
        check_refused(st, &err);
    for (size_t i = 0; i < file.count; i++) {
        const dt_python_statement *s = &file.statements[i];

        DT_ASSERT(s->line > 0 && s->shown != NULL && strchr(s->shown, '\n') == NULL);
        if (s->value.kind != DT_PYTHON_UNKNOWN)
            DT_ASSERT(s->name != NULL && dt_python_text(&s->value, &arena) != NULL);
    }
    dt_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void (*const ways[])(const char *, size_t) = {try_fairseq, try_llmc, try_slurm,
                                                         try_python, try_command};
    fuzz_ways taken = fuzz_ways_of(bytes, size, sizeof(ways) / sizeof(ways[0]));
    char *text = malloc(size + 1);

    DT_ASSERT(text != NULL);
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    for (size_t i = taken.first; i < taken.end; i++)
        ways[i](text, size);
    free(text);
    return 0;
}
