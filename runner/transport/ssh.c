/* ssh: uses the system's ssh client with the user's own configuration: jump hosts, keys, ports,
 * users.
 *
 * Options on the command line override that configuration, so there are few. They ensure that ssh
 * asks no questions, runs and forwards nothing else, notices a dead peer in about 12 s, shares one
 * connection among all commands to a node, and always checks the host key.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/strbuf.h"
#include "runner/transport/transport.h"
#include "runner/transport/transport_int.h"

/* Passed in this order, followed by the path of the control socket. */
static const char *const options[] =
    {
        "BatchMode=yes",
        "StrictHostKeyChecking=yes", /* never weaker, whatever the configuration says */
        "ConnectTimeout=8",
        "ServerAliveInterval=4",
        "ServerAliveCountMax=3",
        "ControlMaster=auto",
        "ControlPersist=60",
        "ClearAllForwardings=yes", /* a port can be forwarded by one connection only */
        "ForwardX11=no",
        "RemoteCommand=none",
        "PermitLocalCommand=no",
        "RequestTTY=no",
        "LogLevel=INFO", /* ssh_errors.c parses messages of this level */
};
#define CONTROL_PATH "ControlPath="
enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]), EXTRA_WORDS = 5 };

/* Accepts only characters without a meaning for a shell: ProxyCommand and Match exec pass the name
 * to one. */
static bool ssh_reaches(const char *node)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-@:%/[]+";
    const char *at = strrchr(node, '@');

    return node[0] != '\0' && node[0] != '-' && node[strspn(node, letters)] == '\0' &&
           (at == NULL || (at[1] != '\0' && at[1] != '-'));
}

static const char *script(const char *const *words, dt_arena *arena)
{
    char digits[DT_TRANSPORT_END_DIGITS + 1];
    dt_strbuf plain, quoted;
    const char *out;
    uint64_t random = 0;

    if (getrandom(&random, sizeof(random), 0) < 0)
        return NULL;
    snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)random);
    dt_strbuf_init(&plain);
    dt_strbuf_init(&quoted);
    dt_strbuf_add_str(&plain, "echo; echo " DT_TRANSPORT_MARK ";");
    for (size_t i = 0; words[i] != NULL; i++) {
        dt_strbuf_add_char(&plain, ' ');
        dt_quote_word(&plain, words[i]);
    }
    /* \036 is the first byte of DT_TRANSPORT_END */
    dt_strbuf_add_fmt(&plain, "; code=$?; printf \"\\036%s%s %%d\\n\" $code; exit $code",
                      DT_TRANSPORT_END + 1, digits);
    dt_quote_script(&quoted, plain.data);
    out = dt_arena_strdup(arena, quoted.data);
    dt_strbuf_release(&plain);
    dt_strbuf_release(&quoted);
    return out;
}

/* Starts an argv with "ssh" and the options; it has room for EXTRA_WORDS more words. */
static dt_status begin(const char ***argv, size_t *count, const char *node, dt_arena *arena,
                       dt_error *err)
{
    const char **out =
        dt_arena_alloc_array(arena, 2 * OPTION_COUNT + 3 + EXTRA_WORDS, sizeof(out[0]));
    const char *folder, *socket_name;
    dt_status st = DT_OK;
    size_t n = 0;

    *argv = NULL;
    DT_TRY(dt_connection_slots_folder(&folder, arena, err));
    DT_TRY(dt_ssh_socket_name(&socket_name, node, arena, err));
    out[n++] = "ssh";
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        out[n++] = "-o";
        out[n++] = options[i];
    }
    out[n++] = "-o";
    out[n++] = dt_arena_printf(arena, CONTROL_PATH "%s/%s", folder, socket_name);
    *argv = out;
    *count = n;
out:
    return st;
}

static dt_status ssh_command(const char ***argv, const char *node, const char *const *words,
                             dt_arena *arena, dt_error *err)
{
    dt_status st;
    size_t n;

    DT_TRY(begin(argv, &n, node, arena, err));
    (*argv)[n++] = "--";
    (*argv)[n++] = node;
    (*argv)[n++] = script(words, arena);
out:
    if (st != DT_OK)
        *argv = NULL;
    return st;
}

static const char *ssh_shared_socket(const char *const *argv)
{
    const size_t front = sizeof(CONTROL_PATH) - 1;

    for (; *argv != NULL; argv++)
        if (strncmp(*argv, CONTROL_PATH, front) == 0)
            return *argv + front;
    return NULL;
}

static dt_status ssh_renew(const char ***argv, const char *node, dt_arena *arena, dt_error *err)
{
    dt_status st;
    size_t n;

    dt_ssh_forget();
    DT_TRY(begin(argv, &n, node, arena, err));
    (*argv)[n++] = "-O";
    (*argv)[n++] = "stop"; /* the master accepts no new sessions, and exits after its last one */
    (*argv)[n++] = "--";
    (*argv)[n++] = node;
out:
    return st;
}

/* Inserts options before the usual ones: ssh uses the first value of an option. */
static void put_first(const char ***argv, const char *const *own, size_t own_count, dt_arena *arena)
{
    const char **usual = *argv, **out;
    size_t count = 0;

    while (usual[count] != NULL)
        count++;
    out = dt_arena_alloc_array(arena, own_count + count + 1, sizeof(out[0]));
    *argv = out;
    out[0] = usual[0];
    memcpy(out + 1, own, own_count * sizeof(own[0]));
    memcpy(out + 1 + own_count, usual + 1, count * sizeof(usual[0])); /* includes the final NULL */
}

static dt_status ssh_command_apart(const char ***argv, const char *node, const char *const *words,
                                   dt_arena *arena, dt_error *err)
{
    static const char *const own[] = {"-o", "ControlMaster=no", "-o", CONTROL_PATH "none"};
    dt_status st = ssh_command(argv, node, words, arena, err);

    if (st == DT_OK)
        put_first(argv, own, sizeof(own) / sizeof(own[0]), arena);
    return st;
}

/* Connects up to the server's banner and tries no authentication: a later step can stall on a
 * machine that is alive. */
static dt_status ssh_ping(const char ***argv, const char *node, dt_arena *arena, dt_error *err)
{
    static const char *const own[] = {
        "-o", "LogLevel=DEBUG1",   "-o", "ControlMaster=no",
        "-o", CONTROL_PATH "none", "-o", "PreferredAuthentications=none"};
    dt_status st;
    size_t n;

    DT_TRY(begin(argv, &n, node, arena, err));
    (*argv)[n++] = "--";
    (*argv)[n++] = node;
    (*argv)[n++] = "true";
    put_first(argv, own, sizeof(own) / sizeof(own[0]), arena);
out:
    return st;
}

const dt_transport dt_transport_ssh = {
    .kind = "ssh",
    .reaches = ssh_reaches,
    .command = ssh_command,
    .explain = dt_ssh_error,
    .renew = ssh_renew,
    .is_refused = dt_ssh_error_is_refusal,
    .contact = dt_ssh_error_contact,
    .ping = ssh_ping,
    .command_apart = ssh_command_apart,
    .shared_socket = ssh_shared_socket,
};
