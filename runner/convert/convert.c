/* convert: runs dtrun import fairseq, llm.c, nanogpt, slurm and command. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/read/reader.h"
#include "runner/cli/report.h"
#include "runner/convert/convert_int.h"
#include "runner/convert/tool.h"

#define SCRIPT_MOST ((size_t)1 << 20)
#define SLURM       "slurm"

static const dt_convert_tool *find_tool(const char *name)
{
    for (size_t i = 0; dt_convert_tools[i] != NULL; i++)
        if (strcmp(dt_convert_tools[i]->name, name) == 0)
            return dt_convert_tools[i];
    return NULL;
}

bool dt_convert_knows(const char *name)
{
    return strcmp(name, SLURM) == 0 || find_tool(name) != NULL;
}

/* --- the input --- */

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Reads the script. A single word is "-" for stdin, a whole command line, or the name of a file. */
static dt_status read_script(dt_strbuf *out, const char **source, const char *word, dt_error *err)
{
    *source = word;
    if (strcmp(word, "-") == 0) {
        *source = "stdin";
        return dt_file_read_fd(out, STDIN_FILENO, "stdin", SCRIPT_MOST, err);
    }
    if (strpbrk(word, " \t\n") != NULL && !dt_file_exists(word)) {
        *source = "the command line";
        dt_strbuf_add_str(out, word);
        return DT_OK;
    }
    if (is_folder(word))
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "'%s' is a folder, not a command line: give the command that trained on it, or "
            "'dtrun init %s' for a recipe of the text in it",
            word, word);
    return dt_file_read(out, word, SCRIPT_MOST, err);
}

/* Adds the words of the command. For nanoGPT, "train.py" may be missing before its files and
 * options. */
static dt_status take_words(dt_script *script, const dt_convert_tool *tool, char **words, int count,
                            dt_error *err)
{
    size_t length = strlen(words[0]);
    bool file = length > 3 && strcmp(words[0] + length - 3, ".py") == 0 &&
                strcmp(dt_launcher_name(words[0]), "train.py") != 0;
    char **all = dt_arena_alloc_array(script->arena, (size_t)count + 1, sizeof(all[0]));
    size_t at = 0;

    if (tool == &dt_tool_nanogpt && (file || words[0][0] == '-'))
        all[at++] = (char *)"train.py";
    memcpy(all + at, words, (size_t)count * sizeof(all[0]));
    return dt_script_take(script, all, at + (size_t)count, err);
}

static bool is_one_script(const dt_convert_tool *tool, char **words, int count)
{
    size_t length = strlen(words[0]);

    return count == 1 && (strcmp(words[0], "-") == 0 || words[0][0] != '-') &&
           (tool != &dt_tool_nanogpt || length < 3 || strcmp(words[0] + length - 3, ".py") != 0);
}

