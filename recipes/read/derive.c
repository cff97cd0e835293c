/* derive: sets defaults that depend on other fields (recipes/read/reading.h); derive_weights.c has those of
 * model.from. */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/fields/nodes.h"
#include "recipes/fields/presets.h"
#include "recipes/fields/values.h"
#include "recipes/foreign/databin.h"
#include "recipes/read/reading.h"

/* --- the type of token ids, from the index of the training files */

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

/* The part of dt_reading_derive for fairseq's .idx of the training files: width of the ids and size of the
 * vocabulary. */
static dt_status reading_derive_tokens(dt_reading *reading)
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

/* --- the fields of a recipe with a command */

/* Characters that mean something to a shell, and would be passed on as they are. */
#define OF_A_SHELL "|&;<>()$`"

/* A field that is a command, or the words that continue one, written as text. */
typedef struct text_field {
    dt_reading *reading;
    const char *path;
    const dt_yaml_node *node;
} text_field;

static dt_status refuse(const text_field *field, const char *message)
{
    DT_FAIL(field->reading->err, DT_ERR_RECIPE, "'%s' has %s", field->path, message);
    dt_text_mark_prefix(field->reading->err, &field->node->mark);
    dt_reading_trouble(field->reading, field->path);
    return DT_ERR_RECIPE;
}

/* Reads a quoted part of a word, from the quote on. Returns its end; NULL: the quote is not closed. In double
 * quotes a backslash escapes a quote and itself. */
