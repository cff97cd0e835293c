/* provenance: records and prints where an attempt comes from, and what --set changed. */
#include "runner/launch/provenance.h"

#include <limits.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/version.h"
#include "engine/data/files.h"
#include "engine/data/fingerprint.h"
#include "recipes/fields/fields.h"
#include "runner/launch/preflight.h"
#include "runner/node_setup/workdir/ignore.h"
#include "runner/term/term.h"
#include "runner/transport/transport.h"

enum { DATA_MOST = 200, COMMAND_BYTES = 65536 };
#define GIT_SECONDS 3.0

/* --- collect */

/* Returns an argument; the value of notify may be a secret. */
static json_t *word_of(const char *word)
{
    const char *notify = strstr(word, "notify");
    const char *value = notify != NULL ? strchr(notify, '=') : NULL;
    json_t *shown;
    dt_strbuf text;

    if (value == NULL)
        return dt_json_text(word);
    dt_strbuf_init(&text);
    dt_strbuf_add(&text, word, (size_t)(value + 1 - word));
    dt_strbuf_add_str(&text, "(not shown)");
    shown = dt_json_text(text.data);
    dt_strbuf_release(&text);
    return shown;
}

/* Returns the command line as typed: getopt reorders argv, /proc does not. */
static json_t *command_line(void)
{
    json_t *words = json_array();
    char text[COMMAND_BYTES];
    size_t length, at = 0;
    FILE *file = fopen("/proc/self/cmdline", "re");

    if (file == NULL)
        return words;
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    for (; at < length; at += strlen(text + at) + 1)
        json_array_append_new(words, word_of(text + at));
    return words;
}

/* Parses git's output: the commit, and the number of changed tracked files. */
static json_t *read_git(const char *text)
{
    static const char head[] = "# branch.oid ";
    const char *commit = NULL;
    size_t commit_length = 0;
    json_int_t changed = 0;

    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");

        if (strncmp(line, head, strlen(head)) == 0) {
            commit = line + strlen(head);
            commit_length = length - strlen(head);
        } else if (length > 0 && line[0] != '#') {
            changed++;
        }
        line += length + (line[length] == '\n');
    }
    if (commit == NULL || commit[0] == '(')
        return json_null();
    return json_pack("{s:o, s:I}", "commit", json_stringn(commit, commit_length), "changed",
                     changed);
}

static json_t *ask_git(const char *folder)
{
    static const char *const words[] = {"status", "--porcelain=v2", "--branch",
                                        "--untracked-files=no", NULL};
    json_t *git = NULL;
    dt_strbuf out;

    dt_strbuf_init(&out);
    if (dt_git_run(&out, folder, words, NULL, GIT_SECONDS, NULL) == DT_OK)
        git = read_git(out.data);
    dt_strbuf_release(&out);
    return git != NULL ? git : json_null();
}

/* Returns the first file among the words of the command that git does not track; NULL: none. */
static const char *find_untracked(const dt_recipe *recipe, dt_arena *arena)
{
    const char **words =
        dt_arena_alloc_array(arena, (size_t)recipe->command.count + 5, sizeof(words[0]));
    const char *found = NULL;
    size_t count = 0;
    struct stat info;
    dt_strbuf out;

    words[count++] = "ls-files";
    words[count++] = "-z";
    words[count++] = "--others";
    words[count++] = "--";
    for (int64_t i = 0; i < recipe->command.count; i++) {
        const char *word = recipe->command.items[i];

        if (word[0] != '/' && word[0] != '-' &&
            stat(dt_arena_printf(arena, "%s/%s", recipe->workdir.folder, word), &info) == 0 &&
            S_ISREG(info.st_mode))
            words[count++] = dt_arena_printf(arena, ":(literal)%s", word);
    }
    words[count] = NULL;
    if (count == 4)
        return NULL;
    dt_strbuf_init(&out);
    if (dt_git_run(&out, recipe->workdir.folder, words, NULL, GIT_SECONDS, NULL) == DT_OK &&
        out.length > 0)
        found = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return found;
}

/* Returns what git says of the folder of the recipe, or of the command that it runs. */
static json_t *ask_git_of(const char *recipe_path, const dt_recipe *recipe, dt_arena *arena)
{
    const char *slash = recipe_path != NULL ? strrchr(recipe_path, '/') : NULL, *untracked;
    const char *folder =
        slash == NULL ? "."
                      : dt_arena_printf(arena, "%.*s/", (int)(slash - recipe_path), recipe_path);
    json_t *git;

    if (recipe->task != DT_TASK_COMMAND)
        return ask_git(folder);
    git = ask_git(recipe->workdir.folder);
    untracked = json_is_object(git) ? find_untracked(recipe, arena) : NULL;
    if (untracked != NULL)
        json_object_set_new(git, "untracked", dt_json_text(untracked));
    return git;
}

