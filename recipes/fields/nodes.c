#include "recipes/fields/nodes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "recipes/fields/text.h"

#define HOST_NAME_SIZE   256
#define HOSTFILE_BYTES   ((size_t)1 << 20)
#define DESTINATION_MAX  255
#define RANGE_DIGITS_MAX 9

static const char blanks[] = " \t\r";

static dt_status refuse(const char *item, const char *why, dt_error *err)
{
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_text_show_word(&shown, item);
    DT_FAIL(err, DT_ERR_RECIPE, "node %s: %s", shown.data, why);
    dt_strbuf_release(&shown);
    return DT_ERR_RECIPE;
}

/* --- one item */

/* Returns the port of "HOST:22", which ssh would take as a part of the name; NULL: there is none. An IPv6 address has
 * more than one colon, and "ssh://HOST:22" is a URL. */
static const char *find_port(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;

    return digits > 0 && colon + 1 + digits == text + length && strncmp(text, "slurm:", 6) != 0
               ? colon + 1
               : NULL;
}

/* Returns whether ssh and a command line take the text literally. */
static bool is_destination(const char *text, size_t length)
{
    if (length == 0 || length > DESTINATION_MAX || text[0] == '-')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && strchr("._-@:%/+#", text[i]) == NULL)
            return false;
    return true;
}

static bool read_count(int64_t *out, const char *text, size_t length)
{
    *out = 0;
    if (length == 0 || length > RANGE_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return true;
}

/* Parses a setting like "gpus=4". */
static dt_status read_share(dt_node_spec *out, const char *item, const char *word, size_t length,
                            dt_error *err)
{
    const char *equals = memchr(word, '=', length);
    size_t key = equals != NULL ? (size_t)(equals - word) : 0;
    bool slots = key == 5 && memcmp(word, "slots", 5) == 0;
    bool gpus = slots || (key == 4 && memcmp(word, "gpus", 4) == 0);
    bool ranks = slots || (key == 5 && memcmp(word, "ranks", 5) == 0);
    bool first = key == 9 && memcmp(word, "first_gpu", 9) == 0;
    int64_t count;

    if (!gpus && !ranks && !first)
        return refuse(
            item, "after the name only 'gpus=N', 'first_gpu=N', 'ranks=N' or 'slots=N' is allowed",
            err);
    if (key == 4 && gpus && strncmp(equals + 1, "none", length - key - 1) == 0 &&
        length - key - 1 == strlen("none"))
        count = 0;
    else if (!read_count(&count, equals + 1, length - key - 1) || count > DT_NODES_MAX ||
             (count == 0 && !gpus && !first))
        return refuse(item, "expected a number from 1 to 1024", err);
    else if (equals[1] == '0' && length - key > 2)
        return refuse(item, "remove the leading zero of the number", err);
    if (first)
        out->first_gpu = count;
    if (gpus)
        out->gpus = count;
    if (ranks)
        out->ranks = count;
    out->slots = out->slots || slots;
    return DT_OK;
}

dt_status dt_node_spec_parse(dt_node_spec *out, const char *item, dt_arena *arena, dt_error *err)
{
    const char *at = item + strspn(item, blanks);
    size_t length = strcspn(at, blanks);
    const char *port;
    dt_status st = DT_OK;

    *out = (dt_node_spec){.gpus = -1, .ranks = -1};
    if (!is_destination(at, length))
        return refuse(item,
                      "not a valid ssh destination: expected [USER@]HOST of letters, digits, '.', "
                      "'_', '-', ':', '%' or '/', not starting with '-'",
                      err);
    port = find_port(at, length);
    if (port != NULL)
        return refuse(item,
                      dt_arena_printf(arena,
                                      "a port cannot follow the name: write 'ssh://%.*s', or set "
                                      "'Port %.*s' for this host in ~/.ssh/config",
                                      (int)length, at, (int)(at + length - port), port),
                      err);
    out->destination = dt_arena_strndup(arena, at, length);
    for (;;) {
        at += length;
        at += strspn(at, blanks);
        length = strcspn(at, blanks);
        if (length == 0)
            break;
        DT_TRY(read_share(out, item, at, length, err));
    }
out:
    return st;
}

/* --- lists */

typedef struct growing {
    const char **items;
    dt_node_spec specs[DT_NODES_MAX];
    int64_t count;
    dt_arena *arena;
    dt_error *err;
} growing;

static dt_status add(growing *list, const char *item)
{
    dt_node_spec *spec = &list->specs[list->count];
    dt_status st = DT_OK;

    if (list->count == DT_NODES_MAX)
        return refuse(item, "a run has at most 1024 nodes", list->err);
    DT_TRY(dt_node_spec_parse(spec, item, list->arena, list->err));
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->specs[i].destination, spec->destination) == 0)
            return refuse(item,
                          "listed twice: set 'ranks' for more processes on one machine, or remove "
                          "one",
                          list->err);
    list->items[list->count] = dt_arena_strdup(list->arena, item);
    list->count++;
