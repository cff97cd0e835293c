#include "runner/node_setup/node_setup.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/process.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

#define AGENT_MAX_BYTES  ((size_t)64 << 20)
#define ANSWER_MAX_BYTES ((size_t)1 << 20)
#define PROBE_SECONDS    20.0
#define UPLOAD_SECONDS   120.0

enum { SYSTEM_NEEDS_AGENT = 42, SYSTEM_NO_PLACE = 43 };

/* Sets $agent, the agent's path on the node. $1 is its hash. Its size, $2, shows whether a crash
 * left it incomplete. */
#define FIND_AGENT                                                          \
    "umask 077\n"                                                           \
    "case ${XDG_CACHE_HOME-} in\n"                                          \
    "/*) cache=$XDG_CACHE_HOME/dtrun ;;\n"                                  \
    "*) cache=${HOME:?the account has no home directory}/.cache/dtrun ;;\n" \
    "esac\n"                                                                \
    "agent=$cache/agents/$1\n"

static const char call_script[] =
    FIND_AGENT "if [ -f \"$agent\" ] && [ \"$(wc -c <\"$agent\")\" -eq \"$2\" ]; then\n"
               "    shift 2\n"
               "    \"$agent\" node \"$@\"\n"
               "    code=$?\n"
               "else\n"
               "    code=42\n"
               "fi\n"
               "case $code in 42 | 126) uname -s; uname -m ;; esac\n"
               "exit $code";

static const char put_script[] = FIND_AGENT
    "new=$agent.$$\n"
    "why=$({ mkdir -p \"$cache/agents\" && cat >\"$new\" &&\n"
    "    [ \"$(wc -c <\"$new\")\" -eq \"$2\" ] && chmod 700 \"$new\" && mv -f \"$new\" \"$agent\"\n"
    "} 2>&1) && exit 0\n"
    "rm -f \"$new\" 2>/dev/null\n"
    "echo \"cannot put a program into '$cache': $why\" >&2\n"
    "exit 43";

dt_status dt_bootstrap_init(dt_bootstrap *out, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_bootstrap){0};
    dt_strbuf_init(&out->bytes);
    DT_TRY(dt_dir_program(&out->path, "dtrun-agent", "DTRUN_AGENT", arena, err));
    DT_TRY(dt_file_read(&out->bytes, out->path, AGENT_MAX_BYTES, err));
    dt_digest_of(out->digest, out->bytes.data, out->bytes.length);
out:
    return st;
}

void dt_bootstrap_release(dt_bootstrap *bootstrap)
{
    if (bootstrap->path != NULL)
        dt_strbuf_release(&bootstrap->bytes);
}

/* Compares the output of `uname -s` and `uname -m` on the node with this machine. */
static dt_status check_system(const char *node, const char *answer, dt_error *err)
{
    char kernel[64] = "", machine[64] = "";
    struct utsname here;

    (void)sscanf(answer, "%63s %63s", kernel, machine);
    if (strcmp(kernel, "Linux") != 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "node '%s' runs %s: only Linux machines can be nodes", node,
                       kernel[0] != '\0' ? kernel : "an unknown system");
    if (uname(&here) == 0 && strcmp(machine, here.machine) != 0)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "node '%s' is a %s machine but this dtrun is built for %s: launch from a "
                       "machine of the same architecture",
                       node, machine, here.machine);
    return DT_OK;
}

