/* transport: the table of transports, the transport to this machine, and quoting for any login shell. */
#include "runner/transport/transport.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- quoting */

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@+";

void dt_quote_word(dt_strbuf *out, const char *word)
{
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        dt_strbuf_add_str(out, word);
        return;
    }
    dt_strbuf_add_char(out, '\'');
    for (; *word != '\0'; word++)
        if (*word == '\'')
            dt_strbuf_add_str(out, "'\\''");
        else
            dt_strbuf_add_char(out, *word);
    dt_strbuf_add_char(out, '\'');
}

void dt_quote_script(dt_strbuf *out, const char *script)
{
    dt_strbuf_add_str(out, "exec /bin/sh -c 'eval \"$(printf \"");
    for (; *script != '\0'; script++)
        if (*script == ' ' || strchr(plain, *script) != NULL)
            dt_strbuf_add_char(out, *script);
        else
            dt_strbuf_add_fmt(out, "\\%03o", (unsigned)(unsigned char)*script);
    dt_strbuf_add_str(out, "\")\"'");
}

/* local: runs commands on this machine. Its nodes are "localhost", "localhost#2" and so on, one
 * machine used several times. */

static bool local_reaches(const char *node)
{
    const char *rest = strncmp(node, "localhost", 9) == 0 ? node + 9 : "?";

    return rest[0] == '\0' || rest[0] == '#';
}

static dt_status local_command(const char ***argv, const char *node, const char *const *words,
                               dt_arena *arena, dt_error *err)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    *argv = dt_arena_alloc_array(arena, count + 1, sizeof((*argv)[0]));
    memcpy(*argv, words, (count + 1) * sizeof(words[0]));
    return DT_OK;
}

const dt_transport dt_transport_local = {
    .kind = "local",
    .reaches = local_reaches,
    .command = local_command,
};

/* --- the table */

/* The first transport that accepts the node's name is used. */
static const dt_transport *const transports[] = {&dt_transport_local, &dt_transport_slurm,
                                                 &dt_transport_ssh};

dt_status dt_transport_find(const dt_transport **out, const char *node, dt_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        if (transports[i]->reaches(node)) {
            *out = transports[i];
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "node '%s': invalid name (expected letters, digits and '._-@:%%/[]+')", node);
}

#define COUNT_DIGITS_MAX 9

const dt_transport *dt_transport_lender(int64_t *count, const char *destination)
{
    size_t kind = strcspn(destination, ":"), digits;
    const char *number = destination + kind + (destination[kind] == ':');

    *count = 0;
    digits = strspn(number, "0123456789");
    if (number[digits] != '\0' || digits > COUNT_DIGITS_MAX)
        return NULL;
    *count = strtoll(number, NULL, 10);
    if (destination[kind] == ':' && *count == 0)
        return NULL;
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        if (transports[i]->expand != NULL && strlen(transports[i]->kind) == kind &&
            strncmp(destination, transports[i]->kind, kind) == 0)
            return transports[i];
    return NULL;
}

bool dt_transport_is_lent(const char *node)
{
    const dt_transport *transport;

    return dt_transport_find(&transport, node, NULL) == DT_OK && transport->lent;
}

void dt_transports_remove(const char *run_folder, bool good)
{
    for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
        if (transports[i]->remove != NULL)
            transports[i]->remove(run_folder, good);
}
