#include "runner/node_setup/workdir/ignore.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"

#define GIT_SECONDS 20.0
#define GIT_BYTES   ((size_t)64 << 20)

extern char **environ;

/* --- lines */

/* Removes blanks at the end of a line, except one after a backslash. */
static void trim(char *line)
{
    char *end = line;

    for (char *at = line; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (*at == ' ')
            continue;
        end = at + 1;
    }
    *end = '\0';
}

static void add_line(dt_ignore *ignore, const char *folder, const char *file, char *text)
{
    dt_ignore_line *line;
    size_t length;

    trim(text);
    if (text[0] == '\0' || text[0] == '#')
        return;
    ignore->lines = dt_arena_array_room(ignore->arena, ignore->lines, ignore->count + 1,
                                        &ignore->capacity, sizeof(*line));
    line = &ignore->lines[ignore->count];
    *line = (dt_ignore_line){.folder = dt_arena_strdup(ignore->arena, folder),
                             .file = file,
                             .text = dt_arena_strdup(ignore->arena, text),
                             .takes_in = text[0] == '!'};
    text += line->takes_in;
    length = strlen(text);
    line->folders_only = length > 0 && text[length - 1] == '/';
    if (line->folders_only)
        text[--length] = '\0';
    line->whole_path = strchr(text, '/') != NULL;
    text += line->whole_path && text[0] == '/';
    line->pattern = dt_arena_strdup(ignore->arena, text);
    ignore->count += text[0] != '\0';
}

void dt_ignore_add(dt_ignore *ignore, const char *folder, const char *file, const char *text,
                   size_t length)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of an editor, before the first line */
    const char *at = text, *end = text + length;

    if (length >= 3 && memcmp(text, mark, 3) == 0)
        at += 3;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at)), *last;

        line_end = line_end != NULL ? line_end : end;
        last = line_end > at && line_end[-1] == '\r' ? line_end - 1 : line_end;
        add_line(ignore, folder, file, dt_arena_strndup(ignore->arena, at, (size_t)(last - at)));
        at = line_end + 1;
    }
}

/* Matches one name against the part of a pattern before its next '/'. */
static bool name_matches(const char *pattern, const char *name, size_t length)
{
    char part[PATH_MAX], text[PATH_MAX];
    size_t part_length = strcspn(pattern, "/");

    if (part_length >= sizeof(part) || length >= sizeof(text))
        return false;
    memcpy(part, pattern, part_length);
    part[part_length] = '\0';
    memcpy(text, name, length);
    text[length] = '\0';
    return fnmatch(part, text, 0) == 0;
}

static bool path_matches(const char *pattern, const char *path)
{
    const char *again = NULL, *from = NULL; /* the last "**" can stand for one folder more */

    for (;;) {
        size_t length = strcspn(path, "/");
        const char *next = pattern + strcspn(pattern, "/");

        if (strncmp(pattern, "**", 2) == 0 && next == pattern + 2) {
            if (*next == '\0')
                return true;
            pattern = again = next + 1;
            from = path;
            continue;
        }
        if (name_matches(pattern, path, length)) {
            if (*next == '\0' && path[length] == '\0')
                return true;
            if (*next == '/' && path[length] == '/') {
                pattern = next + 1;
                path += length + 1;
                continue;
            }
        }
        from = again != NULL ? strchr(from, '/') : NULL;
        if (from == NULL)
            return false;
        path = ++from;
        pattern = again;
    }
}

const dt_ignore_line *dt_ignore_find(const dt_ignore *ignore, const char *path, bool is_folder)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    for (size_t i = ignore->count; i-- > 0;) {
        const dt_ignore_line *line = &ignore->lines[i];
        size_t length = strlen(line->folder);

        if ((line->folders_only && !is_folder) ||
            (length > 0 && (strncmp(path, line->folder, length) != 0 || path[length] != '/')))
            continue;
        if (line->whole_path ? path_matches(line->pattern, path + length + (length > 0))
                             : name_matches(line->pattern, name, strlen(name)))
            return line;
    }
    return NULL;
}

const char *dt_ignore_escape(const char *path, dt_arena *arena)
{
    const char *out;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (; *path != '\0'; path++) {
        if (strchr("*?[\\ ", *path) != NULL)
            dt_strbuf_add_char(&text, '\\');
        dt_strbuf_add_char(&text, *path);
    }
    out = dt_arena_strdup(arena, text.length > 0 ? text.data : "");
    dt_strbuf_release(&text);
    return out;
}