static dt_status put_agent(const dt_bootstrap *bootstrap, const char *node,
                           const atomic_bool *cancelled, dt_error *err)
{
    char size[32];
    const char *const words[] = {"/bin/sh", "-c", put_script, "sh", bootstrap->digest, size, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf answer;
    dt_status st;

    snprintf(size, sizeof(size), "%zu", bootstrap->bytes.length);
    dt_strbuf_init(&answer);
    st = dt_nodes_ask(&answer, node, words, bootstrap->bytes.data, bootstrap->bytes.length,
                      UPLOAD_SECONDS, cancelled, &problem);
    dt_strbuf_release(&answer);
    if (st == DT_ERR_IO)
        return DT_FAIL(
            err, st,
            "%s: is there free space, and is ~/.cache writable? (it may be a link to another disk)",
            problem.message);
    return st == DT_OK ? st : DT_FAIL(err, st, "%s", problem.message);
}

/* Parses the agent's answer. *damaged: it is not JSON, or comes from a program with another
 * digest. */
static dt_status read_facts(json_t **facts, bool *damaged, const dt_strbuf *answer,
                            const dt_bootstrap *bootstrap, const char *node, dt_error *err)
{
    const char *agent;
    dt_status st = DT_OK;

    *damaged = true;
    DT_TRY(dt_json_parse(facts, answer->data, answer->length, node, err));
    DT_TRY(dt_json_get_string(&agent, *facts, "agent", node, err));
    if (strcmp(agent, bootstrap->digest) != 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "node '%s': the agent in its cache is damaged: remove ~/.cache/dtrun/agents there",
                 node);
    *damaged = false;
out:
    if (st != DT_OK) {
        json_decref(*facts);
        *facts = NULL;
    }
    return st;
}

/* Probes once. *put: copying the agent (again) can help. */
static dt_status ask_facts(json_t **facts, bool *put, const dt_bootstrap *bootstrap,
                           const char *node, const char *bundle, const atomic_bool *cancelled,
                           dt_error *err)
{
    char size[32];
    const char *const there[] = {"/bin/sh", "-c",   call_script,     "sh", bootstrap->digest, size,
                                 "probe",   bundle, bootstrap->seen, NULL};
    const char *const here[] = {bootstrap->path, "node", "probe", bundle, bootstrap->seen, NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf answer;
    int code = 0;

    *put = false;
    snprintf(size, sizeof(size), "%zu", bootstrap->bytes.length);
    dt_strbuf_init(&answer);
    DT_TRY(dt_nodes_ask_code(&answer, &code, &problem, node, dt_nodes_is_here(node) ? here : there,
                             NULL, 0, PROBE_SECONDS, cancelled, err));
    if (code == SYSTEM_NEEDS_AGENT || (code == DT_EXIT_CANNOT_RUN && !dt_nodes_is_here(node)))
        DT_TRY(check_system(node, answer.data, err));
    *put = code != 0;
    if (code == SYSTEM_NEEDS_AGENT)
        DT_THROW(err, DT_ERR_IO,
                 "node '%s': the agent is missing from its cache right after the upload", node);
    if (code == DT_EXIT_CANNOT_RUN)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "node '%s': cannot run programs from its cache (%s): the file system is mounted "
                 "noexec; make ~/.cache a link to one that is not",
                 node, problem.message);
    if (code != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "node '%s': %s (code %d)", node, problem.message, code);
    DT_TRY(read_facts(facts, put, &answer, bootstrap, node, err));
out:
    dt_strbuf_release(&answer);
    return st;
}

dt_status dt_bootstrap_probe(json_t **facts, int64_t *skew_ms, const dt_bootstrap *bootstrap,
                             const char *node, const char *bundle, const atomic_bool *cancelled,
                             dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int64_t time_ms;
    bool put;

    *facts = NULL;
    *skew_ms = 0;
    st = ask_facts(facts, &put, bootstrap, node, bundle, cancelled, &problem);
    if (st != DT_OK && put && !dt_nodes_is_here(node)) {
        DT_TRY(put_agent(bootstrap, node, cancelled, err));
        DT_TRY(ask_facts(facts, &put, bootstrap, node, bundle, cancelled, err));
    } else if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    DT_TRY(dt_json_get_int(&time_ms, *facts, "time_ms", node, err));
    *skew_ms = time_ms - dt_clock_wall_ms();
out:
    if (st != DT_OK) {
        json_decref(*facts);
        *facts = NULL;
    }
    return st;
}

dt_status dt_bootstrap_agent(const char **path, const dt_bootstrap *bootstrap, const char *node,
                             const json_t *facts, dt_arena *arena, dt_error *err)
{
    const char *cache;
    dt_status st = dt_json_get_string(&cache, facts, "cache", node, err);

    *path = NULL;
    if (st != DT_OK)
        return st;
    *path = dt_nodes_is_here(node)
                ? dt_arena_strdup(arena, bootstrap->path)
                : dt_arena_printf(arena, "%s/agents/%s", cache, bootstrap->digest);
    return DT_OK;
}