const char *dt_provenance_commit(const char *folder, dt_arena *arena)
{
    json_t *git = ask_git(folder);
    const char *commit = json_string_value(json_object_get(git, "commit"));

    commit = commit != NULL ? dt_arena_strdup(arena, commit) : "";
    json_decref(git);
    return commit;
}

static json_t *file_to_json(const dt_data_file *file, const json_t *digest)
{
    json_t *object = json_object();
    char time[DT_CLOCK_ISO_SIZE];
    struct stat info;

    json_object_set_new(object, "path", dt_json_text(file->path));
    json_object_set_new(object, "bytes", json_integer(file->bytes));
    if (stat(file->path, &info) == 0)
        json_object_set_new(object, "modified",
                            json_string(dt_clock_iso(time, (int64_t)info.st_mtim.tv_sec * 1000 +
                                                               info.st_mtim.tv_nsec / 1000000)));
    json_object_set(object, "xxh3_128", json_object_get(digest, "xxh3_128"));
    return object;
}

/* Adds the files of one list; `digests` has the same order. */
static void add_files(json_t *out, int64_t *count, const dt_string_list *patterns,
                      const dt_recipe *recipe, const json_t *digests, dt_arena *arena)
{
    dt_data_files files = {0};

    if (patterns->count == 0 ||
        dt_data_files_find(&files, patterns, recipe->data.tokens, "data", arena, NULL) != DT_OK)
        return;
    *count += files.count;
    for (int64_t i = 0; i < files.count && json_array_size(out) < DATA_MOST; i++)
        json_array_append_new(out,
                              file_to_json(&files.items[i], json_array_get(digests, (size_t)i)));
}

static void add_data(json_t *out, const dt_recipe *recipe, dt_arena *arena)
{
    json_t *digests = NULL, *data = json_array();
    int64_t count = 0;

    (void)dt_fingerprint_make(&digests, recipe, NULL);
    add_files(data, &count, &recipe->data.train, recipe, json_object_get(digests, "files"), arena);
    add_files(data, &count, &recipe->data.validation, recipe,
              json_object_get(digests, "validation"), arena);
    json_object_set_new(out, "files", json_integer(count));
    json_object_set_new(out, "data", data);
    json_decref(digests);
}

json_t *dt_provenance_make(const char *recipe_path, const dt_preflight *flight, dt_arena *arena)
{
    const dt_plan *plan = &flight->plan;
    const struct passwd *user = getpwuid(getuid());
    char host[HOST_NAME_MAX + 1] = "", folder[PATH_MAX];
    json_t *out = json_object(), *weights;

    (void)gethostname(host, sizeof(host) - 1);
    json_object_set_new(out, "command", command_line());
    json_object_set_new(
        out, "folder", getcwd(folder, sizeof(folder)) != NULL ? dt_json_text(folder) : json_null());
    json_object_set_new(out, "dtrun", json_string(DT_VERSION));
    json_object_set_new(out, "commit", json_string(DT_COMMIT));
    json_object_set_new(out, "host", dt_json_text(host));
    json_object_set_new(out, "user", user != NULL ? dt_json_text(user->pw_name) : json_null());
    json_object_set_new(out, "git", ask_git_of(recipe_path, &plan->recipe, arena));
    if (plan->recipe.task == DT_TASK_TRAIN)
        add_data(out, &plan->recipe, arena);
    if (plan->recipe.task == DT_TASK_TRAIN && plan->recipe.data.mixture.count > 0)
        json_object_set_new(out, "mixture", dt_preflight_mixture_to_json(flight));
    weights = dt_weights_provenance(plan);
    if (weights != NULL)
        json_object_set_new(out, "weights", weights);
    return out;
}

dt_status dt_provenance_store(dt_store *store, const char *run, const json_t *provenance,
                              dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_json_write(&text, provenance);
    st = dt_store_attempt_set_provenance(store, run, text.data, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- print */

json_t *dt_provenance_to_json(const dt_attempt *attempts, int64_t count)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++) {
        const char *text = attempts[i].provenance_json;
        json_t *one = NULL, *object;

        if (dt_json_parse(&one, text, strlen(text), "provenance", NULL) != DT_OK)
            continue; /* skip damaged entries */
        if (json_object_size(one) > 0) {
            object = json_pack("{s:I}", "attempt", (json_int_t)attempts[i].attempt);
            json_object_update(object, one);
            json_array_append_new(list, object);
        }
        json_decref(one);
    }
    return list;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void add_command(dt_table *table, const json_t *one)
{
    const json_t *words = json_object_get(one, "command");
    json_int_t attempt = json_integer_value(json_object_get(one, "attempt"));
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));

        if (text.length > 0)
            dt_strbuf_add_char(&text, ' ');
        dt_quote_word(&text, word != NULL ? word : "?");
    }
    if (attempt == 1)
        dt_table_add(table, DT_STYLE_DIM, "command");
    else
        dt_table_add(table, DT_STYLE_DIM, "command of %lld", (long long)attempt);
    dt_table_add_whole(table, DT_STYLE_PLAIN, "%s", text.data);
    dt_strbuf_release(&text);
}