/* --- git */

/* Returns this process's variables without those that make git use another repository or index. */
static char **git_environment(void)
{
    static char locks[] = "GIT_OPTIONAL_LOCKS=0", language[] = "LC_ALL=C";
    size_t count = 0, kept = 0;
    char **out;

    while (environ[count] != NULL)
        count++;
    out = dt_calloc(count + 3, sizeof(*out));
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0 &&
            (strncmp(environ[i], "GIT_", 4) != 0 || strncmp(environ[i], "GIT_CONFIG", 10) == 0 ||
             strncmp(environ[i], "GIT_EXEC_PATH=", 14) == 0))
            out[kept++] = environ[i];
    out[kept++] = locks;
    out[kept] = language; /* messages are looked at */
    return out;
}

dt_status dt_git_run(dt_strbuf *out, const char *folder, const char *const *words,
                     const char *input, double seconds, dt_error *err)
{
    static const char *const head[] = {"git", "-c", "core.fsmonitor=false", "-C"};
    size_t heads = sizeof(head) / sizeof(head[0]), count = 0;
    char **environment = git_environment();
    const char **argv;
    dt_status st = DT_OK;
    dt_strbuf errors;
    int code = 0;

    dt_strbuf_init(&errors);
    while (words[count] != NULL)
        count++;
    argv = dt_calloc(heads + count + 2, sizeof(argv[0]));
    memcpy(argv, head, sizeof(head));
    argv[heads] = folder;
    memcpy(argv + heads + 1, words, count * sizeof(argv[0]));
    DT_TRY(dt_child_run(&code,
                        &(dt_child_call){.argv = argv,
                                         .environment = environment,
                                         .input = input,
                                         .out = out,
                                         .errors = &errors,
                                         .most_bytes = GIT_BYTES,
                                         .seconds = seconds,
                                         .missing = "git is not installed"},
                        err));
    if (code != 0)
        DT_THROW(err, DT_ERR_IO, "%.*s", errors.length > 0 ? (int)strcspn(errors.data, "\n") : 0,
                 errors.length > 0 ? errors.data : "");
    if (out->length >= GIT_BYTES)
        DT_THROW(err, DT_ERR_IO, "git's answer is too long");
out:
    free(environment);
    free(argv);
    dt_strbuf_release(&errors);
    return st;
}

/* Adds the path as a line that git reads: one with a newline must be in quotes. */
static void add_quoted(dt_strbuf *out, const char *path)
{
    bool quotes = path[0] == '"' || strchr(path, '\n') != NULL;

    if (quotes)
        dt_strbuf_add_char(out, '"');
    for (; *path != '\0'; path++) {
        if (quotes && (*path == '"' || *path == '\\'))
            dt_strbuf_add_char(out, '\\');
        if (*path == '\n')
            dt_strbuf_add_str(out, "\\n");
        else
            dt_strbuf_add_char(out, *path);
    }
    dt_strbuf_add_str(out, quotes ? "\"\n" : "\n");
}

/* Returns the rule in a line "FILE:NUMBER:PATTERN\tPATH"; NULL: none. */
static const char *rule_of(const char *line, size_t length, dt_arena *arena)
{
    const char *tab = memrchr(line, '\t', length), *file_end, *pattern;

    for (file_end = line; tab != NULL && file_end < tab; file_end++) {
        if (*file_end != ':')
            continue;
        pattern = file_end + 1 + strspn(file_end + 1, "0123456789");
        if (pattern > file_end + 1 && *pattern == ':' && pattern < tab)
            return dt_arena_printf(arena, "'%.*s' of %.*s", (int)(tab - pattern - 1), pattern + 1,
                                   (int)(file_end - line), line);
    }
    return NULL;
}

/* Sets the rules of the items. Without an answer they have only a general name. The index is not needed, and each item
 * would be compared with all of it. */