out:
    return st;
}

static dt_status expand(growing *list, const char *item);

/* Expands the brackets at item[open], and recursively those that follow. */
static dt_status expand_range(growing *list, const char *item, size_t open)
{
    static const char wrong[] = "expected numbers and spans in the brackets, as in gpu[01-16,20]";
    const char *at = item + open + 1, *close = strchr(at, ']');
    dt_status st = DT_OK;
    dt_strbuf one;

    dt_strbuf_init(&one);
    if (close == NULL || close == at)
        DT_TRY(refuse(item, wrong, list->err));
    while (at < close) {
        size_t length = strspn(at, "0123456789"), width = length;
        int64_t first, last;

        if (!read_count(&first, at, length))
            DT_TRY(refuse(item, wrong, list->err));
        at += length;
        last = first;
        if (*at == '-') {
            length = strspn(++at, "0123456789");
            if (!read_count(&last, at, length))
                DT_TRY(refuse(item, wrong, list->err));
            at += length;
        }
        if (last < first || last - first >= DT_NODES_MAX)
            DT_TRY(refuse(item, "a span must ascend, over at most 1024 numbers", list->err));
        if (*at != ',' && at != close)
            DT_TRY(refuse(item, wrong, list->err));
        at += *at == ',' ? 1 : 0;
        for (int64_t i = first; i <= last; i++) {
            dt_strbuf_reset(&one);
            dt_strbuf_add(&one, item, open);
            dt_strbuf_add_fmt(&one, "%0*lld%s", (int)width, (long long)i, close + 1);
            DT_TRY(expand(list, one.data));
        }
    }
out:
    dt_strbuf_release(&one);
    return st;
}

static dt_status expand(growing *list, const char *item)
{
    const char *open = strchr(item, '[');

    return open != NULL ? expand_range(list, item, (size_t)(open - item)) : add(list, item);
}

/* Refuses a node that Slurm cannot have. */
static dt_status check_slurm(const growing *list, int64_t at)
{
    const char *destination = list->specs[at].destination;

    if (!dt_node_is_slurm(destination))
        return DT_OK;
    if (destination[5] == ':' && dt_node_slurm_count(destination) == 0)
        return refuse(list->items[at], "expected a number from 1 to 1024 after 'slurm:'",
                      list->err);
    if (list->specs[at].first_gpu > 0)
        return refuse(list->items[at],
                      "'first_gpu' and Slurm cannot be combined: Slurm assigns the GPUs of a job",
                      list->err);
    if (list->count > 1)
        return refuse(list->items[at], "cannot be combined with other nodes", list->err);
    return DT_OK;
}

