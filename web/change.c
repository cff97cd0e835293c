/* change: turns the body of a request into a command line. */
#include "web/change.h"

#include <string.h>

#include "base/json.h"

static void add_word(dt_web_change *out, const char *word)
{
    DT_ASSERT(out->count < DT_WEB_CHANGE_WORDS);
    out->words[out->count++] = word;
    out->words[out->count] = NULL;
}

/* Begins the command line: what follows "--" is never an option. */
static void add_command(dt_web_change *out, const char *command, const char *option,
                        const char *option_value, const char *run)
{
    add_word(out, command);
    add_word(out, "--json");
    if (option != NULL)
        add_word(out, option);
    if (option_value != NULL)
        add_word(out, option_value);
    add_word(out, "--");
    add_word(out, run);
}

/* Refuses keys that are not in `keys`, which ends with NULL. */
static dt_status refuse_others(json_t *object, const char *const *keys, dt_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        int at = 0;

        while (keys[at] != NULL && strcmp(keys[at], key) != 0)
            at++;
        if (keys[at] == NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "body: unknown key '%.32s'", key);
    }
    return DT_OK;
}

static dt_status read_name(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;

    DT_TRY(refuse_others(body, (const char *const[]){"name", NULL}, err));
    DT_TRY(dt_json_get_string(&name, body, "name", "body", err));
    add_command(out, "rename", NULL, NULL, run);
    add_word(out, dt_arena_strdup(arena, name));
out:
    return st;
}

static dt_status read_note(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    const char *note, *replaces;
    dt_status st = DT_OK;

    DT_TRY(refuse_others(body, (const char *const[]){"note", "replaces", NULL}, err));
    DT_TRY(dt_json_get_string(&note, body, "note", "body", err));
    DT_TRY(dt_json_get_string_or(&replaces, body, "replaces", NULL, "body", err));
    if (replaces != NULL && strspn(replaces, "0123456789abcdef") != strlen(replaces))
        DT_THROW(err, DT_ERR_USAGE, "body: 'replaces': expected a version, as in .../notes");
    add_word(out, "note");
    add_word(out, "--file");
    add_word(out, "-");
    if (replaces != NULL) {
        add_word(out, "--replaces");
        add_word(out, dt_arena_strdup(arena, replaces));
    }
    add_word(out, "--json");
    add_word(out, "--");
    add_word(out, run);
    out->input = dt_arena_strdup(arena, note);
out:
    return st;
}

static dt_status add_tags(dt_web_change *out, json_t *body, const char *key, char sign,
                          dt_arena *arena, dt_error *err)
{
    json_t *list = json_object_get(body, key), *tag;
    size_t i;

    if (list == NULL)
        return DT_OK;
    if (!json_is_array(list) || json_array_size(list) > DT_WEB_TAGS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "body: '%s': expected a list of at most %d tags", key,
                       DT_WEB_TAGS_MOST);
    json_array_foreach(list, i, tag) {
        if (!json_is_string(tag))
            return DT_FAIL(err, DT_ERR_USAGE, "body: '%s': expected texts", key);
        add_word(out, dt_arena_printf(arena, "%c%s", sign, json_string_value(tag)));
    }
    return DT_OK;
}

static dt_status read_tags(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;
    int before;

    DT_TRY(refuse_others(body, (const char *const[]){"add", "remove", NULL}, err));
    add_command(out, "tag", NULL, NULL, run);
    before = out->count;
    DT_TRY(add_tags(out, body, "add", '+', arena, err));
    DT_TRY(add_tags(out, body, "remove", '-', arena, err));
    if (out->count == before)
        DT_THROW(err, DT_ERR_USAGE, "body: expected tags to 'add' or to 'remove'");
out:
    return st;
}

static dt_status read_archive(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                              dt_error *err)
{
    dt_status st = DT_OK;
    bool archived;

    DT_TRY(refuse_others(body, (const char *const[]){"archived", NULL}, err));
    DT_TRY(dt_json_get_bool(&archived, body, "archived", "body", err));
    add_command(out, "archive", archived ? NULL : "--undo", NULL, run);
out:
    return st;
}

static dt_status read_stop(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;
    bool now = false;

    DT_TRY(refuse_others(body, (const char *const[]){"now", NULL}, err));
    if (json_object_get(body, "now") != NULL)
        DT_TRY(dt_json_get_bool(&now, body, "now", "body", err));
    add_command(out, "stop", now ? "--now" : NULL, NULL, run);
out:
    return st;
}

static dt_status read_remove(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                             dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;
    bool dry = false;

    DT_TRY(refuse_others(body, (const char *const[]){"name", "dry_run", NULL}, err));
    if (json_object_get(body, "dry_run") != NULL)
        DT_TRY(dt_json_get_bool(&dry, body, "dry_run", "body", err));
    if (!dry) {
        DT_TRY(dt_json_get_string(&name, body, "name", "body", err));
        out->confirm = dt_arena_strdup(arena, name);
    }
    add_command(out, "rm", dry ? "--dry-run" : "--yes", NULL, run);
out:
    return st;
}

static const struct {
    const char *what;
    dt_status (*read)(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                      dt_error *err);
} kinds[] = {
    {"name", read_name},       {"note", read_note}, {"tags", read_tags},
    {"archive", read_archive}, {"stop", read_stop}, {"remove", read_remove},
};

dt_status dt_web_change_read(dt_web_change *out, const char *what, const char *run,
                             const char *body, size_t length, dt_arena *arena, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *object = NULL;
    dt_status st = DT_OK;

    *out = (dt_web_change){.what = what};
    if (dt_json_parse(&object, body != NULL ? body : "", length, "body", &problem) != DT_OK)
        DT_THROW(err, DT_ERR_USAGE, "%s", problem.message);
    if (!json_is_object(object))
        DT_THROW(err, DT_ERR_USAGE, "body: expected an object");
    st = DT_FAIL(&problem, DT_ERR_USAGE, "'%s' is not a change", what);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].what, what) == 0)
            st = kinds[i].read(out, object, run, arena, &problem);
    if (st != DT_OK) /* a wrong type is an error of the request, not of a file */
        st = DT_FAIL(err, DT_ERR_USAGE, "%s", problem.message);
out:
    json_decref(object);
    return st;
}