static void name_rules(dt_git_ignores *io, const char *folder, dt_arena *arena)
{
    static const char *const words[] = {"check-ignore",   "--no-index", "--verbose",
                                        "--non-matching", "--stdin",    NULL};
    dt_strbuf input, out;
    const char *at;

    dt_strbuf_init(&input);
    dt_strbuf_init(&out);
    for (size_t i = 0; i < io->count; i++)
        add_quoted(&input, io->items[i].path);
    if (io->count > 0)
        (void)dt_git_run(&out, folder, words, input.data, GIT_SECONDS, NULL);
    at = out.length > 0 ? out.data : "";
    for (size_t i = 0; i < io->count; i++) { /* one line for each item, in order */
        size_t length = strcspn(at, "\n");
        const char *rule = rule_of(at, length, arena);

        io->items[i].rule = rule != NULL ? rule : "git's rules";
        at += length + (at[length] == '\n');
    }
    dt_strbuf_release(&input);
    dt_strbuf_release(&out);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const dt_git_ignored *)a)->path, ((const dt_git_ignored *)b)->path);
}

/* Reads paths that each end in '\0'. Returns whether the folder itself is one of them. */
static bool read_paths(dt_git_ignores *out, const dt_strbuf *text, dt_arena *arena)
{
    size_t most = 0;
    bool itself = false;

    for (size_t i = 0; i < text->length; i++)
        most += text->data[i] == '\0';
    out->items = dt_arena_alloc_array(arena, most + 1, sizeof(out->items[0]));
    for (size_t at = 0; most-- > 0; at += strlen(text->data + at) + 1) {
        if (strcmp(text->data + at, "./") == 0)
            itself = true;
        else
            out->items[out->count++].path = dt_arena_strdup(arena, text->data + at);
    }
    if (out->count > 1)
        qsort(out->items, out->count, sizeof(out->items[0]), by_path);
    return itself;
}

dt_status dt_git_ignores_ask(dt_git_ignores *out, const char *folder, const char *taken_in,
                             dt_arena *arena, dt_error *err)
{
    static const char *const about_itself[] = {"check-ignore", "--quiet", ".", NULL};
    const char *words[] = {"ls-files",    "-z", "--others", "--ignored", "--exclude-standard",
                           "--directory", NULL, NULL,       NULL,        NULL};
    dt_strbuf text;
    dt_status st;

    *out = (dt_git_ignores){0};
    dt_strbuf_init(&text);
    if (taken_in != NULL) { /* the name suffices, since only this folder is listed */
        const char *slash = strrchr(taken_in, '/'), *name = slash != NULL ? slash + 1 : taken_in;

        words[6] = dt_arena_printf(arena, "--exclude=!%s/", dt_ignore_escape(name, arena));
        words[7] = "--";
        words[8] = dt_arena_printf(arena, ":(literal)%s/", taken_in);
    }
    st = dt_git_run(&text, folder, words, NULL, GIT_SECONDS, err);
    /* git fails in a folder that it ignores, or lists the folder, as also where it ignores all files of it */
    if ((st == DT_ERR_IO || (st == DT_OK && read_paths(out, &text, arena))) && taken_in == NULL &&
        dt_git_run(&text, folder, about_itself, NULL, GIT_SECONDS, NULL) == DT_OK) {
        dt_error_clear(err);
        st = DT_FAIL(err, DT_ERR_NOT_FOUND, "git ignores the folder itself");
    }
    if (st == DT_OK)
        name_rules(out, folder, arena);
    dt_strbuf_release(&text);
    return st;
}

/* Returns the number of items before the path, which is written to `wanted` as git lists it. */
static size_t find_place(char wanted[PATH_MAX + 2], const dt_git_ignores *ignores, const char *path,
                         bool is_folder)
{
    size_t low = 0, high = ignores->count;

    snprintf(wanted, PATH_MAX + 2, "%s%s", path, is_folder ? "/" : "");
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(ignores->items[middle].path, wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_below(const dt_git_ignores *ignores, size_t place, const char *folder)
{
    return place < ignores->count &&
           strncmp(ignores->items[place].path, folder, strlen(folder)) == 0;
}

const char *dt_git_ignores_find(const dt_git_ignores *ignores, const char *path, bool is_folder)
{
    char wanted[PATH_MAX + 2];
    size_t place = find_place(wanted, ignores, path, is_folder);

    if (place == ignores->count || strcmp(ignores->items[place].path, wanted) != 0)
        return NULL;
    /* git lists a folder and its files if it ignores each file, but not the folder */
    return is_folder && is_below(ignores, place + 1, wanted) ? NULL : ignores->items[place].rule;
}

bool dt_git_ignores_any(const dt_git_ignores *ignores, const char *folder)
{
    char wanted[PATH_MAX + 2];

    return is_below(ignores, find_place(wanted, ignores, folder, true), wanted);
}