/* Converts "sbatch OPTIONS SCRIPT": the options replace those of the script. */
static dt_status convert_sbatch(dt_draft *draft, char **words, int count, dt_error *err)
{
    dt_shell_command all = {0}, options = {0};
    dt_status st = DT_OK;
    const char *source;
    dt_flags flags;
    dt_strbuf text;
    dt_script line;

    dt_strbuf_init(&text);
    dt_script_init(&line, "the command line", draft->arena);
    DT_TRY(dt_script_take(&line, words + 1, (size_t)count - 1, err));
    all = line.command;
    DT_TRY(dt_flags_read(&flags, &dt_slurm_flags, all.words, all.count, draft, err));
    for (size_t i = 0; i < flags.taken; i++)
        DT_TRY(dt_shell_add_word(&options, &all.words[i], draft->arena, err));
    if (flags.taken + 1 != all.count)
        DT_THROW(err, DT_ERR_USAGE, "'sbatch' takes one SCRIPT without arguments");
    DT_TRY(read_script(&text, &source, all.words[flags.taken].text, err));
    DT_TRY(dt_slurm_convert(draft, text.length > 0 ? text.data : "", text.length, source, &options,
                            err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status convert_words(dt_draft *draft, const dt_convert_tool *tool, char **words,
                               int count, const dt_shell_words *exported, const char *folder,
                               dt_error *err)
{
    const dt_convert_tool *found;
    dt_script script;
    dt_status st = DT_OK;

    if (tool == &dt_tool_command && count > 1 && strcmp(dt_launcher_name(words[0]), "sbatch") == 0)
        return convert_sbatch(draft, words, count, err);
    dt_script_init(&script, "the command line", draft->arena);
    script.folder = folder;
    if (exported != NULL)
        script.exported = *exported;
    DT_TRY(take_words(&script, tool, words, count, err));
    DT_TRY(dt_tools_convert(&found, draft, &script, NULL, tool, NULL, err));
    if (found == NULL)
        DT_THROW(err, DT_ERR_USAGE, "cannot find a %s%s", tool->what,
                 tool->hint != NULL ? tool->hint : "");
out:
    return st;
}

static dt_status make_draft(dt_draft *draft, const dt_convert_tool *tool, char **words, int count,
                            dt_error *err)
{
    const dt_convert_tool *found;
    const char *source, *text;
    dt_script script;
    dt_status st = DT_OK;
    dt_strbuf given;

    if (count == 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "a command line is missing: '%s -- COMMAND', or a FILE with it",
                       draft->title);
    if (tool == NULL && count != 1)
        return DT_FAIL(err, DT_ERR_USAGE, "'slurm' takes one SCRIPT");
    if (tool != NULL && !is_one_script(tool, words, count))
        return convert_words(draft, tool, words, count, NULL, NULL, err);
    dt_strbuf_init(&given);
    DT_TRY(read_script(&given, &source, words[0], err));
    text = given.length > 0 ? given.data : "";
    if (tool == NULL) {
        DT_TRY(dt_slurm_convert(draft, text, given.length, source, NULL, err));
        goto out;
    }
    dt_script_init(&script, source, draft->arena);
    DT_TRY(dt_script_read(&script, text, given.length, err));
    DT_TRY(dt_tools_convert(&found, draft, &script, NULL, tool, NULL, err));
    if (found == NULL)
        DT_THROW(err, DT_ERR_USAGE, "cannot find a %s%s", tool->what,
                 tool->hint != NULL ? tool->hint : "");
out:
    dt_strbuf_release(&given);
    return st;
}

/* --- the output --- */

/* Checks that the generated recipe parses. Skips a layer, which is not a complete recipe. */
static dt_status check(const dt_draft *draft, const char *path, const char *text, dt_error *err)
{
    dt_recipe_source source = {.path = path, .text = text, .unwritten = true};
    dt_recipe recipe;
    dt_status st;

    if (draft->is_layer)
        return DT_OK;
    st = dt_recipe_read(&recipe, &source, draft->arena, err);
    if (st != DT_OK)
        dt_error_prefix(err, "the converted recipe is invalid");
    return st;
}

static json_t *remarks_to_json(const dt_draft_remarks *remarks)
{
    json_t *list = json_array();

    for (size_t i = 0; i < remarks->count; i++) {
        json_t *item = json_object();

        json_object_set_new(item, "about", dt_json_text(remarks->items[i].about));
        json_object_set_new(item, "text", dt_json_text(remarks->items[i].text));
        json_array_append_new(list, item);
    }
    return list;
}

static void tell(const dt_call *call, const dt_draft *draft, const char *path)
{
    for (size_t i = 0; i < draft->left.count; i++)
        dt_report_note(call, "not carried: %s: %s", draft->left.items[i].about,
                       draft->left.items[i].text);
    for (size_t i = 0; i < draft->notes.count; i++)
        dt_report_note(call, "%s: %s", draft->notes.items[i].about, draft->notes.items[i].text);
    if (path != NULL && !draft->is_layer)
        dt_report_note(call, "wrote %s; its data were not checked: 'dtrun validate %s' checks them",
                       path, path);
}

static dt_status give(const dt_call *call, const dt_draft *draft, const dt_strbuf *text,
                      const char *path, dt_error *err)
{
    json_t *object;

    if (path != NULL) {
        dt_status st = dt_file_write_atomic(path, text->data, text->length, 0644, err);

        if (st != DT_OK)
            return st;
    }
    tell(call, draft, path);
    if (!call->json)
        return path == NULL ? dt_report_text(text, err) : DT_OK;
    object = dt_report_object();
    json_object_set_new(object, "recipe", dt_json_text(text->data));
    json_object_set_new(object, "layer", json_boolean(draft->is_layer));
    json_object_set_new(object, "not_carried", remarks_to_json(&draft->left));
    json_object_set_new(object, "same", remarks_to_json(&draft->same));
    json_object_set_new(object, "notes", remarks_to_json(&draft->notes));
    return dt_report_json(object, err);
}

/* Prints the table as {"flags": [{"name": "--lr", "also": null, "takes": "text", "carried": true,
 * "into": "optimizer.lr"}]}. */
static dt_status describe_json(const dt_flag_table *table, dt_error *err)
{
    static const char *const takes[] = {[DT_TAKES_NOTHING] = "nothing",
                                        [DT_TAKES_BOOL] = "bool",
                                        [DT_TAKES_INT] = "int",
                                        [DT_TAKES_NUMBER] = "number",
                                        [DT_TAKES_TEXT] = "text"};
    json_t *object = dt_report_object(), *list = json_array();

    for (size_t i = 0; i < table->count; i++) {
        const dt_flag *flag = &table->flags[i];

        json_array_append_new(list,
                              json_pack("{s:s, s:s?, s:s, s:b, s:s}", "name", flag->name, "also",
                                        flag->also, "takes", takes[flag->takes], "carried",
                                        flag->fate != DT_FLAG_LEFT, "into", flag->into));
    }
    json_object_set_new(object, "flags", list);
    return dt_report_json(object, err);
}

static dt_status describe(const dt_call *call, const dt_convert_tool *tool, dt_error *err)
{
    const dt_flag_table *table = tool != NULL ? tool->flags : &dt_slurm_flags;
    dt_strbuf text;
    dt_status st;

    if (call->json)
        return describe_json(table, err);
    dt_strbuf_init(&text);
    dt_flags_describe(&text, table);
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* Converts a draft that has its command to the text of a recipe. */
static dt_status write_draft(dt_strbuf *text, dt_draft *draft, const char *path, dt_error *err)
{
    dt_draft_account(draft);
    dt_draft_write(text, draft);
    return check(draft, path != NULL ? path : "imported.yaml", text->data, err);
}

/* --- recorded commands */

/* Returns true for a command that asks Slurm's nodes something, such as "srun hostname". */
static bool only_asks(const dt_record *record)
{
    for (int i = 1; i < record->count && strcmp(record->words[0], "srun") == 0; i++)
        if (strcmp(record->words[i], "hostname") == 0 ||
            strcmp(record->words[i], "nvidia-smi") == 0)
            return true;
    return false;
}

/* Returns FILE-2.yaml for the second of several recipes. */
static const char *numbered(const char *path, size_t number, size_t count, dt_arena *arena)
{
    const char *dot = path != NULL ? strrchr(dt_launcher_name(path), '.') : NULL;

    if (path == NULL || count == 1)
        return path;
    dot = dot != NULL ? dot : path + strlen(path);
    return dt_arena_printf(arena, "%.*s-%zu%s", (int)(dot - path), path, number, dot);
}

static dt_status give_record(dt_call *call, const dt_record *record, size_t number, size_t count,
                             dt_error *err)
{
    const char *path =
        numbered(dt_arguments_get(call->args, "output")->text, number, count, call->arena);
    dt_status st = DT_OK;
    dt_strbuf text, line;
    dt_draft draft;

    dt_strbuf_init(&text);
    dt_draft_init(&draft, "--record", call->arena);
    if (path != NULL && dt_file_exists(path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' already exists: remove it, or give another name", path);
    DT_TRY(convert_words(&draft, &dt_tool_command, record->words, record->count, &record->changed,
                         record->folder, err));
    DT_TRY(write_draft(&text, &draft, path, err));
    if (path == NULL && !call->json && number > 1) {
        dt_strbuf_init(&line);
        dt_strbuf_add_str(&line, "---\n");
        st = dt_report_text(&line, err);
        dt_strbuf_release(&line);
    }
    DT_TRY(st);
    DT_TRY(give(call, &draft, &text, path, err));
out:
    if (st != DT_OK && count > 1)
        dt_error_prefix(err, "command %zu of %zu (%s)", number, count, record->words[0]);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_convert_record(dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    dt_records records;
    size_t kept = 0;

    DT_TRY(dt_record_run(&records, call->args->operands, call->args->operands_count, call, err));
    for (size_t i = 0; i < records.count; i++) {
        if (only_asks(&records.items[i]))
            dt_report_note(call, "left out, it trains nothing: srun ... hostname or nvidia-smi");
        else
            records.items[kept++] = records.items[i];
    }
    if (kept == 0)
        DT_THROW(err, DT_ERR_USAGE, "the script starts no training");
    if (kept > 1 && call->json)
        DT_THROW(err, DT_ERR_USAGE, "the script starts %zu trainings: --json prints one", kept);
    if (kept > 1)
        dt_report_note(call, "the script starts %zu trainings, each with a recipe", kept);
    for (size_t i = 0; i < kept; i++)
        DT_TRY(give_record(call, &records.items[i], i + 1, kept, err));
out:
    return st;
}

dt_status dt_convert(dt_call *call, dt_error *err)
{
    const dt_arguments *args = call->args;
    const dt_convert_tool *tool = find_tool(args->operands[0]);
    const char *path = dt_arguments_get(args, "output")->text;
    const char *as = dt_arguments_get(args, "as")->text;
    dt_status st = DT_OK;
    dt_draft draft;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (as != NULL && (strcmp(as, "command") != 0 || tool == NULL))
        DT_THROW(err, DT_ERR_USAGE, "unsupported --as '%s' of 'import %s' (expected 'command')", as,
                 args->operands[0]);
    if (as != NULL)
        tool = &dt_tool_command;
    if (dt_arguments_flag(args, "flags"))
        return describe(call, tool, err);
    dt_draft_init(&draft, args->operands[0], call->arena);
    if (path != NULL && dt_file_exists(path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' already exists: remove it, or give another name", path);
    DT_TRY(make_draft(&draft, tool, args->operands + 1, args->operands_count - 1, err));
    DT_TRY(write_draft(&text, &draft, path, err));
    DT_TRY(give(call, &draft, &text, path, err));
out:
    dt_strbuf_release(&text);
    return st;
}