dt_status dt_nodes_expand(dt_string_list *out, int64_t *wrong, const dt_string_list *items,
                          dt_arena *arena, dt_error *err)
{
    growing *list = dt_arena_alloc_array(arena, 1, sizeof(*list));
    dt_status st = DT_OK;

    *out = (dt_string_list){0};
    list->items = dt_arena_alloc_array(arena, DT_NODES_MAX, sizeof(*list->items));
    list->count = 0;
    list->arena = arena;
    list->err = err;
    for (*wrong = 0; *wrong < items->count; (*wrong)++)
        DT_TRY(expand(list, items->items[*wrong]));
    *wrong = -1;
    for (int64_t i = 0; i < list->count; i++)
        DT_TRY(check_slurm(list, i));
    out->items = list->items;
    out->count = list->count;
out:
    return st;
}

dt_status dt_nodes_read_hostfile(dt_string_list *out, const char *path, dt_arena *arena,
                                 dt_error *err)
{
    dt_error cause = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf text;
    char *line, *rest;

    dt_strbuf_init(&text);
    *out =
        (dt_string_list){.items = dt_arena_alloc_array(arena, DT_NODES_MAX, sizeof(*out->items))};
    if (dt_file_read(&text, path, HOSTFILE_BYTES, &cause) != DT_OK) /* a wrong path in a recipe */
        DT_THROW(err, DT_ERR_RECIPE, "hostfile: %s", cause.message);
    for (line = strtok_r(text.data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *comment = strchr(line, '#');
        size_t length;

        if (comment != NULL && (comment == line || isspace((unsigned char)comment[-1])))
            *comment = '\0';
        line += strspn(line, blanks);
        length = strlen(line);
        while (length > 0 && strchr(blanks, line[length - 1]) != NULL)
            line[--length] = '\0';
        if (length == 0)
            continue;
        if (out->count == DT_NODES_MAX)
            DT_THROW(err, DT_ERR_RECIPE, "hostfile '%s': a run has at most 1024 nodes", path);
        out->items[out->count] = dt_arena_strdup(arena, line);
        out->count++;
    }
    if (out->count == 0)
        DT_THROW(err, DT_ERR_RECIPE, "hostfile '%s' names no node", path);
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- kinds of destinations */

bool dt_node_is_here(const char *destination)
{
    char host[HOST_NAME_SIZE] = "";
    size_t length = strcspn(destination, "#");

    if ((length == strlen("localhost") && strncasecmp(destination, "localhost", length) == 0) ||
        strcmp(destination, "127.0.0.1") == 0 || strcmp(destination, "::1") == 0)
        return true;
    if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
        return false;
    length = strcspn(host, ".");
    return strcasecmp(destination, host) == 0 ||
           (strlen(destination) == length && strncasecmp(destination, host, length) == 0);
}

bool dt_node_is_slurm(const char *item)
{
    const char *at = item + strspn(item, blanks);
    size_t length = strcspn(at, blanks);

    return length >= 5 && strncmp(at, "slurm", 5) == 0 && (length == 5 || at[5] == ':');
}

int64_t dt_node_slurm_count(const char *item)
{
    const char *at = item + strspn(item, blanks);
    int64_t count;

    if (strncmp(at, "slurm:", 6) != 0 || !read_count(&count, at + 6, strcspn(at + 6, blanks)) ||
        count > DT_NODES_MAX)
        return 0;
    return count;
}

const char *dt_node_item_from(const char *item, int64_t first_gpu, dt_arena *arena)
{
    static const char word[] = " first_gpu=";
    const char *was = strstr(item, word), *rest = "";
    int length = was != NULL ? (int)(was - item) : (int)strlen(item);

    if (was != NULL)
        rest = was + strlen(word) + strcspn(was + strlen(word), " ");
    return first_gpu > 0 ? dt_arena_printf(arena, "%.*s%s%s%lld", length, item, rest, word,
                                           (long long)first_gpu)
                         : dt_arena_printf(arena, "%.*s%s", length, item, rest);
}