static const char *read_quoted(dt_strbuf *word, const char *at)
{
    char quote = *at++;

    for (; *at != '\0' && *at != quote; at++) {
        if (quote == '"' && at[0] == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        dt_strbuf_add_char(word, *at);
    }
    return *at == quote ? at + 1 : NULL;
}

/* Reads a word into `word`, with quotes as in a shell. Returns its end. */
static dt_status read_word(dt_strbuf *word, const char **io, const text_field *field)
{
    const char *at = *io;

    dt_strbuf_reset(word);
    while (*at != '\0' && strchr(" \t\n", *at) == NULL) {
        if (*at == '\'' || *at == '"') {
            at = read_quoted(word, at);
            if (at == NULL)
                return refuse(field, "a quote that is not closed");
            continue;
        }
        if (strchr(OF_A_SHELL, *at) != NULL)
            return refuse(field, dt_arena_printf(field->reading->arena,
                                                 "'%c', which only a shell understands: set "
                                                 "'shell: true', or put it in quotes",
                                                 *at));
        if (at[0] == '\\' && at[1] != '\0')
            at++;
        dt_strbuf_add_char(word, *at++);
    }
    *io = at;
    return DT_OK;
}

/* Splits the text into words. */
static dt_status split(dt_string_list *out, const text_field *field)
{
    const char *at = field->node->text, **items;
    dt_arena *arena = field->reading->arena;
    dt_status st = DT_OK;
    dt_strbuf word;

    dt_strbuf_init(&word);
    items = dt_arena_alloc_array(arena, strlen(at) / 2 + 2, sizeof(*items));
    *out = (dt_string_list){items, 0};
    for (at += strspn(at, " \t\n"); *at != '\0'; at += strspn(at, " \t\n")) {
        DT_TRY(read_word(&word, &at, field));
        items[out->count++] = dt_arena_strndup(arena, word.data, word.length);
    }
out:
    dt_strbuf_release(&word);
    return st;
}

/* Sets the words of a field that was written as text; a list has them already. */
static dt_status derive_words(dt_string_list *out, dt_reading *reading, const char *path)
{
    const text_field field = {reading, path, reading->node[dt_reading_row(path)]};

    if (field.node == NULL || field.node->kind != DT_YAML_SCALAR || reading->recipe->shell ||
        reading->troubled[dt_reading_row(path)])
        return DT_OK;
    return split(out, &field);
}

/* Sets the folder in which the command runs: that of the recipe. */
static dt_status derive_folder(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;

    if (recipe->workdir.folder[0] != '\0')
        return DT_OK;
    recipe->workdir.folder = dt_arena_strdup(reading->arena, reading->recipe_folder);
    dt_reading_derived(reading, "workdir.folder", recipe->workdir.folder, "command");
    return DT_OK;
}

/* The part of dt_reading_derive for commands: the task, the words of the command, and its folder. */
static dt_status reading_derive_command(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    dt_status st = DT_OK;

    if (!dt_reading_given(reading, "task") && dt_reading_given(reading, "command")) {
        recipe->task = DT_TASK_COMMAND;
        dt_reading_derived(reading, "task", "command", "command");
    }
    /* the rule "command" refuses another task */
    if (recipe->task != DT_TASK_COMMAND || reading->troubled[dt_reading_row("command")])
        return DT_OK;
    if (!dt_reading_given(reading, "failure.max_restarts") && recipe->checkpoints.path[0] == '\0') {
        /* only the program knows whether it can continue where it ended */
        recipe->failure.max_restarts = 0;
        dt_reading_derived(reading, "failure.max_restarts", "0", "command");
    }
    if (!dt_reading_given(reading, "failure.hang_seconds")) {
        /* only the user knows how long the program may be quiet */
        recipe->failure.hang_seconds = 0;
        dt_reading_derived(reading, "failure.hang_seconds", "0", "command");
    }
    st = derive_words(&recipe->command, reading, "command");
    DT_TRY(dt_reading_report(reading, st, "value"));
    st = derive_words(&recipe->resume, reading, "resume");
    DT_TRY(dt_reading_report(reading, st, "value"));
    DT_TRY(derive_folder(reading));
out:
    return st;
}

/* --- all recipes */

/* Marks a derived field as given, at the mark of the field it derives from. */
static void derived_from(dt_reading *reading, const char *path, const char *from)
{
    reading->field[dt_reading_row(path)] = *dt_reading_mark(reading, from);
}

/* Sets a value that follows from `from` if the recipe leaves it out. On an earlier recipe (which has all
 * fields) a `from` that is set again sets its values again. */
static void derive_value(dt_reading *reading, const char *path, const char *text, const char *from)
{
    const char *source = reading->field[dt_reading_row(path)].source;
    const char *resolved = reading->resolved;

    if (source != NULL &&
        (source != resolved || dt_reading_mark(reading, from)->source == resolved))
        return;
    DT_ASSERT(dt_field_set_text(reading->recipe, dt_field_find(path), text, NULL) == DT_OK);
    dt_reading_derived(reading, path, text, from);
}

/* A preset of a later layer also overrides the dimensions of earlier layers; those of its own layer count. */
static void derive_model(dt_reading *reading)
{
    static const char from[] = "model.preset";
    const dt_preset *preset = dt_preset_find(reading->recipe->model.preset);

    for (size_t i = 0; preset != NULL && i < DT_PRESET_VALUES && preset->values[i].path != NULL;
         i++) {
        const char *path = preset->values[i].path;
        size_t row = dt_reading_row(path);

        if (reading->field[row].source != NULL &&
            reading->layer_of[row] < reading->layer_of[dt_reading_row(from)])
            reading->field[row] = (dt_text_mark){0}; /* as if it were left out */
        derive_value(reading, path, preset->values[i].text, from);
    }
}

static void derive_optimizer(dt_reading *reading)
{
    const dt_optimizer_default *defaults = dt_optimizers[reading->recipe->optimizer.kind].defaults;

    for (int i = 0; i < DT_OPTIMIZER_DEFAULTS && defaults[i].path != NULL; i++)
        derive_value(reading, defaults[i].path, defaults[i].text, "optimizer.kind");
}

/* Models on rows treat a row as a sequence of one token, without attention. */
static void derive_rows(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;

    if (!dt_architecture_find(recipe->model.kind)->reads_rows)
        return;
    if (!dt_reading_given(reading, "model.heads")) {
        recipe->model.heads = 1;
        derived_from(reading, "model.heads", "model.kind");
    }
    if (!dt_reading_given(reading, "batch.tokens")) {
        recipe->batch.tokens = 1;
        derived_from(reading, "batch.tokens", "model.kind");
    }
}

/* Sizes a batch of sentence pairs: max_tokens divided by the longest length. */
static void derive_pairs(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    int64_t tokens = recipe->batch.tokens, most = recipe->batch.max_tokens;

    if (most <= 0 || tokens <= 0)
        return;
    if (dt_reading_given(reading, "batch.sequences") && reading->resolved == NULL)
        return; /* checked by the rule "pairs" */
    recipe->batch.sequences = (most + tokens - 1) / tokens;
    derived_from(reading, "batch.sequences", "batch.max_tokens");
}

/* If several fields are missing at one mark, only the first is reported. */
static bool is_reported(const dt_reading *reading, const dt_field *field)
{
    size_t row = (size_t)(field - dt_fields);

    return reading->troubled[row] || (field->derived != NULL && dt_field_in_group(field, "model") &&
                                      (reading->troubled[dt_reading_row("model.preset")] ||
                                       reading->troubled[dt_reading_row("model.kind")]));
}

/* Returns whether the recipe has a map 'model', or sets one of its fields. */
static bool has_model(const dt_reading *reading)
{
    bool has = reading->group[dt_reading_row("model.layers")].line > 0;

    for (size_t i = 0; i < dt_fields_count; i++)
        has = has || (dt_field_in_group(&dt_fields[i], "model") &&
                      dt_reading_given(reading, dt_fields[i].path));
    return has;
}

static dt_status refuse_missing(dt_reading *reading, const dt_field *field)
{
    char group[64];

    snprintf(group, sizeof(group), "%.*s", (int)dt_field_group_length(field), field->path);
    if (field->derived != NULL && !has_model(reading))
        DT_FAIL(reading->err, DT_ERR_RECIPE,
                "'model' is missing: add a preset, as in 'model: gpt2-small', or dimensions, as in "
                "'model: {layers: 4, heads: 4, embed: 128}'");
    else if (field->derived != NULL)
        DT_FAIL(reading->err, DT_ERR_RECIPE,
                "'%s' is missing (%s): set it, or use 'preset: gpt2-small' for all dimensions",
                field->path, field->help);
    else
        DT_FAIL(reading->err, DT_ERR_RECIPE, "'%s' is missing (%s)", field->path, field->help);
    dt_text_mark_prefix(reading->err, dt_reading_mark(reading, field->path));
    dt_reading_trouble(reading, group[0] != '\0' ? group : field->path);
    return DT_ERR_RECIPE;
}

/* Decides whether the hostfile or `nodes` names the machines: the later layer wins. */
static dt_status choose_nodes(bool *by_hostfile, const dt_reading *reading)
{
    const char *nodes = reading->field[dt_reading_row("nodes")].source;
    int later;

    *by_hostfile = reading->recipe->hostfile[0] != '\0';
    if (!*by_hostfile || nodes == NULL || nodes == reading->resolved)
        return DT_OK;
    later = dt_reading_later(reading, "nodes", "hostfile");
    if (later == 0) {
        DT_FAIL(reading->err, DT_ERR_RECIPE,
                "'hostfile' and 'nodes' cannot be combined: remove one");
        dt_text_mark_prefix(reading->err, dt_reading_mark(reading, "hostfile"));
        return DT_ERR_RECIPE;
    }
    *by_hostfile = later < 0;
    return DT_OK;
}

/* Reads the hostfile's nodes and expands ranges. */
static dt_status derive_nodes(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    dt_string_list items = recipe->nodes;
    int64_t wrong = -1;
    const char *from;
    dt_status st = DT_OK;
    bool by_hostfile;

    DT_TRY(choose_nodes(&by_hostfile, reading));
    from = by_hostfile ? "hostfile" : "nodes";
    if (by_hostfile)
        st = dt_nodes_read_hostfile(&items, recipe->hostfile, reading->arena, reading->err);
    if (st == DT_OK)
        st = dt_nodes_expand(&recipe->nodes, &wrong, &items, reading->arena, reading->err);
    if (st != DT_OK) {
        dt_text_mark_prefix(reading->err, dt_reading_item_mark(reading, from, wrong));
        goto out;
    }
    derived_from(reading, "nodes", from);
    recipe->hostfile = ""; /* its nodes are part of the recipe now, even if the file changes */
out:
    return st;
}

/* If data.split is set in a later layer than data.validation, the split wins. */
static void derive_validation(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;

    if (recipe->data.validation.count == 0 || recipe->data.split <= 0 ||
        !dt_reading_given(reading, "data.split") ||
        dt_reading_later(reading, "data.split", "data.validation") <= 0)
        return;
    recipe->data.validation.count = 0;
    dt_reading_derived(reading, "data.validation", "[]", "data.split");
}

static dt_status check_missing(dt_reading *reading)
{
    dt_status st = DT_OK;

    for (size_t i = 0; i < dt_fields_count; i++) {
        if (dt_fields[i].fallback != NULL || reading->field[i].source != NULL)
            continue;
        if (!is_reported(reading, &dt_fields[i]))
            DT_TRY(dt_reading_report(reading, refuse_missing(reading, &dt_fields[i]), "missing"));
        reading->troubled[i] = true;
    }
out:
    return st;
}

dt_status dt_reading_derive(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    dt_status st = DT_OK;

    DT_TRY(reading_derive_command(reading));
    dt_reading_derive_mixture(reading);
    derive_model(reading);
    DT_TRY(dt_reading_derive_adapter(reading, false));
    DT_TRY(dt_reading_derive_weights(reading));
    DT_TRY(dt_reading_derive_adapter(reading, true));
    DT_TRY(reading_derive_tokens(reading));
    derive_optimizer(reading);
    derive_rows(reading);
    derive_pairs(reading);
    derive_validation(reading);
    if (!reading->troubled[dt_reading_row("nodes")] &&
        !reading->troubled[dt_reading_row("hostfile")]) {
        st = derive_nodes(reading);
        reading->troubled[dt_reading_row("nodes")] = st != DT_OK;
        DT_TRY(dt_reading_report(reading, st, "nodes"));
    }
    if (!dt_reading_given(reading, "name")) {
        recipe->name = reading->stem;
        derived_from(reading, "name", "name");
    }
    if (!dt_reading_given(reading, "schedule.warmup_init_lr")) {
        recipe->schedule.warmup_init_lr = recipe->schedule.min_lr;
        derived_from(reading, "schedule.warmup_init_lr", "schedule.min_lr");
    }
    if (recipe->task == DT_TASK_TRAIN) /* other tasks use the recipe of a checkpoint */
        DT_TRY(check_missing(reading));
out:
    return st;
}