static void add_data_line(dt_table *table, const json_t *one)
{
    const json_t *data = json_object_get(one, "data");
    json_int_t count = json_integer_value(json_object_get(one, "files"));
    size_t shown = json_array_size(data) < 3 ? json_array_size(data) : 3;

    for (size_t i = 0; i < shown; i++) {
        const json_t *file = json_array_get(data, i);

        dt_table_add(table, DT_STYLE_DIM, "%s", i == 0 ? "data" : "");
        dt_table_add(table, DT_STYLE_PLAIN, "%s  %lld bytes  %s", text_of(file, "path"),
                     (long long)json_integer_value(json_object_get(file, "bytes")),
                     text_of(file, "xxh3_128"));
    }
    if (count > (json_int_t)shown) {
        dt_table_add(table, DT_STYLE_DIM, "%s", "");
        dt_table_add(table, DT_STYLE_PLAIN, "and %lld more files",
                     (long long)(count - (json_int_t)shown));
    }
}

/* "mixture    wiki 70 % (2.1 epochs), code 30 % (0.4 epochs)" */
static void add_mixture_line(dt_table *table, const json_t *one)
{
    const json_t *mixture = json_object_get(one, "mixture"), *part;
    dt_strbuf text;
    size_t i;

    if (json_array_size(mixture) == 0)
        return;
    dt_strbuf_init(&text);
    json_array_foreach(mixture, i, part) {
        const json_t *epochs = json_object_get(part, "epochs");

        dt_strbuf_add_fmt(&text, "%s%s %.3g %%", i > 0 ? ", " : "", text_of(part, "name"),
                          100 * json_number_value(json_object_get(part, "share")));
        if (json_is_number(epochs))
            dt_strbuf_add_fmt(&text, " (%.3g epochs)", json_number_value(epochs));
    }
    dt_table_add(table, DT_STYLE_DIM, "mixture");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", text.data);
    dt_strbuf_release(&text);
}

/* For the first attempt only: later ones resume from checkpoints. */
static void add_weights_line(dt_table *table, const json_t *first)
{
    const json_t *weights = json_object_get(first, "weights"), *file;
    json_int_t bytes = 0;
    size_t i;

    if (weights == NULL)
        return;
    json_array_foreach(json_object_get(weights, "files"), i, file)
        bytes += json_integer_value(json_object_get(file, "bytes"));
    dt_table_add(table, DT_STYLE_DIM, "weights");
    dt_table_add(table, DT_STYLE_PLAIN, "%s  %lld bytes  %s", text_of(weights, "from"),
                 (long long)bytes,
                 text_of(json_array_get(json_object_get(weights, "files"), 0), "xxh3_128"));
}

void dt_provenance_add(dt_table *table, const dt_attempt *attempts, int64_t count)
{
    json_t *list = dt_provenance_to_json(attempts, count);
    const json_t *newest, *git;

    for (size_t i = 0; i < json_array_size(list); i++)
        add_command(table, json_array_get(list, i));
    if (json_array_size(list) > 0) {
        newest = json_array_get(list, json_array_size(list) - 1);
        git = json_object_get(newest, "git");
        dt_table_add(table, DT_STYLE_DIM, "by");
        dt_table_add(table, DT_STYLE_PLAIN, "%s on %s, dtrun %s (%s)", text_of(newest, "user"),
                     text_of(newest, "host"), text_of(newest, "dtrun"), text_of(newest, "commit"));
        if (json_is_object(git)) {
            json_int_t changed = json_integer_value(json_object_get(git, "changed"));

            dt_table_add(table, DT_STYLE_DIM, "git");
            if (changed > 0)
                dt_table_add(table, DT_STYLE_PLAIN, "%.12s, %lld file%s changed",
                             text_of(git, "commit"), (long long)changed, changed == 1 ? "" : "s");
            else if (json_is_string(json_object_get(git, "untracked")))
                dt_table_add(table, DT_STYLE_PLAIN, "%.12s, but '%s' is not tracked",
                             text_of(git, "commit"), text_of(git, "untracked"));
            else
                dt_table_add(table, DT_STYLE_PLAIN, "%.12s, clean", text_of(git, "commit"));
        }
        add_weights_line(table, json_array_get(list, 0));
        add_data_line(table, newest);
        add_mixture_line(table, newest);
    }
    json_decref(list);
}

/* What --set changed. */

/* Returns the --set arguments "a.b=value" as typed; possible secrets are not repeated. */
static json_t *words_of_sets(const dt_recipe_source *source)
{
    json_t *changes = json_array();

    for (size_t i = 0; i < source->sets_count; i++) {
        const char *set = source->sets[i];
        size_t key = strcspn(set, "=");
        bool secret = strncmp(set, "notify", strlen("notify")) == 0;

        json_array_append_new(
            changes, json_pack("{s:o, s:n, s:o}", "key", json_stringn(set, key), "old", "new",
                               secret ? json_string("(not shown)")
                                      : dt_json_text(set + key + (set[key] == '='))));
    }
    return changes;
}

json_t *dt_overrides_of_launch(const dt_recipe_source *source, const dt_recipe *recipe,
                               dt_arena *arena)
{
    dt_recipe_source file = {.path = source->path,
                             .text = source->text,
                             .layers = source->layers,
                             .layers_count = source->layers_count,
                             .find_run = source->find_run};
    dt_error ignored = DT_ERROR_INIT;
    dt_recipe before;

    if (source->sets_count == 0)
        return json_array();
    if (dt_recipe_read(&before, &file, arena, &ignored) != DT_OK)
        return words_of_sets(source);
    return dt_recipe_changes(&before, recipe);
}

json_t *dt_overrides_of_resume(const dt_run *before, const dt_recipe *recipe, dt_arena *arena)
{
    json_t *json = NULL, *changes;
    dt_recipe old;

    if (dt_json_parse(&json, before->recipe_json, strlen(before->recipe_json), "stored recipe",
                      NULL) == DT_OK &&
        dt_recipe_from_json(&old, json, arena, NULL) == DT_OK)
        changes = dt_recipe_changes(&old, recipe);
    else
        changes = json_array();
    json_decref(json);
    return changes;
}

dt_status dt_overrides_store(dt_store *store, const char *run, const json_t *changes, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    if (json_array_size(changes) == 0)
        return DT_OK;
    dt_strbuf_init(&text);
    dt_json_write(&text, changes);
    st = dt_store_attempt_set_changes(store, run, text.data, err);
    dt_strbuf_release(&text);
    return st;
}

json_t *dt_overrides_to_json(const dt_attempt *attempts, int64_t count)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++) {
        const char *text = attempts[i].changes_json;
        json_t *changes = NULL;

        if (dt_json_parse(&changes, text, strlen(text), "changes", NULL) != DT_OK)
            continue; /* skip damaged changes */
        for (size_t c = 0; c < json_array_size(changes); c++) {
            json_t *change = json_array_get(changes, c);

            json_object_set_new(change, "attempt", json_integer(attempts[i].attempt));
            json_array_append_new(list, json_incref(change));
        }
        json_decref(changes);
    }
    return list;
}

/* Adds a value as written in a recipe: text without quotes. */
static void add_value(dt_table *table, const json_t *value)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (json_is_string(value))
        dt_strbuf_add_str(&text, json_string_value(value));
    else if (value == NULL || json_is_null(value))
        dt_strbuf_add_str(&text, "not given");
    else if (json_is_real(value))
        dt_strbuf_add_fmt(&text, "%.10g", json_real_value(value));
    else
        dt_json_write(&text, value);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", text.length > 0 ? text.data : "empty");
    dt_strbuf_release(&text);
}

void dt_overrides_add(dt_strbuf *out, const dt_term *term, const dt_attempt *attempts,
                      int64_t count, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"changed by --set", false}, {"from", false}, {"to", false}, {"attempt", true}};
    json_t *list = dt_overrides_to_json(attempts, count);
    dt_table table;

    dt_table_init(&table, columns, 4, arena);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *change = json_array_get(list, i);
        const char *key = json_string_value(json_object_get(change, "key"));

        dt_table_add(&table, DT_STYLE_BOLD, "%s", key != NULL ? key : "?");
        add_value(&table, json_object_get(change, "old"));
        add_value(&table, json_object_get(change, "new"));
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld",
                     (long long)json_integer_value(json_object_get(change, "attempt")));
    }
    if (json_array_size(list) > 0) {
        dt_table_write(out, &table, term, 2);
        dt_strbuf_add_char(out, '\n');
    }
    json_decref(list);
}
